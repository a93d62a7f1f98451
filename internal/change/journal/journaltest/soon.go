package journaltest

import (
	"errors"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
)

// Patience bounds the waits for a guard that answers and for a holder that dies. It decides no
// verdict: only one that hangs needs so long, and a test that fails then says more than one that go
// test ends.
const Patience = 5 * time.Minute

// OpenSoon opens a journal as soon as its holder is gone: the kernel closes the files of a process
// that was killed a moment after the kill. Its error is [journal.ErrLocked] when the holder stays.
func OpenSoon(o journal.Options) (*journal.Journal, error) {
	return soon(journal.ErrLocked, func() (*journal.Journal, error) { return journal.Open(o) })
}

// RepairSoon repairs a journal as soon as its guard does not hold the lock: a guard that sees the
// damage takes it for a moment.
func RepairSoon(o journal.Options) (aside string, err error) {
	return soon(journal.ErrLocked, func() (string, error) { return journal.Repair(o) })
}

// soon takes what a holder that dies still has.
func soon[T any](held error, take func() (T, error)) (T, error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		got, err := take()
		if !errors.Is(err, held) || time.Since(start) > Patience {
			return got, err
		}
	}
}
