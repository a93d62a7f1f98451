package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

// Config is where an executor finds what it needs. All fields are required except FS, Files,
// Root, Now and Log.
type Config struct {
	Host  string     // the id of this host
	State string     // the state directory: journal and ledger
	FS    durable.FS // nil: the operating system's
	// Keys and Policy are read for each order, so that an edit counts at once.
	Keys   func() (order.Keys, error)
	Policy func() (policy.Policy, error)
	// Open opens the journal in Deadline mode.
	Open func() (*journal.Journal, error)
	// Read returns what a knob holds.
	Read   func(context.Context, knob.ID) (knob.Value, error)
	BootID func() (string, error)
	// Files plans the files that make a change survive a restart. An ErrNoFile says why there are
	// none. nil: this host persists nothing.
	Files func(journal.Change) ([]journal.File, error)
	Root  string           // the directory that Files is about; "": /
	Now   func() time.Time // nil: time.Now
	Log   func(string)     // receives a line for each order that changes something; may be nil
}

// Executor carries out orders, one at a time. It is safe for concurrent use.
type Executor struct {
	Config
	mu sync.Mutex
}

// New returns an executor.
func New(c Config) *Executor {
	if c.FS == nil {
		c.FS = durable.OS()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Root == "" {
		c.Root = "/"
	}
	return &Executor{Config: c}
}

// marker begins the reason of each change that an order made; the id of the order follows.
const marker = "fleet order "

// Execute carries out one order and returns the answer. It always answers; what went wrong is in
// the code and the text.
func (e *Executor) Execute(ctx context.Context, data []byte) order.Answer {
	envelope, err := order.Open(data)
	if err != nil {
		return answer("", order.NotAnOrder, err)
	}
	o, err := order.Parse(envelope.Payload)
	if err != nil {
		return answer("", order.NotAnOrder, err)
	}
	keys, err := e.Keys()
	if err != nil {
		return answer(o.ID, order.Failed, err)
	}
	signers, err := keys.Verify(envelope)
	if err != nil {
		return answer(o.ID, signatureCode(err), err)
	}
	if o.Host != e.Host {
		return answer(o.ID, order.OtherHost, fmt.Errorf("order %s is for host %s", o.ID, o.Host))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ledger, err := order.OpenLedger(e.FS, e.State)
	if err != nil {
		if errors.Is(err, durable.ErrLocked) {
			return answer(o.ID, order.Busy, err)
		}
		return answer(o.ID, order.Failed, err)
	}
	defer ledger.Close() // every record is on disk already
	known, again, err := ledger.Known(o, envelope.Payload)
	switch {
	case err != nil:
		return answer(o.ID, order.IDReused, err)
	case again && (o.Verb != order.Undo && o.Verb != order.Persist || known.Answer.Code != ""):
		a, err := e.standing(ctx, known, new(past))
		if err != nil {
			return answer(o.ID, order.Failed, err)
		}
		return a
	case !again:
		if err := ledger.Check(o, e.Now()); err != nil {
			return answer(o.ID, ledgerCode(err), err)
		}
	}
	return e.carryOut(ctx, ledger, o, envelope.Payload, len(signers), again)
}

// carryOut judges and carries out an order that the ledger does not know, or an undo or a persist
// that a crash has interrupted.
func (e *Executor) carryOut(ctx context.Context, ledger *order.Ledger, o order.Order, payload []byte, signers int,
	again bool) order.Answer {
	p, err := e.Policy()
	if err != nil {
		return answer(o.ID, order.Failed, err)
	}
	// The journal comes before the record: an order that finds it locked is not taken at all.
	j, err := e.Open()
	if err != nil {
		if errors.Is(err, journal.ErrLocked) {
			return answer(o.ID, order.Busy, err)
		}
		return answer(o.ID, order.Failed, err)
	}
	defer j.Close() // a deadline trial stays in force under its guard
	if _, err := j.Recover(ctx); err != nil {
		return answer(o.ID, order.Failed, err)
	}
	if !again {
		if err := ledger.Take(o, payload); err != nil {
			return answer(o.ID, order.Failed, err)
		}
	}
	a := e.obey(ctx, ledger, j, o, p, signers)
	if err := ledger.Answered(o.ID, a); err != nil {
		// What was done is in the journal, which answers the next time.
		a.Text = strings.TrimPrefix(a.Text+"; "+err.Error(), "; ")
	}
	if a.Code.Acted() {
		e.Log(fmt.Sprintf("order %s of rollout %s: %s %s to %q: %s", o.ID, o.Rollout, o.Verb, o.Knob, o.To, a.Code))
	} else {
		e.Log(fmt.Sprintf("order %s of rollout %s refused: %s: %s", o.ID, o.Rollout, a.Code, a.Text))
	}
	return a
}

// obey carries out an order that is recorded.
func (e *Executor) obey(ctx context.Context, ledger *order.Ledger, j *journal.Journal, o order.Order, p policy.Policy,
	signers int) order.Answer {
	request := policy.Request{Knob: o.Knob, Trial: o.Trial(), Signers: signers, Undo: o.Verb == order.Undo,
		Persist: o.Verb == order.Persist}
	if err := p.Change(request, e.Now()); err != nil {
		return answer(o.ID, policyCode(err), err)
	}
	if o.Verb == order.Try {
		return e.try(ctx, j, o)
	}
	about, known := ledger.Entry(o.Of)
	if t := about.Order; !known || t.Verb != order.Try || t.Knob != o.Knob || t.Rollout != o.Rollout ||
		t.Expect != o.Expect || t.To != o.To {
		return answer(o.ID, order.NoTrial, fmt.Errorf("this host has not taken the try %s of this change", o.Of))
	}
	change, found := changeOf(j.Changes(), o.Of, o.Knob)
	if !found {
		return answer(o.ID, order.NoTrial, fmt.Errorf("the try %s has changed nothing", o.Of))
	}
	switch o.Verb {
	case order.Commit:
		return e.commit(ctx, j, o, change)
	case order.Persist:
		return e.persist(ctx, j, o, change)
	}
	return e.undo(ctx, j, o, change)
}

func (e *Executor) try(ctx context.Context, j *journal.Journal, o order.Order) order.Answer {
	if err := j.OnTrial(); err != nil {
		return answer(o.ID, order.OnTrial, err)
	}
	d, _ := knob.Catalogue().Lookup(o.Knob) // the policy has looked it up
	value, err := e.Read(ctx, o.Knob)
	if err != nil {
		return answer(o.ID, order.ValueRefused, err)
	}
	if !d.Equal(value, o.Expect) {
		a := answer(o.ID, order.ValueDiffers, fmt.Errorf("%s is %q, not %q", o.Knob, value, o.Expect))
		a.Value = value
		return a
	}
	if _, err := d.Normalize(o.To); err != nil {
		return answer(o.ID, order.ValueRefused, err)
	}
	changes, err := j.Apply(ctx, journal.Request{Reason: marker + o.ID, For: o.Trial()},
		knob.Setting{Knob: o.Knob, Value: o.To})
	switch {
	case errors.Is(err, journal.ErrUnwritable), errors.Is(err, journal.ErrUnguarded), errors.Is(err, journal.ErrSilent):
		return answer(o.ID, order.Failed, err)
	case errors.Is(err, journal.ErrNoEffect):
		return answer(o.ID, order.ReadBack, err)
	case err != nil:
		return answer(o.ID, order.ValueRefused, err)
	case len(changes) == 0:
		return answer(o.ID, order.ValueDiffers, fmt.Errorf("%s holds %q already", o.Knob, o.To))
	}
	change := changes[0]
	a := order.Answer{Order: o.ID, Code: order.InTrial, Change: change.ID, Value: change.To}
	if !d.Equal(change.To, o.To) {
		// The kernel or the driver rounded: this is not the change that people signed.
		a.Code, a.Text = order.ReadBack, fmt.Sprintf("%s became %q, not %q", o.Knob, change.To, o.To)
		if _, err := j.Undo(context.WithoutCancel(ctx), change.ID); err != nil {
			a.Text += "; " + err.Error() // the guard takes it back at the deadline
		}
	}
	return a
}

func (e *Executor) commit(ctx context.Context, j *journal.Journal, o order.Order, c journal.Change) order.Answer {
	a := order.Answer{Order: o.ID, Code: order.Committed, Change: c.ID, Value: c.To}
	err := j.Commit(ctx, c.ID)
	switch {
	case err == nil:
		return a
	case errors.Is(err, journal.ErrForeign):
		a.Code = order.Foreign
	case errors.Is(err, journal.ErrExpired), errors.Is(err, journal.ErrNotTrial):
		a.Code = order.Reverted
	default:
		a.Code = order.Failed
	}
	a.Value, a.Text = "", err.Error()
	return a
}

func (e *Executor) undo(ctx context.Context, j *journal.Journal, o order.Order, c journal.Change) order.Answer {
	a := order.Answer{Order: o.ID, Code: order.Undone, Change: c.ID}
	outcomes, err := j.Undo(ctx, c.ID)
	if err != nil {
		a.Code, a.Text = order.Failed, err.Error()
	}
	for _, out := range outcomes {
		if out.Change.ID == c.ID && out.Foreign != "" {
			a.Code, a.Value = order.Foreign, out.Foreign
			a.Text = fmt.Sprintf("another program set %s to %q; its value is left alone", o.Knob, out.Foreign)
		}
	}
	return a
}

// ownSide is the side of the changes that this host makes itself, see journal.Options.
const ownSide = "near"

// changeOf returns the change of a knob that an order made. A client of serve chooses the reasons
// of its own changes, which are of the other side: no order may take one of those for its own.
func changeOf(changes []journal.Change, id string, of knob.ID) (journal.Change, bool) {
	for i := len(changes) - 1; i >= 0; i-- {
		if c := changes[i]; c.Reason == marker+id && c.Knob == of && c.Side == ownSide {
			return c, true
		}
	}
	return journal.Change{}, false
}

func answer(id string, code order.Code, err error) order.Answer {
	text := err.Error()
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "")
	}
	return order.Answer{Order: id, Code: code, Text: text}
}

func signatureCode(err error) order.Code {
	switch {
	case errors.Is(err, order.ErrKeyUnknown):
		return order.KeyUnknown
	case errors.Is(err, order.ErrTooFew):
		return order.TooFewKeys
	}
	return order.BadSignature
}

func ledgerCode(err error) order.Code {
	switch {
	case errors.Is(err, order.ErrTooEarly):
		return order.TooEarly
	case errors.Is(err, order.ErrTooLate):
		return order.TooLate
	case errors.Is(err, order.ErrOldEpoch):
		return order.OldEpoch
	}
	return order.OldSerial
}

func policyCode(err error) order.Code {
	switch {
	case errors.Is(err, policy.ErrSwitchedOff):
		return order.SwitchedOff
	case errors.Is(err, policy.ErrClass):
		return order.ClassDenied
	case errors.Is(err, policy.ErrHours):
		return order.HoursDenied
	case errors.Is(err, policy.ErrTrialTooLong):
		return order.TrialTooLong
	case errors.Is(err, policy.ErrSignatures):
		return order.TooFewKeys
	case errors.Is(err, policy.ErrPersist):
		return order.PersistDenied
	}
	return order.KnobDenied
}
