package reload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl/standing"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// note is what is known of one load of a module.
type note struct {
	BootID     string            `json:"boot_id"`
	Parameters map[string]string `json:"parameters"` // what the module was loaded with
	Indexes    map[string]int    `json:"indexes"`    // interface index by slot: another load has others
	// Followed has, for each parameter that was changed, its value from before and the knobs that
	// follow it, as they were then.
	Followed map[string]followed `json:"followed,omitempty"`
	Pending  *pending            `json:"pending,omitempty"` // a reload is under way, or was interrupted
}

type followed struct {
	Value knob.Value                       `json:"value"`
	Knobs map[string]map[string]knob.Value `json:"knobs"` // by slot, then by attribute: coalesce.rx-usecs
}

// pending is what has to be put back.
type pending struct {
	Picture  picture `json:"picture"`
	Attempts int     `json:"attempts"`
}

// picture is all that the interfaces of a driver have.
type picture struct {
	standing.Picture
	Cards []card `json:"cards"` // in the order of Links
	// Shown are the parameters that have files in sysfs, which may have been written since the load.
	Shown map[string]string `json:"shown,omitempty"`
}

// card is the part of a picture that other packages know by name.
type card struct {
	Slot     string                 `json:"slot"`
	Knobs    map[knob.ID]knob.Value `json:"knobs"`
	Sysctls  map[string]string      `json:"sysctls"`                 // by file, below /proc/sys
	Affinity []string               `json:"affinity"`                // of its interrupts, in the order of their numbers
	Wake     *uint32                `json:"wake,omitempty"`          // ethtool.Wake.On; absent: none
	Messages *uint32                `json:"message_level,omitempty"` // of the driver in the kernel's log
}

func (d Driver) file() string { return filepath.Join(d.Run, "module-"+d.Module+".json") }

// note reads the note; nil if there is none of this boot.
func (d Driver) note() (*note, error) {
	data, err := durable.OS().ReadFile(d.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var n note
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", d.file(), err)
	}
	if id, err := sys.BootID(); err != nil || id != n.BootID {
		return nil, err
	}
	return &n, nil
}

func (d Driver) record(n *note) error {
	data, err := json.Marshal(n)
	if err == nil {
		err = durable.Replace(durable.OS(), d.file(), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("note what module %s has: %w", d.Module, err)
	}
	return nil
}

// lockPatience bounds how long one reload waits for another: a reload takes some seconds.
const lockPatience = time.Minute

// lock keeps every other process from reloading the module.
func (d Driver) lock() (io.Closer, error) {
	if err := durable.MkdirAll(durable.OS(), d.Run, 0o755); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		lock, err := durable.OS().Lock(d.file() + ".lock")
		if err == nil || !errors.Is(err, durable.ErrLocked) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

// Keep records what the module was loaded with, if no note does yet: from then on that does not
// depend on modprobe's configuration.
func (d Driver) Keep() error {
	lock, err := d.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	n, err := d.present()
	if err != nil || len(n.Indexes) == 0 {
		return err // a module without interfaces gets its parameters when it is loaded
	}
	return d.record(n)
}

// present returns the note of the load that is in the kernel now. Without one, it is made of the
// configuration.
func (d Driver) present() (*note, error) {
	n, err := d.note()
	if err != nil {
		return nil, err
	}
	if n != nil && (n.Pending != nil || maps.Equal(n.Indexes, d.indexes())) {
		return n, nil
	}
	id, err := sys.BootID()
	return &note{BootID: id, Parameters: d.Configured(d.Module), Indexes: d.indexes()}, err
}
