package conduct

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

// Change is what a rollout does to each host, and by what it is judged.
type Change struct {
	Knob   knob.ID        `json:"knob"`
	To     knob.Value     `json:"to"`
	Metric message.Metric `json:"metric"`
	Window time.Duration  `json:"window_ns"` // of one reading of the metric
	Pause  time.Duration  `json:"pause_ns"`  // after a write, before a reading
	Pairs  int            `json:"pairs"`     // of an experiment
	Reason string         `json:"reason,omitempty"`
}

// Kind is what a person signs.
type Kind string

// The kinds of drafts.
const (
	Apply   Kind = "apply"
	Resume  Kind = "resume"
	Persist Kind = "persist"
	Undo    Kind = "undo"
)

// Tries reports whether a draft tries the change on hosts, stage by stage, and takes it back on
// harm. The other kinds act on a change that is there.
func (k Kind) Tries() bool { return k == Apply || k == Resume }

// Host is what a draft holds of one host of the plan.
type Host struct {
	Name   string     `json:"name"`
	Expect knob.Value `json:"expect"`
	Serial uint64     `json:"serial"` // the last one for the knob that the host has seen
	// Epoch is the highest that the host has seen. It counts for this host alone: what one host says
	// must not use up the epochs of others.
	Epoch uint64 `json:"epoch,omitempty"`
	// Experiment and Try: the host can get these orders.
	Experiment bool `json:"experiment,omitempty"`
	Try        bool `json:"try,omitempty"`
	// Of is the try whose change is in force, for an order to undo or to persist; empty: none.
	Of string `json:"of,omitempty"`
}

