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

// attempts is how often an order of an experiment is sent. It is the same order: the host carries
// it out once.
const attempts = 3

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
			if without, err = r.metric(ctx, d.Plan.Hosts[host].ID, d.Change); err != nil {
				return nil, err
			}
		}
		if with, err = r.trial(ctx, d, orders, host, pair); err != nil {
			return nil, err
		}
		if withFirst {
			if without, err = r.metric(ctx, d.Plan.Hosts[host].ID, d.Change); err != nil {
				return nil, err
			}
		}
		effects = append(effects, with-without)
	}
	return effects, nil
}

// trial measures a host with the change in force, and takes the change back.
func (r *running) trial(ctx context.Context, d *Draft, orders map[string][]byte, host, pair int) (float64, error) {
	id := d.Plan.Hosts[host].ID
	if err := r.must(ctx, id, orders[d.experimentID(host, pair, order.Try)], order.InTrial); err != nil {
		return 0, err
	}
	value, err := 0.0, wait(ctx, d.Pause)
	if err == nil {
		value, err = r.metric(ctx, id, d.Change)
	}
	back := r.must(ctx, id, orders[d.experimentID(host, pair, order.Undo)], order.Undone)
	return value, errors.Join(err, back, wait(ctx, d.Pause))
}

// must sends an order of an experiment until it has the answer. Any other answer is an error.
func (r *running) must(ctx context.Context, host string, envelope []byte, want order.Code) error {
	var err error
	for range attempts {
		var a order.Answer
		within, stop := context.WithTimeout(ctx, orderWithin)
		a, err = r.c.o.Hosts.Order(within, host, envelope)
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
		if err := wait(ctx, r.c.o.Every); err != nil {
			return err
		}
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
