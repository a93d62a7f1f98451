package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestUnits checks that systemd accepts the units, that it rates the service as confined, and that
// the units match the program.
func TestUnits(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	text := make(map[string]string)
	for _, name := range []string{"linerate-agent.service", "linerate-agent.socket"} {
		b, err := os.ReadFile(filepath.Join("../../../dist/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(b)
		// The program need not be installed where the test runs.
		there := strings.ReplaceAll(string(b), "/usr/local/bin/linerate", self)
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(there), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze,
		append([]string{"verify"}, files...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// 1.3 is what systemd 252 gives: the network namespace has to be the host's, and the user root.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=15",
		files[0]).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	// The drop-in that lets it read rules, with the unit as it then is.
	more, err := os.ReadFile("../../../dist/systemd/linerate-agent-rules.conf")
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(more), "[Service]\n", "", 1)
	joined := strings.Replace(text["linerate-agent.service"], "\n[Install]", "\n"+both+"\n[Install]", 1)
	there := strings.ReplaceAll(joined, "/usr/local/bin/linerate", self)
	if err := os.WriteFile(files[0], []byte(there), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, append([]string{"verify"}, files...)...).CombinedOutput(); err != nil ||
		len(out) > 0 {
		t.Errorf("verify, with rules: %v\n%s", err, out)
	}
	orders, err := os.ReadFile("../../../dist/systemd/linerate-orders.service")
	if err != nil {
		t.Fatal(err)
	}
	text["linerate-orders.service"] = string(orders)
	keep, err := os.ReadFile("../../../dist/systemd/linerate-orders-persist.conf")
	if err != nil {
		t.Fatal(err)
	}
	drop := strings.Replace(string(keep), "[Service]\n", "", 1)
	for what, unit := range map[string]string{"with orders": string(orders),
		"with orders that persist": strings.Replace(string(orders), "\n[Install]", "\n"+drop+"\n[Install]", 1)} {
		name := filepath.Join(dir, "linerate-orders.service")
		here := strings.ReplaceAll(unit, "/usr/local/bin/linerate", self)
		if err := os.WriteFile(name, []byte(here), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", name).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("verify, %s: %v\n%s", what, err, out)
		}
		// It writes to the kernel's settings, and has the host's network namespace, devices and users.
		if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=28",
			name).CombinedOutput(); err != nil {
			t.Errorf("security, %s: %v\n%s", what, err, out)
		}
	}
	for name, want := range map[string]string{
		"linerate-orders.service": "\nExecStart=/usr/local/bin/linerate agent --orders --group linerate " +
			"--state /var/lib/linerate\n",
		"linerate-agent.socket":  "\nListenStream=" + DefaultSocket + "\n",
		"linerate-agent.service": "\nExecStart=/usr/local/bin/linerate agent --group linerate --state /var/lib/linerate\n",
	} {
		if !strings.Contains(text[name], want) {
			t.Errorf("%s has no line %q", name, strings.TrimSpace(want))
		}
	}
}
