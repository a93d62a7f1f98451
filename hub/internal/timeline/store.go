package timeline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// Fixed bounds of a store.
const (
	// MaxEvents is the largest number of events; they take some 40 MB of memory then.
	MaxEvents = 100_000
	// MaxDocument is the size of the largest document, in bytes.
	MaxDocument = 16 << 20
	// DefaultMaxBytes is the default of Options.MaxBytes.
	DefaultMaxBytes = 256 << 20
	// DefaultLimit is the default of Query.Limit, MaxLimit its largest value.
	DefaultLimit = 1000
	MaxLimit     = 10_000

	maxWaiting  = 1000 // events in memory that the disk refused
	maxAppended = 32   // of them written one by one
	maxSegments = 64   // segments before the store compacts them
	maxWarnings = 20
)

var (
	// ErrNoDocument reports that no document has this id: the store does not know the event, or has
	// no document of it.
	ErrNoDocument = errors.New("no document has this id")
	// ErrDocumentTooLarge reports a document above MaxDocument.
	ErrDocumentTooLarge = fmt.Errorf("document is larger than %d MiB", MaxDocument>>20)
)

// Options of a store.
type Options struct {
	Dir      string           // created for its owner alone if missing
	FS       durable.FS       // nil: the operating system
	KeepFor  time.Duration    // the store drops what ended longer ago; 0: age drops nothing
	MaxBytes int64            // of records and documents on disk; 0: DefaultMaxBytes; at least 64 KiB
	Now      func() time.Time // nil: time.Now
}

// Query selects events. The zero value selects all.
type Query struct {
	Kinds   []Kind // any of them; empty: all
	Host    string // empty: all
	Subject string // empty: all
	Limit   int    // the newest ones; 0: DefaultLimit, or MaxLimit with PerKind; at most MaxLimit
	// PerKind is the largest number of events of one kind, the newest ones; 0: no such bound. It
	// keeps events of a frequent kind from displacing those of a rare one.
	PerKind int
}

// Status is the state of a store.
type Status struct {
	Events   int       // in memory
	Bytes    int64     // of records and documents on disk
	Waiting  int       // events in memory that the disk refused
	Err      error     // of the last write; nil: it succeeded
	Oldest   time.Time // start of the oldest event; zero: no events
	Warnings []string  // problems that Open found
}

// Store holds the events of a directory. Its methods may be called from any number of goroutines.
// Put waits for the disk, Document reads a file, and the others use memory alone.
type Store struct {
	o            Options
	segmentBytes int64 // size at which the next segment begins
	maxEvents    int
	maxWaiting   int

	// writing is held while writing to disk. It guards the following fields.
	writing  sync.Mutex
	lock     io.Closer
	log      *durable.Log // the last segment, open; nil: the next record begins a new one
	segments []*segment   // oldest first
	waiting  []*entry     // dirty events, in the order in which they were put
	expired  time.Time    // when the store last looked for events to expire
	strings  map[string]string
	closed   bool

	// reading guards the following fields. A change needs both locks, so the holder of writing may
	// read them without reading.
	reading   sync.RWMutex
	index     index
	documents int64 // bytes of all documents
	status    Status
}

