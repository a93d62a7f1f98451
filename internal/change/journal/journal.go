package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Mode is what keeps a trial in force.
type Mode string

// The modes.
const (
	// Lease trials last as long as the journal that made them is open: tune, serve.
	Lease Mode = "lease"
	// Deadline trials outlive the journal and end at their own time: set.
	Deadline Mode = "deadline"
)

// DefaultTrial is how long a Deadline trial lasts when the request does not set a time. It suffices
// for a sysctl; a change that makes the link renegotiate needs two minutes, one that makes a switch
// port relearn needs three.
const DefaultTrial = 60 * time.Second

// Options are how to open a journal. Dir and Backend are required, the other fields have defaults.
type Options struct {
	Dir     string     // state directory; created when missing
	FS      durable.FS // nil: the operating system's
	Backend knob.Backend
	// Catalog provides the canonical form of values, in which they are compared, and refuses values
	// out of range. For knobs that it lacks, and for all knobs when it is nil, white space is
	// folded and nothing is refused.
	Catalog *knob.Catalog
	// Normalize replaces the catalogue when it is not nil.
	Normalize func(knob.ID, knob.Value) (knob.Value, error)

	Side  string // for Change.Side; empty: near
	Mode  Mode   // of trials; empty: Lease
	Guard *GuardOptions
	// Unguarded allows trials without a guard process: for backends whose values end with the
	// process, and for tests.
	Unguarded bool

	// Patience bounds how long Open waits for storage that hangs; 0: without bound. With a bound, Open
	// works on another thread, so a caller whose thread has a mount namespace of its own leaves it 0.
	// With Guard, another process first tries whether the storage takes writes, see AwaitStorage.
	Patience time.Duration

	BootID   string               // empty: sys.BootID
	Boottime func() time.Duration // nil: sys.Boottime; keeps running while the host is suspended
	Now      func() time.Time     // nil: time.Now; only for display
	// Identify returns the object of the host that a knob belongs to, so that a value is never
	// restored on another object of the same name. nil means network namespace and interface index
	// on Linux.
	Identify func(knob.ID) Identity
	// Locate returns the present name of an interface, by its index, or "" when it does not exist.
	// nil asks the kernel, on Linux; with a custom Identify, no interface has another name.
	Locate func(Identity) string
	// Elsewhere looks for an interface, by its identity and its name, in the other network namespaces
	// of the host. It returns an empty Identity when none has it, and false when it could not look
	// into all. nil asks the kernel, on Linux; with a custom Identify, none has it.
	Elsewhere func(i Identity, name string) (there Identity, known bool)
	// NamespaceGone reports whether a network namespace has certainly ended. nil checks all
	// processes, on Linux.
	NamespaceGone func(name string) bool
	// GuardAlive reports whether a guard runs. nil asks the kernel, on Linux; elsewhere all do.
	GuardAlive func(Guardian) bool
}

