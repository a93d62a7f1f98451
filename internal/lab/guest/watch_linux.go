package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// errSilent is the end of a guest that said nothing for longer than any boot takes.
var errSilent = errors.New("the guest said nothing")

const (
	// mostBoots is how often a silent guest is booted. About one boot in a thousand hangs before the
	// first line of its console, with all its processors at work.
	mostBoots = 3
	// silentFor is the processor time of QEMU for which a guest without a disk may say nothing. A
	// boot takes 5 to 25 s of it, and a busy machine does not change that.
	silentFor = 100 * time.Second
	// ticksPerSecond is USER_HZ, the unit of times in /proc (proc_pid_stat(5)).
	ticksPerSecond = 100
)

// watch kills QEMU when it has used more processor time than a boot takes, until stop is called.
// Stop reports whether it did.
func (g *Guest) watch(limit time.Duration) (stop func() (silent bool)) {
	done := make(chan struct{})
	var silent atomic.Bool
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-g.ended:
				return
			case <-ticker.C:
				if used, err := usedBy(g.process.Pid); err == nil && used > limit {
					silent.Store(true)
					_ = g.process.Kill() // fails if it has ended
					return
				}
			}
		}
	}()
	return func() bool { close(done); return silent.Load() }
}

// usedBy returns the processor time that a process has used.
func usedBy(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// Parentheses enclose the name of the process, which may have any bytes.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const user, system = 11, 12 // fields 14 and 15
	if len(fields) <= system {
		return 0, fmt.Errorf("stat of process %d: %d fields", pid, len(fields))
	}
	var ticks int64
	for _, f := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
