package matrix

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// look is how long the machine is watched before a world is made. It is long compared with the 10
// ms in which /proc/stat counts.
const look = 300 * time.Millisecond

// tolerated is the share of the processors that other programs may use before a case without a
// warning. On two processors a world leaves more than that idle, except a world without a link,
// which uses all.
const tolerated = 0.2

// busy returns a warning if this machine has other work before a world is made. All namespaces
// share its processors, so a verdict that blames them may then be right. Empty: the machine is
// idle, or does not count its work.
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
	if share < tolerated {
		return ""
	}
	return fmt.Sprintf("this machine was %.0f %% busy with other work before the world was made", 100*share)
}

// times are the times of all processors together, in seconds.
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

// release returns the release of the running kernel, or "" on a system without that file.
func release() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
