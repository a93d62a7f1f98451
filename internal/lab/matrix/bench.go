package matrix

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// look is how long the machine is watched before a world is made; long beside the hundredths of a
// second in which /proc/stat counts.
const look = 300 * time.Millisecond

// others is the share of the processors that other programs may take before a case is played
// without being remarked. Worlds leave more than that idle on two processors, but for those without
// a link, which take all there is.
const others = 0.2

// busy says, before a world is made, that this machine has other work: its processors are those of
// every namespace, and a verdict that blames them is then not wrong about them. Empty: it is idle,
// or keeps no count.
func busy(ctx context.Context) string {
	before, ok := processors()
	if !ok {
		return ""
	}
	select {
	case <-ctx.Done():
		return ""
	case <-time.After(look):
	}
	after, ok := processors()
	all := after.all - before.all
	if !ok || all <= 0 {
		return ""
	}
	share := 1 - (after.idle-before.idle)/all
	if share < others {
		return ""
	}
	return fmt.Sprintf("this machine was %.0f %% busy with other work before the world was made", 100*share)
}

// times are those of all processors together, in seconds.
type times struct{ all, idle float64 }

func processors() (t times, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return times{}, false
	}
	lines, err := procfs.ParseStat(b, procfs.NewCounts(256))
	if err != nil || len(lines) == 0 {
		return times{}, false
	}
	c := lines[0] // the sum over all of them
	return times{all: c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal + c.Idle, idle: c.Idle}, true
}

// release is that of the running kernel, for the record; empty where there is no such file.
func release() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
