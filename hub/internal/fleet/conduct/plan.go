package conduct

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// Candidate is a member that a rollout could change.
type Candidate struct {
	Host rollout.Host
	Name string
}

// early is how long before the signature orders are valid: clocks differ.
const early = time.Minute

// askers is how many hosts are asked for their reports at a time.
const askers = 64

// Mistake is a change that no host could carry out.
type Mistake struct{ error }

func (m Mistake) Unwrap() error { return m.error }

// ErrNothing reports a selection of which no host can be changed, ErrNoChange a rollout of which no
// host has the change.
var (
	ErrNothing  = errors.New("no host of the selection can be changed")
	ErrNoChange = errors.New("no host reports its change in force")
)

// NewDraft asks the hosts what they hold and whether they take orders, and plans a rollout. Nothing
// is sent to change anything.
func (c *Conductor) NewDraft(ctx context.Context, change Change, timing rollout.Timing, valid time.Duration,
	all []Candidate) (*Draft, error) {
	id, err := knob.ParseID(string(change.Knob))
	if err != nil {
		return nil, Mistake{err}
	}
	change.Knob = id
	if err := change.Check(timing); err != nil {
		return nil, Mistake{err}
	}
	definition, _ := knob.Catalogue().Lookup(id) // Check has looked it up
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	d := &Draft{Kind: Apply, Change: change, Epoch: c.epoch}
	taken := c.Taken()
	values, reports, err := c.ask(ctx, all, id, "")
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Host)
	var hosts []rollout.Host
	held := make(map[knob.Value]bool)
	for _, one := range all {
		h := one.Host
		value, answered := values[h.ID]
		report := reports[h.ID]
		reason := ""
		switch {
		case taken[h.ID] != "":
			reason = "it is in rollout " + taken[h.ID] + ", which is not over"
		case !answered:
			reason = "it does not answer"
		case h.Class == "":
			reason = "its class is not known yet: the hub has no facts of it"
		case value.Error != "":
			reason = "the knob is " + value.Error
		case report.err != nil:
			reason = "it takes no orders: " + report.err.Error()
		case report.Host != h.ID:
			reason = fmt.Sprintf("root there knows this host as %.70q", report.Host)
		case definition.Equal(value.Value, change.To):
			reason = "it holds the value already"
		}
		if reason != "" {
			d.Missing = append(d.Missing, Missing{h.ID, one.Name, reason})
			continue
		}
		byID[h.ID] = Host{Name: one.Name, Expect: value.Value, Serial: report.Serials[id], Epoch: report.Epoch,
			Try: true}
		hosts = append(hosts, h)
		held[value.Value] = true
	}
	if len(hosts) == 0 {
		return d, ErrNothing
	}
	for i := range hosts {
		if len(held) > 1 { // hosts that hold different values are no like hosts
			hosts[i].Class += " " + string(byID[hosts[i].ID].Expect)
		}
	}
	d.Plan, err = rollout.NewPlan("r"+hex.EncodeToString(random[:4]), binary.BigEndian.Uint64(random[4:]), hosts, timing)
	if err != nil {
		return d, err
	}
	for i, h := range d.Plan.Hosts {
		one := byID[h.ID]
		one.Experiment = d.Plan.Stage[i] == rollout.Experiment || d.Plan.ByHost[i]
		d.Hosts = append(d.Hosts, one)
	}
	d.validFor(valid)
	return d, nil
}

func (d *Draft) validFor(valid time.Duration) {
	now := time.Now()
	valid = min(cmp.Or(valid, order.MaxValidity), order.MaxValidity-early)
	d.NotBefore, d.NotAfter = now.Add(-early).Unix(), now.Add(valid).Unix()
}

// reported is the report of a host, or why there is none.
type reported struct {
	executor.Report
	err error
}

// ask reads a knob and the reports of all hosts. Without a knob it asks for the reports alone.
func (c *Conductor) ask(ctx context.Context, all []Candidate, id knob.ID, of string) (map[string]Reading,
	map[string]reported, error) {
	var values map[string]Reading
	var ids []string
	for _, one := range all {
		ids = append(ids, one.Host.ID)
	}
	if id != "" {
		var err error
		if values, err = c.o.Hosts.Knob(ctx, ids, id); err != nil {
			return nil, nil, err
		}
	}
	reports := make(map[string]reported, len(ids))
	var mu sync.Mutex
	var asking sync.WaitGroup
	gate := make(chan struct{}, askers)
	for _, host := range ids {
		gate <- struct{}{}
		asking.Go(func() {
			defer func() { <-gate }()
			within, stop := context.WithTimeout(ctx, orderWithin)
			defer stop()
			r, err := c.o.Hosts.Report(within, host, of)
			mu.Lock()
			defer mu.Unlock()
			reports[host] = reported{r, err}
		})
	}
	asking.Wait()
	return values, reports, ctx.Err()
}

