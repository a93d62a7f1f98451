package daemon

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/hub/internal/switches/switchtest"
	"github.com/linerate/linerate/internal/report"
)

// TestSwitchCommand reads a simulated switch with 48 ports as a user does.
func TestSwitchCommand(t *testing.T) {
	tree := switchtest.Switch(48, true)
	tree.Set("1.3.6.1.2.1.2.2.1.8.2", int64(2))
	tree.Set(switchtest.Duplex+"3", int64(2))
	tree.Set("1.3.6.1.2.1.31.1.1.1.18.4", "\x1b[31mred")
	address := switchtest.Serve(t, tree, "secret", 1472)
	t.Setenv(switches.CommunityEnv, "secret")
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		args = append([]string{"linerate-hub", "switch", address, "--duration", "1ms", "--config", "/dev/null"}, args...)
		if status := Main(args, strings.NewReader(""), &out, &errs); status != exitOK {
			t.Fatalf("%v: status %d, %s", args, status, errs.String())
		}
		return out.String()
	}
	text := run()
	for _, want := range []string{"sim-1 · Simulated switch", "Gi0/48  uplink", "10.0 Gb/s", "web-1.example.net eth0",
		"1 ports without a link are not shown", "half duplex", "switch-half-duplex"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "secret") {
		t.Errorf("the terminal obeys\n%q", text)
	}
	var doc report.SwitchDocument
	if err := json.Unmarshal([]byte(run("--json", "--port", "Gi0/4*")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != report.SchemaSwitch || len(doc.Switch.Ports) != 10 || doc.Switch.Ports[0].CounterBits != 64 ||
		doc.Switch.Ports[9].Speed != 10e9 {
		t.Errorf("%+v", doc)
	}
}
