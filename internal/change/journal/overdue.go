package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
)

// guardBound is how long after its deadline a trial may be in force before others than its guard
// take it back: the guard waits a second for the lock and two for storage.
const guardBound = 5 * time.Second

// overdue reports whether the guard of a trial has failed it: the deadline passed, and the guard is
// gone, is stopped, or had time enough; or the lease of a writer that is gone has no guard. The
// holder of the lock of the journal knows that such a writer is gone.
func (j *Journal) overdue(e *entry) bool {
	if e.Phase == phaseDone || e.State != Trial || e.BootID != j.options.BootID || e.Session == j.session ||
		e.Identity.elsewhere(j.options.Identify(e.Knob)) || j.absent(e) {
		return false
	}
	late := e.Expires != 0 && j.options.Boottime() >= e.Expires+guardBound
	if late || !e.Lease && !j.expired(e) {
		return late
	}
	return j.history.unguarded(e, j.options.BootID, j.options.GuardAlive)
}

// TakeOverdue takes back the trials whose guard has failed them, and leaves a notice of each. Every
// command calls it: where no systemd runs, a guard that was killed or stopped has no other
// successor. Deadlines are those of CLOCK_BOOTTIME. It reads the journal without its lock and opens
// it only where something is overdue. A journal that another process has open is left to that one;
// one that cannot be read, or is damaged, to the commands that report it. Only what is overdue
// needs a backend, and most often nothing is, so TakeOverdue asks for it: to make one takes longer.
func TakeOverdue(ctx context.Context, options Options, backend func() knob.Backend) ([]Outcome, error) {
	filled := options
	if filled.FS == nil {
		filled.FS = durable.OS()
	}
	// Without /proc, as in some containers, this host cannot report when it booted. That is an
	// error only where it matters.
	h, err := load(filled.FS, logPath(filled.Dir))
	if err != nil || !slices.ContainsFunc(h.entries, func(e *entry) bool {
		return e.Phase != phaseDone && e.State == Trial
	}) {
		return nil, nil
	}
	filled.Backend = struct{ knob.Backend }{} // nothing is read or written here
	if filled, err = filled.defaults(); err != nil {
		return nil, err
	}
	if list := (&Journal{options: filled, history: h}).allOverdue(); len(list) == 0 {
		return nil, nil
	}
	options.Backend = backend()
	j, err := Open(options)
	if errors.Is(err, ErrLocked) || errors.Is(err, durable.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take back overdue trials: %w", err)
	}
	j.mu.Lock()
	outcomes, err := j.takeAllBack(ctx, j.allOverdue(), func(*entry) string {
		return "undone by the next command: its guard did not act"
	})
	silent := j.silent != nil
	j.mu.Unlock()
	if !silent {
		leaveNotices(j.options.FS, j.options.Dir, notices(outcomes))
	}
	return outcomes, errors.Join(err, j.Close())
}

// allOverdue returns the changes that are overdue, oldest first.
func (j *Journal) allOverdue() []*entry {
	var all []*entry
	for _, e := range j.history.entries {
		if j.overdue(e) {
			all = append(all, e)
		}
	}
	return all
}