// Open opens the store in a directory and reads all its events. A second process gets
// durable.ErrLocked. Open repairs what power loss or a crash can leave; it renames a damaged
// segment, with a warning in Status.
func Open(o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	o.MaxBytes = max(o.MaxBytes, 64<<10)
	s := &Store{o: o, segmentBytes: min(max(o.MaxBytes/16, 8<<10), 4<<20), maxEvents: MaxEvents, maxWaiting: maxWaiting,
		strings: make(map[string]string)}
	if err := s.open(); err != nil {
		if s.lock != nil {
			s.seal()
			_ = s.lock.Close() // the error below counts
		}
		return nil, fmt.Errorf("open timeline in %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := durable.MkdirAll(s.o.FS, s.documentsDir(), 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = s.o.FS.Lock(filepath.Join(s.o.Dir, "lock")); err != nil {
		return err
	}
	names, err := s.o.FS.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	var numbers []int
	for _, name := range names {
		if n := segmentNumber(name); n > 0 {
			numbers = append(numbers, n)
		} else if segmentNumber(strings.TrimSuffix(name, ".tmp")) > 0 {
			// half a segment that never counted; the next write to that name replaces it
			_ = s.o.FS.Remove(filepath.Join(s.o.Dir, name))
		}
	}
	slices.Sort(numbers)
	if err := s.load(numbers); err != nil {
		return err
	}
	if err := s.loadDocuments(); err != nil {
		return err
	}
	s.bound()
	s.note(nil)
	return nil
}

// loadDocuments finds which events have a document, and removes documents without an event.
func (s *Store) loadDocuments() error {
	names, err := s.o.FS.ReadDir(s.documentsDir())
	if err != nil {
		return err
	}
	for _, e := range s.index.order {
		e.Document = false
	}
	for _, name := range names {
		path := filepath.Join(s.documentsDir(), name)
		id, ok := strings.CutSuffix(name, ".json")
		e := s.index.byID[id]
		if !ok || e == nil {
			// Half written, or its event was dropped or never reached the disk. Files with other
			// names are not the store's.
			if ValidID(strings.TrimSuffix(id, ".json.tmp")) {
				_ = s.o.FS.Remove(path) // the next Open retries
			}
			continue
		}
		info, err := s.o.FS.Stat(path)
		if err != nil {
			return err
		}
		e.Document, e.document = true, info.Size()
		s.documents += info.Size()
	}
	return nil
}

func (s *Store) documentsDir() string { return filepath.Join(s.o.Dir, "documents") }

func (s *Store) documentPath(id string) string { return filepath.Join(s.documentsDir(), id+".json") }

// Put stores an event in place of the one with the same id, with its document; nil keeps the
// document that it has. The store sets Event.Document. When Put returns nil, event and document
// survive power loss, or the event is new and ended more than Options.KeepFor ago, and is not kept.
// An error that is not about the event itself says what the disk refused: the event is then in
// memory, and the next Put that succeeds writes it; a refused document is lost.
func (s *Store) Put(e Event, document []byte) error {
	e, err := e.Normal()
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return fmt.Errorf("put event %s: %w", e.ID, fs.ErrClosed)
	}
	if s.o.KeepFor > 0 && e.ends().Before(s.o.Now().Add(-s.o.KeepFor)) && s.index.byID[e.ID] == nil {
		return nil // it would expire at once
	}
	docErr := s.putDocument(&e, document)
	s.reading.Lock()
	in := s.index.put(s.shared(e))
	if document != nil && docErr == nil {
		s.documents += int64(len(document)) - max(in.document, 0)
		in.document = int64(len(document))
	}
	s.reading.Unlock()
	if !in.dirty {
		in.dirty = true
		s.waiting = append(s.waiting, in)
	}
	err = s.flush()
	s.bound()
	s.note(errors.Join(docErr, err))
	if err = errors.Join(docErr, err); err != nil {
		return fmt.Errorf("put event %s: %w", e.ID, err)
	}
	return nil
}

// putDocument writes the document of an event, before the event.
func (s *Store) putDocument(e *Event, document []byte) error {
	have := s.index.byID[e.ID]
	e.Document = have != nil && have.document >= 0
	if document == nil {
		return nil
	}
	if len(document) > MaxDocument || int64(len(document)) > s.o.MaxBytes/2 {
		return ErrDocumentTooLarge
	}
	if err := durable.Replace(s.o.FS, s.documentPath(e.ID), document, 0o600); err != nil {
		return err
	}
	e.Document = true
	return nil
}

// shared returns an event whose frequent strings share their memory with other events.
func (s *Store) shared(e Event) Event {
	for _, text := range []*string{(*string)(&e.Kind), &e.Host, &e.Subject, &e.Interface, &e.Title,
		(*string)(&e.Severity), &e.State} {
		if one, ok := s.strings[*text]; ok {
			*text = one
		} else if len(s.strings) < 4096 {
			s.strings[*text] = *text
		}
	}
	return e
}

// flush writes what waits, oldest first, up to the first refusal.
func (s *Store) flush() error {
	// already in a new segment
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return !e.dirty })
	var err error
	if len(s.waiting) > maxAppended {
		err = s.begin(s.waiting) // one file is safe sooner than hundreds of single records
	}
	for _, e := range s.waiting {
		if err == nil && e.dirty {
			err = s.write(e)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return !e.dirty })
	gone := make(map[*entry]bool)
	for _, e := range s.waiting {
		if len(s.waiting)-len(gone) > s.maxWaiting && e.segment == nil {
			gone[e] = true
		}
	}
	s.drop(gone)
	return err
}

// drop deletes events and their documents.
func (s *Store) drop(gone map[*entry]bool) {
	if len(gone) == 0 {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return gone[e] })
	bytes := int64(0)
	for e := range gone {
		s.forget(e)
		if e.document >= 0 {
			_ = s.o.FS.Remove(s.documentPath(e.ID)) // the next Open removes a document that stays
			bytes += e.document
		}
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.index.drop(gone)
	s.documents -= bytes
}

// bytes returns the size on disk, and how much of it is live.
func (s *Store) bytes() (all, live int64) {
	all, live = s.documents, s.documents
	for _, seg := range s.segments {
		all += seg.size
		live += seg.liveBytes
	}
	return all, live
}

