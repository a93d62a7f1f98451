package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
)

const (
	ledgerName = "fleet.log"
	// remembered is how many orders keep their answers. Older ones are refused by their serial.
	remembered = 1000
	// rewriteAt is the number of records at which the log is rewritten.
	rewriteAt = 4 * remembered
)

// The errors of taking an order. Each is a different answer.
var (
	ErrTooEarly  = errors.New("not valid yet")
	ErrTooLate   = errors.New("no longer valid")
	ErrOldEpoch  = errors.New("of an earlier epoch than this host has seen")
	ErrOldSerial = errors.New("not after the last order for this knob")
	ErrIDReused  = errors.New("another order had this id")
)

// Entry is one order that a host has taken.
type Entry struct {
	Order  Order
	Digest string
	Answer Answer // Code is empty until the host has answered
}

// record is one line of the log.
type record struct {
	Order  json.RawMessage `json:"order,omitempty"` // taken
	ID     string          `json:"id,omitempty"`    // answered, with Answer
	Answer *Answer         `json:"answer,omitempty"`
	// State is what a rewritten log begins with: the highest numbers of orders that it has
	// forgotten.
	State *numbers `json:"state,omitempty"`
}

type numbers struct {
	Epoch   uint64             `json:"epoch"`
	Serials map[knob.ID]uint64 `json:"serials"`
}

// Ledger is the memory of a host of the orders that it has taken. One process has it open at a
// time; it is not safe for concurrent use.
type Ledger struct {
	fsys    durable.FS
	path    string
	lock    io.Closer
	log     *durable.Log
	entries []Entry // oldest first
	numbers
	records int
}

// OpenLedger opens the ledger in a state directory and creates it if it does not exist. Errors:
// durable.ErrLocked while another process has it, durable.ErrCorrupt for a damaged one. A damaged
// ledger takes no orders: it no longer shows which ones are replays.
func OpenLedger(fsys durable.FS, dir string) (*Ledger, error) {
	if err := durable.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("open ledger of orders: %w", err)
	}
	l := &Ledger{fsys: fsys, path: filepath.Join(dir, ledgerName)}
	lock, err := fsys.Lock(l.path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open ledger of orders: %w", err)
	}
	l.lock = lock
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger of orders: %w", err), lock.Close())
	}
	return l, nil
}

func (l *Ledger) open() error {
	log, records, err := durable.OpenMarkedLog(l.fsys, l.path)
	if err != nil {
		return err
	}
	l.log = log
	if err := l.read(records); err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}

func (l *Ledger) read(records [][]byte) error {
	l.entries, l.numbers, l.records = nil, numbers{Serials: make(map[knob.ID]uint64)}, len(records)
	for i, b := range records {
		if err := l.replay(b); err != nil {
			return &durable.CorruptError{Path: l.path, Reason: fmt.Sprintf("record %d: %v", i, err)}
		}
	}
	return nil
}

// ReadLedger returns the ledger of a state directory for reading: it takes no lock and writes
// nothing. A directory without one has an empty ledger.
func ReadLedger(fsys durable.FS, dir string) (*Ledger, error) {
	l := &Ledger{fsys: fsys, path: filepath.Join(dir, ledgerName)}
	records, _, err := durable.ReadMarkedLog(fsys, l.path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = l.read(records)
	}
	if err != nil {
		return nil, fmt.Errorf("read ledger of orders: %w", err)
	}
	return l, nil
}

func (l *Ledger) replay(b []byte) error {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	switch {
	case r.State != nil:
		l.Epoch = r.State.Epoch
		for k, n := range r.State.Serials {
			l.Serials[k] = n
		}
	case r.Order != nil:
		o, err := Parse(r.Order)
		if err != nil {
			return err
		}
		l.note(o, Digest(r.Order))
	case r.Answer != nil:
		e := l.find(r.ID)
		if e == nil {
			return fmt.Errorf("answer to %.70q, which was not taken", r.ID)
		}
		e.Answer = *r.Answer
	default:
		return errors.New("empty")
	}
	return nil
}

func (l *Ledger) note(o Order, digest string) {
	l.Epoch, l.Serials[o.Knob] = max(l.Epoch, o.Epoch), max(l.Serials[o.Knob], o.Serial)
	l.entries = append(l.entries, Entry{Order: o, Digest: digest})
	if len(l.entries) > remembered {
		l.entries = slices.Delete(l.entries, 0, len(l.entries)-remembered)
	}
}