// Again asks the hosts of a rollout what became of it, and returns the draft with which a person
// resumes, persists or undoes it.
func (c *Conductor) Again(ctx context.Context, id string, kind Kind, valid time.Duration) (*Draft, error) {
	r, err := c.find(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	old, phase, left := *r.kept.Draft, r.m.Phase(), r.m.ResumeIn()
	var notNow error
	if kind == Persist && !r.m.CanPersist() {
		notNow = fmt.Errorf("persist rollout %s: %w", id, r.notPersistable())
	}
	r.mu.Unlock()
	if notNow != nil {
		return nil, notNow
	}
	if kind == Resume && phase != rollout.Halted {
		return nil, fmt.Errorf("resume rollout %s: %w: it is %s", id, ErrNotNow, phase)
	}
	if kind == Resume && left > 0 {
		return nil, fmt.Errorf("resume rollout %s: %w: the trials from before the halt end within %v", id, ErrNotNow,
			left.Round(time.Second))
	}
	var all []Candidate
	for i, h := range old.Plan.Hosts {
		all = append(all, Candidate{h, old.Hosts[i].Name})
	}
	values, reports, err := c.ask(ctx, all, old.Knob, "")
	if err != nil {
		return nil, err
	}
	d := old
	d.Kind, d.Generation, d.Epoch, d.Hosts, d.Missing = kind, old.Generation+1, max(c.epoch, old.Epoch), nil, nil
	definition, _ := knob.Catalogue().Lookup(old.Knob) // NewDraft has looked it up
	r.mu.Lock()
	defer r.mu.Unlock()
	resting := phase == r.m.Phase() && (phase == rollout.Halted || phase == rollout.Done)
	for i, h := range d.Plan.Hosts {
		report := reports[h.ID]
		one := Host{Name: old.Hosts[i].Name, Expect: old.Hosts[i].Expect, Serial: report.Serials[old.Knob],
			Epoch: report.Epoch}
		if report.err != nil {
			d.Missing = append(d.Missing, Missing{h.ID, one.Name, report.err.Error()})
			d.Hosts = append(d.Hosts, one)
			continue
		}
		var orders []executor.Standing
		for _, s := range report.Orders {
			if s.Rollout == id {
				orders = append(orders, s)
			}
		}
		// While a rollout runs, its answers are newer than this report, and its experiments are no part
		// of it.
		if resting && (len(orders) > 0 || r.m.State(i) != rollout.Pending) {
			if err := r.noteLocked(rollout.Event{Kind: rollout.Stated, Host: i, Orders: orders}); err != nil {
				return nil, err
			}
		}
		if one.Of = inForce(orders); kind == Persist && persisted(orders) {
			one.Of = "" // nothing is left to sign
		}
		if s := r.m.State(i); kind == Resume && (s == rollout.Pending || s == rollout.Reverted) {
			value, ok := values[h.ID]
			if !ok || value.Error != "" {
				d.Missing = append(d.Missing, Missing{h.ID, one.Name, "the knob is not readable"})
				d.Hosts = append(d.Hosts, one)
				continue
			}
			if !definition.Equal(value.Value, one.Expect) {
				d.Missing = append(d.Missing, Missing{h.ID, one.Name, fmt.Sprintf("the knob holds %.60q, not %.60q", value.Value,
					one.Expect)})
			}
			one.Try = true
			one.Experiment = (d.Plan.Stage[i] == rollout.Experiment || d.Plan.ByHost[i]) && !r.m.Experimented(i)
		}
		d.Hosts = append(d.Hosts, one)
	}
	// Of a rollout that is not done, an undo without an order is its end.
	none := !slices.ContainsFunc(d.Hosts, func(h Host) bool { return h.Of != "" })
	if (kind == Undo || kind == Persist) && phase == rollout.Done && none {
		silent := ""
		if n := len(d.Missing); n > 0 {
			silent = fmt.Sprintf(", and %d hosts give no report", n)
		}
		if kind == Persist {
			return nil, fmt.Errorf("persist rollout %s: %w that a restart would end%s", id, ErrNoChange, silent)
		}
		return nil, fmt.Errorf("undo rollout %s: %w%s", id, ErrNoChange, silent)
	}
	d.validFor(valid)
	return &d, nil
}

// inForce returns the try whose change is in force by the report of a host; empty: none.
func inForce(orders []executor.Standing) string {
	of := ""
	for _, s := range orders {
		switch {
		case s.Verb == order.Try && (s.Answer.Code == order.Committed || s.Answer.Code == order.InTrial):
			of = s.Order
		case s.Answer.Code == order.Persisted: // perhaps hidden by another program's value
			of = s.Of
		case s.Verb == order.Undo && s.Of == of && s.Answer.Code == order.Undone:
			of = ""
		}
	}
	return of
}

// persisted reports whether a host says that its change survives a restart.
func persisted(orders []executor.Standing) bool {
	return slices.ContainsFunc(orders, func(s executor.Standing) bool { return s.Answer.Code == order.Persisted })
}

// UndoLost makes a draft that takes a rollout back which this hub does not have, from what the
// hosts report alone.
func (c *Conductor) UndoLost(ctx context.Context, id string, all []Candidate, valid time.Duration) (*Draft, error) {
	_, reports, err := c.ask(ctx, all, "", "")
	if err != nil {
		return nil, err
	}
	d := &Draft{Kind: Undo, Epoch: c.epoch}
	var hosts []rollout.Host
	byID := make(map[string]Host)
	changes := make(map[[2]string][]Candidate)
	for _, one := range all {
		report := reports[one.Host.ID]
		if report.err != nil {
			d.Missing = append(d.Missing, Missing{one.Host.ID, one.Name, report.err.Error()})
			continue
		}
		var orders []executor.Standing
		for _, s := range report.Orders {
			if s.Rollout != id {
				continue
			}
			orders = append(orders, s)
		}
		of := inForce(orders)
		if of == "" {
			continue
		}
		s := orders[len(orders)-1]
		byID[one.Host.ID] = Host{Name: one.Name, Expect: s.Expect, Serial: report.Serials[s.Knob], Epoch: report.Epoch,
			Of: of}
		change := [2]string{string(s.Knob), string(s.To)}
		changes[change] = append(changes[change], one)
	}
	// A rollout has one change. A host that reports another one must not keep the rest from being
	// undone: what most hosts report counts.
	most := 0
	kinds := slices.Collect(maps.Keys(changes))
	sorting.Func(kinds, func(a, b [2]string) int {
		return cmp.Or(len(changes[b])-len(changes[a]), slices.Compare(a[:], b[:]))
	})
	for _, change := range kinds {
		switch with := changes[change]; {
		case most == 0:
			most, d.Knob, d.To = len(with), knob.ID(change[0]), knob.Value(change[1])
			for _, one := range with {
				hosts = append(hosts, one.Host)
				for _, s := range reports[one.Host.ID].Orders {
					if n, ok := rollout.AttemptOf(id, one.Host.ID, s.Order); ok && s.Rollout == id {
						d.Generation = max(d.Generation, n+1)
					}
				}
			}
		case len(with) == most:
			return nil, fmt.Errorf("undo rollout %s: its hosts report different changes", id)
		default:
			for _, one := range with {
				why := fmt.Sprintf("it reports another change: %.100s = %.60q", change[0], change[1])
				d.Missing = append(d.Missing, Missing{one.Host.ID, one.Name, why})
			}
		}
	}
	if len(hosts) == 0 {
		return d, fmt.Errorf("undo rollout %s: %w: no host reports a change of it", id, ErrNoRollout)
	}
	for i := range hosts {
		// Undoing keeps racks apart; a host without one stands for itself.
		hosts[i].Rack = cmp.Or(hosts[i].Rack, hosts[i].ID)
	}
	if d.Plan, err = rollout.NewPlan(id, 1, hosts, rollout.DefaultTiming()); err != nil {
		return nil, err
	}
	d.Plan.Timing.Settle = 10 * time.Second // before an order is sent again
	for _, h := range d.Plan.Hosts {
		d.Hosts = append(d.Hosts, byID[h.ID])
	}
	d.validFor(valid)
	return d, nil
}
