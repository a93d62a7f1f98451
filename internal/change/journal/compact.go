package journal

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// compactAbove is the size in bytes above which a journal is rewritten when it is opened: some 500
// changes.
const compactAbove = 512 << 10

// keepOver is how many finished changes a rewritten journal still remembers.
const keepOver = 200

// compact rewrites a log that has grown, and drops old finished changes. If the disk has no room
// for that, the old log stays in use.
func (j *Journal) compact() error {
	if j.log.Size() <= compactAbove {
		return nil
	}
	records, err := j.history.compacted(j.options.BootID, j.options.Now().UTC())
	if err != nil {
		return err
	}
	path := logPath(j.options.Dir)
	rewriteErr := durable.RewriteMarkedLog(j.options.FS, path, records)
	// Only finished changes are dropped. Trials, committed changes and the originals of this boot
	// keep all their fields, and after power loss Replace leaves either the old log or the new one,
	// so an old value is always in one of them. Open the log again in any case: after a failure
	// either file may have the name.
	log, read, err := durable.OpenMarkedLog(j.options.FS, path)
	if err != nil {
		return errors.Join(err, rewriteErr)
	}
	_ = j.log.Close() // Every record of it is already on disk.
	j.log = log
	j.history, err = replay(path, read)
	return err
}

// compacted returns records that add up to the same history without old finished changes.
func (h *history) compacted(bootID string, now time.Time) ([][]byte, error) {
	over := 0
	for _, e := range h.entries {
		if e.Phase == phaseDone {
			over++
		}
	}
	base := record{Kind: kindBase, Time: now, Next: h.next}
	for _, o := range h.originals {
		// Originals of an earlier boot are useless, unless they are in files.
		if o.BootID == bootID || o.Knob.InFile() {
			base.Originals = append(base.Originals, o)
		}
	}
	// The base comes first: it carries the next free number, which must not be reused after the
	// change that had it is dropped.
	list := []record{base}
	for _, e := range h.entries {
		if e.Phase == phaseDone {
			over--
			if over >= keepOver {
				continue
			}
		}
		list = append(list, record{Kind: kindKept, Time: now, Entry: e})
	}
	records := make([][]byte, len(list))
	for i, r := range list {
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		records[i] = data
	}
	return records, nil
}
