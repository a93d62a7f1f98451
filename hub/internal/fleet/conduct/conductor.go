package conduct

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// Hosts is the way to the hosts, which the methods name as orders do. Any method may be called from
// several goroutines.
type Hosts interface {
	// Order hands a signed order to a host. After an error it is not known whether the host has it.
	Order(ctx context.Context, host string, envelope []byte) (order.Answer, error)
	Measure(ctx context.Context, host string, m message.Figure) (float64, error)
	// Report returns what became of the orders of a rollout.
	Report(ctx context.Context, host, rollout string) (executor.Report, error)
	// Knob returns what a knob holds at each host that answers.
	Knob(ctx context.Context, hosts []string, id knob.ID) (map[string]Reading, error)
	// Seen returns when a host last spoke; zero: not since the hub started.
	Seen(host string) time.Time
}

// Reading is what a host says of a knob: its value, or why there is none.
type Reading struct {
	Value knob.Value
	Error string
}

// Options are what a conductor needs.
type Options struct {
	Dir   string
	FS    durable.FS // nil: the operating system's
	Hosts Hosts
	Log   *slog.Logger
	Every time.Duration // between two looks at a rollout; 0: a second
}

// Conductor conducts the rollouts of one hub. Its methods may be called from several goroutines.
type Conductor struct {
	o     Options
	epoch uint64

	mu   sync.Mutex
	all  map[string]*running
	ctx  context.Context // of Run; nil before it
	busy sync.WaitGroup
}

// The errors of a conductor.
var (
	ErrNoRollout = errors.New("this hub has no such rollout")
	ErrNotNow    = errors.New("not now")
	ErrUnproven  = errors.New("its benefit is not proven, or the hub has lost the proof")
)

// Open reads the rollouts of a hub. Those that are not over are halted.
func Open(o Options) (*Conductor, error) {
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	if err := durable.MkdirAll(o.FS, o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open rollouts: %w", err)
	}
	c := &Conductor{o: o, all: make(map[string]*running)}
	var err error
	if c.epoch, err = nextEpoch(o.FS, o.Dir); err != nil {
		return nil, err
	}
	names, err := o.FS.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open rollouts: %w", err)
	}
	for _, name := range names {
		if !order.ValidName(name) || name == epochName {
			continue
		}
		r, err := c.open(name)
		if err != nil {
			// One damaged rollout must not keep the hub from its other work; its hosts know the rest.
			o.Log.Error("fleet: a rollout is not readable", "rollout", name, "error", err)
			continue
		}
		if r != nil {
			c.all[name] = r
		}
	}
	return c, nil
}

func (c *Conductor) open(name string) (*running, error) {
	d, k, lines, err := openDisk(c.o.FS, filepath.Join(c.o.Dir, name))
	if err != nil {
		return nil, err
	}
	if k.Draft == nil { // the hub died before the first signature was kept
		return nil, d.log.Close()
	}
	orders, err := k.Draft.signed(k.Orders)
	if err != nil {
		return nil, errors.Join(err, d.log.Close())
	}
	r := newRunning(c, d, k, orders)
	for _, l := range lines {
		r.replay(l)
	}
	if r.m.Phase() != rollout.Done {
		if err := r.note(rollout.Event{Kind: rollout.Started}); err != nil {
			return nil, errors.Join(err, d.log.Close())
		}
		r.fresh = make(map[int]bool, len(k.Draft.Hosts))
		for i := range k.Draft.Hosts {
			r.fresh[i] = true
		}
	}
	return r, nil
}

// Run conducts until the context ends.
func (c *Conductor) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	for _, r := range c.all {
		c.start(r)
	}
	c.mu.Unlock()
	<-ctx.Done()
	c.busy.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.all {
		if err := r.disk.log.Close(); err != nil {
			c.o.Log.Error("fleet: close the log of a rollout", "error", err)
		}
	}
}

// start begins to conduct a rollout; the caller holds the lock.
func (c *Conductor) start(r *running) {
	if c.ctx != nil && c.ctx.Err() == nil {
		c.busy.Go(func() { r.run(c.ctx) })
	}
}

