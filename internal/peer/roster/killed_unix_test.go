//go:build unix

package roster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
)

// TestKilled kills a process that adds a peer, at each of its operations: the file has the old
// peers or the new ones, and the next edit works.
func TestKilled(t *testing.T) {
	if path := os.Getenv("LINERATE_TEST_PEERS"); path != "" {
		at := len(os.Getenv("LINERATE_TEST_AT"))
		disk := durable.NewFaulty(durable.OS(), func(op durable.Op) error {
			if op.N == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		})
		add(t, File{FS: disk, Path: path}, "new")
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]int{}
	for n := 0; ; n++ {
		f := File{FS: durable.OS(), Path: filepath.Join(t.TempDir(), "peers.json")}
		add(t, f, "old")
		p, err := os.StartProcess(self, []string{self, "-test.run=^TestKilled$"}, &os.ProcAttr{
			Env: append(os.Environ(), "LINERATE_TEST_PEERS="+f.Path, "LINERATE_TEST_AT="+strings.Repeat("x", n)),
		})
		if err != nil {
			t.Fatal(err)
		}
		state, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		got := names(read(t, f))
		was[got]++
		if got != "old" && got != "old new" {
			t.Errorf("killed at operation %d: %q", n, got)
		}
		add(t, f, "later")
		if again := names(read(t, f)); again != got+" later" {
			t.Errorf("after the kill at operation %d: %q, then %q", n, got, again)
		}
		if state.Success() {
			break
		}
	}
	if was["old"] < 3 || was["old new"] < 2 {
		t.Errorf("the file was %v", was)
	}
}
