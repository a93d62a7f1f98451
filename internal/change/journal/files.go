package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
)

// File is a file that sets a knob when the host starts.
type File struct {
	Path    string      `json:"path"` // absolute path on the host that it is for
	Content string      `json:"content"`
	Mode    fs.FileMode `json:"mode"` // permissions; the umask of the process applies
	// Block: the content goes to the end of a file that the host has already, and undo takes it out
	// again. Only files that one system has no directory for are changed in this way: see Marked.
	Block bool `json:"block,omitempty"`
}

// The lines around a block in a file of the host.
const (
	blockBegins = "# linerate begin "
	blockEnds   = "# linerate end "
)

// blockFiles are the files that take blocks, below the root.
var blockFiles = []string{"etc/sysctl.conf", "etc/rc.conf"}

// Marked returns a file with a marked block for the end of the host's file. The block begins with a
// newline: the last line of the file, or of what remains when an earlier block goes, may have none.
func Marked(path, id, lines string, mode fs.FileMode) File {
	content := "\n" + blockBegins + id + "\n" + lines + blockEnds + id + "\n"
	return File{Path: path, Content: content, Mode: mode, Block: true}
}

// ours checks the name of a file that persisting writes and undo removes, and the marks of a block:
// a journal is a file, which may be forged.
func (f File) ours(root, name string) error {
	if !f.Block {
		return ourFile(root, name)
	}
	below, err := filepath.Rel(root, name)
	text := strings.TrimPrefix(f.Content, "\n")
	id, _, _ := strings.Cut(strings.TrimPrefix(text, blockBegins), "\n")
	if err != nil || !slices.Contains(blockFiles, filepath.ToSlash(below)) || !strings.HasPrefix(text, blockBegins) ||
		!strings.HasSuffix(text, "\n"+blockEnds+id+"\n") {
		return fmt.Errorf("%s: %w", name, ErrNotOurs)
	}
	return nil
}

// Plan is the files that make one change survive a reboot. Several plans may share a file with the
// same content; it is removed with the last of them.
type Plan struct {
	ID    string
	Files []File
}

// savedPhase is how far the files of a change got.
type savedPhase string

const (
	savedWriting  savedPhase = "writing"  // about to be written, or half of them are
	savedInPlace  savedPhase = "in place" // all of them are on disk
	savedRemoving savedPhase = "removing" // about to be removed, or half of them are
	savedGone     savedPhase = "gone"     // none of them is ours any more
)

// saved is what makes a change outlive its boot.
type saved struct {
	Root  string     `json:"root"` // where the host's / is: / or the directory of an image
	Files []File     `json:"files"`
	Made  []string   `json:"directories,omitempty"` // directories that did not exist before, outermost first
	Phase savedPhase `json:"phase"`
}

// paths are the names of the files on this host.
func (s *saved) paths() []string {
	var list []string
	for _, f := range s.Files {
		list = append(list, filepath.Join(s.Root, f.Path))
	}
	return list
}

// holds reports whether a file with this name is on disk because of the change.
func (s *saved) holds(path string) bool {
	return s != nil && s.Phase != savedGone && slices.Contains(s.paths(), path)
}

// The errors of persisting.
var (
	// ErrNotCommitted reports that a change to persist is a trial, or over.
	ErrNotCommitted = errors.New("not committed")
	// ErrInTheWay reports that a file with the name of one to be written exists and is not
	// linerate's.
	ErrInTheWay = errors.New("a file with that name exists and is not linerate's")
)

// Persist writes the files of committed changes below a root directory ("/" for this host) and
// records that the changes survive a reboot. It persists all or none: when it cannot write one
// file, it removes all of them and the error names the file. It never overwrites a file: before it
// writes anything, it returns ErrInTheWay for a foreign one.
//
// Each change takes three steps: intent with names and contents on disk; files, each complete or
// absent; "persisted" on disk. Recover removes what a crash between them leaves.
func (j *Journal) Persist(ctx context.Context, root string, plans ...Plan) ([]Change, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.ready(); err != nil {
		return nil, fmt.Errorf("persist: nothing written: %w", err)
	}
	root = filepath.Clean(root)
	entries, err := j.persistable(root, plans)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		err := ctx.Err()
		if err == nil {
			err = j.persistOne(e, root, plans[i].Files)
		}
		if err == nil {
			continue
		}
		err = fmt.Errorf("persist change %s of %s: %w", e.ID, e.Knob, err)
		for _, undo := range slices.Backward(entries[:i+1]) {
			if undo.Saved == nil || undo.Saved.Phase == savedGone {
				continue
			}
			if _, undoErr := j.removeFiles(undo, ""); undoErr != nil {
				err = errors.Join(err, fmt.Errorf("take out the files of change %s: %w", undo.ID, undoErr))
			}
		}
		return nil, err
	}
	changes := make([]Change, len(entries))
	for i, e := range entries {
		changes[i] = e.Change
	}
	return changes, nil
}

