package conduct

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/peer/order"
)

// attempts is how often an order of an experiment is sent, or a reading asked for, at least. It is
// the same order: the host carries it out once.
const attempts = 3

// onceMore reports whether what n attempts since began have not brought is worth another one. A
// host that has lost its connection is back within a minute.
func onceMore(n int, began time.Time) bool { return n < attempts || time.Since(began) < orderWithin }

// experiment lets a host measure the change against itself. The caller holds the lock.
func (r *running) experiment(ctx context.Context, tasks *sync.WaitGroup, host int) {
	if r.stop == nil {
		// One context for all experiments: a halt ends them together.
		var stop context.CancelFunc
		r.experiments, stop = context.WithCancel(ctx)
		r.stop = stop
	}
	ctx = r.experiments
	d := r.kept.Draft
	orders := r.orders
	tasks.Go(func() {
		effects, err := r.pairs(ctx, d, orders, host)
		if ctx.Err() != nil {
			return // halted: a trial that is in force ends alone
		}
		e := rollout.Event{Kind: rollout.Measured, Host: host, Pairs: len(effects)}
		if err == nil {
			e.Effect = stats.Mean(effects)
			e.Error = stats.StdDev(effects) / math.Sqrt(float64(len(effects)))
			if !(e.Error > 0) {
				err = errors.New("all pairs are equal")
			}
		}
		if err != nil {
			e.By = fmt.Sprintf("%.300s", err.Error())
			e.Effect, e.Error = 0, 0
		}
		_ = r.note(e)
	})
}

// pairs measures all pairs of an experiment.
func (r *running) pairs(ctx context.Context, d *Draft, orders map[string][]byte, host int) ([]float64, error) {
	coin := rand.New(rand.NewPCG(d.Plan.Seed, uint64(host)<<16+uint64(d.Generation)))
	var effects []float64
	for pair := range d.Pairs {
		withFirst := coin.IntN(2) == 1
		var with, without float64
		var err error
		if !withFirst {
			if without, err = r.without(ctx, d, host); err != nil {
				return nil, err
			}
		}
		if with, err = r.trial(ctx, d, orders, host, pair); err != nil {
			return nil, err
		}
		if withFirst {
			if without, err = r.without(ctx, d, host); err != nil {
				return nil, err
			}
		}
		effects = append(effects, with-without)
	}
	return effects, nil
}

// without measures a host without the change.
func (r *running) without(ctx context.Context, d *Draft, host int) (float64, error) {
	began := time.Now()
	return r.patient(ctx, d, host, func(n int) bool { return onceMore(n, began) })
}

// patient reads the metric of a host until it has it, or more says that n times are enough. A host
// loses a question or an answer with its connection.
func (r *running) patient(ctx context.Context, d *Draft, host int, more func(n int) bool) (float64, error) {
	for n := 1; ; n++ {
		v, err := r.metric(ctx, d.Plan.Hosts[host].ID, d.Change)
		if err == nil || !more(n) {
			return v, err
		}
		if err := wait(ctx, r.c.o.Every); err != nil {
			return 0, err
		}
	}
}

// trial measures a host with the change in force, and takes the change back.
func (r *running) trial(ctx context.Context, d *Draft, orders map[string][]byte, host, pair int) (float64, error) {
	id := d.Plan.Hosts[host].ID
	began := time.Now()
	// A reading that ends after the trial would be one of the old value. The trial begins later than
	// this, at the host.
	last := began.Add(d.Plan.Timing.Deadline - slack - d.Window)
	if err := r.must(ctx, id, orders[d.experimentID(host, pair, order.Try)], order.InTrial); err != nil {
		return 0, err
	}
	value, err := 0.0, wait(ctx, d.Pause)
	if err == nil {
		value, err = r.patient(ctx, d, host, func(n int) bool {
			return onceMore(n, began) && time.Now().Add(r.c.o.Every).Before(last)
		})
	}
	if took := time.Since(began); err == nil && took > d.Plan.Timing.Deadline {
		err = fmt.Errorf("the reading with the change came after %v, and a trial lasts %v", took.Round(time.Second),
			d.Plan.Timing.Deadline)
	}
	back := r.must(ctx, id, orders[d.experimentID(host, pair, order.Undo)], order.Undone)
	return value, errors.Join(err, back, wait(ctx, d.Pause))
}

// must sends an order of an experiment until it has the answer. Any other answer is an error.
func (r *running) must(ctx context.Context, host string, envelope []byte, want order.Code) error {
	began := time.Now()
	for n := 1; ; n++ {
		within, stop := context.WithTimeout(ctx, orderWithin)
		a, err := r.c.o.Hosts.Order(within, host, envelope)
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && a.Code == want:
			return nil
		case err == nil && a.Code != order.Busy:
			return fmt.Errorf("the host answers %s: %s", a.Code, a.Text)
		case err == nil:
			err = fmt.Errorf("the host answers %s: %s", a.Code, a.Text)
		}
		if !onceMore(n, began) {
			return err
		}
		if err := wait(ctx, r.c.o.Every); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
