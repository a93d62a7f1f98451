package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/linerate/linerate/hub/internal/daemon"
	"github.com/linerate/linerate/internal/base/testenv"
)

// TestUnit has systemd verify the unit and rate its exposure, from 0 (none) to 10 (no sandbox).
func TestUnit(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	name := filepath.Join(t.TempDir(), "linerate-hub.service")
	if err := os.WriteFile(name, []byte(daemon.Unit("/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", name).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", name).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze security: %v\n%s", err, out)
	}
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no level in\n%s", out)
	}
	level, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(t.TempDir(), "linerate-node.service")
	if err := os.WriteFile(node, []byte(daemon.NodeUnit("/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", node).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify of the node: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=15",
		node).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security of the node: %v\n%s", err, out)
	}
	// The rest is the network: a page for other hosts, and targets to measure. systemd 252 rated
	// 1.4.
	if level > 1.5 {
		t.Errorf("exposure %v, over 1.5:\n%s", level, out)
	}
}
