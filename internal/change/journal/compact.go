package journal

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// compactAbove is the size in bytes from which a journal is rewritten when it is opened: some 500
// changes.
const compactAbove = 512 << 10

// keepOver is how many changes that are over a rewritten journal still remembers.
const keepOver = 200

// compact rewrites a log that has grown, dropping old changes that are over. Without room for that
// on the disk the old log serves on.
func (j *Journal) compact() error {
	if j.log.Size() <= compactAbove {
		return nil
	}
	records, err := j.history.compacted(j.options.BootID, j.options.Now().UTC())
	if err != nil {
		return err
	}
	path := logPath(j.options.Dir)
	rewriteErr := durable.RewriteLog(j.options.FS, path, records)
	// What is dropped is only what is over. Trials, committed changes and the originals of this
	// boot survive with all their fields, and Replace leaves the old log or the new one after power
	// loss, so at no moment is an old value in neither. Open it again in any case: after a failure
	// either file may have the name.
	log, read, err := durable.OpenLog(j.options.FS, path)
	if err != nil {
		return errors.Join(err, rewriteErr)
	}
	_ = j.log.Close() // Every record of it was on disk already.
	j.log = log
	j.history, err = replay(path, read)
	return err
}

// compacted returns records that add up to the same history, less old changes that are over.
func (h *history) compacted(bootID string, now time.Time) ([][]byte, error) {
	over := 0
	for _, e := range h.entries {
		if e.Phase == phaseDone {
			over++
		}
	}
	base := record{Kind: kindBase, Time: now, Next: h.next}
	for _, o := range h.originals {
		// Originals of an earlier boot are of no use any more.
		if o.BootID == bootID {
			base.Originals = append(base.Originals, o)
		}
	}
	// The base comes first: it carries the next free number, which must not be given again once the
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
