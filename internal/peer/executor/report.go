package executor

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

// Report is what a host has done with orders, as its journal shows it now. A hub can rebuild a
// rollout from the reports of the hosts.
type Report struct {
	Host    string             `json:"host"`
	Epoch   uint64             `json:"epoch"` // the highest that the host has seen; 0: it has never taken an order
	Serials map[knob.ID]uint64 `json:"serials,omitempty"`
	Orders  []Standing         `json:"orders"` // oldest first
}

// Standing is what became of one order.
type Standing struct {
	Order   string       `json:"order"`
	Rollout string       `json:"rollout"`
	Verb    order.Verb   `json:"verb"`
	Of      string       `json:"of,omitempty"`
	Answer  order.Answer `json:"answer"`
	Knob    knob.ID      `json:"knob"`
	Expect  knob.Value   `json:"expect"` // the value before
	To      knob.Value   `json:"to"`
}

// Report returns the orders of one rollout, or of all with an empty name, and what became of them.
// It takes no lock and writes nothing, so that it works on a full disk too.
func (e *Executor) Report(ctx context.Context, rollout string) (Report, error) {
	ledger, err := order.ReadLedger(e.FS, e.State)
	if err != nil {
		return Report{}, fmt.Errorf("report orders: %w", err)
	}
	r := Report{Host: e.Host, Orders: []Standing{}}
	r.Epoch, r.Serials = ledger.Numbers()
	var now past
	for _, entry := range ledger.Entries() {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		o := entry.Order
		if rollout != "" && o.Rollout != rollout {
			continue
		}
		a, err := e.standing(ctx, entry, &now)
		if err != nil {
			return Report{}, fmt.Errorf("report orders: %w", err)
		}
		r.Orders = append(r.Orders, Standing{o.ID, o.Rollout, o.Verb, o.Of, a, o.Knob, o.Expect, o.To})
	}
	return r, nil
}

// past is what the journal shows now, and in which boot. It is read for the first order that needs
// it, so that all orders of one report are compared with the same state.
type past struct {
	read    bool
	changes []journal.Change
	boot    string
}

func (e *Executor) look(p *past) (err error) {
	if p.read {
		return nil
	}
	if p.changes, err = journal.History(e.FS, e.State); err != nil {
		return err
	}
	if p.boot, err = e.BootID(); err != nil {
		return err
	}
	p.read = true
	return nil
}

// standing returns the answer to an order that was taken: a refusal as it was, everything else as
// the journal shows it now.
func (e *Executor) standing(ctx context.Context, entry order.Entry, past *past) (order.Answer, error) {
	a, o := entry.Answer, entry.Order
	if a.Code != "" && !a.Code.Acted() {
		return a, nil
	}
	if err := e.look(past); err != nil {
		return order.Answer{}, err
	}
	about := o.ID
	if o.Verb != order.Try {
		about = o.Of
	}
	c, found := changeOf(past.changes, about, o.Knob)
	now := order.Answer{Order: o.ID, Code: order.Interrupted, Change: c.ID}
	switch {
	case !found && a.Code == "":
	case !found: // the journal forgets changes that are over
		now.Code = order.Reverted
		if o.Verb == order.Undo {
			now.Code = order.Undone
		}
	case c.State == journal.Undone:
		now.Code, now.Text = order.Reverted, c.Note
		if o.Verb == order.Undo || a.Code == order.Undone {
			now.Code = order.Undone
		}
	case c.BootID != past.boot && c.State != journal.Persisted && !c.Knob.InFile():
		now.Code, now.Text = order.NotPersisted, "the host has restarted since"
	case o.Verb == order.Undo:
		// An undo that a crash has interrupted: it is carried out when it comes again.
	case o.Verb == order.Persist && c.State != journal.Persisted:
		// Likewise a persist.
	case c.State == journal.Trial && o.Verb == order.Try:
		now.Code, now.Value = order.InTrial, c.To
	case c.State != journal.Trial:
		now.Code, now.Value = order.Committed, c.To
		if o.Verb == order.Persist { // the value comes back at the next start, whatever the knob holds now
			now.Code = order.Persisted
			break
		}
		// What another program has set since is reported and left alone.
		value, err := e.Read(ctx, c.Knob)
		if d, _ := knob.Catalogue().Lookup(c.Knob); err != nil {
			now.Text = err.Error()
		} else if !d.Equal(value, c.To) {
			now.Code, now.Value, now.Text = order.Foreign, value, "another program has set the knob since"
		}
	}
	return now, nil
}
