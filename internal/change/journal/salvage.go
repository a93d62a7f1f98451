package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/linerate/linerate/internal/base/durable"
)

// Salvaged is what a damaged journal still shows.
type Salvaged struct {
	Changes []Change
	// MissingRecords is how many records are certainly lost. A change is two records or more, so a
	// lost record may hide a change, its end, or its commit.
	MissingRecords int
}

// Salvage reads what can be known of the journal in a directory, damaged or not. It takes no lock
// and writes nothing.
func Salvage(fsys durable.FS, dir string) (Salvaged, error) {
	h, missing, err := salvage(fsys, dir)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage journal: %w", err)
	}
	return Salvaged{Changes: h.changes("", 0, nil), MissingRecords: missing}, nil
}

// salvage adds up the records that are left. A record that does not fit, because one before it is
// lost, counts as missing.
func salvage(fsys durable.FS, dir string) (*history, int, error) {
	records, missing, err := durable.SalvageLog(fsys, logPath(dir))
	if err != nil {
		return nil, 0, err
	}
	h := &history{next: 1}
	for _, data := range records {
		var r record
		if json.Unmarshal(data, &r) != nil || h.add(r) != nil {
			missing++
		}
	}
	return h, missing, nil
}

// Repair puts a journal that Open refuses out of the way, under the name that it returns, and
// starts a new one with what Salvage shows of it. A sound journal stays as it is, and Repair
// returns "". Recover on the new journal takes its trials back.
func Repair(options Options) (aside string, err error) {
	options, err = options.defaults()
	if err != nil {
		return "", err
	}
	lock, err := options.FS.Lock(lockPath(options.Dir))
	if err != nil {
		return "", fmt.Errorf("repair journal: %w", err)
	}
	defer lock.Close()
	if aside, err = repair(options); err != nil {
		return "", fmt.Errorf("repair journal: %w", err)
	}
	return aside, nil
}

func repair(o Options) (aside string, err error) {
	path := logPath(o.Dir)
	if _, err := load(o.FS, path); !errors.Is(err, ErrCorrupt) {
		return "", err
	}
	// Guards know changes that the damaged journal may have lost.
	if err := endStrays(o); err != nil {
		return "", err
	}
	h, _, err := salvage(o.FS, o.Dir)
	if err != nil {
		return "", err
	}
	now := o.Now().UTC()
	records, err := h.compacted(o.BootID, now)
	if err != nil {
		return "", err
	}
	aside = path + ".damaged-" + now.Format("20060102T150405.000Z")
	damaged, err := o.FS.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// The copy is on disk before the damaged log goes.
	if err := durable.Replace(o.FS, aside, damaged, 0o644); err != nil {
		return "", err
	}
	return aside, durable.RewriteMarkedLog(o.FS, path, records)
}
