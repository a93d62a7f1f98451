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

// The bounds of a store that cannot be chosen.
const (
	// MaxEvents is how many events a store keeps; at this number they take some 40 MB of memory.
	MaxEvents = 100_000
	// MaxDocument is the size of the largest document that is taken, in bytes.
	MaxDocument = 16 << 20
	// DefaultMaxBytes is used when Options.MaxBytes is 0.
	DefaultMaxBytes = 256 << 20
	// DefaultLimit is how many events Between gives when Query.Limit is 0, MaxLimit how many at
	// most.
	DefaultLimit = 1000
	MaxLimit     = 10_000

	maxWaiting  = 1000 // events that a disk has refused and that are kept in memory
	maxAppended = 32   // of them that are written one by one
	maxSegments = 64   // files of records, before they are written together
	maxWarnings = 20
)

var (
	// ErrNoDocument says that there is no document under an id: the event is not known, has none,
	// or its document is gone.
	ErrNoDocument = errors.New("no document of that id")
	// ErrDocumentTooLarge says that a document is above MaxDocument.
	ErrDocumentTooLarge = fmt.Errorf("document is larger than %d MiB", MaxDocument>>20)
)

// Options say where a store is and what it keeps.
type Options struct {
	Dir      string           // made if it is not there, for its owner alone
	FS       durable.FS       // nil: the operating system
	KeepFor  time.Duration    // what ended longer ago goes; 0: age alone removes nothing
	MaxBytes int64            // of records and documents on disk; 0: DefaultMaxBytes; at least 64 KiB
	Now      func() time.Time // nil: time.Now
}

// Query says which events are wanted. Its zero value: all.
type Query struct {
	Kinds   []Kind // any of them; empty: all
	Host    string // empty: all
	Subject string // empty: all
	Limit   int    // the newest so many; 0: DefaultLimit, at most MaxLimit
}

// Status is how a store is doing.
type Status struct {
	Events   int       // in memory
	Bytes    int64     // of records and documents on disk
	Waiting  int       // events that are in memory alone, because the disk refused them
	Err      error     // of the last writing; nil: it succeeded
	Oldest   time.Time // when the oldest event began; zero: there is none
	Warnings []string  // what was found at Open and is not as it should be
}

// Store is the events in a directory. Its methods may be called from any number of goroutines; Put
// waits for the disk, the others for memory alone, but for Document, which reads a file.
type Store struct {
	o            Options
	segmentBytes int64 // from which size on the next segment is begun
	maxEvents    int
	maxWaiting   int

	// writing is held by whoever writes to disk. What is below is for its holder alone.
	writing  sync.Mutex
	lock     io.Closer
	log      *durable.Log // open on the last segment; nil: the next record begins a new one
	segments []*segment   // oldest first
	waiting  []*entry     // dirty ones, in the order in which they were put
	expired  time.Time    // when events were last looked through for old ones
	strings  map[string]string
	closed   bool

	// reading guards what is below. To change it both locks are needed, so the holder of writing
	// may read it with that alone.
	reading   sync.RWMutex
	index     index
	documents int64 // bytes of all documents
	status    Status
}

// Open opens the store in a directory and reads all its events. A second process is refused with
// durable.ErrLocked. What power loss or a crash can leave is put right; a damaged segment is put
// aside, with a warning in Status.
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
			_ = s.lock.Close() // the error below is the one that counts
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
			// half a segment that never counted; the next writing of that name removes it too
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

