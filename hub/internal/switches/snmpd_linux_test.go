package switches

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/hub/internal/switches/snmp"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/base/unit"
)

// world puts the thread of the test and what it starts into a network namespace of their own, which
// has both ends of a veth.
func world(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	for _, line := range []string{"link set lo up", "link add v0 type veth peer name v1", "link set v0 addrgenmode none",
		"link set v1 addrgenmode none", "link set v0 up", "link set v1 up",
		"addr add 10.9.0.1/24 dev v0", "neigh add 10.9.0.2 lladdr 02:00:00:00:00:99 dev v0"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
}

// startAgent starts Debian's snmpd on port 1161 of the namespace.
func startAgent(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath("snmpd")
	if err != nil {
		if path = "/usr/sbin/snmpd"; !exists(path) {
			testenv.Missing(t, testenv.Peers, err)
		}
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "snmpd.conf")
	if err := os.WriteFile(config, []byte(`agentaddress udp:127.0.0.1:1161
rocommunity secret 127.0.0.1
createUser both SHA-256 "authentication" AES "privacy key"
createUser signed SHA-512 "authentication"
createUser old MD5 "authentication" DES "privacy key"
rouser both priv
rouser signed auth
rouser old priv
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(path, "-f", "-LE", "4", "-C", "-c", config, "-p", filepath.Join(dir, "pid"), "-I", "-smux")
	cmd.Env = append(os.Environ(), "MIBS=", "SNMP_PERSISTENT_DIR="+dir, "SNMPCONFPATH="+dir)
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("snmpd: %.2000s", log.String())
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// kernel returns the counters of an interface in the namespace of this thread: bytes and packets
// in, bytes and packets out.
func kernel(t *testing.T, name string) [4]uint64 {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if n, rest, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			f := strings.Fields(rest)
			var out [4]uint64
			for i, at := range []int{0, 1, 8, 9} {
				if out[i], err = strconv.ParseUint(f[at], 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
	}
	t.Fatalf("no %s in %s", name, b)
	return [4]uint64{}
}

// TestAgainstSNMPD reads Debian's agent, which shares no code with ours: the counters are those of
// the kernel, every kind of user is served, and a wrong one is refused in words.
func TestAgainstSNMPD(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	world(t)
	startAgent(t)
	dir := t.TempDir()
	key := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, auth, privacy, wrong := key("c", "secret"), key("a", "authentication"), key("p", "privacy key"), key("w",
		"wrong key")
	base := Config{Name: "veth", Address: "127.0.0.1:1161", CommunityFile: secret, Ports: []string{"v?"},
		Timeout: unit.Span(10 * time.Second)}
	none := func(string) string { return "" }

	// The agent needs a moment to start; until then its port is closed.
	look := func(c Config) (*mib.Snapshot, error) {
		s, err := c.session(none)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return mib.Read(t.Context(), s, mib.Options{Ports: c.Ports, Neighbours: true})
	}
	deadline := time.Now().Add(5 * time.Minute) // only against a test that hangs
	first, err := look(base)
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
		first, err = look(base)
	}
	if err != nil {
		t.Fatal(err)
	}

	k := NewKeeper("veth")
	start := [2][4]uint64{kernel(t, "v0"), kernel(t, "v1")}
	k.Take(first)
	send(t, 3000, 1000)
	// The agent refreshes its counters at times of its own choice. From the moment on that it has
	// all, its figures are the kernel's.
	var moved [2][4]uint64
	for {
		for i, name := range []string{"v0", "v1"} {
			now := kernel(t, name)
			for f := range now {
				moved[i][f] = now[f] - start[i][f]
			}
		}
		s, err := look(base)
		if err != nil {
			t.Fatal(err)
		}
		k.Take(s)
		before := [2][4]uint64{kernel(t, "v0"), kernel(t, "v1")}
		if quiet := before[0][2]-start[0][2] == moved[0][2]; quiet &&
			k.ports["v0"].sums[mib.OutBytes] == float64(moved[0][2]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after five minutes the agent has %.0f of %d bytes", k.ports["v0"].sums[mib.OutBytes], moved[0][2])
		}
		time.Sleep(200 * time.Millisecond)
	}
	for i, name := range []string{"v0", "v1"} {
		p := k.ports[name]
		got := [4]float64{p.sums[mib.InBytes], p.sums[mib.InUnicast] + p.sums[mib.InMulticast] + p.sums[mib.InBroadcast],
			p.sums[mib.OutBytes], p.sums[mib.OutUnicast] + p.sums[mib.OutMulticast] + p.sums[mib.OutBroadcast]}
		for f, what := range []string{"bytes in", "packets in", "bytes out", "packets out"} {
			if got[f] != float64(moved[i][f]) {
				t.Errorf("%s of %s: %.0f, the kernel has %d", what, name, got[f], moved[i][f])
			}
		}
	}
	if p := k.ports["v0"].last; p.Speed != 10e9 || !p.Up || p.Counters[mib.InBytes].Width != 64 || p.Duplex != mib.Full {
		t.Errorf("v0: %+v", p)
	}
	if moved[0][2] < 3_000_000 {
		t.Fatalf("only %d bytes were sent", moved[0][2])
	}
	t.Logf("v0 out: %d bytes, %d packets; read in %v", moved[0][2], moved[0][3], first.Took)

	v3 := func(user, a, p string) Config {
		c := Config{Name: "veth", Address: base.Address, User: user, AuthKeyFile: a, PrivacyKeyFile: p,
			Timeout: unit.Span(10 * time.Second)}
		switch user {
		case "signed":
			c.Auth = "sha512"
		case "old":
			c.Auth, c.Privacy = "md5", "des"
		}
		return c
	}
	for _, c := range []Config{v3("both", auth, privacy), v3("signed", auth, ""), v3("old", auth, privacy)} {
		if s, err := look(c); err != nil || len(s.Ports) != 2 || s.Boots < 1 {
			t.Errorf("user %s: %v", c.User, err)
		}
	}
	for says, c := range map[string]Config{
		"authentication key":    v3("both", wrong, privacy),
		"privacy key":           v3("both", auth, wrong),
		`user "stranger"`:       v3("stranger", auth, privacy),
		"without the other key": v3("both", auth, ""),
		"a wrong community, ":   {Name: "veth", Address: base.Address, CommunityFile: wrong},
	} {
		// Where the agent answers, there is time; where it is silent, that is what each case costs.
		c.Timeout = unit.Span(10 * time.Second)
		switch {
		case strings.Contains(says, "community"):
			c.Timeout = unit.Span(time.Second)
		case strings.Contains(says, "privacy"):
			c.Timeout = unit.Span(2 * time.Second)
		}
		_, err := shortly(c, none, t)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(says, ", ")) {
			t.Errorf("%s: %v", says, err)
			continue
		}
		t.Logf("%s: %v", says, err)
		if silent := strings.Contains(says, "community"); silent != errors.Is(err, snmp.ErrSilent) || !silent &&
			!errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v is of another kind", says, err)
		}
	}
}

// shortly looks once.
func shortly(c Config, env func(string) string, t *testing.T) (*mib.Snapshot, error) {
	t.Helper()
	s, err := c.session(env)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return mib.Read(t.Context(), s, mib.Options{})
}

// send sends datagrams from v0 to an address behind v1.
func send(t *testing.T, n, size int) {
	t.Helper()
	c, err := net.Dial("udp", "10.9.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range n {
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(fmt.Errorf("datagram %d: %w", i, err))
		}
	}
}
