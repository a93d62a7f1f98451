package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// bridgeOfAgent is what Debian's snmpd does not have of itself: the bridge knows the host's card v0
// in VLAN 20, behind v1, which carries that VLAN with its tag and VLAN 1 without.
const bridgeOfAgent = `override .1.3.6.1.2.1.17.7.1.4.2.1.3.0.1 uinteger 1
override .1.3.6.1.2.1.17.7.1.4.2.1.3.0.20 uinteger 5
override .1.3.6.1.2.1.17.7.1.4.2.1.4.0.1 octet_str 0x80
override .1.3.6.1.2.1.17.7.1.4.2.1.4.0.20 octet_str 0x80
override .1.3.6.1.2.1.17.7.1.4.2.1.5.0.1 octet_str 0x80
override .1.3.6.1.2.1.17.7.1.4.2.1.5.0.20 octet_str 0x00
override .1.3.6.1.2.1.17.7.1.2.2.1.2.5.2.0.94.0.0.10 integer 1
`

// TestHubReadsSwitch runs a whole hub, whose configuration names Debian's snmpd as a switch: its
// page has the ports and where this host hangs, and its history the kernel's counters.
func TestHubReadsSwitch(t *testing.T) {
	testenv.Need(t, testenv.Long, testenv.NetNS, testenv.Peers)
	snmpd := testenv.Program(t, "snmpd")
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	for _, line := range []string{"link set lo up",
		"link add v0 address 02:00:5e:00:00:0a type veth peer name v1", "link set v0 addrgenmode none",
		"link set v1 addrgenmode none", "link set v0 up", "link set v1 up", "addr add 10.9.0.1/24 dev v0",
		"neigh add 10.9.0.2 lladdr 02:00:00:00:00:99 dev v0"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	v1, err := net.InterfaceByName("v1")
	if err != nil {
		t.Fatal(err)
	}
	config := "rocommunity secret\n" + bridgeOfAgent +
		fmt.Sprintf("override .1.3.6.1.2.1.17.1.4.1.2.1 integer %d\n", v1.Index)
	agent := exec.CommandContext(t.Context(), snmpd, "-f", "-LE", "4", "-C", "-c", write("snmpd.conf", config),
		"-p", filepath.Join(dir, "pid"), "-I", "-smux", "udp:127.0.0.1:1161")
	agent.Env = append(os.Environ(), "MIBS=", "SNMP_PERSISTENT_DIR="+dir, "SNMPCONFPATH="+dir)
	agent.Stderr = t.Output()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	client := clientHere(t)
	h := startHubWith(t, client, filepath.Join(dir, "data"), "--config", write("hub.yaml",
		"switches:\n- name: core\n  address: 127.0.0.1:1161\n  community_file: "+write("community", "secret")+
			"\n  every: 10s\n  timeout: 3s\n  ports: ['v?']\n"))

	// The first reading comes within seconds, the second ten seconds later. The bound ends a test
	// that hangs.
	deadline := time.Now().Add(10 * time.Minute)
	state := func() report.Switch {
		t.Helper()
		var doc struct{ Switches []report.Switch }
		if err := json.Unmarshal([]byte(h.get(t, "/api/linerate/v1/switches", nil)), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Switches) != 1 || doc.Switches[0].Name != "core" {
			t.Fatalf("%+v", doc)
		}
		return doc.Switches[0]
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not in ten minutes: %+v\n%s", what, state(), h.stderr)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	// A reading that an agent without CPU time did not answer in time says so; the next one counts.
	var one report.Switch
	until("a whole reading", func() bool {
		one = state()
		return len(one.Ports) == 2 && one.Error == "" && len(one.Warnings) == 0
	})
	for _, p := range one.Ports {
		var want []report.SwitchAttached
		if p.Name == "v1" {
			want = []report.SwitchAttached{{Interface: "v0", Source: "bridge table of VLAN 20", Trunk: true}}
		}
		if !p.Up || p.Speed != 10e9 || fmt.Sprint(p.Attached) != fmt.Sprint(want) {
			t.Errorf("%+v, want attached %+v", p, want)
		}
		if p.Name == "v1" && (p.UntaggedVLANs != "1" || p.TaggedVLANs != "20") {
			t.Errorf("VLANs %q and %q", p.UntaggedVLANs, p.TaggedVLANs)
		}
	}
	const datagrams, size = 2000, 1000
	c, err := net.Dial("udp", "10.9.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range datagrams {
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	const overhead = 14 + 20 + 8
	for query, want := range map[string]int64{
		`linerate_switch_port_transmit_bytes_total{switch="core",port="v0"}`:        datagrams * (size + overhead),
		`linerate_switch_port_receive_bytes_total{switch="core",port="v1"}`:         datagrams * (size + overhead),
		`sum(linerate_switch_port_transmit_packets_total{switch="core",port="v0"})`: datagrams,
		`linerate_switch_up{switch="core"}`:                                         1,
	} {
		var got int64
		until(query, func() bool {
			if n, err := h.number(query, 0); err == nil {
				got = n
			}
			return got >= want
		})
		if got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	// A switch that is gone is said to be gone, and the hub goes on.
	_ = agent.Process.Kill()
	until("the end of the agent", func() bool { return state().Error != "" })
	until("the end of the agent in the history", func() bool {
		n, err := h.number(`linerate_switch_up{switch="core"}`, 0)
		return err == nil && n == 0
	})
	t.Logf("read in %v; gone: %s", time.Duration(one.ReadSeconds*float64(time.Second)), state().Error)
}

// clientHere returns a client whose connections are made in the network namespace of this thread.
func clientHere(t *testing.T) *http.Client {
	t.Helper()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			made := make(chan struct{})
			var c net.Conn
			var err error
			go func() {
				defer close(made)
				runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
				if err = unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); err == nil {
					c, err = new(net.Dialer).DialContext(ctx, network, address)
				}
			}()
			<-made
			return c, err
		}}}
}
