package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/cli"
)

// TestRecoverAfterRestart recovers at a start after a power cut. The journal is of an earlier boot
// and has trials, one of them half written. Recovery ends clean, says so, and finds nothing the
// second time. It touches no knob, because the host has none of these.
func TestRecoverAfterRestart(t *testing.T) {
	dir := t.TempDir()
	const first, second = knob.ID("link:none0/mtu"), knob.ID("link:none0/txqueuelen")
	j, err := journal.Open(journal.Options{
		Dir: dir, Backend: knob.NewMemory(map[knob.ID]knob.Value{first: "1500", second: "1000"}), Unguarded: true,
		BootID: "the boot before",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: first, Value: "9000"},
		knob.Setting{Knob: second, Value: "2000"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		var out, errw bytes.Buffer
		status := cli.Main(append([]string{"linerate", "--state", dir}, args...), strings.NewReader(""), &out, &errw)
		return status, out.String() + errw.String()
	}
	if status, text := run("recover"); status != 0 || strings.Count(text, "the host was restarted") != 2 {
		t.Errorf("recover: status %d\n%s", status, text)
	}
	if status, text := run("recover"); status != 0 || text != "nothing to recover\n" {
		t.Errorf("the second time: status %d\n%s", status, text)
	}
	if status, text := run("history"); status != 0 || strings.Count(text, "undone") != 2 ||
		strings.Contains(text, "trial") {
		t.Errorf("history: status %d\n%s", status, text)
	}
}
