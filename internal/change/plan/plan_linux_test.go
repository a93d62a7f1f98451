package plan_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/plan"
)

// world is a shell in network and mount namespaces of its own, with an /etc of its own.
type world struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newWorld(t *testing.T) *world {
	t.Helper()
	etc := t.TempDir()
	for name, text := range map[string]string{
		"sysctl.conf": "# of the host\nvm.swappiness = 10\n", "sysctl.d/10-mine.conf": "net.ipv4.ip_forward = 0\n",
		"systemd/network/20-mine.network": "[Match]\nName=none0\n",
	} {
		name = filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "sh")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait() // the shell ends with its input
	})
	w := &world{t: t, in: in, out: bufio.NewReader(out)}
	w.run("mount --bind " + etc + " /etc && ip link add eth0 type veth peer name eth1 && ip link set eth0 up")
	return w
}

// run runs a text in a shell of its own and returns what it prints.
func (w *world) run(text string) string {
	w.t.Helper()
	if _, err := fmt.Fprintf(w.in, "sh <<'SCRIPT'\n%s\nSCRIPT\necho done=$?\n", text); err != nil {
		w.t.Fatal(err)
	}
	var all strings.Builder
	for {
		line, err := w.out.ReadString('\n')
		if err != nil {
			w.t.Fatalf("the shell ended: %v after %q", err, all.String())
		}
		if status, ok := strings.CutPrefix(line, "done="); ok {
			if status != "0\n" {
				w.t.Fatalf("status %sof\n%s\n%s", status, text, all.String())
			}
			return all.String()
		}
		all.WriteString(line)
	}
}

// state is every setting of the namespace that a plan could touch, and every byte below /etc.
func (w *world) state() string {
	w.t.Helper()
	return w.run(`cd /proc/sys/net; grep -rs . ipv4 core --exclude='*metrics' --exclude='*dst_cache*' | sort
ip -o link show eth0 | sed 's/.*mtu \([0-9]*\).*/mtu \1/'
cd /etc; find . | sort; grep -r '' . | sort`)
}

// TestAppliedAndUndone: a plan for Linux, applied in a namespace by its own script and undone by
// its own, leaves every value and every byte as it was. Between them the values are those of the
// plan.
func TestAppliedAndUndone(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	w := newWorld(t)
	present := map[string]string{"link:eth0/mtu": "1500"}
	for _, name := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_notsent_lowat", "net.core.somaxconn"} {
		present["sysctl:"+name] = strings.Join(strings.Fields(w.run("sysctl -n "+name)), " ")
	}
	// A value that is no default: undo must restore this one.
	w.run("sysctl -qw net.ipv4.tcp_notsent_lowat=65536")
	present["sysctl:net.ipv4.tcp_notsent_lowat"] = "65536"

	g, err := plan.ReadSituation([]byte("link: 100G\nrtt: 100ms\nmemory: 1TiB\nrole: web\nos: debian\nrelease: 12\n" +
		"connections: 4\nmtu: 9000\ninterface: eth0\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	s.Present = present
	p, err := plan.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	before := w.state()
	w.run(p.Script())
	applied := w.state()
	set := 0
	for _, l := range p.Lines {
		if !l.Set {
			continue
		}
		set++
		kind, name, _ := strings.Cut(l.Knob, ":")
		got := w.run("ip -o link show eth0 | sed 's/.*mtu \\([0-9]*\\).*/\\1/'")
		if kind == "sysctl" {
			got = w.run("sysctl -n " + name)
		}
		if strings.Join(strings.Fields(got), " ") != l.Value {
			t.Errorf("%s is %q after the script, want %q", l.Knob, got, l.Value)
		}
		for _, f := range l.Files {
			if text := w.run("cat " + f.Path); !strings.Contains(text, f.Text) {
				t.Errorf("%s: the script made %s with %q, want %q", l.Knob, f.Path, text, f.Text)
			}
		}
	}
	if set < 5 || applied == before {
		t.Errorf("%d lines are set, and the state differs: %v", set, applied != before)
	}
	w.run(p.UndoScript())
	if after := w.state(); after != before {
		a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("after undo line %d is %q, was %q", i, b[i], a[i])
			}
		}
		t.Fatalf("after undo the state has %d lines, was %d", len(b), len(a))
	}
}

// TestUndoneFileOfOthers: a file that the plan adds lines to is the same after undo, to the byte.
func TestUndoneFileOfOthers(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	w := newWorld(t)
	p := read(t, "testdata/plans/freebsd-13-bulk.situation")
	// The commands of FreeBSD do nothing here: the files are real.
	shim := "mkdir -p /etc/shim\nfor c in sysctl kldload; do\nprintf '#!/bin/sh\\n' > /etc/shim/$c\n" +
		"chmod +x /etc/shim/$c; done\n"
	w.run(shim + "mkdir -p /etc/boot && mount -t tmpfs none /boot && cp /etc/sysctl.conf /etc/boot/was")
	paths := "PATH=/etc/shim:$PATH\nexport PATH\n"
	w.run(paths + p.Script())
	if got := w.run("cat /etc/sysctl.conf /boot/loader.conf.d/linerate-plan.conf"); !strings.Contains(got,
		"net.inet.tcp.recvbuf_max=") || !strings.Contains(got, `cc_cubic_load="YES"`) {
		t.Errorf("the files have %q", got)
	}
	// A second time it refuses instead of adding its lines again.
	w.run(paths + "if sh -c " + quote(p.Script()) + " 2>/dev/null; then exit 1; fi")
	w.run(paths + p.UndoScript())
	w.run("cmp /etc/sysctl.conf /etc/boot/was && test ! -e /boot/loader.conf.d/linerate-plan.conf")
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