// defaults fills in missing options.
func (o Options) defaults() (Options, error) {
	if o.Dir == "" || o.Backend == nil {
		return o, errors.New("open journal: a directory and a backend are needed")
	}
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Normalize == nil {
		o.Normalize = o.normalize
	}
	if o.Side == "" {
		o.Side = "near"
	}
	if o.Mode == "" {
		o.Mode = Lease
	}
	if o.BootID == "" {
		id, err := sys.BootID()
		if err != nil {
			return o, fmt.Errorf("open journal: %w", err)
		}
		o.BootID = id
	}
	if o.Boottime == nil {
		o.Boottime = sys.Boottime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Locate == nil {
		o.Locate = locate
		if o.Identify != nil {
			o.Locate = func(Identity) string { return "" }
		}
	}
	if o.Elsewhere == nil {
		o.Elsewhere = elsewhere
		if o.Identify != nil {
			o.Elsewhere = func(Identity, string) (Identity, bool) { return Identity{}, true }
		}
	}
	if o.Identify == nil {
		o.Identify = identify
	}
	if o.NamespaceGone == nil {
		o.NamespaceGone = namespaceGone
	}
	if o.GuardAlive == nil {
		o.GuardAlive = guardAlive
	}
	return o, nil
}

// normalize returns the canonical form of a value.
func (o Options) normalize(id knob.ID, v knob.Value) (knob.Value, error) {
	if o.Catalog != nil {
		if definition, ok := o.Catalog.Lookup(id); ok {
			return definition.Normalize(v)
		}
	}
	return fold(v), nil
}

// fold makes every run of white space one space: the kernel separates the numbers of a sysctl by
// tabs, users by spaces.
func fold(v knob.Value) knob.Value { return knob.Value(strings.Join(strings.Fields(string(v)), " ")) }

func logPath(dir string) string  { return filepath.Join(dir, "journal.log") }
func lockPath(dir string) string { return filepath.Join(dir, "lock") }

// Journal is an open journal. Only one process has it open at a time. It is safe for concurrent
// use; its methods do not overlap.
type Journal struct {
	options Options
	session string
	lock    io.Closer

	mu      sync.Mutex
	log     *durable.Log // nil: records are only remembered, in silence or by a guard
	history *history
	guard   *Guard
	lease   time.Duration // of the latest Apply, for a guard that replaces a killed one
	tending func()        // ends Tend; nil: it does not run
	closed  bool
	sure    bool         // leaves what would be a guess to another Journal
	silent  *silence     // the storage did not answer before it was opened: nothing is recorded
	late    <-chan error // result of an append that hangs in the storage; nil: none does
}

// Open opens the journal in a directory and holds its exclusive lock until Close. It returns
// ErrLocked when another process has the journal, and ErrCorrupt when the journal is inconsistent.
// Open recovers nothing: call Recover. It returns ErrSilent when the storage does not answer within
// [Options.Patience]; a lock that comes too late is released at once.
//
// A journal whose storage takes no writes but can be read, as on a frozen file system, opens too:
// it changes nothing, and still restores old values. The errors of both match ErrSilent.
func Open(options Options) (*Journal, error) {
	if options.Patience == 0 {
		return openNow(options)
	}
	openNow := openNow
	if options.Guard != nil {
		var silent silence
		if errors.As(AwaitStorage(*options.Guard, options.Dir), &silent) {
			openNow = func(o Options) (*Journal, error) { return openSilent(o, silent) }
		}
	}
	type result struct {
		j   *Journal
		err error
	}
	opened := make(chan result, 1)
	go func() {
		j, err := openNow(options)
		opened <- result{j, err}
	}()
	if r, answered := awaitFor(opened, options.Patience); answered {
		return r.j, r.err
	}
	go func() {
		if r := <-opened; r.j != nil {
			_ = r.j.Close() // its caller believes that it did not open
		}
	}()
	return nil, fmt.Errorf("open journal: %w", silence{options.Patience, true})
}

// openNow is Open without a bound.
func openNow(options Options) (*Journal, error) {
	options, err := options.defaults()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(options.FS, options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := Trusted(options.FS, options.Dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	// Take the lock before the first look at the log: OpenLog cuts a torn tail, which could be the
	// record that another process is just appending.
	lock, err := options.FS.Lock(lockPath(options.Dir))
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{options: options, session: newSession(), lock: lock}
	if _, err = options.FS.Stat(logPath(options.Dir)); errors.Is(err, fs.ErrNotExist) {
		err = endStrays(options)
	}
	if err == nil {
		err = j.load()
	}
	if err != nil {
		_ = lock.Close() // The first error is the one to return.
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// load opens the log, after rewriting it if it has grown large.
func (j *Journal) load() error {
	path := logPath(j.options.Dir)
	log, records, err := durable.OpenMarkedLog(j.options.FS, path)
	if err != nil {
		return err
	}
	h, err := replay(path, records)
	if err != nil {
		_ = log.Close() // Nothing was appended.
		return err
	}
	j.log, j.history = log, h
	// Only here, under a fresh lock and with nothing in progress: compaction replaces the file, and
	// a guard opens it by name.
	return j.compact()
}

// openSilent opens a journal whose storage takes no writes. Nothing here writes: a thread that
// waits for a frozen file system keeps its process from ending.
func openSilent(options Options, silent silence) (*Journal, error) {
	options, err := options.defaults()
	if err != nil {
		return nil, err
	}
	quiet, ok := options.FS.(durable.QuietLocker)
	if !ok {
		return nil, fmt.Errorf("open journal: %w", silence{silent.within, true})
	}
	if err := Trusted(options.FS, options.Dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	lock, err := quiet.LockQuietly(lockPath(options.Dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = silence{silent.within, true} // no journal yet, and none can be made
	}
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w; %w", err, silence{silent.within, true})
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	h, err := load(options.FS, logPath(options.Dir))
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, lock.Close()))
	}
	return &Journal{options: options, session: newSession(), lock: lock, history: h, silent: &silent}, nil
}

// newSession returns a name that no other Journal has.
func newSession() string {
	var b [8]byte
	rand.Read(b[:]) // Never fails: package crypto/rand ends the program instead.
	return hex.EncodeToString(b[:])
}

// Session is the name of this open journal, which the guard receives.
func (j *Journal) Session() string { return j.session }

// Changes returns all changes that the journal remembers, oldest first.
func (j *Journal) Changes() []Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.history.changes(j.options.BootID, j.options.Boottime(), j.options.GuardAlive)
}

// Close releases the journal. Remaining Lease trials then end: the guard takes them back, or the
// next Recover does. Deadline trials stay in force under their guard.
func (j *Journal) Close() error {
	j.mu.Lock()
	tending := j.tending
	j.tending = nil
	j.mu.Unlock()
	if tending != nil {
		tending()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	// Log before lock, so that the next holder of the lock finds no descriptor of ours that could
	// still write.
	closeBoth := func() error {
		if j.silent != nil {
			return j.lock.Close()
		}
		return errors.Join(j.log.Close(), j.lock.Close())
	}
	var err error
	if late := j.late; late == nil {
		err = closeBoth()
	} else {
		go func() {
			<-late
			_ = closeBoth() // its failure was reported as ErrSilent
		}()
	}
	if j.guard != nil {
		// After the lock is free, so that a guard with work to do can take it.
		err = errors.Join(err, j.guard.Release())
	}
	return err
}

// History returns all changes of the journal in a directory, oldest first, without a lock and
// without writing. A directory without a journal has an empty history. A change that another
// process is just making may appear as a trial. The error is that of [Trusted] where another user
// may have written the journal.
func History(fsys durable.FS, dir string) ([]Change, error) {
	if err := Trusted(fsys, dir); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	h, err := load(fsys, logPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	bootID, err := sys.BootID()
	if err != nil {
		return h.changes("", 0, nil), nil // guards are not looked at
	}
	return h.changes(bootID, sys.Boottime(), guardAlive), nil
}

// write puts a record on disk, then applies it in memory.
func (j *Journal) write(r record) error {
	r.Time = j.options.Now().UTC()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// Disk first, memory second. The next process would not know of a record that only memory has;
	// in the other order it knows more than this one, which Recover handles.
	if err := j.append(data, r.Kind); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return j.remember(r, data)
}

// append puts a record on disk. The records of an undo wait at most storagePatience for storage
// that hangs, because the old value must not wait for it: one that reaches the disk later says what
// the next Recover finds at the knob anyway. All others wait, because a commit or an intent that
// comes true after it was reported as failed would break a promise.
func (j *Journal) append(data []byte, k kind) error {
	switch {
	case j.silent != nil:
		return *j.silent
	case j.late != nil:
		return ErrSilent
	case j.log == nil:
		return nil
	case k != kindUndo && k != kindUndone:
		return j.log.Append(data)
	}
	log, done := j.log, make(chan error, 1)
	go func() { done <- log.Append(data) }()
	err, answered := awaitFor(done, storagePatience)
	if !answered {
		j.late = done
		return ErrSilent
	}
	return err
}

// remember applies a record in memory, here and in the guard. The guard must know of an intent
// before the knob is written: it acts by its own memory when the storage fails.
func (j *Journal) remember(r record, data []byte) error {
	if err := j.history.add(r); err != nil {
		return err
	}
	if j.guard == nil {
		return nil
	}
	if err := j.guard.send(messageRecord + " " + string(data)); err != nil && r.Kind == kindIntent {
		return fmt.Errorf("%w: %w", ErrUnguarded, err)
	}
	return nil // a guard that does not hear of an end finds it in the log, or at the knob
}

// writeOrRemember puts a record on disk, and applies it in memory even if that fails: for what has
// already happened to a knob. The next Recover sees at the knob what the disk lacks.
func (j *Journal) writeOrRemember(r record) error {
	err := j.write(r)
	if j.silent != nil {
		err = nil // takeAllBack says once that nothing is recorded
	}
	if j.silent != nil || errors.Is(err, ErrUnwritable) {
		r.Time = j.options.Now().UTC()
		data, marshalErr := json.Marshal(r)
		return errors.Join(err, marshalErr, j.remember(r, data))
	}
	return err
}

// ready returns the reason why nothing may be changed, or nil.
func (j *Journal) ready() error {
	if j.closed {
		return fmt.Errorf("journal: %w", fs.ErrClosed)
	}
	if j.silent != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, silence{j.silent.within, true})
	}
	if j.late != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, ErrSilent)
	}
	if err := j.log.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}

// canonical returns the form of a value that is recorded and compared. The host may hold a value
// that the catalogue considers out of range; a value without a canonical form is compared as it is.
func (j *Journal) canonical(id knob.ID, v knob.Value) knob.Value {
	if normal, err := j.options.Normalize(id, v); err == nil {
		return normal
	}
	if j.options.Catalog != nil {
		if definition, ok := j.options.Catalog.Lookup(id); ok {
			if normal, err := definition.Canonical(v); err == nil {
				return normal
			}
		}
	}
	return fold(v)
}

// same reports whether two values of a knob are equal. It makes both canonical, also those from the
// log: an older version may have used another form.
func (j *Journal) same(id knob.ID, a, b knob.Value) bool {
	return a == b || j.canonical(id, a) == j.canonical(id, b)
}

// read returns the present value in canonical form.
func (j *Journal) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	v, err := j.options.Backend.Read(ctx, id)
	if err != nil {
		return "", err
	}
	return j.canonical(id, v), nil
}
