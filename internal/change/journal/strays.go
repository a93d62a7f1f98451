package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// Strays returns the process ids of the guards of a state directory whose journal is gone: only
// their memory still has the old values of their changes. Nothing of linerate removes a journal
// while a guard needs it.
func Strays(fsys durable.FS, dir string) []int {
	if _, err := fsys.Stat(logPath(dir)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return guardsOf(fsys, dir)
}

// guardsOf returns the guards of a state directory. One on a file system of a test has no
// processes.
func guardsOf(fsys durable.FS, dir string) []int {
	if fsys != durable.OS() {
		return nil
	}
	return guardProcesses(dir)
}

// strayPatience is how long a guard may take to take back what it remembers: it waits for the lock,
// tries what the system refuses for some seconds, and then ends.
const strayPatience = 15 * time.Second

// endStrays makes the guards of a directory take back what only they remember, and waits for their
// end: a new journal would take their values for the original ones. The caller holds the lock.
func endStrays(o Options) error {
	asked := map[int]bool{}
	for end := time.Now().Add(strayPatience); ; time.Sleep(10 * time.Millisecond) {
		strays := guardsOf(o.FS, o.Dir)
		if len(strays) == 0 {
			return nil
		}
		for _, pid := range strays {
			if !asked[pid] {
				asked[pid] = true
				askToEnd(pid, o.Dir)
			}
		}
		// A guard whose writer lives stays, with reason: the writer may be half way through a change.
		if time.Now().After(end) {
			return fmt.Errorf("the journal is gone, and its guard still watches changes: %w",
				&LockedError{Path: lockPath(o.Dir), PID: strays[0]})
		}
	}
}
