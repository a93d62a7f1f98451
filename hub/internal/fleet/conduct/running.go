package conduct

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/peer/order"
)

// running is one rollout.
type running struct {
	c     *Conductor
	disk  *disk
	start time.Time     // of this process's time
	base  time.Duration // of the log when it was opened

	wake chan struct{}

	mu      sync.Mutex
	kept    kept
	orders  map[string][]byte // by id
	m       *rollout.Machine
	failure error // the log can take no more events: nothing is sent any more

	fresh     map[int]bool          // hosts that have not reported since the hub started
	alive     map[int]time.Duration // when a sign of life was last noted
	asked     map[int]time.Duration // when a report was last asked for
	reported  map[int]string        // the last report of a host, as text
	baseline  map[int]float64       // logarithms, of this stage
	stage     int                   // of the baseline; -1: none yet
	prepared  bool                  // the baseline is read, as far as this generation needs it
	preparing bool                  // the baseline is being read
	measuring map[int]bool          // after a soak
	answers   map[int]order.Answer  // the last one of each host
	// experiments is the context of all that run; stop ends them
	experiments context.Context
	stop        context.CancelFunc
	results     map[int]rollout.Event // of experiments
}

func newRunning(c *Conductor, d *disk, k kept, orders map[string][]byte) *running {
	return &running{c: c, disk: d, start: time.Now(), kept: k, orders: orders, m: rollout.New(k.Draft.Plan), stage: -1,
		wake: make(chan struct{}, 1), alive: make(map[int]time.Duration), asked: make(map[int]time.Duration),
		reported: make(map[int]string), baseline: make(map[int]float64), measuring: make(map[int]bool),
		answers: make(map[int]order.Answer), results: make(map[int]rollout.Event)}
}

// now is the time of the log.
func (r *running) now() time.Duration { return r.base + time.Since(r.start) }

// replay applies an event from the disk.
func (r *running) replay(l line) {
	r.base = max(r.base, l.At)
	if l.Baseline {
		r.keepBaseline(l.Event)
		return
	}
	r.apply(l.Event)
}

// apply hands an event to the machine, and keeps the results of experiments for readers.
func (r *running) apply(e rollout.Event) {
	if e.Kind == rollout.Measured && e.Error > 0 {
		r.results[e.Host] = e
	}
	if e.Kind == rollout.Sent || e.Kind == rollout.Answered && e.Code == order.InTrial {
		// A sign of life from before does not speak for the change.
		r.alive[e.Host] = max(r.alive[e.Host], e.At)
	}
	r.m.Apply(e)
}

func (r *running) keepBaseline(e rollout.Event) {
	if r.stage != r.m.Stage() {
		r.stage = r.m.Stage()
		clear(r.baseline)
	}
	r.baseline[e.Host] = e.Effect
}

// note writes events to the disk, and then applies them.
func (r *running) note(events ...rollout.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noteLocked(events...)
}

func (r *running) noteLocked(events ...rollout.Event) error {
	if len(events) == 0 || r.failure != nil {
		return r.failure
	}
	lines := make([]line, len(events))
	for i := range events {
		events[i].At = r.now()
		lines[i] = line{Event: events[i]}
	}
	if r.failure = r.disk.append(lines); r.failure != nil {
		r.c.o.Log.Error("fleet: the rollout stands still", "rollout", r.kept.Draft.Plan.ID, "error", r.failure)
		return r.failure
	}
	before := r.m.Phase()
	for _, e := range events {
		r.apply(e)
	}
	r.changed(before)
	return nil
}

