package capture

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// Capture is what one host said of itself, scrubbed, in memory. It is not changed once it is made.
type Capture struct {
	entries []hostfs.Entry
}

// Take reads a host, or an archive of one, and replaces what is nobody else's business, by a key
// that is random and forgotten. The error says what could not be read; it is errors.ErrUnsupported
// where the running system is none that can be read.
func Take(ctx context.Context, root host.Root) (*Capture, error) {
	var key [keyBytes]byte
	rand.Read(key[:]) // Never fails (Go 1.24).
	return take(ctx, root, newScrubber(key))
}

func take(ctx context.Context, root host.Root, s *scrubber) (*Capture, error) {
	// In memory all the way: the unscrubbed copy is never a file that a crash could leave behind or
	// a backup could find.
	entries, err := root.Copy(ctx)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return &Capture{entries: s.scrub(entries)}, nil
}

// Len is how many files, links and empty directories are in it.
func (c *Capture) Len() int { return len(c.entries) }

// Root is the capture as a host to read, in memory: a few thousand files of one line each, that are
// read once. A directory of them would have to be made and taken away again, on systems that have
// links and colons in names, and would be left behind by a program that is killed.
func (c *Capture) Root() host.Root { return host.Root{FS: hostfs.NewMemory(c.entries)} }

// Snapshot gives what host.Root.Snapshot would have given on the host itself, but for what was
// replaced.
func (c *Capture) Snapshot(ctx context.Context) (*host.Snapshot, error) {
	s, err := c.Root().Snapshot(ctx)
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
			// The capture may be read by a later version, which misses files that were not copied
			// in its day.
			if !slices.Contains(said, sentence) {
				said = append(said, sentence)
			}
		}
		s.Warnings = said
	}
	return s, nil
}

// Bytes is the text form in one piece. It is bounded by what a host has: half a megabyte for 64
// queues and 40 VLANs.
func (c *Capture) Bytes() []byte {
	var b bytes.Buffer
	_, _ = c.WriteTo(&b) // A buffer takes everything.
	return b.Bytes()
}
