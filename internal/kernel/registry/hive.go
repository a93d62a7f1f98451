package registry

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
)

// Hive is the registry of another machine, as a registry file has it. It is safe for concurrent
// use.
type Hive struct {
	// Denied makes every write fail, as without administrator's rights.
	Denied bool

	mu   sync.Mutex
	keys map[string]map[string]Value // both in lower case
}

// ParseHive reads a registry file (Windows Registry Editor Version 5.00, or REGEDIT4), decoded to
// UTF-8. Lines of other types than numbers and texts are kept as Other; a deleted key is skipped.
func ParseHive(text string) *Hive {
	h := &Hive{keys: make(map[string]map[string]Value)}
	var now map[string]Value
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if inside, ok := strings.CutPrefix(line, "["); ok {
			now = nil
			if below, err := path(strings.TrimSuffix(inside, "]")); err == nil {
				now = h.key(below)
			}
			continue
		}
		name, data, ok := strings.Cut(line, "=")
		if !ok || now == nil || !strings.HasPrefix(name, `"`) {
			continue
		}
		name = strings.ToLower(strings.Trim(name, `"`))
		number, isNumber := strings.CutPrefix(data, "dword:")
		switch {
		case isNumber:
			if n, err := strconv.ParseUint(number, 16, 32); err == nil {
				now[name] = Value{Kind: Number, Number: n}
			}
		case len(data) >= 2 && data[0] == '"' && data[len(data)-1] == '"':
			plain := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(data[1 : len(data)-1])
			now[name] = Value{Kind: Text, Text: plain}
		case data != "-":
			now[name] = Value{}
		}
	}
	return h
}

// key makes a key and those above it.
func (h *Hive) key(below string) map[string]Value {
	below = strings.ToLower(below)
	for at, c := range below {
		if c == '\\' && h.keys[below[:at]] == nil {
			h.keys[below[:at]] = make(map[string]Value)
		}
	}
	if h.keys[below] == nil {
		h.keys[below] = make(map[string]Value)
	}
	return h.keys[below]
}

// find returns a key that exists.
func (h *Hive) find(key string) (map[string]Value, error) {
	below, err := path(key)
	if err != nil {
		return nil, err
	}
	values, ok := h.keys[strings.ToLower(below)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return values, nil
}

// Get implements Store.
func (h *Hive) Get(key, name string) (Value, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	values, err := h.find(key)
	if err != nil {
		return Value{}, err
	}
	v, ok := values[strings.ToLower(name)]
	if !ok {
		return Value{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return v, nil
}

// Set implements Store.
func (h *Hive) Set(key, name string, v Value) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	values, err := h.find(key)
	if err != nil {
		return err
	}
	if h.Denied {
		return fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	values[strings.ToLower(name)] = v
	return nil
}

// Delete implements Store.
func (h *Hive) Delete(key, name string) error {
	if _, err := h.Get(key, name); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Denied {
		return fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	values, err := h.find(key)
	if err == nil {
		delete(values, strings.ToLower(name))
	}
	return err
}

// Exists implements Store.
func (h *Hive) Exists(key string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := path(key); err != nil {
		return false, err
	}
	_, err := h.find(key)
	return err == nil, nil
}

// RemoveKey takes a key away with all values, as the removal of a driver does.
func (h *Hive) RemoveKey(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if below, err := path(key); err == nil {
		delete(h.keys, strings.ToLower(below))
	}
}
