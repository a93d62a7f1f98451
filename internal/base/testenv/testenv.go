package testenv

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Variable is the environment variable that lists what this run provides.
const Variable = "LINERATE_REQUIRE"

// Thing is a requirement of a test beyond Go and an ordinary user.
type Thing string

// The things.
const (
	NetNS   Thing = "netns"   // permission to create network namespaces and private mounts
	Guest   Thing = "guest"   // QEMU and a Debian kernel, see package guest
	Peers   Thing = "peers"   // programs of other projects: iperf3, ss, ethtool, nft, promtool …
	SSHD    Thing = "sshd"    // an OpenSSH server and client
	Browser Thing = "browser" // Chromium
	Network Thing = "network" // ping sockets, IPv6 loopback and other abilities of this machine's network
	Long    Thing = "long"    // more than a few seconds: whole tunes, simulations
)

// Soak makes tests repeat what they do hundreds of times, for many minutes. No test needs it, and
// "all" leaves it out: make soak asks for it.
const Soak Thing = "soak"

// Things lists every thing that tests need.
func Things() []Thing { return []Thing{NetNS, Guest, Peers, SSHD, Browser, Network, Long} }

// Provided reports whether this run provides a thing, so that its absence is a failure.
func Provided(thing Thing) bool { return provides(os.Getenv(Variable), thing) }

func provides(list string, thing Thing) bool {
	listed := strings.Split(list, ",")
	return slices.Contains(listed, "all") && thing != Soak || slices.Contains(listed, string(thing))
}

// Need skips the test unless this run provides all of the things.
func Need(t testing.TB, things ...Thing) {
	t.Helper()
	for _, thing := range things {
		if !Provided(thing) {
			t.Skipf("needs %s: set %s=%s, or run make test", thing, Variable, thing)
		}
	}
}

// Sample returns how much of a test that repeats itself a run takes: whole where the run provides
// [Long], and short elsewhere. It serves as a count, a stride or a size.
func Sample(whole, short int) int {
	if Provided(Long) {
		return whole
	}
	return short
}

// Missing ends a test that cannot run because a thing is missing: it fails the test if this run
// provides the thing, and skips it otherwise. The reason is why, formatted as by fmt.Sprint.
func Missing(t testing.TB, thing Thing, why ...any) {
	t.Helper()
	if Provided(thing) {
		t.Fatal(append([]any{thing, " is required: "}, why...)...)
	}
	t.Skip(append([]any{"needs ", thing, ": "}, why...)...)
}

// Program returns the path of a program of another project. It finds programs in /usr/sbin although
// an ordinary user's PATH lacks that directory.
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	Need(t, Peers)
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	Missing(t, Peers, name, " is not installed")
	return ""
}