func (l *Ledger) find(id string) *Entry {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i].Order.ID == id {
			return &l.entries[i]
		}
	}
	return nil
}

// Known returns the entry of a payload that was taken before. The error is ErrIDReused where the id
// belonged to other bytes.
func (l *Ledger) Known(o Order, payload []byte) (Entry, bool, error) {
	e := l.find(o.ID)
	if e == nil {
		return Entry{}, false, nil
	}
	if e.Digest != Digest(payload) {
		return Entry{}, false, fmt.Errorf("order %s: %w", o.ID, ErrIDReused)
	}
	return *e, true, nil
}

// Entry returns the order of an id, if it was taken and is remembered.
func (l *Ledger) Entry(id string) (Entry, bool) {
	if e := l.find(id); e != nil {
		return *e, true
	}
	return Entry{}, false
}

// Check returns nil when an order may be taken now: in time, of no earlier epoch, and after the
// last one for its knob.
func (l *Ledger) Check(o Order, now time.Time) error {
	switch s := now.Unix(); {
	case s < o.NotBefore:
		return fmt.Errorf("order %s: %w: before %s", o.ID, ErrTooEarly, time.Unix(o.NotBefore, 0).UTC().Format(time.RFC3339))
	case s >= o.NotAfter:
		return fmt.Errorf("order %s: %w: after %s", o.ID, ErrTooLate, time.Unix(o.NotAfter, 0).UTC().Format(time.RFC3339))
	case o.Epoch < l.Epoch:
		return fmt.Errorf("order %s: %w: %d after %d", o.ID, ErrOldEpoch, o.Epoch, l.Epoch)
	case o.Serial <= l.Serials[o.Knob]:
		return fmt.Errorf("order %s: %w: %d after %d", o.ID, ErrOldSerial, o.Serial, l.Serials[o.Knob])
	}
	return nil
}

// Take records an order before the host acts on it. After an error the host must not act.
func (l *Ledger) Take(o Order, payload []byte) error {
	if err := l.compact(); err != nil {
		return err
	}
	if err := l.append(record{Order: payload}); err != nil {
		return err
	}
	l.note(o, Digest(payload))
	return nil
}

// Answered records the answer to an order that was taken.
func (l *Ledger) Answered(id string, a Answer) error {
	e := l.find(id)
	if e == nil {
		return fmt.Errorf("record answer to %.70q: not taken", id)
	}
	if err := l.append(record{ID: id, Answer: &a}); err != nil {
		return err
	}
	e.Answer = a
	return nil
}

func (l *Ledger) append(r record) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = l.log.Append(b)
	}
	if err != nil {
		return fmt.Errorf("record an order: %w", err)
	}
	l.records++
	return nil
}

// compact rewrites the log with the numbers and the remembered orders.
func (l *Ledger) compact() error {
	if l.records < rewriteAt {
		return nil
	}
	var all [][]byte
	add := func(r record) error {
		b, err := json.Marshal(r)
		all = append(all, b)
		return err
	}
	err := add(record{State: &l.numbers})
	for _, e := range l.entries {
		payload, encodeErr := e.Order.Encode()
		err = errors.Join(err, encodeErr, add(record{Order: payload}))
		if e.Answer.Code != "" {
			err = errors.Join(err, add(record{ID: e.Order.ID, Answer: &e.Answer}))
		}
	}
	if err != nil {
		return fmt.Errorf("rewrite ledger of orders: %w", err)
	}
	if err := errors.Join(l.log.Close(), durable.RewriteMarkedLog(l.fsys, l.path, all)); err != nil {
		return fmt.Errorf("rewrite ledger of orders: %w", err)
	}
	return l.open()
}

// Numbers returns the highest epoch that the host has seen, and its last serial for each knob.
func (l *Ledger) Numbers() (epoch uint64, serials map[knob.ID]uint64) {
	serials = make(map[knob.ID]uint64, len(l.Serials))
	for k, n := range l.Serials {
		serials[k] = n
	}
	return l.Epoch, serials
}

// Entries returns the remembered orders, oldest first.
func (l *Ledger) Entries() []Entry { return slices.Clone(l.entries) }

// Close releases the ledger.
func (l *Ledger) Close() error { return errors.Join(l.log.Close(), l.lock.Close()) }
