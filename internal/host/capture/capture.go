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

// Capture is the scrubbed content of one host, in memory. It is immutable.
type Capture struct {
	entries []hostfs.Entry
}

// Take reads a host, or an archive of one, and replaces everything private, with a random key that
// is then forgotten. The error names what could not be read; it is errors.ErrUnsupported if the
// running system cannot be read.
func Take(ctx context.Context, root host.Root) (*Capture, error) {
	var key [keyBytes]byte
	rand.Read(key[:]) // Never fails (Go 1.24).
	return take(ctx, root, newScrubber(key))
}

func take(ctx context.Context, root host.Root, s *scrubber) (*Capture, error) {
	// In memory all the way: the unscrubbed copy is never a file that a crash could leave behind or
	// a backup could contain.
	entries, err := root.Copy(ctx)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return &Capture{entries: s.scrub(entries)}, nil
}

// Len returns the number of files, links and empty directories in it.
func (c *Capture) Len() int { return len(c.entries) }

// Root returns the capture as a host to read, in memory: a few thousand files of one line each,
// read once. A directory would have to be created and removed, on systems that support links and
// colons in names, and a killed program would leave it behind.
func (c *Capture) Root() host.Root { return host.Root{FS: hostfs.NewMemory(c.entries)} }

// Snapshot returns what host.Root.Snapshot would have returned on the host itself, except for the
// replacements.
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
			// A later version may read the capture and miss files that were not copied at the time.
			if !slices.Contains(said, sentence) {
				said = append(said, sentence)
			}
		}
		s.Warnings = said
	}
	return s, nil
}

// Bytes returns the text form. It is bounded by what a host has: half a megabyte for 64 queues and
// 40 VLANs.
func (c *Capture) Bytes() []byte {
	var b bytes.Buffer
	_, _ = c.WriteTo(&b) // Writing to a buffer never fails.
	return b.Bytes()
}
