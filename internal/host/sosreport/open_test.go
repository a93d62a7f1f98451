package sosreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// tiny is a host with one card, as a capture has it.
func tiny() *hostfs.Memory {
	file := func(name, content string) hostfs.Entry { return hostfs.Entry{Name: name, Content: []byte(content)} }
	return hostfs.NewMemory([]hostfs.Entry{
		file("proc/sys/kernel/hostname", "tiny\n"), file("proc/sys/kernel/osrelease", "6.1.0\n"),
		file("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
		file("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\nbtime 1700000000\n"),
		file("proc/cpuinfo", "processor\t: 0\nmodel name\t: CPU\n"),
		file("proc/meminfo", "MemTotal: 1024 kB\n"),
		file("proc/net/dev", "a\nb\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"),
		file("proc/net/snmp", "Tcp: RetransSegs\nTcp: 7\n"),
		file("proc/net/netstat", "TcpExt: TCPTimeouts\nTcpExt: 3\n"),
		file("proc/net/softnet_stat", "1 2 3 0 0 0 0 0 0\n"),
		file("proc/net/sockstat", "TCP: inuse 1 mem 2\n"),
		file("proc/interrupts", "  CPU0\n 24:  5  PCI-MSI 1-edge  eth0\n"),
		file("linerate/host.json", `{"time":"2023-12-25T00:00:00Z","arch":"amd64"}`),
		file("linerate/links.json",
			`[{"index":2,"name":"eth0","mac":"02:00:00:00:00:01","mtu_bytes":1500,"up":true,"carrier":true,`+
				`"qdisc":"fq_codel"}]`),
		file("linerate/addresses.json", `[{"index":2,"cidr":"192.0.2.1/24"}]`),
		file("linerate/ethtool.json",
			`{"eth0":{"driver":"e1000e","bus":"0000:00:03.0","speed_bits_per_second":1e9,"duplex":"full",`+
				`"rings":{"rx":{"current":256,"max":4096},"tx":{"current":256,"max":4096}},"statistics":{"rx_missed_errors":3}}}`),
	})
}

// unpacked writes a report below a directory, as tar would.
func unpacked(t testing.TB, dir string, entries []hostfs.Entry) {
	t.Helper()
	for _, e := range entries {
		to := filepath.Join(dir, filepath.FromSlash(e.Name))
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil && e.Target != "" {
			err = os.Symlink(e.Target, to)
		} else if err == nil {
			err = os.WriteFile(to, e.Content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tarred packs a report below a directory name.
func tarred(t testing.TB, top string, entries []hostfs.Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: top + e.Name, Typeflag: tar.TypeReg, Size: int64(len(e.Content)), Mode: 0o644}
		if e.Target != "" {
			h = &tar.Header{Name: top + e.Name, Typeflag: tar.TypeSymlink, Linkname: e.Target}
		}
		if err := errors.Join(w.WriteHeader(h)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMangle(t *testing.T) {
	for command, want := range map[string]string{
		"ethtool -S eth0": "ethtool_-S_eth0", "ip -o addr": "ip_-o_addr",
		"ip route show table all": "ip_route_show_table_all", "ethtool eth0.100": "ethtool_eth0.100",
		"ethtool eth0:1": "ethtool_eth0_1", "lsof +M -c ''": "lsof_M_-c", "cat /etc/x": "cat_.etc.x",
		"date --utc": "date_--utc", "ethtool __wlp3s0": "ethtool___wlp3s0",
	} {
		if got := mangle(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for text, want := range map[string]bool{
		"eth1": true, "i40e-eth1-TxRx-0": true, "eth1-rx-0": true, "ide0, eth1": true, "eth10": false, "veth1": false,
		"eth1x, eth1": true, "": false,
	} {
		if named(text, "eth1") != want {
			t.Errorf("%q: not %v", text, want)
		}
	}
	if named("anything", "") {
		t.Error("the empty name is named")
	}
}

// However a report is packed, it is the same host.
func TestOpen(t *testing.T) {
	entries := render(t, tiny(), sos4)
	above := t.TempDir()
	within := filepath.Join(above, "sosreport-tiny-2023-12-25")
	unpacked(t, within, entries)
	plain := tarred(t, "sosreport-tiny-2023-12-25/", entries)
	var want *host.Snapshot
	for _, c := range []struct{ way, name, report string }{
		{"directory", within, ""},
		{"the directory above", above, "sosreport-tiny-2023-12-25"},
		{"tar", write(t, "a.tar", plain), "sosreport-tiny-2023-12-25"},
		{"tar.gz", write(t, "a.tar.gz", gzipped(t, plain)), "sosreport-tiny-2023-12-25"},
		{"tar of the directory's content", write(t, "b.tar", tarred(t, "./", entries)), ""},
	} {
		r, err := Open(t.Context(), c.name)
		if err != nil {
			t.Errorf("%s: %v", c.way, err)
			continue
		}
		if r.Name != c.report {
			t.Errorf("%s: the report is called %q", c.way, r.Name)
		}
		s, err := r.Root().Snapshot(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.way, err)
			continue
		}
		if want == nil {
			want = s
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("%s (-directory +this):\n%s", c.way, diff)
		}
	}
	if want.Name != "tiny" || want.Interfaces[0].Rings.Rx.Max != 4096 || len(want.Interfaces[0].Interrupts) != 1 {
		t.Errorf("read %+v", want)
	}
	if up, ok := want.Uptime(); !ok || up.Hours() < 900 {
		t.Errorf("up %v %v", up, ok)
	}
}

// What is no report is refused with the reason, and what is packed in a way that is not read here
// with a way out.
func TestOpenRefuses(t *testing.T) {
	two := t.TempDir()
	for _, name := range []string{"a", "b"} {
		unpacked(t, filepath.Join(two, name), []hostfs.Entry{{Name: "sos_commands/x"}})
	}
	several := tarred(t, "", []hostfs.Entry{{Name: "a/proc/stat"}, {Name: "b/proc/stat"}})
	whole := gzipped(t, tarred(t, "a/", render(t, tiny(), sos4)))
	zeros := gzipped(t, make([]byte, 1<<20))
	for _, c := range []struct{ way, name, says string }{
		{"an empty directory", t.TempDir(), "not contain sos_commands"},
		{"two reports", two, "name one of them (a, b)"},
		{"xz", write(t, "a.tar.xz", []byte("\xfd7zXZ\x00\x00\x04")), "packed with xz"},
		{"zstd", write(t, "a.tar.zst", []byte("\x28\xb5\x2f\xfd\x00")), "packed with zstd"},
		{"text", write(t, "a.txt", []byte("hello\n")), "read tar"},
		{"nothing", write(t, "a.tar", nil), "neither proc nor sos_commands"},
		{"broken gzip", write(t, "a.tar.gz", []byte("\x1f\x8b\x08")), "unpack gzip"},
		{"cut off", write(t, "cut.tar.gz", whole[:len(whole)/2]), "read tar"},
		{"a tar of something else", write(t, "b.tar", tarred(t, "a/", []hostfs.Entry{{Name: "usr/bin/true"}})),
			"neither proc nor sos_commands"},
		{"two reports in one tar", write(t, "c.tar", several), "several directories, a and b"},
		{"zeros", write(t, "z.tar.gz", zeros), "neither proc nor sos_commands"},
	} {
		_, err := Open(t.Context(), c.name)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.way, err)
		}
		var hint interface{ Hint() string }
		if errors.As(err, &hint) != strings.Contains(c.says, "packed") {
			t.Errorf("%s: hint %v", c.way, hint)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(two, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{two + "/a", write(t, "a.tar", tarred(t, "a/", render(t, tiny(), sos4)))} {
		if _, err := Open(ctx, name); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: interrupted: %v", name, err)
		}
	}
}

// A report may be malicious: what it claims of paths, links and sizes leads nowhere and costs no
// more than the bounds.
func TestHostileReport(t *testing.T) {
	outside := write(t, "secret", []byte("driver: stolen\nbus-info: 0000:00:00.0\n"))
	hostile := []hostfs.Entry{
		{Name: "sos_commands/networking/ip_-d_address",
			Content: []byte("2: eth0: <UP> mtu 1500\n3: ../../x: <UP> mtu 1\n4: a/b: <UP> mtu 1\n5: ..: <UP> mtu 1\n")},
		{Name: "sos_commands/networking/ethtool_-i_eth0", Target: outside},
		{Name: "sos_commands/networking/ethtool_-g_eth0", Target: "../../../../../../../../../../../" + outside},
		{Name: "sos_commands/networking/ethtool_-S_eth0", Target: "ethtool_-S_eth0"},
		{Name: "sos_commands/networking/ethtool_-l_eth0",
			Content: []byte("Current hardware settings:\nRX: 4294967295\nTX: 4294967295\nCombined: 4294967295\n")},
		{Name: "sys/class/net/eth0", Target: "../../../../etc"},
		{Name: "proc/sys/kernel/hostname", Target: "/etc/hostname"},
		{Name: "sys/class/net/eth1", Target: "eth2"}, {Name: "sys/class/net/eth2", Target: "eth1"},
		{Name: "sos_commands/pci/lspci",
			Content: []byte("00:01.0 X [0604]: Y [8086:0c01]\n\tBus: primary=00, secondary=01\n" +
				"01:00.0 X [0604]: Y [8086:0c02]\n\tBus: primary=01, secondary=00\n")},
		{Name: "../../../tmp/escaped", Content: []byte("x")}, {Name: "/absolute", Content: []byte("x")},
		{Name: "proc/" + strings.Repeat("9", 2000) + "/status", Content: []byte("Name: x\n")},
	}
	dir := t.TempDir()
	unpacked(t, dir, slices.DeleteFunc(slices.Clone(hostile),
		func(e hostfs.Entry) bool { return strings.HasPrefix(e.Name, "../") || len(e.Name) > 1000 }))
	for _, name := range []string{dir, write(t, "a.tar", tarred(t, "a/", hostile))} {
		r, err := Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Root().Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Interfaces) != 1 || s.Interfaces[0].Driver != "" || s.Interfaces[0].Rings != nil || s.Name != "" ||
			len(s.Interfaces[0].Queues) > 8192 {
			t.Errorf("%s: %+v", name, s)
		}
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, `"../../x"`) }) {
			t.Errorf("%s: nothing is said of a name that is none: %q", name, r.Warnings)
		}
	}
}

// One file too many, one byte too many: a report ends, a file is left out.
func TestBounds(t *testing.T) {
	c := newCollector()
	if err := c.file("proc/stat", maxFile+1, strings.NewReader("x")); err != nil || len(c.entries) != 0 ||
		len(c.said.list) != 1 {
		t.Errorf("a file that says it is large: %v %v %q", err, c.entries, c.said.list)
	}
	endless := &repeated{left: maxFile + 1}
	if err := c.file("proc/stat", 1, endless); err != nil || len(c.entries) != 0 || len(c.said.list) != 2 {
		t.Errorf("a file that is large: %v, %d entries, %q", err, len(c.entries), c.said.list)
	}
	c.bytes = maxBytes
	if err := c.file("proc/stat", 1, strings.NewReader("x")); !errors.Is(err, ErrFormat) {
		t.Errorf("too many bytes: %v", err)
	}
	c = newCollector()
	for i := range maxEntries {
		if err := c.link(fmt.Sprint("proc/net/", i), "x"); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := c.link("proc/stat", "x"); !errors.Is(err, ErrFormat) {
		t.Errorf("too many entries: %v", err)
	}
	b := bounded{in: &repeated{left: 100}, left: 10}
	if n, err := b.Read(make([]byte, 100)); n != 10 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, ErrFormat) {
		t.Errorf("too long a stream: %v", err)
	}
}

// repeated gives as many bytes as are left.
type repeated struct{ left int }

func (r *repeated) Read(p []byte) (int, error) {
	n := min(len(p), r.left)
	r.left -= n
	if n == 0 {
		return 0, fs.ErrClosed
	}
	return n, nil
}

// What a report lacks is said and is no failure.
func TestPoorReport(t *testing.T) {
	r := collected(t, []hostfs.Entry{{Name: "sos_commands/networking/ip_-o_addr",
		Content: []byte("1: lo    inet 127.0.0.1/8 scope host lo\n")},
		{Name: "proc/cpuinfo", Content: []byte("processor : 0\n")}})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Interfaces) != 1 || s.Interfaces[0].Addresses[0] != "127.0.0.1/8" || !s.Time.IsZero() {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"settings: not there", "counters of /proc/net/snmp: not there",
		"the report has no time of its making", "queueing disciplines"} {
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("no warning with %q: %q", want, r.Warnings)
		}
	}
}

// Sixteen virtual functions have counters of their own, which are not the card's. A bond that ip
// did not list is still what the card is a port of.
func TestPoorListing(t *testing.T) {
	r := collected(t, []hostfs.Entry{{Name: "sos_commands/networking/ip_-s_-d_link", Content: []byte(
		`4: ens1f1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP mode DEFAULT
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    RX:  bytes packets errors dropped  missed   mcast
       5555555   44444      0      67       0       5
    TX:  bytes packets errors dropped carrier collsns
       4444444   33333      0       0       0       0
    vf 15     link/ether 02:00:00:00:00:77 brd ff:ff:ff:ff:ff:ff, spoof checking on
    RX: bytes  packets  mcast   bcast   dropped
    110000     1000     500     50      192865
5: v7@eth9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    vlan protocol 802.1Q id 7
6: sit0@NONE: <NOARP> mtu 1480 qdisc noop state DOWN
    link/sit 0.0.0.0 brd 0.0.0.0
`)}})
	s, err := r.Root().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	card, vlan, tunnel := s.Interfaces[0], s.Interfaces[1], s.Interfaces[2]
	if n := card.Counters["rx_dropped"]; n != 67 || card.Counters["rx_packets"] != 44444 {
		t.Errorf("the card dropped %d: %v", n, card.Counters)
	}
	if !slices.Equal(card.Above, []string{"bond0"}) || !slices.Equal(vlan.Below, []string{"eth9"}) ||
		len(tunnel.Below) > 0 || len(vlan.Carriers) > 0 {
		t.Errorf("layers %+v, %+v, %+v", card.Layers, vlan.Layers, tunnel.Layers)
	}
	for _, want := range []string{"interface bond0: not there", "interface eth9: not there"} {
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("no warning with %q: %q", want, r.Warnings)
		}
	}
}

