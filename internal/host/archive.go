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

// WarningsFile is where an archive keeps what the host did not answer when it was made: the files
// that could not be read are not there to be refused again. A list of sentences as JSON;
// [Root.Snapshot] of an archive does not look at it.
const WarningsFile = "linerate/warnings.json"

// Copy gives everything that a Snapshot and a reading of the Counters look at, as an archive sorted
// by name: hostfs.NewMemory makes a Root of it. It is in memory because whoever takes it must not
// leave the host's own names and addresses on a disk before they are replaced. What could not be
// read is not in it. It holds host name, addresses and hardware addresses of the host; it holds no
// keys, no contents of connections and no serial numbers.
func (r Root) Copy(ctx context.Context) ([]hostfs.Entry, error) {
	if r.live() && !hostfs.LiveSupported {
		return nil, fmt.Errorf("copy host: %w", errors.ErrUnsupported)
	}
	src, err := r.open()
	if err != nil {
		return nil, err
	}
	defer src.close()
	// From here on, so that the copy has what the readers look at and nothing that they do not.
	rec := src.Record()
	s, err := src.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	// A copy of /proc/sys alone is worth a Snapshot though it has no counters: there is then
	// nothing more to copy.
	if _, err := src.counters(); err != nil && src.Live() {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	src.Stop() // What follows is written by name, not copied.
	if err := src.copyTold(ctx, rec, s); err != nil {
		return nil, fmt.Errorf("copy host: %w", err)
	}
	return rec.Entries(), nil
}

// copyTold writes the linerate directory.
func (src *source) copyTold(ctx context.Context, rec *hostfs.Recorder, s *Snapshot) error {
	t := src.tell()
	all := make(map[string]toldEthtool, len(t.links))
	for _, l := range t.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := src.ethtool(l.Name)
		e.Statistics, _ = src.driverStatistics(l.Name) // Most drivers have none.
		all[l.Name] = e
	}
	// Asked again and not taken from the snapshot: that has them in words, and the archive has the
	// numbers of the tree.
	qdiscs, qdiscErr := src.qdiscs()
	warnings := s.Warnings
	if !src.Live() {
		warnings = nil
		_ = src.decode(path.Base(WarningsFile), &warnings) // An archive that was copied by hand has none.
	}
	// No file where there is nothing to say.
	var warningsErr error
	if len(warnings) == 0 {
		warningsErr = errNotTold
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
			continue // What was not told stays absent, as it is here.
		}
		b, err := json.MarshalIndent(p.body, "", "\t")
		if err != nil {
			return err
		}
		rec.File("linerate/"+p.name, append(b, '\n'))
	}
	return nil
}