// Draft is what a person signs: all orders that a rollout can need until the next signature.
type Draft struct {
	Kind Kind          `json:"kind"`
	Plan *rollout.Plan `json:"plan"`
	Change
	Hosts []Host `json:"hosts"` // as in the plan
	Epoch uint64 `json:"epoch"`
	// Generation counts the signatures of this rollout, from 0. It is the attempt in each id.
	Generation int   `json:"generation"`
	NotBefore  int64 `json:"not_before_unix_seconds"`
	NotAfter   int64 `json:"not_after_unix_seconds"`
	// Missing are hosts of the selection that the plan leaves out.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is a host that a plan leaves out, and why.
type Missing struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Bounds of a change.
const (
	MinPairs, MaxPairs = 3, 40
	// slack is what a trial must last longer than a reading: a guard has to start, and answers
	// travel.
	slack = 10 * time.Second
)

// Check returns the first mistake in a change and its timing.
func (c Change) Check(t rollout.Timing) error {
	definition, known := knob.Catalogue().Lookup(c.Knob)
	if !known {
		like := ""
		if near := knob.Catalogue().Nearest(string(c.Knob), 1); len(near) > 0 {
			like = fmt.Sprintf("; is it %s?", near[0])
		}
		return fmt.Errorf("the catalogue has no knob %.100q%s", c.Knob, like)
	}
	if definition.Secret || definition.Advise {
		return fmt.Errorf("knob %s is not among those that others may change", c.Knob)
	}
	if _, err := definition.Normalize(c.To); err != nil {
		return err
	}
	switch {
	case !c.Metric.Valid():
		return fmt.Errorf("metric %.40q: want one of %v", c.Metric, message.Metrics())
	case c.Window <= 0 || c.Window > message.LongestMeasure:
		return fmt.Errorf("a window of %v: want more than 0 and at most %v", c.Window, message.LongestMeasure)
	case c.Pairs < MinPairs || c.Pairs > MaxPairs:
		return fmt.Errorf("%d pairs: want %d to %d", c.Pairs, MinPairs, MaxPairs)
	case c.Pause < 0 || t.Deadline < c.Window+c.Pause+slack:
		return fmt.Errorf("a trial of %v is too short for a pause of %v and a window of %v: want %v more", t.Deadline,
			c.Pause, c.Window, slack)
	case t.Deadline < order.MinDeadline || t.Deadline > order.MaxDeadline:
		return fmt.Errorf("a trial of %v: want %v to %v", t.Deadline, order.MinDeadline, order.MaxDeadline)
	}
	return nil
}

// experiments is the name of the rollout in the orders of an experiment: what became of them says
// nothing of where the rollout stands.
func (d *Draft) experiments() string { return d.Plan.ID + "-x" }

// OrderHost returns the id of a member as orders spell it. The ids are ULIDs, which mean the same
// in both cases.
func OrderHost(member string) string { return strings.ToLower(member) }

// MemberOf is the reverse of [OrderHost].
func MemberOf(host string) string { return strings.ToUpper(host) }

// id returns the name of an order.
func (d *Draft) id(host int, v order.Verb) string {
	return rollout.OrderID(d.Plan.ID, d.Plan.Hosts[host].ID, v, d.Generation)
}

// experimentID returns the name of an order of a pair of an experiment.
func (d *Draft) experimentID(host, pair int, v order.Verb) string {
	return rollout.OrderID(d.experiments(), d.Plan.Hosts[host].ID, v, d.Generation*MaxPairs+pair)
}

// Orders returns every order that one host can need.
func (d *Draft) Orders(host int) []order.Order {
	h := d.Hosts[host]
	serial := h.Serial
	var all []order.Order
	add := func(rollout, id string, v order.Verb, of string) {
		serial++
		o := order.Order{ID: id, Rollout: rollout, Host: d.Plan.Hosts[host].ID, Verb: v, Of: of,
			Epoch:  max(d.Epoch, h.Epoch),
			Serial: serial, Knob: d.Knob, Expect: h.Expect, To: d.To, NotBefore: d.NotBefore, NotAfter: d.NotAfter,
			Reason: d.Reason}
		if v == order.Try {
			o.Deadline = int64(d.Plan.Timing.Deadline / time.Second)
		}
		all = append(all, o)
	}
	if h.Experiment {
		for pair := range d.Pairs {
			try := d.experimentID(host, pair, order.Try)
			add(d.experiments(), try, order.Try, "")
			add(d.experiments(), d.experimentID(host, pair, order.Undo), order.Undo, try)
		}
	}
	of := h.Of
	if d.Kind == Persist {
		if of != "" {
			add(d.Plan.ID, d.id(host, order.Persist), order.Persist, of)
		}
		return all
	}
	if h.Try {
		of = d.id(host, order.Try)
		add(d.Plan.ID, of, order.Try, "")
		add(d.Plan.ID, d.id(host, order.Commit), order.Commit, of)
	}
	if of != "" {
		add(d.Plan.ID, d.id(host, order.Undo), order.Undo, of)
	}
	return all
}

// ErrUnsigned reports orders that are missing, or not those of the draft.
var ErrUnsigned = errors.New("the signed orders are not those of the rollout")

// Sign lets a person sign all orders. sign adds one or more signatures.
func (d *Draft) Sign(sign func(*order.Envelope)) ([][]byte, error) {
	var all [][]byte
	for i := range d.Hosts {
		for _, o := range d.Orders(i) {
			payload, err := o.Encode()
			if err != nil {
				return nil, fmt.Errorf("order for host %s: %w", d.Hosts[i].Name, err)
			}
			e := order.Envelope{Payload: payload}
			sign(&e)
			b, err := e.Encode()
			if err != nil {
				return nil, fmt.Errorf("order for host %s: %w", d.Hosts[i].Name, err)
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// signed returns the envelopes by the id of their order. They must be exactly those of the draft:
// the hub cannot check a signature, and an order that is not in the draft has no use.
func (d *Draft) signed(envelopes [][]byte) (map[string][]byte, error) {
	byID := make(map[string][]byte, len(envelopes))
	next := 0
	for i := range d.Hosts {
		for _, o := range d.Orders(i) {
			if next == len(envelopes) {
				return nil, fmt.Errorf("%w: %d orders", ErrUnsigned, next)
			}
			e, err := order.Open(envelopes[next])
			if err != nil {
				return nil, err
			}
			payload, err := o.Encode()
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(payload, e.Payload) || len(e.Signatures) == 0 {
				return nil, fmt.Errorf("%w: order %s", ErrUnsigned, o.ID)
			}
			byID[o.ID] = envelopes[next]
			next++
		}
	}
	if next != len(envelopes) {
		return nil, fmt.Errorf("%w: %d orders, not %d", ErrUnsigned, len(envelopes), next)
	}
	return byID, nil
}

// check returns the first mistake in a draft that came from outside.
func (d *Draft) check() error {
	switch {
	case d.Plan == nil || len(d.Plan.Hosts) == 0 || len(d.Hosts) != len(d.Plan.Hosts) ||
		len(d.Plan.Stage) != len(d.Hosts) || len(d.Plan.Mate) != len(d.Hosts) || len(d.Plan.ByHost) != len(d.Hosts):
		return errors.New("the draft has no plan")
	case slices.ContainsFunc(d.Plan.Stage, func(s int) bool { return s < 0 || s >= len(rollout.StageNames) }):
		return errors.New("the draft has a stage that is not one of a rollout")
	case !order.ValidName(d.Plan.ID) || !order.ValidName(d.experiments()):
		return fmt.Errorf("rollout %.70q: not a name", d.Plan.ID)
	case d.Kind != Apply && d.Kind != Resume && d.Kind != Persist && d.Kind != Undo:
		return fmt.Errorf("%.40q: not one of apply, resume, persist, undo", d.Kind)
	case !d.Kind.Tries():
		return nil
	}
	return d.Check(d.Plan.Timing)
}
