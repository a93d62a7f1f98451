package cli

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/dialect"
)

// TestForeignServerNotThere checks that in every dialect an absent server is reported as
// unreachable, with one sentence and what to do.
func TestForeignServerNotThere(t *testing.T) {
	free := net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePorts(t, 1)))
	for _, name := range dialect.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			a := newApp(strings.NewReader(""), &out, &errs)
			a.lease = "linerate/test-" + free + "-" + name // another test may have this host
			status := a.run([]string{"measure", name + "://" + free, "--duration", "200ms"})
			if status != exitUnreachable || out.Len() != 0 || !strings.Contains(errs.String(), "\ntry: ") ||
				strings.Contains(errs.String(), "dial tcp") {
				t.Errorf("status %d, printed %q, said %q", status, out.String(), errs.String())
			}
		})
	}
}

// TestForeignTargetMistyped checks that an address without a host does not mean this host.
func TestForeignTargetMistyped(t *testing.T) {
	for _, target := range []string{"iperf3://", "iperf2://:5001", "stamp://far:99999", "nuttcp://far:",
		"ttcp://me@far"} {
		var out, errs bytes.Buffer
		status := Main([]string{"linerate", "measure", target}, strings.NewReader(""), &out, &errs)
		if status != exitUsage || !strings.Contains(errs.String(), "bad target") {
			t.Errorf("%s: status %d, said %q", target, status, errs.String())
		}
	}
}

// TestNothingBehindTarget checks that a target with nothing behind its scheme, or of blanks, is a
// mistake on the command line in every command that takes one, and that the message names it.
func TestNothingBehindTarget(t *testing.T) {
	for _, c := range []struct{ line, said string }{
		{"tune|disk:", "after disk: comes the PATH"},
		{"tune|disk: ", "after disk: comes the PATH"},
		{"tune|link:", `bad target "link:"`},
		{"tune|nfs:", `bad target "nfs:"`},
		{"tune|ssh://", "no host"},
		{"apply|bulk|disk:", "a profile is for a host"},
		{"measure|iperf3://", `bad target "iperf3://": after iperf3:// comes HOST`},
		{"measure|iperf3://:5201", `bad target "iperf3://:5201": after iperf3:// comes HOST`},
		{"measure|iperf://192.0.2.7", "write which of the two runs there"},
		{"measure|disk:/srv", "`linerate disk PATH` measures a disk"},
		{"measure|  ", "TARGET is empty"},
		{"diagnose|icmp://", "after icmp:// comes HOST"},
		{"diagnose| ", "TARGET is empty"},
		{"disk| ", "PATH is empty"},
		{"nfs| ", "MOUNT is empty"},
		{"nfs|tune| ", "SERVER:/EXPORT is empty"},
		{"inspect| ", "IFACE is empty"},
		{"knobs| ", "PATTERN is empty"},
		{"resolver|measure| ", "SERVER is empty"},
		{"report| ", "RUN is empty"},
	} {
		var out, errs bytes.Buffer
		status := Main(append([]string{"linerate"}, strings.Split(c.line, "|")...), strings.NewReader(""), &out, &errs)
		if status != exitUsage || !strings.Contains(errs.String(), c.said) {
			t.Errorf("%s: status %d, said %q, want %q", c.line, status, errs.String(), c.said)
		}
	}
}

// TestEveryDialectIsDocumented checks that the help of measure and the reference name every
// dialect; the help of serve derives from the table.
func TestEveryDialectIsDocumented(t *testing.T) {
	var help, errs bytes.Buffer
	if status := Main([]string{"linerate", "measure", "--help"}, strings.NewReader(""), &help, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	reference, err := os.ReadFile("../../docs/reference/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dialect.Names() {
		if !strings.Contains(help.String(), name) {
			t.Errorf("the help of measure does not name %s", name)
		}
		if !strings.Contains(string(reference), "| `"+name+"` |") {
			t.Errorf("docs/reference/dialects.md has no row for %s", name)
		}
	}
}