// bound keeps the store within its bounds.
func (s *Store) bound() {
	now := s.o.Now()
	gone := make(map[*entry]bool)
	if s.o.KeepFor > 0 && (s.expired.IsZero() || now.Sub(s.expired).Abs() >= min(s.o.KeepFor/100, time.Hour)) {
		s.expired = now
		cutoff := now.Add(-s.o.KeepFor)
		for _, e := range s.index.order {
			if e.Time.After(cutoff) {
				break
			}
			if e.ends().Before(cutoff) {
				gone[e] = true
			}
		}
		if 2*len(gone) > len(s.index.order) {
			clear(gone) // the clock may be wrong: they stay until there are as many others
		}
	}
	// Drop a few more than necessary, so that not every further event costs a walk over all of
	// them.
	excess := len(s.index.order) - len(gone) - s.maxEvents
	if excess > 0 {
		excess += s.maxEvents / 64
	}
	all, live := s.bytes()
	surplus := int64(0)
	if all > s.o.MaxBytes {
		surplus = live - s.o.MaxBytes*7/8
	}
	dropOldest := func(which func(e *entry) bool) {
		for _, e := range s.index.order {
			if excess <= 0 && surplus <= 0 {
				return
			}
			if !gone[e] && which(e) {
				gone[e] = true
				excess--
				surplus -= e.size()
			}
		}
	}
	if excess > 0 || surplus > 0 {
		most := s.most(excess > 0)
		dropOldest(func(e *entry) bool { return !e.Open && e.Kind == most })
		dropOldest(func(e *entry) bool { return !e.Open })
		dropOldest(func(*entry) bool { return true })
	}
	s.drop(gone)
	// The next Put retries what fails here: nothing is lost by waiting.
	if err := s.removeDead(); err != nil {
		return
	}
	all, live = s.bytes()
	garbage := all - live
	if all > s.o.MaxBytes || garbage > live-s.documents+2*s.segmentBytes || len(s.segments) > maxSegments {
		_ = s.compact()
	}
}

// most returns the kind that has more than half of all events, or of their bytes; empty: none has.
// It gives way first, so that measurements by a schedule do not displace changes.
func (s *Store) most(byCount bool) Kind {
	all, of := int64(0), make(map[Kind]int64)
	for _, e := range s.index.order {
		n := int64(1)
		if !byCount {
			n = e.size()
		}
		all += n
		of[e.Kind] += n
	}
	for kind, n := range of {
		if n > all/2 {
			return kind
		}
	}
	return ""
}

// note keeps the result of the last write.
func (s *Store) note(err error) {
	all, _ := s.bytes()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.status.Bytes, s.status.Waiting, s.status.Err = all, len(s.waiting), err
}

// warn adds a warning during Open, before the store is shared.
func (s *Store) warn(format string, args ...any) {
	if len(s.status.Warnings) < maxWarnings {
		s.status.Warnings = append(s.status.Warnings, fmt.Sprintf(format, args...))
	}
}

// Between returns the events that happened or lasted between two moments, both included, ordered by
// time, newest last. A zero time is no bound. truncated reports that the store has more, all older.
func (s *Store) Between(start, end time.Time, q Query) (events []Event, truncated bool) {
	if q.Limit <= 0 && q.PerKind > 0 {
		q.Limit = MaxLimit
	} else if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	s.reading.RLock()
	defer s.reading.RUnlock()
	return s.index.between(start, end, q)
}

// Get returns the event with an id.
func (s *Store) Get(id string) (Event, bool) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if e := s.index.byID[id]; e != nil {
		return e.Event, true
	}
	return Event{}, false
}

// Document returns the document with an id, as it was put, or ErrNoDocument.
func (s *Store) Document(id string) ([]byte, error) {
	e, ok := s.Get(id)
	if !ok || !e.Document {
		return nil, ErrNoDocument
	}
	doc, err := s.o.FS.ReadFile(s.documentPath(e.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoDocument // dropped in the meantime
	}
	if err != nil {
		return nil, fmt.Errorf("read document of event %s: %w", e.ID, err)
	}
	return doc, nil
}

// Status returns the state of the store.
func (s *Store) Status() Status {
	s.reading.RLock()
	defer s.reading.RUnlock()
	st := s.status
	st.Events = len(s.index.order)
	if st.Events > 0 {
		st.Oldest = s.index.order[0].Time
	}
	st.Warnings = slices.Clone(st.Warnings)
	return st
}

// Close writes what waits and closes the store. Its error says what is lost. Reading continues to
// work.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.flush()
	s.note(err)
	if err != nil {
		err = fmt.Errorf("close timeline: %d events are lost: %w", len(s.waiting), err)
	}
	s.seal()
	return errors.Join(err, s.lock.Close())
}