// Newer versions of sos copy the link that /proc/net is, and what is behind it into the directory
// of their own process. Tables that are missing there go there too.
func TestLinkedTables(t *testing.T) {
	r := collected(t, []hostfs.Entry{
		{Name: "proc/net", Target: "self/net"}, {Name: "proc/self", Target: "4711"},
		{Name: "proc/4711/net/snmp", Content: []byte("Tcp: RetransSegs\nTcp: 7\n")},
		{Name: "sos_commands/networking/nstat_-zas",
			Content: []byte("#kernel\nTcpRetransSegs 99 0.0\nTcpExtTCPTimeouts 3 0.0\n")},
		{Name: "proc/4711/status", Content: []byte("Name:\ttuned\n")},
	})
	c, err := r.Root().Counters()
	if err != nil {
		t.Fatal(err)
	}
	if c.Values["Tcp.RetransSegs"] != 7 || c.Values["TcpExt.TCPTimeouts"] != 3 {
		t.Errorf("counters %v", c.Values)
	}
	// Some who pack a report anew lose the links.
	r = collected(t, []hostfs.Entry{
		{Name: "proc/4711/net/snmp", Content: []byte("Tcp: RetransSegs\nTcp: 7\n")},
		{Name: "proc/4711/net/dev", Content: []byte("a\nb\n  lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")},
		{Name: "proc/4711/status", Content: []byte("Name:\ttuned\n")},
	})
	if c, err = r.Root().Counters(); err != nil || c.Values["Tcp.RetransSegs"] != 7 ||
		c.Values["nic.lo.tx_bytes"] != 9 {
		t.Errorf("without links: %+v %v", c, err)
	}
	s, err := r.Root().Snapshot(t.Context())
	if err != nil || len(s.Owners) != 1 || s.Owners[0].Name != "tuned" {
		t.Errorf("owners %+v, %v", s.Owners, err)
	}
}

