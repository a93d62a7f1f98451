package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// Kind is a kind of document. It is also the name of the directory below the state.
type Kind string

const (
	Tunes        Kind = "runs"         // experiments, linerate.tune/1
	Measurements Kind = "measurements" // results of `linerate measure`, linerate.measure/1
)

// one returns the word for one document of the kind.
func (k Kind) one() string { return strings.TrimSuffix(string(k), "s") }

// DefaultKeep is the number of documents of a kind that a store keeps: some 20 MiB at a typical 100
// KiB per experiment.
const DefaultKeep = 200

// MaxBytes is the largest document that is read.
const MaxBytes = 64 << 20

// Words name a run in place of an id.
const (
	Last     = "last"     // the newest
	Latest   = "latest"   // another word for it
	Previous = "previous" // the one before the newest
)

var (
	// ErrNoRun reports that nothing stored has that name.
	ErrNoRun = errors.New("nothing is stored under this name")
	// ErrAmbiguous reports that several ids begin with that name.
	ErrAmbiguous = errors.New("several begin like this")
	// ErrTooLarge reports a file larger than any document of linerate.
	ErrTooLarge = fmt.Errorf("larger than %d MiB", MaxBytes>>20)
)

// Store holds the documents of one kind below a state directory. Create it with [In]; the zero
// value is unusable.
type Store struct {
	fsys durable.FS
	kind Kind
	dir  string
	keep int
}

// In returns the store of a state directory, which need not exist yet. keep is the number of
// documents to keep; 0: DefaultKeep.
func In(fsys durable.FS, state string, kind Kind, keep int) Store {
	if keep <= 0 {
		keep = DefaultKeep
	}
	return Store{fsys: fsys, kind: kind, dir: filepath.Join(state, string(kind)), keep: keep}
}

const moments = "20060102-150405"

// NewID returns the id of a run that begins now. The random part distinguishes two of one second.
func NewID(now time.Time, random uint16) string {
	return fmt.Sprintf("%s-%04x", now.UTC().Format(moments), random)
}

// Name reports whether a text has the form of an id.
func Name(text string) bool {
	moment, random, ok := strings.Cut(text[min(len(text), len("20060102-")):], "-")
	if !ok || len(random) != 4 || strings.Trim(random, "0123456789abcdef") != "" {
		return false
	}
	_, err := time.Parse(moments, text[:len("20060102-")]+moment)
	return err == nil && len(text) == len(moments)+len("-7f3a")
}

// Began returns the moment in an id, to the second, and false if the text is not an id.
func Began(id string) (time.Time, bool) {
	if !Name(id) {
		return time.Time{}, false
	}
	at, err := time.Parse(moments, id[:len(moments)])
	return at, err == nil
}

// Path returns the file of a run.
func (s Store) Path(id string) string { return filepath.Join(s.dir, id+".json") }

// List returns the ids of the stored runs, newest first. It is empty if nothing was saved. Where
// another user may have written them, the error is that of durable.SafeState.
func (s Store) List() ([]string, error) {
	if err := durable.SafeState(s.fsys, s.dir); err != nil {
		return nil, fmt.Errorf("list %s: %w", s.kind, err)
	}
	names, err := s.fsys.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.kind, err)
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".json"); ok && Name(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}

// Find returns the id of the only run whose id begins with name, or the one that a word names:
// Last, Latest or Previous. The errors are ErrNoRun and ErrAmbiguous.
func (s Store) Find(name string) (string, error) {
	ids, err := s.List()
	if err != nil {
		return "", err
	}
	switch {
	case (name == Last || name == Latest) && len(ids) > 0:
		return ids[0], nil
	case name == Previous && len(ids) > 1:
		return ids[1], nil
	}
	var found []string
	for _, id := range ids {
		if name != "" && strings.HasPrefix(id, name) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("find %s %q: %w", s.kind.one(), name, ErrNoRun)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("find %s %q: %w: %s … %s, %d in all", s.kind.one(), name, ErrAmbiguous, found[len(found)-1],
		found[0], len(found))
}

// Read returns the document of a run, given its complete id. It refuses one that another user may
// have written, as List does.
func (s Store) Read(id string) ([]byte, error) {
	if !Name(id) {
		return nil, fmt.Errorf("read %s %q: %w", s.kind.one(), id, ErrNoRun)
	}
	if err := durable.SafeState(s.fsys, s.dir, s.Path(id)); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.kind.one(), err)
	}
	return s.ReadFile(s.Path(id))
}

// ReadFile returns the document in any file, such as one received from another host.
func (s Store) ReadFile(path string) ([]byte, error) {
	info, err := s.fsys.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.kind.one(), err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s %s: is a directory", s.kind.one(), path)
	}
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("read %s %s: %w", s.kind.one(), path, ErrTooLarge)
	}
	doc, err := s.fsys.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.kind.one(), err)
	}
	return doc, nil
}

// Save stores a document under an id and replaces an existing one. When it returns nil, the
// document survives a power loss.
func (s Store) Save(id string, doc []byte) error {
	if !Name(id) {
		return fmt.Errorf("save %s %q: not the name of one", s.kind.one(), id)
	}
	if err := durable.MkdirAll(s.fsys, s.dir, 0o700); err != nil {
		return fmt.Errorf("save %s %s: %w", s.kind.one(), id, err)
	}
	if err := durable.Replace(s.fsys, s.Path(id), doc, 0o600); err != nil {
		return fmt.Errorf("save %s %s: %w", s.kind.one(), id, err)
	}
	return nil
}

// Prune removes the oldest runs above the number to keep, and the half-written files of a crash. It
// never removes the run spare, even if a clock that was set back makes it the oldest. It reports a
// run that it cannot remove after removing the others.
func (s Store) Prune(spare string) error {
	names, err := s.fsys.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune %s: %w", s.kind, err)
	}
	var problems []error
	remove := func(name string) {
		if err := s.fsys.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("prune %s: %w", s.kind, err))
		}
	}
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".json.tmp"); ok && Name(id) {
			remove(name)
		}
	}
	ids, err := s.List()
	if err != nil {
		return err
	}
	for _, id := range ids[min(s.keep, len(ids)):] {
		if id != spare {
			remove(id + ".json")
		}
	}
	return errors.Join(problems...)
}
