package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
)

// phase is how far the latest step of a change got. Between two phases of a step, only the knob
// itself shows which one applies.
type phase string

const (
	phaseIntent  phase = "intent"  // about to be written, or just written
	phaseApplied phase = "applied" // written and read back
	phaseUndoing phase = "undoing" // about to be put back, or just put back
	phaseDone    phase = "done"    // final; State is Undone
)

// entry is a change with the fields that only the journal needs.
type entry struct {
	Change
	Session string `json:"session"` // of the Journal that made it
	Lease   bool   `json:"lease"`   // reverts when that session ends
	// Began is CLOCK_BOOTTIME when the intent was recorded.
	Began time.Duration `json:"began_boottime_nanoseconds"`
	// Expires is CLOCK_BOOTTIME at the end of the trial; 0: only the lease counts.
	Expires  time.Duration `json:"expires_boottime_nanoseconds,omitempty"`
	Identity Identity      `json:"identity,omitzero"`
	Guard    *Guardian     `json:"guard,omitempty"` // nil: none, or not known
	// Away is where an undo found its interface: in another network namespace. nil: it was not
	// missed.
	Away  *Identity `json:"away,omitempty"`
	Phase phase     `json:"phase"`
	Why   string    `json:"why,omitempty"` // it is being undone
	// Beside is what the knobs coupled to this one must hold when an unfinished step is undone or
	// finished: before a write what they held, before an undo what they have to go back to.
	Beside []knob.Setting `json:"beside,omitempty"`
	Saved  *saved         `json:"saved,omitempty"`
}

// kind is the meaning of a record.
type kind string

const (
	kindIntent      kind = "intent"      // Entry is about to be written
	kindApplied     kind = "applied"     // ID is in force, holding To
	kindFailed      kind = "failed"      // ID never came into force
	kindCommit      kind = "commit"      // IDs are no longer trials
	kindGuarded     kind = "guarded"     // Guard watches the trials IDs in place of the one they had
	kindUndo        kind = "undo"        // ID, holding To, is about to be put back
	kindUndone      kind = "undone"      // ID is over; its From passes to Heir if one stands on top
	kindPersist     kind = "persist"     // files of ID, in Saved, are about to be written
	kindPersisted   kind = "persisted"   // they are in place
	kindUnpersist   kind = "unpersist"   // they are about to be removed
	kindUnpersisted kind = "unpersisted" // none of them is left
	kindKept        kind = "kept"        // compaction: Entry as it was
	kindBase        kind = "base"        // compaction: numbers below Next are used, Originals were seen
)

// record is one record of the log, as JSON.
type record struct {
	Kind  kind       `json:"kind"`
	Time  time.Time  `json:"time"`
	Entry *entry     `json:"entry,omitempty"`
	ID    string     `json:"id,omitempty"`
	IDs   []string   `json:"ids,omitempty"`
	To    knob.Value `json:"to,omitempty"`
	Note  string     `json:"note,omitempty"`
	Heir  string     `json:"heir,omitempty"`
	// Of applied: the knobs that changed as well. Of undo: what coupled knobs have to go back to.
	SideEffects []SideEffect   `json:"side_effects,omitempty"`
	Beside      []knob.Setting `json:"beside,omitempty"`
	// Of undone: the old value is back, and side effects with it.
	Restored  bool       `json:"restored,omitempty"`
	Saved     *saved     `json:"saved,omitempty"`
	Away      *Identity  `json:"away,omitempty"`
	Guard     *Guardian  `json:"guard,omitempty"`
	Next      int        `json:"next,omitempty"`
	Originals []original `json:"originals,omitempty"`
}

// object is one knob of one host in one boot: the same name after a restart, in another network
// namespace or on a new interface is another object. An option in a file is the same in every boot.
type object struct {
	BootID   string   `json:"boot_id"`
	Knob     knob.ID  `json:"knob"`
	Identity Identity `json:"identity,omitzero"`
}

