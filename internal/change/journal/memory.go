package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// memory is what a guard knows of the changes without any storage. The writer repeats each record
// of its session on the pipe before it writes the knob, and the guard reads the log whenever it
// grows. A log that stops answering, vanishes, shrinks or is damaged takes nothing from memory.
type memory struct {
	session string
	logged  *history // as of the last log that could be read and agreed with own; nil: none yet
	own     *history // the session's changes, as the writer reported them
}

func newMemory(session string) *memory {
	return &memory{session: session, own: &history{next: 1}}
}

// hear adds a record that the writer has reported.
func (m *memory) hear(text string) error {
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("record of the writer: %w", err)
	}
	for _, id := range append(slices.Clone(r.IDs), r.ID) {
		// A guard that replaced a killed one was not there when the change began. It takes what the
		// log says of it.
		if id != "" && m.own.find(id) == nil && !m.adopt(id) {
			return fmt.Errorf("record of the writer: change %s is not known", id)
		}
	}
	return m.own.add(r)
}

// adopt copies a change of the session from the log.
func (m *memory) adopt(id string) bool {
	if m.logged == nil {
		return false
	}
	e := m.logged.find(id)
	if e == nil || e.Session != m.session {
		return false
	}
	m.own.insert(e)
	return true
}

// take replaces what the log said last, unless the log lacks a change that the guard still has to
// watch: no command removes such a change from a log.
func (m *memory) take(h *history) error {
	for _, e := range m.entries() {
		if e.Phase == phaseDone {
			continue // compaction drops finished changes
		}
		if known := h.find(e.ID); known == nil || known.Session != e.Session {
			return fmt.Errorf("the journal lacks change %s, which is in force: %w", e.ID, ErrCorrupt)
		}
	}
	m.logged = h
	return nil
}

// entries returns the changes of the session, as far ahead as log or writer know them. They are
// copies.
func (m *memory) entries() []*entry {
	var list []*entry
	for _, e := range m.history().entries {
		if e.Session == m.session {
			list = append(list, e)
		}
	}
	return list
}

// history returns a copy of all that is known: the last good log, with the session's own changes as
// the writer reported them where these are ahead.
func (m *memory) history() *history {
	h := &history{next: 1}
	if m.logged != nil {
		for _, e := range m.logged.entries {
			h.insert(e)
		}
	}
	for _, e := range m.own.entries {
		switch known := h.find(e.ID); {
		case known == nil:
			h.insert(e)
		case known.Session != e.Session || e.ahead(known):
			*known = *e
		}
	}
	return h
}

// insert adds a copy of a change at its place by number.
func (h *history) insert(e *entry) {
	number, _ := strconv.Atoi(e.ID) // add has checked it
	at := len(h.entries)
	for at > 0 {
		if before, _ := strconv.Atoi(h.entries[at-1].ID); before < number {
			break
		}
		at--
	}
	kept := *e
	h.entries = slices.Insert(h.entries, at, &kept)
	h.last, h.next = max(h.last, number), max(h.next, number+1)
}

// ahead reports whether e is a later stage of the same change than other. A change passes its
// stages in one order only.
func (e *entry) ahead(other *entry) bool { return e.stage() > other.stage() }

func (e *entry) stage() int {
	committed := 0
	if e.State != Trial {
		committed = 1
	}
	return map[phase]int{phaseIntent: 0, phaseApplied: 1, phaseUndoing: 3, phaseDone: 5}[e.Phase] + committed
}

// storagePatience is how long a guard, and an undo, wait for the storage of the journal. The knobs
// of a guard do not wait for it at all.
const storagePatience = 2 * time.Second

// silence is storage that did not answer.
type silence struct {
	within time.Duration
	open   bool // while the journal was opened, or before a change
}

// ErrSilent reports storage that does not answer: a frozen file system, an NFS server that is gone,
// a disk that hangs. A call that was made stays in the kernel; only the guard or the undo goes on.
// The process can then end only when the kernel gives that call up: at once for NFS, at the thaw
// for a frozen file system. Open with a Patience and a Guard makes no such call.
var ErrSilent error = silence{within: storagePatience}

func (s silence) Error() string {
	return fmt.Sprintf("the storage of the state directory did not answer within %v", s.within)
}

// Is makes silences of any length the same.
func (s silence) Is(target error) bool {
	_, ok := target.(silence)
	return ok
}

// Hint returns what the user can do.
func (s silence) Hint() string {
	if s.open {
		return "nothing was changed; a trial still goes back at its deadline; " +
			"repeat the command when the storage answers"
	}
	return "old values are restored without it; repeat linerate undo when the storage answers, " +
		"so that the journal has it too"
}

// errVanished reports a log that was there before. Nothing of linerate removes one.
var errVanished = fmt.Errorf("the journal has vanished: %w", ErrCorrupt)

// reading is the result of a look at the log.
type reading struct {
	history *history // nil: as at the last look
	info    fs.FileInfo
	err     error
}

// readLog reads the log if it has changed since seen. It may hang with the storage.
func readLog(fsys durable.FS, path string, seen fs.FileInfo) reading {
	// Size and time show every change of the log: a record makes it longer, and compaction replaces
	// the file.
	info, err := fsys.Stat(path)
	if err != nil {
		return reading{err: err}
	}
	if seen != nil && seen.Size() == info.Size() && seen.ModTime().Equal(info.ModTime()) {
		return reading{info: info}
	}
	h, err := load(fsys, path)
	return reading{history: h, info: info, err: err}
}

// look brings the memory up to date with the log, and raises the alarm when that fails.
func (g *watch) look() { g.troubled(g.read()) }

// read reads the log into the memory. It waits at most storagePatience, and not at all while an
// earlier read still hangs.
func (g *watch) read() error {
	patience := time.Duration(0)
	if g.pending == nil {
		patience = storagePatience
		pending := make(chan reading, 1)
		g.pending = pending
		go func(seen fs.FileInfo) { pending <- readLog(g.options.FS, logPath(g.options.Dir), seen) }(g.seen)
	}
	r, answered := awaitFor(g.pending, patience)
	if !answered {
		return ErrSilent
	}
	g.pending = nil
	switch {
	case errors.Is(r.err, fs.ErrNotExist) && g.seen == nil:
		return nil // no writer has been here yet
	case errors.Is(r.err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", errVanished, r.err)
	case r.err == nil && r.history != nil:
		r.err = g.memory.take(r.history)
	}
	if r.err == nil {
		g.seen = r.info
	}
	return r.err
}

// troubled notes whether the journal can be trusted, and raises the alarm when it no longer can.
func (g *watch) troubled(err error) {
	before := g.trouble
	g.trouble = err
	switch {
	case err == nil && before != nil:
		g.say("the journal can be read again")
	case err != nil && (before == nil || before.Error() != err.Error()):
		g.alarm(fmt.Sprintf("%v: going by the guard's memory of %d changes", err, len(g.left())))
	}
}

// left returns the changes of the session that still need the guard.
func (g *watch) left() []*entry {
	var cared []*entry
	for _, e := range g.memory.entries() {
		if e.BootID == g.options.BootID && e.Phase != phaseDone && (e.State == Trial || e.Phase != phaseApplied) {
			cared = append(cared, e)
		}
	}
	return cared
}
