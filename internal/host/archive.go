package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// WarningsFile lists what the host did not answer when the archive was made: files that could not
// be read are missing from it, so reading them again yields no reason. It is a JSON list of
// sentences; [Root.Snapshot] of an archive does not read it.
const WarningsFile = "linerate/warnings.json"

// Copy returns everything that a Snapshot and a reading of the Counters read, as an archive sorted
// by name; hostfs.NewMemory makes a Root of it. It stays in memory, because the host's own names
// and addresses must not reach a disk before they are replaced. Unreadable files are left out. The
// archive contains host name, addresses and hardware addresses of the host; it contains no keys, no
// contents of connections and no serial numbers.
func (r Root) Copy(ctx context.Context) ([]hostfs.Entry, error) {
	if r.live() && !hostfs.LiveSupported {
		return nil, fmt.Errorf("copy host: %w", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	// Recording starts here, so that the copy has exactly what the readers read.
	rec := src.Record()
	s, err := src.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	// An archive of /proc/sys alone yields a Snapshot but no counters; then there is nothing more
	// to copy.
	if _, err := src.counters(); err != nil && src.Live() {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	src.Stop() // The files below are written by name, not copied.
	if err := src.copyFacts(ctx, rec, s); err != nil {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	return rec.Entries(), nil
}

// copyFacts writes the linerate directory.
func (src *source) copyFacts(ctx context.Context, rec *hostfs.Recorder, s *Snapshot) error {
	t := src.facts()
	all := make(map[string]ethtoolFacts, len(t.links))
	for _, l := range t.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := src.ethtool(l.Name)
		e.Statistics, _ = src.driverStatistics(l.Name) // Most drivers have none.
		all[l.Name] = e
	}
	// Asked again instead of taken from the snapshot, which has them in words; the archive keeps
	// the numbers of the tree.
	qdiscs, qdiscErr := src.qdiscs()
	warnings := s.Warnings
	if !src.Live() {
		warnings = nil
		_ = src.decode(path.Base(WarningsFile), &warnings) // An archive that was copied by hand has none.
	}
	// No file without content.
	var warningsErr error
	if len(warnings) == 0 {
		warningsErr = errNotArchived
	}
	parts := []struct {
		name string
		body any
		err  error
	}{
		{"host.json", hostFile{Time: s.Time.UTC().Truncate(time.Second), Arch: s.Arch}, nil},
		{"links.json", t.links, t.linksErr},
		{"addresses.json", t.addresses, t.addressesErr},
		{"routes.json", t.routes, t.routesErr},
		{"ethtool.json", all, t.linksErr},
		{"qdiscs.json", qdiscs, qdiscErr},
		{path.Base(WarningsFile), warnings, warningsErr},
	}
	for _, p := range parts {
		if p.err != nil {
			continue // What was not reported stays absent.
		}
		b, err := json.MarshalIndent(p.body, "", "\t")
		if err != nil {
			return err
		}
		rec.File("linerate/"+p.name, append(b, '\n'))
	}
	return nil
}
