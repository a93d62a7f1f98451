package mib

import (
	"context"
	"errors"
	"fmt"
)

// Agent answers requests. Its bindings are in the order of the answer; a value is uint64 for
// counters, gauges and ticks, int64 for integers, []byte for texts, OID for identifiers, and nil
// where the agent has no object.
type Agent interface {
	Get(ctx context.Context, oids []OID) ([]Binding, error)
	// Bulk returns what follows each identifier, that many times. An agent may cut the answer.
	Bulk(ctx context.Context, oids []OID, repetitions int) ([]Binding, error)
}

// Binding is an object and its value.
type Binding struct {
	OID   OID
	Value any
	End   bool // the tree of the agent has nothing behind the identifier
}

// ErrTooBig is the agent's word that its answer does not fit into a packet.
var ErrTooBig = errors.New("the answer does not fit into a packet")

// refusal is an error that an agent returned for some objects; it has others.
type refusal interface{ Refusal() bool }

// Bounds of one table.
const (
	mostRows  = 4096 // rows of a column
	mostAsked = 2000 // requests: five times what all rows need from an agent that fills its answers
	sideways  = 6    // columns of one request
	perAnswer = 60   // bindings of one answer: some 1300 bytes, below the size where packets are cut
	mostParts = 128  // numbers of an identifier (RFC 2578 §3.5)
)

// Table holds the rows of columns: by column, then by index as text.
type Table map[int]map[string]any

// walk is the state of a walk over the columns of a table.
type walk struct {
	entry   OID
	columns []int
	at      []OID // where each column is
	done    []bool
	rows    Table
	notes   map[string]bool
}

// ReadTable reads columns of a table, given by the last number of their identifiers. The sentences
// say what was left out; the error ends the reading of the agent.
func ReadTable(ctx context.Context, a Agent, entry OID, columns ...int) (Table, []string, error) {
	all := make(Table)
	var notes []string
	for len(columns) > 0 {
		some := columns[:min(sideways, len(columns))]
		columns = columns[len(some):]
		w := &walk{entry: entry, columns: some, rows: all, done: make([]bool, len(some)), notes: make(map[string]bool)}
		for _, c := range some {
			w.at = append(w.at, entry.with(uint32(c)))
		}
		if err := w.run(ctx, a); err != nil {
			return nil, nil, err
		}
		for n := range w.notes {
			notes = append(notes, n)
		}
	}
	return all, notes, nil
}

func (w *walk) run(ctx context.Context, a Agent) error {
	repetitions := perAnswer / len(w.columns)
	for requests := 0; ; requests++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if requests == mostAsked {
			w.note("table %v needs more than %d requests, and its rest is left out", w.entry, mostAsked)
			return nil
		}
		var ask []OID
		var of []int
		for i := range w.columns {
			if !w.done[i] {
				ask, of = append(ask, w.at[i]), append(of, i)
			}
		}
		if len(ask) == 0 {
			return nil
		}
		got, err := a.Bulk(ctx, ask, repetitions)
		var refused refusal
		switch {
		case errors.Is(err, ErrTooBig) && repetitions > 1:
			repetitions /= 2
			continue
		case errors.Is(err, ErrTooBig) || errors.As(err, &refused):
			w.note("the agent refuses a part of table %v: %v", w.entry, err)
			return nil
		case err != nil:
			return err
		}
		if !w.take(of, got) {
			w.note("the agent has nothing behind %v, and does not say that its tree ends there", ask[0])
			return nil
		}
	}
}

// take files the bindings of an answer, and reports whether a column moved.
func (w *walk) take(of []int, got []Binding) (moved bool) {
	ended := make([]bool, len(w.columns)) // in this answer: a column's later bindings are of others
	for n, b := range got {
		i := of[n%len(of)]
		if ended[i] || w.done[i] {
			continue
		}
		index, inside := b.OID.Below(w.entry.with(uint32(w.columns[i])))
		switch {
		case b.End || !inside && b.OID.Compare(w.at[i]) > 0:
			w.done[i], ended[i], moved = true, true, true
			continue
		case len(b.OID) > mostParts:
			w.done[i], ended[i], moved = true, true, true
			w.note("the agent has identifiers of more than %d numbers in table %v, and its rest is left out", mostParts, w.entry)
			continue
		case b.OID.Compare(w.at[i]) <= 0:
			w.done[i], ended[i], moved = true, true, true
			w.note("the agent goes in circles: %.80v follows %.80v", b.OID, w.at[i])
			continue
		}
		w.at[i], moved = b.OID, true
		rows := w.rows[w.columns[i]]
		if rows == nil {
			rows = make(map[string]any)
			w.rows[w.columns[i]] = rows
		}
		if len(rows) >= mostRows {
			w.done[i], ended[i] = true, true
			w.note("table %v has more than %d rows, of which the rest is left out", w.entry, mostRows)
			continue
		}
		rows[index.String()] = b.Value
	}
	return moved
}

func (w *walk) note(format string, args ...any) { w.notes[fmt.Sprintf(format, args...)] = true }

// number returns a cell as an unsigned number; false without one.
func (t Table) number(column int, index string) (uint64, bool) {
	switch v := t[column][index].(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	}
	return 0, false
}

// bytes returns a cell as bytes.
func (t Table) bytes(column int, index string) []byte {
	b, _ := t[column][index].([]byte)
	return b
}
