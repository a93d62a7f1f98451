package order

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/change/knob"
)

// Verb is a step of a change.
type Verb string

// The verbs. All but Try name the try that they are about.
const (
	Try    Verb = "try"    // write the value as a trial, which ends at its deadline
	Commit Verb = "commit" // keep a trial in force
	Undo   Verb = "undo"   // take a trial or a kept change back
	// Persist makes a kept change survive a restart.
	Persist Verb = "persist"
)

// Limits of an order.
const (
	MaxBytes    = 2 << 10        // of a payload
	MaxValidity = 24 * time.Hour // from not-before to not-after
	// MinDeadline is long enough to apply, to report and to receive the confirmation.
	MinDeadline = 5 * time.Second
	// MaxDeadline bounds a trial whatever the policy of a host says.
	MaxDeadline = 10 * time.Minute

	maxName  = 64
	maxValue = 512
)

// Order is one step of one change of one host.
type Order struct {
	ID        string     `json:"id"`      // unique: 1 to 64 of a-z, 0-9, '.', '_', '-'
	Rollout   string     `json:"rollout"` // what the order is part of; the same form
	Host      string     `json:"host"`    // the id of the one host that may take it; the same form
	Verb      Verb       `json:"verb"`
	Of        string     `json:"of,omitempty"` // all but Try: the id of the order that began the trial
	Epoch     uint64     `json:"epoch"`        // of the hub's rule: a host takes none lower than it has seen
	Serial    uint64     `json:"serial"`       // rises with each order for the same knob of the host
	Knob      knob.ID    `json:"knob"`
	Expect    knob.Value `json:"expect"` // the value that the knob must hold
	To        knob.Value `json:"to"`     // the value after it
	NotBefore int64      `json:"not_before_unix_seconds"`
	NotAfter  int64      `json:"not_after_unix_seconds"`
	// Deadline is how long the trial of a Try lasts; other verbs have none.
	Deadline int64  `json:"deadline_seconds,omitempty"`
	Reason   string `json:"reason,omitempty"` // one line
}

// ErrMalformed reports bytes that are not an order in its one spelling; the text says why.
var ErrMalformed = errors.New("not an order")

// Encode returns the payload. The error is ErrMalformed where a field has no valid value.
func (o Order) Encode() ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(b), MaxBytes)
	}
	return b, nil
}

// Parse reads a payload. It accepts only what Encode writes; every error is an ErrMalformed.
func Parse(payload []byte) (Order, error) {
	var o Order
	if len(payload) > MaxBytes {
		return o, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(payload), MaxBytes)
	}
	if err := json.Unmarshal(payload, &o); err != nil {
		return Order{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	again, err := o.Encode()
	if err != nil {
		return Order{}, err
	}
	if !bytes.Equal(again, payload) {
		return Order{}, fmt.Errorf("%w: not in its one spelling", ErrMalformed)
	}
	return o, nil
}

// Trial is how long the trial of the order lasts; 0 for other verbs.
func (o Order) Trial() time.Duration { return time.Duration(o.Deadline) * time.Second }

func (o Order) check() error {
	for _, f := range []struct{ what, text string }{{"id", o.ID}, {"rollout", o.Rollout}, {"host", o.Host}} {
		if !ValidName(f.text) {
			return fmt.Errorf("%s %.70q: want 1 to %d of a-z, 0-9, '.', '_', '-'", f.what, f.text, maxName)
		}
	}
	id, err := knob.ParseID(string(o.Knob))
	switch {
	case err != nil:
		return err
	case id != o.Knob || len(id) > 256:
		return fmt.Errorf("knob %.70q: not its canonical name", o.Knob)
	}
	for _, v := range []string{string(o.Expect), string(o.To), o.Reason} {
		if len(v) > maxValue || !line(v) {
			return fmt.Errorf("%.40q: want one line of at most %d bytes", v, maxValue)
		}
	}
	span := time.Duration(o.NotAfter-o.NotBefore) * time.Second
	switch {
	case o.NotBefore < 0 || o.NotAfter <= o.NotBefore || o.NotAfter-o.NotBefore > int64(MaxValidity/time.Second):
		return fmt.Errorf("valid for %v: want more than 0 and at most %v", span, MaxValidity)
	case o.Epoch == 0 || o.Serial == 0:
		return errors.New("epoch and serial begin with 1")
	}
	switch o.Verb {
	case Try:
		if o.Of != "" {
			return errors.New("a try is not about another order")
		}
		if o.Deadline < int64(MinDeadline/time.Second) || o.Deadline > int64(MaxDeadline/time.Second) {
			return fmt.Errorf("trial of %d s: want %v to %v", o.Deadline, MinDeadline, MaxDeadline)
		}
		if o.Expect == o.To {
			return errors.New("the new value is the expected one")
		}
	case Commit, Undo, Persist:
		if !ValidName(o.Of) || o.Of == o.ID {
			return fmt.Errorf("%s of %.70q: not the id of another order", o.Verb, o.Of)
		}
		if o.Deadline != 0 {
			return fmt.Errorf("%s has no deadline", o.Verb)
		}
	default:
		return fmt.Errorf("%.70q: not one of try, commit, undo, persist", o.Verb)
	}
	return nil
}

// ValidName reports whether a text may be the id of an order, a rollout or a host: 1 to 64 of a-z,
// 0-9, '.', '_' and '-'.
func ValidName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			return false
		}
	}
	return true
}

// line reports whether a text is one line of printable characters.
func line(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}