// persistable returns the changes of plans, after every check that needs no write.
func (j *Journal) persistable(root string, plans []Plan) ([]*entry, error) {
	var entries []*entry
	contents := map[string]string{} // of the files of all plans
	for _, p := range plans {
		e := j.history.find(p.ID)
		switch {
		case e == nil:
			return nil, fmt.Errorf("persist: change %q: %w", p.ID, ErrUnknownChange)
		case e.Saved != nil && e.Saved.Phase != savedGone && e.Saved.Phase != savedInPlace:
			return nil, fmt.Errorf("persist change %s of %s: nothing written: %w", e.ID, e.Knob, ErrNeedsRecovery)
		case e.State != Committed || e.Phase != phaseApplied || e.BootID != j.options.BootID:
			return nil, fmt.Errorf("persist change %s of %s: nothing written: its state is %s: %w", e.ID, e.Knob,
				e.State, ErrNotCommitted)
		case slices.Contains(entries, e) || len(p.Files) == 0:
			return nil, fmt.Errorf("persist change %s of %s: nothing written: given twice, or without a file",
				e.ID, e.Knob)
		}
		for _, f := range p.Files {
			path := filepath.Join(root, f.Path)
			if f.Block {
				if err := f.ours(root, path); err != nil {
					return nil, fmt.Errorf("persist change %s of %s: nothing written: %w", e.ID, e.Knob, err)
				}
				if _, err := j.options.FS.ReadFile(path); err != nil {
					return nil, fmt.Errorf("persist change %s of %s: nothing written: %w", e.ID, e.Knob, err)
				}
				continue
			}
			if have, twice := contents[path]; twice && have != f.Content {
				return nil, fmt.Errorf("persist change %s of %s: nothing written: %s has two contents", e.ID,
					e.Knob, f.Path)
			}
			contents[path] = f.Content
			present, err := j.options.FS.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = ourFile(root, path) // undo would leave it alone
				if err == nil {
					continue
				}
			}
			if err != nil {
				return nil, fmt.Errorf("persist change %s of %s: nothing written: %w", e.ID, e.Knob, err)
			}
			if j.history.holder(path, nil) == nil || string(present) != f.Content {
				return nil, fmt.Errorf("persist change %s of %s: nothing written: %s: %w", e.ID, e.Knob, path,
					ErrInTheWay)
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// persistOne writes the files of one change.
func (j *Journal) persistOne(e *entry, root string, files []File) error {
	s := &saved{Root: root, Files: files, Phase: savedWriting}
	for _, path := range s.paths() {
		made, err := j.missing(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, dir := range made {
			if !slices.Contains(s.Made, dir) {
				s.Made = append(s.Made, dir)
			}
		}
	}
	// The names of new files and directories are on disk before they are created.
	if err := j.write(record{Kind: kindPersist, ID: e.ID, Saved: s}); err != nil {
		return err
	}
	for i, path := range s.paths() {
		present, err := j.options.FS.ReadFile(path)
		if err == nil && string(present) == files[i].Content {
			continue // shared with another change
		}
		if files[i].Block {
			if err == nil {
				err = j.appendBlock(path, string(present), files[i].Content)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := durable.MkdirAll(j.options.FS, filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := durable.Replace(j.options.FS, path, []byte(files[i].Content), files[i].Mode); err != nil {
			return err
		}
	}
	return j.write(record{Kind: kindPersisted, ID: e.ID})
}

// appendBlock puts a block at the end of a file, unless it is there.
func (j *Journal) appendBlock(path, present, block string) error {
	if strings.Contains(present, block) {
		return nil
	}
	info, err := j.options.FS.Stat(path)
	if err != nil {
		return err
	}
	return durable.Replace(j.options.FS, path, []byte(present+block), info.Mode().Perm())
}

// missing returns the directories on the path to a file that must be created, or that another
// change created: the last change removes them.
func (j *Journal) missing(root, dir string) ([]string, error) {
	var list []string
	for ; dir != root && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		_, err := j.options.FS.Stat(dir)
		ours := slices.ContainsFunc(j.history.entries, func(e *entry) bool {
			return e.Saved != nil && e.Saved.Phase != savedGone && slices.Contains(e.Saved.Made, dir)
		})
		switch {
		case errors.Is(err, fs.ErrNotExist) || ours:
			list = append(list, dir)
		case err != nil:
			return nil, err
		}
	}
	slices.Reverse(list)
	return list, nil
}

// removeFiles removes the files of a change, and the directories created for them. It can be
// repeated after any crash. In a file that was edited since, it removes only our part if that is
// untouched; otherwise the file stays and is returned. A later Recover continues with why; if why
// is empty, the change itself stays. After a restart the value of some knobs is known only from
// these files, so it is recorded before they go.
func (j *Journal) removeFiles(e *entry, why string) (left []string, err error) {
	if keeper, ok := knob.As[knob.Keeper](j.options.Backend); ok && e.BootID != j.options.BootID && knob.Reloads(e.Knob) {
		if err := keeper.Keep(e.Knob); err != nil {
			return nil, fmt.Errorf("keep what %s has: %w", e.Knob, err)
		}
	}
	var noteErr error
	// The undoing of the whole change may have replaced a rollback that a crash interrupted.
	if e.Saved.Phase != savedRemoving || why != "" && e.Why == "" {
		noteErr = j.writeOrRemember(record{Kind: kindUnpersist, ID: e.ID, Note: why})
	}
	paths := e.Saved.paths()
	for i, path := range slices.Backward(paths) {
		if !e.Saved.Files[i].Block && j.history.holder(path, e) != nil {
			continue
		}
		stays, err := false, e.Saved.Files[i].ours(e.Saved.Root, path)
		if err == nil {
			stays, err = j.removeFile(path, e.Saved.Files[i])
		}
		if err != nil {
			return left, errors.Join(err, noteErr)
		}
		if stays {
			left = append(left, path)
		}
	}
	for _, dir := range slices.Backward(e.Saved.Made) {
		if err := ourDirectory(e.Saved.Root, dir); err != nil {
			return left, errors.Join(err, noteErr)
		}
		names, err := j.options.FS.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) > 0 {
			continue // Already removed, or it contains files of other programs.
		}
		if err != nil {
			return left, errors.Join(err, noteErr)
		}
		if err := j.remove(dir); err != nil {
			return left, errors.Join(err, noteErr)
		}
	}
	err = j.writeOrRemember(record{Kind: kindUnpersisted, ID: e.ID})
	if noteErr != nil {
		err = noteErr // The second error adds nothing.
	}
	return left, err
}

// removeFile removes one file, or our part of it, and reports whether it had to stay.
func (j *Journal) removeFile(path string, f File) (stays bool, err error) {
	// A crash during its writing leaves this file beside it.
	if _, err := j.options.FS.Stat(path + ".tmp"); err == nil {
		if err := j.remove(path + ".tmp"); err != nil {
			return false, err
		}
	}
	present, err := j.options.FS.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case string(present) == f.Content && !f.Block:
		return false, j.remove(path)
	case f.Block && !strings.Contains(string(present), f.Content):
		// Nothing was written, or the user took the block out; a block that was edited stays.
		text := strings.TrimPrefix(f.Content, "\n")
		mark, _, _ := strings.Cut(text, "\n")
		return strings.Contains(string(present), mark+"\n"), nil
	}
	// Without its first line, the rest of a script would run in an arbitrary shell.
	if f.Mode&0o111 != 0 || strings.Count(string(present), f.Content) != 1 {
		return true, nil
	}
	info, err := j.options.FS.Stat(path)
	if err != nil {
		return false, err
	}
	rest := strings.Replace(string(present), f.Content, "", 1)
	return false, durable.Replace(j.options.FS, path, []byte(rest), info.Mode().Perm())
}

// remove removes a name so that power loss does not bring it back.
func (j *Journal) remove(path string) error {
	if err := j.options.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return j.options.FS.SyncDir(filepath.Dir(path))
}

// holder returns another change that needs a file on disk, or nil.
func (h *history) holder(path string, other *entry) *entry {
	for _, e := range h.entries {
		if e != other && e.Saved.holds(path) {
			return e
		}
	}
	return nil
}

// persisted applies the records about files.
func (h *history) persisted(r record, e *entry) error {
	switch {
	case r.Kind == kindPersist && r.Saved != nil && e.State == Committed && e.Phase == phaseApplied:
		e.Saved, e.Why = r.Saved, ""
	case r.Kind == kindPersisted && e.Saved != nil && e.Saved.Phase == savedWriting:
		e.Saved.Phase, e.State, e.Persisted, e.Files = savedInPlace, Persisted, true, e.Saved.paths()
	case r.Kind == kindUnpersist && e.Saved != nil:
		e.Saved.Phase, e.Why = savedRemoving, r.Note
	case r.Kind == kindUnpersisted && e.Saved != nil:
		e.Saved.Phase, e.State, e.Persisted, e.Files = savedGone, Committed, false, nil
		// Without a reason, the change itself stays as if it had never been persisted: it ends with
		// its boot again. With one, the value may come from a later boot, where the files set it.
		if e.Why == "" {
			e.Saved = nil
		}
	default:
		return fmt.Errorf("%q record of change %q, whose files are elsewhere", r.Kind, e.ID)
	}
	return nil
}

// Kept are the files that make one change survive a reboot.
type Kept struct {
	Root  string // where the host's / is
	Files []File
}

// Paths are the names of the files on this host.
func (k Kept) Paths() []string { return (&saved{Root: k.Root, Files: k.Files}).paths() }

// KeptFiles returns the files of all persisted changes of the journal in a directory, by id,
// without a lock and without writing anything.
func KeptFiles(fsys durable.FS, dir string) (map[string]Kept, error) {
	h, err := load(fsys, logPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	kept := map[string]Kept{}
	for _, e := range h.entries {
		if e.State == Persisted && e.Saved != nil {
			kept[e.ID] = Kept{e.Saved.Root, e.Saved.Files}
		}
	}
	return kept, nil
}
