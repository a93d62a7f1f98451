package capture

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/linerate/linerate/internal/host"
)

// Capture is what one host said of itself, scrubbed, in memory. It is not changed once it is made.
type Capture struct {
	entries []host.Entry
}

// Take reads a host, or an archive of one, and replaces what is nobody else's business, by a key that is random and forgotten. The error says what
// could not be read; it is errors.ErrUnsupported where the running system is none that can be read.
func Take(ctx context.Context, root host.Root) (*Capture, error) {
	var key [keyBytes]byte
	rand.Read(key[:]) // Never fails (Go 1.24).
	return take(ctx, root, newScrubber(key))
}

func take(ctx context.Context, root host.Root, s *scrubber) (*Capture, error) {
	entries, err := root.Copy(ctx)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return &Capture{entries: s.scrub(entries)}, nil
}

// Len is how many files, links and empty directories are in it.
func (c *Capture) Len() int { return len(c.entries) }

// Snapshot gives what host.Root.Snapshot would have given on the host itself, but for what was replaced. It unpacks into a directory of its own
// and takes that away again.
func (c *Capture) Snapshot(ctx context.Context) (*host.Snapshot, error) {
	var s *host.Snapshot
	err := c.Unpacked(func(root host.Root) error {
		var err error
		s, err = root.Snapshot(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Questions that the host refused left nothing in the archive that could be refused again.
	for _, e := range c.entries {
		if e.Name != host.WarningsFile {
			continue
		}
		var said []string
		if err := json.Unmarshal(e.Content, &said); err != nil {
			return nil, fmt.Errorf("read capture: %s: %w: %w", e.Name, err, ErrFormat)
		}
		for _, sentence := range s.Warnings {
			if !slices.Contains(said, sentence) {
				said = append(said, sentence)
			}
		}
		s.Warnings = said
	}
	return s, nil
}

// memory is a file system in memory that every user may write to, on most Linux systems (shm_open(3)). Some thousand small files are made, read once
// and removed there in a tenth of the time that a disk takes, and leave nothing on one.
const memory = "/dev/shm"

// emptyDirectory makes a directory for one capture: where TMPDIR says, else in memory, else wherever the system has such things.
func emptyDirectory() (string, error) {
	const pattern = "linerate-capture-*"
	if runtime.GOOS == "linux" && os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp(memory, pattern); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", pattern)
}

// Unpacked calls use with the capture as an archive in a directory, which is gone when Unpacked returns. The error is that of use, or of the
// file system.
func (c *Capture) Unpacked(use func(host.Root) error) (err error) {
	dir, err := emptyDirectory()
	if err != nil {
		return fmt.Errorf("unpack capture: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.unpack(dir); err != nil {
		return fmt.Errorf("unpack capture: %w", err)
	}
	return use(host.Root{Dir: dir})
}

// unpack writes everything below dir, which is empty and nobody else's. Read has seen to it that no path goes through a link; links are written last
// all the same, so that while files are written there is none to follow.
func (c *Capture) unpack(dir string) error {
	made := make(map[string]bool)
	directory := func(path string) error {
		if made[path] {
			return nil
		}
		made[path] = true
		return os.MkdirAll(path, 0o700)
	}
	for _, links := range []bool{false, true} {
		for _, e := range c.entries {
			if links != (e.Target != "") {
				continue
			}
			to := filepath.Join(dir, filepath.FromSlash(e.Name))
			parent := filepath.Dir(to)
			if e.Directory {
				parent = to
			}
			err := directory(parent)
			switch {
			case err != nil:
			case e.Target != "":
				err = os.Symlink(filepath.FromSlash(e.Target), to)
			case !e.Directory:
				err = os.WriteFile(to, e.Content, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Bytes is the text form in one piece.
func (c *Capture) Bytes() []byte {
	var b bytes.Buffer
	_, _ = c.WriteTo(&b) // A buffer takes everything.
	return b.Bytes()
}