// Where ethtool did not run, the link of an interface in /sys/class/net shows the kind of its card:
// the card of a Hyper-V guest is on VMBus.
func TestBusOfTheLink(t *testing.T) {
	address := hostfs.Entry{Name: "sos_commands/networking/ip_-d_address",
		Content: []byte("2: eth0: <UP,LOWER_UP> mtu 1500 qdisc mq state UP\n" +
			"    link/ether 00:15:5d:b7:25:12 brd ff:ff:ff:ff:ff:ff\n")}
	for target, want := range map[string]string{
		"../../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/d21ff526-bca3-4828-bb22-07322cfd6f93/net/eth0": "vmbus",
		"../../devices/vif-0/net/eth0": "xen", "../../devices/pci0000:00/0000:00:03.0/net/eth0": "pci",
		"../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0":          "virtio",
		"../../devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/net/eth0": "usb",
	} {
		s, err := collected(t, []hostfs.Entry{address, {Name: "sys/class/net/eth0", Target: target}}).Root().Snapshot(
			t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if dev := s.Interfaces[0]; dev.Virtual || dev.Bus == nil || dev.Bus.Kind != want {
			t.Errorf("%s: %+v, bus %+v, want %s", target, dev, dev.Bus, want)
		}
	}
	s, err := collected(t,
		[]hostfs.Entry{address, {Name: "sys/class/net/eth0", Target: "../../devices/virtual/net/eth0"}}).
		Root().Snapshot(t.Context())
	if err != nil || !s.Interfaces[0].Virtual {
		t.Errorf("software: %+v %v", s.Interfaces, err)
	}
}

// The moment and the age of a host follow from whichever two of date, uptime and the kernel's own
// file there are.
func TestMoments(t *testing.T) {
	const stat, up = "cpu 1 2 3 4\nbtime 1700000000\n", " 22:13:20 up 41 days, 0:00,  1 user,"
	for name, files := range map[string]map[string]string{
		"boot and uptime": {"proc/stat": stat, "sos_commands/host/uptime": up},
		"boot and /proc":  {"proc/stat": stat, "proc/uptime": "3542400.00 1.0\n"},
		"date and boot":   {"proc/stat": stat, "sos_commands/date/date_--utc": "Mon Dec 25 22:13:20 UTC 2023\n"},
		"date and uptime": {"sos_commands/general/date": "Mon Dec 25 22:13:20 UTC 2023\n",
			"sos_commands/general/uptime": up},
		"links at the top": {"date": "Mon Dec 25 22:13:20 UTC 2023\n", "uptime": up},
	} {
		var entries []hostfs.Entry
		for name, content := range files {
			entries = append(entries, hostfs.Entry{Name: name, Content: []byte(content)})
		}
		entries = append(entries, hostfs.Entry{Name: "proc/cpuinfo", Content: []byte("processor : 0\n")})
		s, err := collected(t, entries).Root().Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if age, ok := s.Uptime(); !ok || age.Hours() != 41*24 {
			t.Errorf("%s: up %v %v: %v, booted %v", name, age, ok, s.Time, s.BootTime)
		}
	}
}