// loadDocuments finds which events have a document, and removes documents that no event has.
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
			// Half written, or its event was dropped, or never got to disk. What is not ours by its
			// name is left alone.
			if ValidID(strings.TrimSuffix(id, ".json.tmp")) {
				_ = s.o.FS.Remove(path) // the next Open tries again
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

// Put takes an event in, in place of what had its id, with its document; nil: the document that it
// has already stays. Event.Document is set by the store. When it returns nil, event and document
// survive power loss, or the event is new and ended more than Options.KeepFor ago, and is not kept.
// An error that is not about the event itself says what the disk refused: the event is in memory
// then, and is written with the next Put that succeeds; a refused document is not kept.
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
		return nil // it would be the first to go
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

// putDocument puts the document of an event on disk, before the event is.
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

// shared gives an event whose words that come again and again share their memory with those of
// others.
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
	// carried into a new segment meanwhile
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return !e.dirty })
	var err error
	if len(s.waiting) > maxAppended {
		err = s.begin(s.waiting) // one file is sooner safe than hundreds of records one by one
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

// drop forgets events, and removes their documents.
func (s *Store) drop(gone map[*entry]bool) {
	if len(gone) == 0 {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return gone[e] })
	bytes := int64(0)
	for e := range gone {
		s.forget(e)
		if e.document >= 0 {
			_ = s.o.FS.Remove(s.documentPath(e.ID)) // one that stays is removed by the next Open
			bytes += e.document
		}
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.index.drop(gone)
	s.documents -= bytes
}

// bytes is what is on disk, and how much of it is of use.
func (s *Store) bytes() (all, live int64) {
	all, live = s.documents, s.documents
	for _, seg := range s.segments {
		all += seg.size
		live += seg.liveBytes
	}
	return all, live
}

// bound holds the store within its bounds.
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
	}
	// Some more than have to, so that not every further event costs a walk over all of them.
	excess := len(s.index.order) - len(gone) - s.maxEvents
	if excess > 0 {
		excess += s.maxEvents / 64
	}
	all, live := s.bytes()
	surplus := int64(0)
	if all > s.o.MaxBytes {
		surplus = live - s.o.MaxBytes*7/8
	}
	for _, open := range []bool{false, true} {
		for _, e := range s.index.order {
			if excess <= 0 && surplus <= 0 {
				break
			}
			if !gone[e] && e.Open == open {
				gone[e] = true
				excess--
				surplus -= e.bytes + max(e.document, 0)
			}
		}
	}
	s.drop(gone)
	// What cannot be tidied up now is tidied up with the next Put: nothing is lost by waiting.
	if err := s.removeDead(); err != nil {
		return
	}
	all, live = s.bytes()
	garbage := all - live
	if all > s.o.MaxBytes || garbage > live-s.documents+2*s.segmentBytes || len(s.segments) > maxSegments {
		_ = s.compact()
	}
}

// note keeps how the last writing went.
func (s *Store) note(err error) {
	all, _ := s.bytes()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.status.Bytes, s.status.Waiting, s.status.Err = all, len(s.waiting), err
}

// warn keeps what is found at Open, before anybody else has the store.
func (s *Store) warn(format string, args ...any) {
	if len(s.status.Warnings) < maxWarnings {
		s.status.Warnings = append(s.status.Warnings, fmt.Sprintf(format, args...))
	}
}

// Between gives the events that happened or lasted between two moments, both included, in the order
// of their times, newest last. A zero time is no bound. truncated tells that there are more, all
// older.
func (s *Store) Between(start, end time.Time, q Query) (events []Event, truncated bool) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	s.reading.RLock()
	defer s.reading.RUnlock()
	return s.index.between(start, end, q)
}

// Get gives the event of an id.
func (s *Store) Get(id string) (Event, bool) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if e := s.index.byID[id]; e != nil {
		return e.Event, true
	}
	return Event{}, false
}

// Document gives the document of an id, as it was put. There being none is ErrNoDocument.
func (s *Store) Document(id string) ([]byte, error) {
	e, ok := s.Get(id)
	if !ok || !e.Document {
		return nil, ErrNoDocument
	}
	doc, err := s.o.FS.ReadFile(s.documentPath(e.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoDocument // dropped meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("read document of event %s: %w", e.ID, err)
	}
	return doc, nil
}

// Status tells how the store is doing.
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

// Close writes what waits and closes the store. Its error says what is lost. Reading goes on to
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
