package roster

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// usesFormat is the first member of the file of last uses.
const usesFormat = "linerate.serve-uses/1"

// Use is the last time that a peer has connected, and the address that it came from.
type Use struct {
	Time time.Time `json:"time"`
	From string    `json:"from,omitempty"`
}

type usesContent struct {
	Format string         `json:"format"`
	Uses   map[string]Use `json:"uses"`
}

// usesPath is where the last uses are.
func (f File) usesPath() string { return f.Path + ".used" }

// Uses returns the last uses by [wire.Key.ID]; a peer without one has never connected. Errors are
// those of Read, except that a missing file has no uses.
func (f File) Uses() (map[string]Use, error) {
	data, err := f.readSafe(f.usesPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c usesContent
	if err := decode(data, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.usesPath(), err)
	}
	if c.Format != usesFormat {
		return nil, fmt.Errorf("read %s: %w: its format is %q", f.usesPath(), ErrDamaged, c.Format)
	}
	return c.Uses, nil
}

// Note adds uses to the file, and drops those of keys that are not among the present peers. It does
// not wait for a lock: the error is then durable.ErrLocked. A damaged file is replaced, because it
// is only for display.
func (f File) Note(uses map[string]Use, present []Peer) error {
	lock, err := f.FS.Lock(f.Path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close() // nothing was written through it
	all, err := f.Uses()
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	kept := make(map[string]Use, len(present))
	for i := range present {
		id := present[i].Key.ID()
		last, known := all[id]
		// Another serve may have written a later one.
		if u, new := uses[id]; new && u.Time.After(last.Time) {
			last, known = u, true
		}
		if known {
			kept[id] = last
		}
	}
	data, err := indented(usesContent{usesFormat, kept})
	if err != nil {
		return err
	}
	return durable.Replace(f.FS, f.usesPath(), data, perm)
}