func (o object) same(other object) bool {
	if o.BootID != other.BootID && !o.Knob.InFile() || o.Identity.differs(other.Identity) {
		return false
	}
	if o.Identity.Device != "" && other.Identity.Device != "" {
		// One interface, regardless of its name at the time.
		return onInterface(o.Knob, "*") == onInterface(other.Knob, "*")
	}
	return o.Knob == other.Knob
}

// over reports whether a restart of the host has ended the change: the kernel forgot it, no file of
// linerate sets it again, and it is not itself in a file.
func (e *entry) over(bootID string) bool {
	return e.BootID != bootID && e.Saved == nil && !e.Knob.InFile()
}

// object returns the object that the change applies to.
func (e *entry) object() object { return object{e.BootID, e.Knob, e.Identity} }

// original is the first value seen on an object.
type original struct {
	object
	Value knob.Value `json:"value"`
}

// history is the sum of the records of a log. Live writes and replay use the same add, so memory
// cannot disagree with the disk.
type history struct {
	entries   []*entry // ordered by number
	last      int      // number of the newest entry
	next      int      // number of the next change, above all numbers ever assigned
	originals []original
}

// replay adds up the records of a log.
func replay(path string, records [][]byte) (*history, error) {
	h := &history{next: 1}
	for i, data := range records {
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, &FormatError{Path: path, Record: i, Reason: err.Error()}
		}
		if err := h.add(r); err != nil {
			return nil, &FormatError{Path: path, Record: i, Reason: err.Error()}
		}
	}
	return h, nil
}

// load reads the history in a directory without changing anything there. A missing log is an empty
// history.
func load(fsys durable.FS, path string) (*history, error) {
	records, _, err := durable.ReadMarkedLog(fsys, path)
	if err != nil {
		return nil, err
	}
	return replay(path, records)
}

// add applies one record. An error means that the record does not fit the earlier ones; nothing is
// changed then.
func (h *history) add(r record) error {
	switch r.Kind {
	case kindIntent, kindKept:
		return h.addEntry(r)
	case kindBase:
		h.next = max(h.next, r.Next)
		for _, o := range r.Originals {
			h.see(o)
		}
		return nil
	case kindGuarded:
		for _, id := range r.IDs {
			if e := h.find(id); e != nil {
				e.Guard = r.Guard
			}
		}
		return nil
	case kindCommit:
		for _, id := range r.IDs {
			if e := h.find(id); e == nil || e.State != Trial || e.Phase != phaseApplied {
				return fmt.Errorf("commit of change %q, which is not a trial in force", id)
			}
		}
		for _, id := range r.IDs {
			e := h.find(id)
			// Everything that could end it automatically is cleared at once. Undo by hand still
			// works: From and To stay.
			e.State, e.Deadline, e.Expires, e.Lease = Committed, nil, 0, false
		}
		return nil
	}

	e := h.find(r.ID)
	if e == nil {
		return fmt.Errorf("%q record of change %q, which is not known", r.Kind, r.ID)
	}
	if e.Phase == phaseDone {
		// Two Journals on one log would produce this; the lock excludes it, so it is damage.
		return fmt.Errorf("%q record of change %q, which is over", r.Kind, r.ID)
	}
	if r.Away != nil {
		e.Away = r.Away
	}
	switch r.Kind {
	case kindPersist, kindPersisted, kindUnpersist, kindUnpersisted:
		return h.persisted(r, e)
	case kindApplied:
		e.Phase, e.Note = phaseApplied, r.Note
		if r.Away == nil {
			e.SideEffects, e.Beside = r.SideEffects, nil
		}
		for _, s := range e.SideEffects {
			h.see(original{e.objectOf(s), s.From})
		}
		e.holds(r.To)
	case kindUndo:
		e.Phase, e.Why = phaseUndoing, r.Note
		if r.Away == nil {
			e.Beside = r.Beside
		}
		e.holds(r.To)
		if r.Away != nil {
			e.Note = r.Note
		}
	case kindFailed, kindUndone:
		if r.Heir != "" {
			heir := h.find(r.Heir)
			// A damaged heir would make undo write a value that this knob never held.
			if heir == nil || heir.Phase != phaseApplied || heir != h.above(e) {
				return fmt.Errorf("change %q passes its old value to %q, which cannot take it", r.ID, r.Heir)
			}
			h.inherit(heir, e)
		}
		if r.Restored {
			h.passOn(e, nil)
			h.ends(e)
		}
		e.Beside = nil
		e.Phase, e.State, e.Note, e.Deadline, e.Why = phaseDone, Undone, r.Note, nil, ""
		e.Persisted, e.Files = false, nil
	default:
		return fmt.Errorf("record of kind %q, which this version does not know", r.Kind)
	}
	return nil
}

