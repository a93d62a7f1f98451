package capture

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// scrubbed gives what becomes of files, by name, on a host that is made of nothing else.
func scrubbed(files map[string]string) (*scrubber, map[string]string) {
	s := testScrubber()
	var entries []hostfs.Entry
	for name, content := range files {
		entries = append(entries, hostfs.Entry{Name: name, Content: []byte(content)})
	}
	out := make(map[string]string)
	for _, e := range s.scrub(entries) {
		out[e.Name] = string(e.Content)
	}
	return s, out
}

// TestKernelWords: a host with the name of something of the kernel's does not change what that is
// called.
func TestKernelWords(t *testing.T) {
	for _, name := range []string{"cubic", "vm", "eth0", "veth"} {
		s, out := scrubbed(map[string]string{
			"proc/sys/kernel/hostname": name + "\n", "proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
			"proc/sys/vm/swappiness": "60\n",
			"proc/net/dev":           "eth0: 1 2\n", "linerate/ethtool.json": "{\"eth0\":{\"driver\":\"veth\"}}",
			"run/note": "cubic vm eth0 veth\n",
		})
		if got := out["proc/sys/kernel/hostname"]; got != s.hostName(name)+"\n" || strings.Contains(got, name) {
			t.Errorf("%s became %q", name, got)
		}
		if out["proc/sys/net/ipv4/tcp_congestion_control"] != "cubic\n" || out["proc/sys/vm/swappiness"] != "60\n" ||
			out["proc/net/dev"] != "eth0: 1 2\n" ||
			!strings.Contains(out["linerate/ethtool.json"], `"driver": "veth"`) ||
			out["run/note"] != "cubic vm eth0 veth\n" {
			t.Errorf("%s: %q", name, out)
		}
	}
	// Names that say nothing stay.
	for _, name := range []string{"localhost", "(none)", ""} {
		if _, out := scrubbed(map[string]string{"proc/sys/kernel/hostname": name +
			"\n"}); out["proc/sys/kernel/hostname"] != name+"\n" {
			t.Errorf("%q became %q", name, out["proc/sys/kernel/hostname"])
		}
	}
}

// TestByteOrder: the table of routes is in the byte order of the host that it comes from, and says
// the same as text would.
func TestByteOrder(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
	for arch, line := range map[string]string{
		"x86_64": "eth0\t00030A0A\tFE030A0A\t0003\t0\t0\t0\t00FFFFFF\n",
		"s390x":  "eth0\t0A0A0300\t0A0A03FE\t0003\t0\t0\t0\tFFFFFF00\n",
	} {
		s, out := scrubbed(map[string]string{"proc/sys/kernel/arch": arch + "\n", "proc/net/route": head + line})
		network, gateway := s.text("10.10.3.0/24"), s.text("10.10.3.254")
		fields := strings.Fields(strings.TrimPrefix(out["proc/net/route"], head))
		if len(fields) != 8 {
			t.Fatalf("%s: %q", arch, out)
		}
		if got := numbered(t, arch, fields[1]) + "/24"; got != network {
			t.Errorf("%s: network %s, want %s", arch, got, network)
		}
		if got := numbered(t, arch, fields[2]); got != gateway {
			t.Errorf("%s: gateway %s, want %s", arch, got, gateway)
		}
	}
}

// numbered reads an address as the kernel of that machine means it.
func numbered(t *testing.T, arch, text string) string {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		t.Fatalf("%q: %v", text, err)
	}
	if arch == "x86_64" {
		slices.Reverse(b)
	}
	return netip.AddrFrom4([4]byte(b)).String()
}

// TestRules: the closer rules, each by what must be gone and what must stay.
func TestRules(t *testing.T) {
	for _, c := range []struct{ name, content, gone, kept string }{
		{"proc/net/ipv6_route",
			"2a028108000100020000000000000000 40 00000000000000000000000000000000 00 2a028108000100020000000000000001 " +
				"00000400 00000002 00000000 00000003     eth0\n",
			"2a028108", " 40 00000000000000000000000000000000 00 "},
		{"proc/net/if_inet6", "fe80000000000000021b21fffe0a0b0c 02 40 20 80     eth0\n", "021b21", "fe80000000000000"},
		{"proc/mounts", "[2a02:8108::1]:/export /mnt nfs rw,vers=3,addr=2a02:8108::1 0 0\n", "8108", "vers=3"},
		{"proc/mounts", "overlay / overlay rw,lowerdir=/var/acme/a:/var/acme/b,upperdir=/srv/acme 0 0\n", "acme",
			"overlay / overlay rw,lowerdir=/var/"},
		{"proc/mounts", "//Filer7/share /mnt cifs rw,username=alice,pass=hunter2 0 0\n", "alice", "username=user-"},
		{"proc/mounts", "a line of another kind, from 10.9.8.7\n", "10.9.8.7", "a line of another kind, from 10."},
		{"proc/cmdline", "quiet mitigations=off acme.secret=hunter2 isolcpus=1-3\n", "hunter2",
			"mitigations=off acme.secret=x isolcpus=1-3"},
		{"proc/1/cgroup", "0::/system.slice/docker-0123456789abcdef.scope/acme\n", "acme",
			"0::/system.slice/docker-group-"},
		{"proc/cpuinfo", "Serial\t\t: 00000000deadbeef\nmodel name\t: Cortex-A72\n", "deadbeef", "Cortex-A72"},
		{"linerate/links.json",
			`[{"name":"eth0","alias":"to Bonn","ssid":"Alice","serial":"X1","mtu_bytes":9007199254740993}]`, "Alice",
			"9007199254740993"},
		{"linerate/links.json", `not json, from 10.9.8.7`, "10.9.8.7", "not json"},
		{"linerate/ethtool.json", `{"eth0":{"card":{"permanent_mac":"00:1b:21:0a:0b:0c"}}}`, "00:1b:21",
			"permanent_mac"},
		{"linerate/routes.json", `[{"destination":"84.23.7.0/24","source":"84.23.7.15","metric":42}]`, "84.23.7", "42"},
		{"sys/class/net/eth0/ifalias", "to Bonn\n", "Bonn", "alias-"},
		{"sys/class/net/eth0/phys_switch_id", "001b21aabbcc\n", "001b21", "serial-"},
		{"sys/devices/pci0000:00/0000:00:01.0/config", strings.Repeat("x", shownConfig) + "serial", "serial", "xxx"},
		{"proc/sys/kernel/osrelease", "2.6.32.71\n", "-", "2.6.32.71"},
	} {
		_, out := scrubbed(map[string]string{c.name: c.content})
		if got := out[c.name]; strings.Contains(got, c.gone) || !strings.Contains(got, c.kept) {
			t.Errorf("%s: %q became %q", c.name, c.content, got)
		}
	}
	// A device of Hyper-V is called by a UUID, in its path and in the links to it.
	s := testScrubber()
	const device = "sys/bus/vmbus/devices/f8615163-df3e-46c5-913f-f2d2f965ed0e"
	if got := s.path(device); got == device || s.path("../../"+device) != "../../"+got {
		t.Errorf("%s became %s", device, got)
	}
}
