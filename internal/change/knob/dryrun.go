package knob

import (
	"context"
	"slices"
	"sync"
)

// Checker is a backend that can report without writing whether a write would be refused. DryRun
// uses it.
type Checker interface {
	// CheckWrite returns what Write would return: nil, or the error. It cannot foresee what only
	// the kernel knows.
	CheckWrite(ctx context.Context, id ID, v Value) error
}

// DryRun shows what would be written: it passes reads to another backend, keeps writes to itself
// and reads them back. It is safe for concurrent use.
//
// It is a backend and not a flag inside the other backends, so that a dry run takes the same path
// through parsing, catalogue and journal as a real run, and differs only in the last step.
type DryRun struct {
	inner   Backend
	catalog *Catalog

	mu      sync.Mutex
	written map[ID]Value
	log     []Setting
}

// NewDryRun wraps a backend, which is never written.
func NewDryRun(inner Backend) *DryRun {
	return &DryRun{inner: inner, catalog: Catalogue(), written: make(map[ID]Value)}
}

// Read returns what was written here before, or the value of the wrapped backend. It reports a knob
// that has disappeared meanwhile as missing.
//
// The wrapped backend is asked first in any case: a knob that does not exist must not seem to exist
// because it was "written".
func (d *DryRun) Read(ctx context.Context, id ID) (Value, error) {
	v, err := d.inner.Read(ctx, id)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w, ok := d.written[id]; ok {
		return w, nil
	}
	return v, nil
}

// Write remembers the setting. It fails where a real write is known to fail: no such knob, wrong
// form or range, read-only.
func (d *DryRun) Write(ctx context.Context, id ID, v Value) error {
	if _, err := d.inner.Read(ctx, id); err != nil {
		return &Error{Op: "write", Knob: id, Err: cause(err), hint: hintOf(err)}
	}
	if def, ok := d.catalog.Lookup(id); ok {
		var err error
		if v, err = def.Normalize(v); err != nil {
			return &Error{Op: "write", Knob: id, Err: err}
		}
	} else {
		v = v.Squeeze()
	}
	// Only the kernel knows the rest (limits of a driver, memory); a dry run that passes is no
	// guarantee.
	if c, ok := d.inner.(Checker); ok {
		if err := c.CheckWrite(ctx, id, v); err != nil {
			return &Error{Op: "write", Knob: id, Err: cause(err), hint: hintOf(err)}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written[id] = v
	d.log = append(d.log, Setting{Knob: id, Value: v})
	return nil
}

// Writes returns what would have been written, in order.
func (d *DryRun) Writes() []Setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}