// holds records what the knob really held under this change.
func (e *entry) holds(v knob.Value) {
	if v != e.To {
		e.Asked, e.To = e.To, v
	}
}

func (h *history) addEntry(r record) error {
	if r.Entry == nil {
		return fmt.Errorf("%q record without a change", r.Kind)
	}
	number, err := strconv.Atoi(r.Entry.ID)
	if err != nil || number < 1 || r.Entry.ID != formatID(number) {
		return fmt.Errorf("change with the id %q", r.Entry.ID)
	}
	// The order in the log is the order of writing, which top-down undo relies on.
	if number <= h.last {
		return fmt.Errorf("change %q is out of order", r.Entry.ID)
	}
	e := *r.Entry
	h.entries = append(h.entries, &e)
	h.last, h.next = number, max(h.next, number+1)
	h.see(original{e.object(), e.Original})
	return nil
}

// see records an original, unless one exists: the first one counts, a later one may be a tuned
// value.
func (h *history) see(o original) {
	if _, ok := h.original(o.object); !ok {
		h.originals = append(h.originals, o)
	}
}

// original returns the first value seen on an object.
func (h *history) original(of object) (knob.Value, bool) {
	for _, o := range h.originals {
		if o.same(of) {
			return o.Value, true
		}
	}
	return "", false
}

// find returns the change with an id, or nil. Users may omit leading zeros.
func (h *history) find(id string) *entry {
	number, err := strconv.Atoi(id)
	if err != nil {
		return nil
	}
	id = formatID(number)
	for _, e := range h.entries {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// above returns the next change on top of e: the oldest later change that is not over and is of the
// same object, or set that as well. A change that outlives its boot is below those of later boots.
func (h *history) above(e *entry) *entry {
	i := slices.Index(h.entries, e)
	for _, later := range h.entries[i+1:] {
		onTop := later.object().same(e.object()) || e.Saved != nil && later.Knob == e.Knob && later.BootID != e.BootID
		if later.Phase != phaseDone && (onTop || later.setAsWell(e.object(), e.To) >= 0) {
			return later
		}
	}
	return nil
}

// unsettled returns a change whose latest step was not finished, of the object or of a knob that
// sets the object as well; nil when all were.
func (h *history) unsettled(of object) *entry {
	for _, e := range h.entries {
		if (e.Phase == phaseIntent || e.Phase == phaseUndoing) && (e.object().same(of) || e.keeps(of)) {
			return e
		}
	}
	return nil
}

// recordBound is how long after its deadline the end of a trial is usually in the journal.
const recordBound = time.Second

// changes returns what users see of the history, oldest first. Trials of another boot have no guard
// to look for. now is the time since boot.
func (h *history) changes(bootID string, now time.Duration, alive func(Guardian) bool) []Change {
	changes := make([]Change, len(h.entries))
	for i, e := range h.entries {
		changes[i] = e.Change
		// The guard of one whose interface left has ended as it should; its note says why.
		changes[i].Unguarded = e.Away == nil && h.unguarded(e, bootID, alive)
		// The guard takes a trial back also where another process keeps the journal from it.
		if e.State == Trial && e.Phase != phaseDone && e.BootID == bootID && e.Note == "" &&
			e.Expires != 0 && now >= e.Expires+recordBound {
			changes[i].Note = "past its deadline: the journal does not show yet that it went back"
		}
	}
	return changes
}

// formatID pads numbers so that ids sort by time as text too, up to the ten-thousandth change.
func formatID(number int) string { return fmt.Sprintf("%04d", number) }
