package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// Result is what became of a persisted change.
type Result string

// The results.
const (
	Held    Result = "held"    // the host was restarted, and the knob has the value
	Lost    Result = "lost"    // the host was restarted, and the knob has another value, or a file was changed
	Waiting Result = "waiting" // the host was not restarted since
	Covered Result = "covered" // a later change of the same knob stands on top
)

// Finding is the result of one change.
type Finding struct {
	Change  journal.Change
	Result  Result
	Present *knob.Value    // what the knob holds; nil: it could not be read
	SetBy   *bootconf.Line // the line that decides at the start; nil: none is known
	Edited  []string       // files of the change that were edited since
	Missing []string       // files of the change that are not there
	Why     string         // it did not hold
}

// Reader reads the present value of a knob; every knob.Backend is one.
type Reader interface {
	Read(ctx context.Context, id knob.ID) (knob.Value, error)
}

// Checker compares a host with what was persisted on it.
type Checker struct {
	Host   Host
	Knobs  Reader
	BootID string
	Kept   map[string]journal.Kept // files by the id of their change
	// ReadFile reads a file of a change; nil: os.ReadFile.
	ReadFile func(name string) ([]byte, error)
}

// Check returns of each persisted change among all of a journal, oldest first, whether its knob has
// the value now, and if not, why.
func (c Checker) Check(ctx context.Context, all []journal.Change) []Finding {
	if c.Host.Device == nil {
		c.Host.Device = func(name string) bootconf.Device { return bootconf.FindDevice(c.Host.Root, name) }
	}
	if c.ReadFile == nil {
		c.ReadFile = os.ReadFile
	}
	var findings []Finding
	for i, change := range all {
		if change.State == journal.Persisted {
			findings = append(findings, c.one(ctx, change, all[i+1:]))
		}
	}
	return findings
}

func (c Checker) one(ctx context.Context, change journal.Change, later []journal.Change) Finding {
	f := Finding{Change: change, Result: Held}
	kept := c.Kept[change.ID]
	for i, name := range kept.Paths() {
		text, err := c.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Missing = append(f.Missing, name)
		case err != nil || string(text) != kept.Files[i].Content &&
			!(kept.Files[i].Block && strings.Contains(string(text), kept.Files[i].Content)):
			f.Edited = append(f.Edited, name)
		}
	}
	var devices []bootconf.Device
	if name := change.Knob.Interface(); name != "" {
		devices = append(devices, c.Host.Device(name))
	}
	if line, ok := bootconf.Read(c.Host.Root, devices...).Line(change.Knob); ok {
		f.SetBy = &line
	}
	present, readErr := c.Knobs.Read(ctx, change.Knob)
	if readErr == nil {
		f.Present = &present
	}
	for _, l := range later {
		if l.Knob == change.Knob && l.State != journal.Undone &&
			(l.State == journal.Persisted || l.BootID == c.BootID) {
			f.Result, f.Why = Covered, "change "+l.ID+" stands on top"
			return f
		}
	}
	switch {
	case len(f.Missing) > 0:
		f.Result, f.Why = Lost, "no longer there: "+strings.Join(f.Missing, ", ")
	case change.BootID == c.BootID:
		f.Result = Waiting
		if len(f.Edited) > 0 {
			f.Why = "edited since: " + strings.Join(f.Edited, ", ")
		}
	case readErr != nil:
		f.Result, f.Why = Lost, readErr.Error()
	case !same(change.Knob, present, change.To):
		f.Result, f.Why = Lost, c.culprit(f, kept)
	}
	return f
}

// culprit returns the program that most likely set a knob to another value than the persisted one.
func (c Checker) culprit(f Finding, kept journal.Kept) string {
	ours := f.SetBy != nil &&
		slices.ContainsFunc(kept.Files, func(file journal.File) bool { return file.Path == f.SetBy.File })
	switch {
	case f.SetBy != nil && !ours:
		return fmt.Sprintf("%s:%d sets it to %s (%s)", f.SetBy.File, f.SetBy.Number, f.SetBy.Value, f.SetBy.By)
	case len(f.Edited) > 0:
		return "edited since: " + strings.Join(f.Edited, ", ")
	}
	why := "no configuration file says otherwise: the driver refused it or was not ready for it when the file was " +
		"read, or a program has set it since"
	if len(c.Host.Managers) > 0 {
		why += " (at work here: " + strings.Join(c.Host.Managers, ", ") + ")"
	}
	return why
}

// same compares two values as the catalogue does.
func same(id knob.ID, a, b knob.Value) bool {
	if d, ok := knob.Catalogue().Lookup(id); ok {
		return d.Equal(a, b)
	}
	return a == b
}
