package session

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// TestAddress walks from a command under sudo to the shell that sshd started.
func TestAddress(t *testing.T) {
	t.Parallel()
	proc := fstest.MapFS{
		"40/environ": file("PATH=/bin\x00"),
		"40/stat":    file("40 (linerate) S 30 40"),
		"30/stat":    file("30 (a) b) S 20 30"), // its environment is not ours to read
		"20/environ": file("X=1\x00SSH_CONNECTION=192.0.2.9 51000 ::ffff:192.0.2.7 22\x00"),
		"20/stat":    file("20 (bash) S 1 20"),
		"50/environ": file("SSH_CONNECTION=broken\x00"),
		"50/stat":    file("50 (x) S 1 1"),
		"1/stat":     file("1 (init) S 0 1"),
		"60/stat":    file("60 (loop) S 60 1"),
	}
	client, own, ok := addresses(proc, 40)
	if !ok || own != netip.MustParseAddr("192.0.2.7") || client != netip.MustParseAddr("192.0.2.9") {
		t.Errorf("got %v, %v, %v", client, own, ok)
	}
	for _, pid := range []int{50, 1, 60, 99} {
		if _, got, ok := addresses(proc, pid); ok {
			t.Errorf("process %d: %v", pid, got)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	class := fstest.MapFS{
		"bond0.100/lower_bond0/x": file(""), "bond0/lower_eth0/x": file(""), "bond0/lower_eth1/x": file(""),
		"eth0/mtu": file("1500"), "loop/lower_loop/x": file(""),
	}
	if diff := cmp.Diff([]string{"bond0.100", "bond0", "eth0", "eth1"}, below(class, "bond0.100")); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string][]string{"eth0": {"eth0"}, "loop": {"loop"}, "gone": {"gone"}, "": nil} {
		if diff := cmp.Diff(want, below(class, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestBelowTwo: an address on lo says nothing of the NIC, which the way to the client names.
func TestBelowTwo(t *testing.T) {
	t.Parallel()
	class := fstest.MapFS{"bond0/lower_eth0/x": file(""), "lo/mtu": file("65536")}
	for want, names := range map[string][]string{
		"lo bond0 eth0": {"lo", "bond0"}, "bond0 eth0": {"bond0", "eth0"}, "eth0": {"eth0", "eth0"}, "": {"", ""},
	} {
		if got := strings.Join(below(class, names...), " "); got != want {
			t.Errorf("%q: %s", names, got)
		}
	}
}

func TestWay(t *testing.T) {
	t.Parallel()
	if got := way(netip.Addr{}); got != "" {
		t.Errorf("to no address: %q", got)
	}
	if got := way(netip.MustParseAddr("127.0.0.1")); runtime.GOOS == "linux" && got != "lo" {
		t.Errorf("to this host: %q", got)
	}
}

func TestHolder(t *testing.T) {
	t.Parallel()
	if got := holder(netip.MustParseAddr("192.0.2.253")); got != "" {
		t.Errorf("an address that no interface has: %q", got)
	}
}