// changed says what became of the rollout, and ends experiments that a halt has overtaken.
func (r *running) changed(before rollout.Phase) {
	now := r.m.Phase()
	if now != before {
		r.c.o.Log.Info("fleet: rollout", "rollout", r.kept.Draft.Plan.ID, "phase", now,
			"stage", rollout.StageNames[r.m.Stage()], "reason", r.m.Reason())
	}
	if r.stop != nil && (now == rollout.Halted || now == rollout.Unwinding) {
		r.stop()
		r.stop = nil
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// unfinished returns the hosts that this rollout may still send orders.
func (r *running) unfinished() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	if r.m.Phase() == rollout.Done {
		for _, i := range r.m.Missed() {
			if r.undoOf(i) != nil {
				all = append(all, r.kept.Draft.Plan.Hosts[i].ID)
			}
		}
		return all
	}
	for _, h := range r.kept.Draft.Plan.Hosts {
		all = append(all, h.ID)
	}
	return all
}

// again takes a new generation of orders.
func (r *running) again(d *Draft, orders [][]byte, byID map[string][]byte, by string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	id := d.Plan.ID
	event := rollout.Event{Kind: rollout.UndoAll, By: by}
	switch {
	case d.Generation != r.kept.Draft.Generation+1 || len(d.Hosts) != len(r.kept.Draft.Hosts):
		return fmt.Errorf("rollout %s: %w: another person has signed since; begin again", id, ErrNotNow)
	case d.Kind == Resume && !r.m.CanResume():
		return fmt.Errorf("resume rollout %s: %w: it is %s", id, ErrNotNow, r.m.Phase())
	case d.Kind == Resume:
		event = rollout.Event{Kind: rollout.Resumed, By: by}
	case d.Kind == Persist && !r.m.CanPersist():
		return fmt.Errorf("persist rollout %s: %w", id, r.notPersistable())
	case d.Kind == Persist:
		event = rollout.Event{Kind: rollout.PersistAll, By: by}
	}
	d.Plan = r.kept.Draft.Plan // the plan never changes
	k := kept{Draft: d, Orders: orders, By: by, Begun: r.kept.Begun, Undos: make(map[int][]byte)}
	for i := range d.Hosts {
		if b := r.undoOf(i); b != nil {
			k.Undos[i] = b
		}
	}
	if err := r.disk.write(k); err != nil {
		return err
	}
	r.kept, r.orders = k, byID
	r.prepared = false
	events := []rollout.Event{event}
	for i, h := range d.Hosts {
		if d.Kind != Undo && h.Of == "" && !h.Try {
			events = append(events, rollout.Event{Kind: rollout.Unsigned, Host: i})
		}
	}
	return r.noteLocked(events...)
}

// undoOf returns the signed order that takes the change of a host back; nil: none is valid.
func (r *running) undoOf(host int) []byte {
	if b := r.orders[r.kept.Draft.id(host, order.Undo)]; b != nil && !r.expired() {
		return b
	}
	b := r.kept.Undos[host]
	if e, err := order.Open(b); err == nil {
		if o, err := order.Parse(e.Payload); err == nil && time.Now().Unix() < o.NotAfter {
			return b
		}
	}
	return nil
}

// notPersistable says why the rollout cannot be persisted now.
func (r *running) notPersistable() error {
	switch {
	case r.m.Phase() != rollout.Done:
		return fmt.Errorf("%w: it is %s", ErrNotNow, r.m.Phase())
	case r.m.Undone():
		return fmt.Errorf("%w: it was undone", ErrNotNow)
	}
	return ErrUnproven
}

// run conducts the rollout until the context ends, or the log can take no more events. One that is
// over rests until a person signs again.
func (r *running) run(ctx context.Context) {
	ticker := time.NewTicker(r.c.o.Every)
	defer ticker.Stop()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		over, failed := r.step(ctx, &tasks)
		switch {
		case failed:
			return
		case over:
			ticker.Stop()
		default:
			ticker.Reset(r.c.o.Every)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
	}
}

// step looks at the rollout once. It reports whether the rollout is over, or cannot go on.
func (r *running) step(ctx context.Context, tasks *sync.WaitGroup) (over, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil || ctx.Err() != nil {
		return false, r.failure != nil
	}
	if r.m.Phase() == rollout.Done && len(r.m.Missed()) == 0 {
		return true, false
	}
	if err := r.noteLocked(r.signs()...); err != nil {
		return false, true
	}
	// A tick that changes nothing is not worth a line: it is applied, and written if it was.
	before, phase := r.m.Moves(), r.m.Phase()
	tick := rollout.Event{At: r.now(), Kind: rollout.Ticked}
	if r.m.Apply(tick); r.m.Moves() != before {
		if r.failure = r.disk.append([]line{{Event: tick}}); r.failure != nil {
			r.c.o.Log.Error("fleet: the rollout stands still", "rollout", r.kept.Draft.Plan.ID, "error", r.failure)
			return false, true
		}
		r.changed(phase)
	}
	switch r.m.Phase() {
	case rollout.Done:
		// Hosts that were lost while the others were undone are asked while an order can undo them.
		if !slices.ContainsFunc(r.m.Missed(), func(i int) bool { return r.undoOf(i) != nil }) {
			return true, false
		}
		r.askReports(ctx, tasks)
	case rollout.Halted:
		if r.m.Harmed() && r.canUndo() {
			return false, r.noteLocked(rollout.Event{Kind: rollout.UndoAll, By: "the hub, for measured harm"}) != nil
		}
		r.askReports(ctx, tasks)
	case rollout.Unwinding:
		r.askReports(ctx, tasks)
		r.act(ctx, tasks)
	default:
		r.act(ctx, tasks)
	}
	return false, false
}

// signs returns the signs of life that the machine waits for and has not seen.
func (r *running) signs() []rollout.Event {
	var all []rollout.Event
	t := r.kept.Draft.Plan.Timing
	now := r.now()
	for i, h := range r.kept.Draft.Plan.Hosts {
		if !r.m.Watched(i) {
			continue
		}
		seen := r.c.o.Hosts.Seen(h.ID)
		at := r.base + seen.Sub(r.start)
		if seen.IsZero() || at <= r.alive[i] || now-r.alive[i] < min(t.Settle, t.Deadline)/4 && r.alive[i] != 0 {
			continue
		}
		r.alive[i] = now
		all = append(all, rollout.Event{Kind: rollout.Alive, Host: i})
	}
	return all
}

// canUndo reports whether signed orders take the change back, on one host at least or where no host
// has it. Hosts without such an order are named as not undone.
func (r *running) canUndo() bool {
	kept := false
	for i := range r.kept.Draft.Hosts {
		if r.m.State(i).Kept() {
			if kept = true; r.undoOf(i) != nil {
				return true
			}
		}
	}
	return !kept
}

// expired reports whether the signatures are of no use any more.
func (r *running) expired() bool { return time.Now().Unix() >= r.kept.Draft.NotAfter }

// act does what the machine asks for.
func (r *running) act(ctx context.Context, tasks *sync.WaitGroup) {
	actions := r.m.Next()
	if len(actions) == 0 {
		return
	}
	if r.m.Phase() == rollout.Ordering && r.prepare(ctx, tasks) {
		return // the readings from before the stage come first
	}
	for _, a := range actions {
		switch {
		case a.Experiment:
			if r.hold(r.kept.Draft.experimentID(a.Host, 0, order.Try)) {
				return
			}
			if r.noteLocked(rollout.Event{Kind: rollout.Asked, Host: a.Host}) != nil {
				return
			}
			r.experiment(ctx, tasks, a.Host)
		case a.Verb == "":
			r.measure(ctx, tasks, a.Host)
		case a.Verb == order.Undo:
			if !r.undo(ctx, tasks, a.Host) {
				return
			}
		default:
			id := r.kept.Draft.id(a.Host, a.Verb)
			if r.hold(id) {
				return
			}
			if r.noteLocked(rollout.Event{Kind: rollout.Sent, Host: a.Host, Verb: a.Verb}) != nil {
				return
			}
			r.send(ctx, tasks, a.Host, a.Verb, r.orders[id])
		}
	}
}

// undo takes the change of a host back. A host without a valid order holds up no other.
func (r *running) undo(ctx context.Context, tasks *sync.WaitGroup, host int) (ok bool) {
	b := r.undoOf(host)
	switch {
	case b != nil:
		if r.noteLocked(rollout.Event{Kind: rollout.Sent, Host: host, Verb: order.Undo}) != nil {
			return false
		}
		r.send(ctx, tasks, host, order.Undo, b)
	case r.m.State(host) != rollout.Undoing: // the answer to an earlier one may still come
		return r.noteLocked(rollout.Event{Kind: rollout.Unsigned, Host: host}) == nil
	}
	return true
}

// hold halts the rollout if an order cannot be sent.
func (r *running) hold(id string) bool {
	_, signed := r.orders[id]
	if signed && !r.expired() {
		return false
	}
	why := "no person has signed the order " + id
	if signed {
		why = "the signatures have expired; a person has to sign again"
	}
	_ = r.noteLocked(rollout.Event{Kind: rollout.Held, By: why}) // a failure is in r.failure
	return true
}

// orderWithin is how long the hub waits for the answer of a host to one order.
const orderWithin = 70 * time.Second

// send hands an order to a host.
func (r *running) send(ctx context.Context, tasks *sync.WaitGroup, host int, verb order.Verb, envelope []byte) {
	id, generation := r.kept.Draft.Plan.Hosts[host].ID, r.kept.Draft.Generation
	tasks.Go(func() {
		ctx, stop := context.WithTimeout(ctx, orderWithin)
		defer stop()
		a, err := r.c.o.Hosts.Order(ctx, id, envelope)
		if err != nil {
			r.c.o.Log.Info("fleet: no answer to an order", "host", id, "verb", verb, "error", err)
			return // the machine sends it again
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if generation != r.kept.Draft.Generation && a.Code != order.Committed && a.Code != order.Undone {
			return // people have signed anew: this is not the answer to the present order
		}
		r.answers[host] = a
		_ = r.noteLocked(rollout.Event{Kind: rollout.Answered, Host: host, Verb: verb, Code: a.Code})
	})
}

// prepare reads the metric of the hosts of a stage and of those that they will be compared with,
// before the first of them changes. It reports whether that is still to be done.
func (r *running) prepare(ctx context.Context, tasks *sync.WaitGroup) bool {
	if r.preparing {
		return true
	}
	if r.stage != r.m.Stage() {
		r.stage, r.prepared = r.m.Stage(), false
		clear(r.baseline)
	}
	if r.prepared {
		return false
	}
	r.prepared = true
	var wanted []int
	for changed, like := range r.m.Wanted() {
		// Both are read at the same time. What was read of a host that is changed by now stays.
		if r.m.State(changed) == rollout.Pending {
			wanted = append(wanted, changed, like)
		}
	}
	if len(wanted) == 0 {
		return false
	}
	slices.Sort(wanted)
	r.preparing = true
	plan, change := r.kept.Draft.Plan, r.kept.Draft.Change
	tasks.Go(func() {
		values := make([]float64, len(wanted))
		var all sync.WaitGroup
		for k, i := range wanted {
			// As long as after the soak.
			all.Go(func() {
				for began := time.Now(); ; {
					values[k] = r.reading(ctx, plan.Hosts[i].ID, change)
					if !math.IsNaN(values[k]) || time.Since(began) >= plan.Timing.Collect || wait(ctx, r.c.o.Every) != nil {
						return
					}
				}
			})
		}
		all.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.preparing = false
		var lines []line
		for k, i := range wanted {
			if v := values[k]; !math.IsNaN(v) {
				r.baseline[i] = v
				lines = append(lines, line{Event: rollout.Event{At: r.now(), Kind: rollout.Measured, Host: i, Effect: v},
					Baseline: true})
			}
		}
		if len(lines) > 0 && r.failure == nil {
			if r.failure = r.disk.append(lines); r.failure != nil {
				r.c.o.Log.Error("fleet: the rollout stands still", "rollout", plan.ID, "error", r.failure)
			}
		}
		// Without it nothing could judge the change of this host.
		if k := slices.IndexFunc(values, math.IsNaN); k >= 0 && ctx.Err() == nil && r.m.Phase() == rollout.Ordering {
			_ = r.noteLocked(rollout.Event{Kind: rollout.Held,
				By: fmt.Sprintf("the measurement of host %s before %s is missing", plan.Hosts[wanted[k]].ID,
					rollout.StageNames[r.m.Stage()])}) // a failure is in r.failure
		}
		r.changed(r.m.Phase())
	})
	return true
}

// reading returns the logarithm of a host's metric, signed so that more is better; NaN if there is
// none.
func (r *running) reading(ctx context.Context, host string, c Change) float64 {
	v, err := r.metric(ctx, host, c)
	if err != nil {
		r.c.o.Log.Warn("fleet: a measurement is missing", "host", host, "error", err)
		return math.NaN()
	}
	return v
}

func (r *running) metric(ctx context.Context, host string, c Change) (float64, error) {
	ctx, stop := context.WithTimeout(ctx, c.Window+orderWithin)
	defer stop()
	v, err := r.c.o.Hosts.Measure(ctx, host, message.Figure{Metric: c.Metric, DurationMS: c.Window.Milliseconds()})
	switch {
	case err != nil:
		return 0, err
	case !(v > 0) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s of %g", c.Metric, v)
	case !c.Metric.MoreIsBetter():
		return -math.Log(v), nil
	}
	return math.Log(v), nil
}

// measure reads the metric of a host after a soak.
func (r *running) measure(ctx context.Context, tasks *sync.WaitGroup, host int) {
	before, have := r.baseline[host]
	if r.measuring[host] || !have {
		return // without the reading before, the time for the measurements runs out, which halts
	}
	r.measuring[host] = true
	id, change := r.kept.Draft.Plan.Hosts[host].ID, r.kept.Draft.Change
	tasks.Go(func() {
		v := r.reading(ctx, id, change)
		if math.IsNaN(v) {
			select { // it is asked again, not at once
			case <-ctx.Done():
			case <-time.After(r.c.o.Every):
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.measuring, host)
		if !math.IsNaN(v) && ctx.Err() == nil {
			_ = r.noteLocked(rollout.Event{Kind: rollout.Measured, Host: host, Effect: v - before})
		}
	})
}

// askReports asks hosts of which the hub does not know what became of their orders.
func (r *running) askReports(ctx context.Context, tasks *sync.WaitGroup) {
	plan := r.kept.Draft.Plan
	t := plan.Timing
	now := r.now()
	wait := max(t.Settle, 2*r.c.o.Every)
	for i, h := range plan.Hosts {
		s := r.m.State(i)
		if !r.fresh[i] && (!r.m.InFlight(i) && s != rollout.Lost || s == rollout.Undoing || s == rollout.Measuring) {
			continue
		}
		if at, asked := r.asked[i]; asked && now-at < wait {
			continue
		}
		r.asked[i] = now
		tasks.Go(func() { r.askOne(ctx, i, h.ID, plan.ID, s) })
	}
}

func (r *running) askOne(ctx context.Context, host int, id, rolloutID string, was rollout.State) {
	ctx, stop := context.WithTimeout(ctx, orderWithin)
	defer stop()
	report, err := r.c.o.Hosts.Report(ctx, id, rolloutID)
	if err != nil {
		return // asked again while it is lost
	}
	text, err := json.Marshal(report.Orders)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fresh, host)
	if err != nil || r.m.State(host) != was || len(report.Orders) == 0 && was == rollout.Pending ||
		r.reported[host] == string(was)+string(text) {
		return
	}
	r.reported[host] = string(was) + string(text)
	_ = r.noteLocked(rollout.Event{Kind: rollout.Stated, Host: host, Orders: report.Orders})
}
