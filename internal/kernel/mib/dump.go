package mib

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Dump is the tree of another machine, as `sysctl -a` printed it. It is safe for concurrent use.
type Dump struct {
	// OnSet runs before a value is kept and returns what the kernel would keep, or its error. Set
	// it before use.
	OnSet func(name, old, value string) (string, error)

	mu    sync.Mutex
	order []string
	nodes map[string]Node
}

// ParseDump reads what `sysctl -a` printed. A line without a name belongs to the value above it,
// which then is a structure and has no value here. Without more knowledge (see [Dump.Mark]) every
// node can be written.
func ParseDump(text string) *Dump {
	d := &Dump{nodes: make(map[string]Node)}
	last := ""
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			name, ok = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ":")
		}
		if !ok || strings.ContainsAny(name, " \t<>{}()/") || !strings.Contains(name, ".") {
			delete(d.nodes, last) // its value has several lines
			continue
		}
		if _, twice := d.nodes[name]; !twice {
			d.order = append(d.order, name)
		}
		last = name
		if strings.HasPrefix(value, "{ ") {
			delete(d.nodes, name)
			continue
		}
		d.nodes[name] = Node{Value: value, Writable: true}
	}
	return d
}

// Mark says what can be done with a node; `sysctl -aW` and `sysctl -aT` list those that are
// writable, and those that the loader sets.
func (d *Dump) Mark(name string, writable, tunable bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.nodes[name]; ok {
		n.Writable, n.Tunable = writable, tunable
		d.nodes[name] = n
	}
}

// Put changes a value as another program would, or adds a node.
func (d *Dump) Put(name, value string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[name]
	if !ok {
		d.order = append(d.order, name)
		n.Writable = true
	}
	n.Value = value
	d.nodes[name] = n
}

// Remove takes away what is below a name, as a driver that is unloaded does.
func (d *Dump) Remove(below string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.nodes {
		if name == below || strings.HasPrefix(name, below+".") {
			delete(d.nodes, name)
		}
	}
}

// Get implements Tree.
func (d *Dump) Get(name string) (Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.nodes[name]
	switch {
	case ok:
		return n, nil
	case slices.Contains(d.order, name):
		return Node{}, fmt.Errorf("%s: %w", name, ErrOpaque)
	}
	return Node{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Set implements Tree. A number stays a number.
func (d *Dump) Set(name, value string) error {
	n, err := d.Get(name)
	if err != nil {
		return err
	}
	if !n.Writable {
		return fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	if number(n.Value) && !number(value) {
		return fmt.Errorf("%s: %q: %w", name, value, ErrValue)
	}
	if d.OnSet != nil {
		if value, err = d.OnSet(name, n.Value, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.nodes[name]; ok {
		n.Value = value
		d.nodes[name] = n
		return nil
	}
	return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Names implements Tree.
func (d *Dump) Names(below string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for _, name := range d.order {
		if _, there := d.nodes[name]; there && strings.HasPrefix(name, below+".") {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("%s: %w", below, fs.ErrNotExist)
	}
	return names, nil
}

func number(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}