// Epoch is that of this start of the hub.
func (c *Conductor) Epoch() uint64 { return c.epoch }

// Names returns the rollouts, sorted.
func (c *Conductor) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.all))
}

func (c *Conductor) find(id string) (*running, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.all[id]
	if !ok {
		return nil, fmt.Errorf("rollout %.70q: %w", id, ErrNoRollout)
	}
	return r, nil
}

// Taken returns the hosts of unfinished rollouts, with the rollout.
func (c *Conductor) Taken() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := make(map[string]string)
	for id, r := range c.all {
		for _, host := range r.unfinished() {
			taken[host] = id
		}
	}
	return taken
}

// free returns an error if a host of a draft is in another rollout, which may have begun since the
// draft was made. The caller holds the lock.
func (c *Conductor) free(d *Draft) error {
	wanted := make(map[string]string, len(d.Hosts))
	for i, h := range d.Plan.Hosts {
		wanted[h.ID] = d.Hosts[i].Name
	}
	for id, r := range c.all {
		if id == d.Plan.ID {
			continue
		}
		for _, host := range r.unfinished() {
			if name, both := wanted[host]; both {
				return fmt.Errorf("%s rollout %s: %w: host %s is in rollout %s, which is not over; make a new plan", d.Kind,
					d.Plan.ID, ErrNotNow, name, id)
			}
		}
	}
	return nil
}

// Begin takes a draft that people have signed, and begins, resumes or undoes the rollout.
func (c *Conductor) Begin(d *Draft, orders [][]byte, by string) error {
	if err := d.check(); err != nil {
		return err
	}
	byID, err := d.signed(orders)
	if err != nil {
		return err
	}
	// A rollout whose orders no host takes would only keep its hosts from other rollouts.
	if time.Now().Unix() >= d.NotAfter {
		return fmt.Errorf("rollout %s: %w", d.Plan.ID, ErrLate)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, known := c.all[d.Plan.ID]
	if known && d.Kind == Apply {
		return fmt.Errorf("rollout %s: there is one of this name", d.Plan.ID)
	}
	if d.Kind == Apply || d.Kind == Persist {
		if err := c.free(d); err != nil {
			return err
		}
	}
	if known {
		return r.again(d, orders, byID, by)
	}
	if d.Kind == Resume || d.Kind == Persist {
		return fmt.Errorf("rollout %s: %w", d.Plan.ID, ErrNoRollout)
	}
	disk, old, _, err := openDisk(c.o.FS, filepath.Join(c.o.Dir, d.Plan.ID))
	if err != nil {
		return err
	}
	k := kept{Draft: d, Orders: orders, By: by, Begun: time.Now().UTC().Truncate(time.Second)}
	if old.Draft != nil {
		err = fmt.Errorf("rollout %s: there is one of this name, which is not readable", d.Plan.ID)
	} else {
		err = disk.write(k)
	}
	if err != nil {
		return errors.Join(err, disk.log.Close())
	}
	r = newRunning(c, disk, k, byID)
	if d.Kind == Undo { // this hub has lost the rollout: the hosts have reported what is in force
		events := []rollout.Event{}
		for i, h := range d.Hosts {
			if h.Of != "" {
				events = append(events, rollout.Event{Kind: rollout.Stated, Host: i, Orders: []executor.Standing{{Order: h.Of,
					Rollout: d.Plan.ID, Verb: order.Try, Answer: order.Answer{Order: h.Of, Code: order.Committed}}}})
			}
		}
		if err := r.note(append(events, rollout.Event{Kind: rollout.UndoAll, By: by})...); err != nil {
			return errors.Join(err, disk.log.Close())
		}
	}
	c.all[d.Plan.ID] = r
	c.start(r)
	return nil
}

// Halt stops a rollout: no order is sent until a person resumes or undoes it.
func (c *Conductor) Halt(id, by string) error {
	r, err := c.find(id)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.m.Phase() {
	case rollout.Halted, rollout.Done, rollout.Unwinding:
		return fmt.Errorf("halt rollout %s: %w: it is %s", id, ErrNotNow, r.m.Phase())
	}
	return r.noteLocked(rollout.Event{Kind: rollout.Stopped, By: by})
}
