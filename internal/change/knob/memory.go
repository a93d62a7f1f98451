package knob

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// Memory is a host in memory, for tests and rehearsals. It behaves as the kernel does: a missing
// knob cannot be written; values of knobs in the catalogue are stored in canonical form and refused
// when out of range. It is safe for concurrent use.
//
// It is stricter than the live backend in one way: it refuses values outside the catalogue's range,
// so that a test notices a candidate that no kernel would accept.
type Memory struct {
	// OnRead runs before every read, OnWrite before every write with the value in canonical form;
	// OnWrite returns the value to keep instead (drivers round) or an error. Both run without locks
	// held. Set them before use.
	OnRead  func(ctx context.Context, id ID) error
	OnWrite func(ctx context.Context, id ID, v Value) (Value, error)

	mu       sync.Mutex
	values   map[ID]Value
	readOnly map[ID]bool
	catalog  *Catalog
}

// NewMemory returns a host with these knobs. It copies the map.
func NewMemory(values map[ID]Value) *Memory {
	m := &Memory{values: make(map[ID]Value, len(values)), readOnly: make(map[ID]bool), catalog: Catalogue()}
	maps.Copy(m.values, values)
	return m
}

// Set sets a value without the backend's checks, as another program on the host would; it creates a
// missing knob.
func (m *Memory) Set(id ID, v Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[id] = v
}

// Remove removes a knob, as when a device disappears.
func (m *Memory) Remove(id ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, id)
}

// SetReadOnly makes writes of a knob fail with ErrReadOnly, or succeed again.
func (m *Memory) SetReadOnly(id ID, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readOnly[id] = on
}

// Values returns a copy of all values.
func (m *Memory) Values() map[ID]Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}

// IDs returns the knobs in order of their names.
func (m *Memory) IDs() []ID { return slices.Sorted(maps.Keys(m.Values())) }

// Read implements Backend.
func (m *Memory) Read(ctx context.Context, id ID) (Value, error) {
	if err := ctx.Err(); err != nil {
		return "", &Error{Op: "read", Knob: id, Err: err}
	}
	if m.OnRead != nil {
		if err := m.OnRead(ctx, id); err != nil {
			return "", &Error{Op: "read", Knob: id, Err: err}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[id]
	if !ok {
		return "", &Error{Op: "read", Knob: id, Err: fs.ErrNotExist}
	}
	return v, nil
}

// Write implements Backend.
//
// The hook runs without the lock, so that it may read and write other knobs, as a kernel that
// couples two settings does.
func (m *Memory) Write(ctx context.Context, id ID, v Value) error {
	v, err := m.check(ctx, id, v)
	if err == nil && m.OnWrite != nil {
		v, err = m.OnWrite(ctx, id, v)
	}
	if err != nil {
		return &Error{Op: "write", Knob: id, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// The knob may have disappeared while the hook ran.
	if _, ok := m.values[id]; !ok {
		return &Error{Op: "write", Knob: id, Err: fs.ErrNotExist}
	}
	m.values[id] = v
	return nil
}

// CheckWrite implements Checker.
func (m *Memory) CheckWrite(ctx context.Context, id ID, v Value) error {
	if _, err := m.check(ctx, id, v); err != nil {
		return &Error{Op: "check", Knob: id, Err: err}
	}
	return nil
}

func (m *Memory) check(ctx context.Context, id ID, v Value) (Value, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.values[id]; !ok {
		return "", fs.ErrNotExist
	}
	if m.readOnly[id] {
		return "", ErrReadOnly
	}
	if d, ok := m.catalog.Lookup(id); ok {
		return d.Normalize(v)
	}
	return v.Squeeze(), nil
}
