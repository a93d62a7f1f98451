package journal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// TestGuardIsInMemory: every page of a guard's program is in memory before the first knob is
// written, because the storage of the program may be what the trial cuts off.
func TestGuardIsInMemory(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := processOptions(s.knobs, s.state)
	o.Guard = &journal.GuardOptions{Exe: os.Args[0], Args: []string{s.knobs}, Handshake: journaltest.Patience}
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Hour}, rmem, "B")
	guard := guardOf(t, j)
	defer func() {
		_ = j.Close()
		<-guard.Exited() // it takes the trial back
	}()
	pid := guard.PID()
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mapped, size, ours := 0, "", false
	for line := range strings.Lines(string(smaps)) {
		switch f := strings.Fields(line); {
		case !strings.HasSuffix(f[0], ":"): // the address of the next part
			ours = f[len(f)-1] == program
		case ours && f[0] == "Size:":
			size = f[1]
			mapped++
		case ours && f[0] == "Rss:" && f[1] != size:
			t.Errorf("only %s of %s kB of a part of the program are in memory", f[1], size)
		}
	}
	if mapped == 0 {
		t.Errorf("no part of %s in\n%s", program, smaps)
	}
}
