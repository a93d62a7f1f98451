package conduct

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
)

// The files of a rollout, in a directory of its name.
const (
	draftName  = "draft.json" // with the signed orders
	eventsName = "events.log"
	epochName  = "epoch"
)

// kept is a draft with its signatures, on disk.
type kept struct {
	Draft  *Draft    `json:"draft"`
	Orders [][]byte  `json:"orders"`
	By     string    `json:"by"`
	Begun  time.Time `json:"begun"` // the first generation
	// Undos are the latest undo orders of earlier generations, by host. They count where this one has
	// none, because the host gave no report or was changed while a person signed.
	Undos map[int][]byte `json:"undos,omitempty"`
}

// line is an event as the log keeps it. Baseline marks a reading from before a stage, which the
// machine does not see.
type line struct {
	rollout.Event
	Baseline bool `json:"baseline,omitempty"`
}

// disk is where one rollout is kept.
type disk struct {
	fsys durable.FS
	dir  string
	log  *durable.Log
}

// write replaces the draft.
func (d *disk) write(k kept) error {
	b, err := json.Marshal(k)
	if err == nil {
		err = durable.Replace(d.fsys, filepath.Join(d.dir, draftName), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the signed orders: %w", err)
	}
	return nil
}

// append adds events, as one record.
func (d *disk) append(lines []line) error {
	b, err := json.Marshal(lines)
	if err == nil {
		err = d.log.Append(b)
	}
	if err != nil {
		return fmt.Errorf("log a rollout: %w", err)
	}
	return nil
}

// openDisk opens a rollout, or makes one.
func openDisk(fsys durable.FS, dir string) (*disk, kept, []line, error) {
	var k kept
	if err := durable.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, k, nil, err
	}
	log, records, err := durable.OpenMarkedLog(fsys, filepath.Join(dir, eventsName))
	if err != nil {
		return nil, k, nil, fmt.Errorf("open the log of a rollout: %w", err)
	}
	d := &disk{fsys: fsys, dir: dir, log: log}
	var all []line
	for _, r := range records {
		var lines []line
		if err := json.Unmarshal(r, &lines); err != nil {
			return nil, k, nil, errors.Join(fmt.Errorf("read the log of a rollout: %w", err), log.Close())
		}
		all = append(all, lines...)
	}
	b, err := fsys.ReadFile(filepath.Join(dir, draftName))
	if errors.Is(err, fs.ErrNotExist) {
		return d, k, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err == nil {
		if k.Draft == nil {
			err = errors.New("no draft")
		} else {
			err = k.Draft.check()
		}
	}
	if err != nil {
		return nil, k, nil, errors.Join(fmt.Errorf("read rollout %s: %w", dir, err), log.Close())
	}
	return d, k, all, nil
}

// nextEpoch returns a higher epoch than that of the start before, and keeps it.
func nextEpoch(fsys durable.FS, dir string) (uint64, error) {
	name := filepath.Join(dir, epochName)
	b, err := fsys.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the epoch: %w", err)
	}
	n := uint64(0)
	if err == nil {
		if n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63); err != nil {
			return 0, fmt.Errorf("read the epoch: %w", err)
		}
	}
	n++
	if err := durable.Replace(fsys, name, []byte(strconv.FormatUint(n, 10)+"\n"), 0o600); err != nil {
		return 0, fmt.Errorf("keep the epoch: %w", err)
	}
	return n, nil
}
