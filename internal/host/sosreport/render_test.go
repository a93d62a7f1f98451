package sosreport

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// facts is what a capture holds of netlink, for the writers below.
type facts struct {
	Time      time.Time
	Arch      string
	links     []*printed.Link
	addresses []address
	routes    []host.Route
	cards     map[string]card
	qdiscs    []printed.Qdisc
}

// readFacts reads the linerate directory of a capture.
func readFacts(t testing.TB, fsys fs.FS) facts {
	t.Helper()
	var out facts
	for name, into := range map[string]any{
		"host.json": &out, "links.json": &out.links, "addresses.json": &out.addresses, "routes.json": &out.routes,
		"ethtool.json": &out.cards, "qdiscs.json": &out.qdiscs,
	} {
		b, err := fs.ReadFile(fsys, "linerate/"+name)
		if err != nil {
			continue
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

// age is a generation of sos: what it copies, and how its commands are called.
type age int

const (
	sos4 age = iota // copies /proc/sys, links of /sys/class/net with statistics, processors
	// copies no /sys, has date and hostname in general, and its files of /proc are those of a
	// restricted run: settings and tables as text
	sos3
)

// render writes the report that sos makes of a host. It is the inverse of everything that this
// package does, in the words of the tools (their versions: Debian 12 for sos4, RHEL 7 for sos3).
func render(t testing.TB, fsys fs.ReadLinkFS, a age) []hostfs.Entry {
	t.Helper()
	h := readFacts(t, fsys)
	if h.routes == nil {
		s, err := host.Root{FS: fsys}.Snapshot(t.Context()) // A host without netlink facts has those of /proc.
		if err != nil {
			t.Fatal(err)
		}
		h.routes = s.Routes
	}
	files := make(map[string]string)
	var entries []hostfs.Entry
	read := func(name string) string {
		b, _ := fs.ReadFile(fsys, name) // Not captured: not reported.
		return string(b)
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || !copied(name, a) {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := fs.ReadLink(fsys, name)
			entries = append(entries, hostfs.Entry{Name: name, Target: target})
			return err
		}
		files[name] = read(name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	general := "sos_commands/host/"
	if a == sos3 {
		general = "sos_commands/general/"
	}
	files[general+"hostname"] = read("proc/sys/kernel/hostname")
	machine := map[string]string{"amd64": "x86_64", "386": "i686", "arm64": "aarch64"}[h.Arch]
	files["sos_commands/kernel/uname_-a"] = fmt.Sprintf("Linux %s %s #1 SMP Thu Jan 1 00:00:00 UTC 1970 %s GNU/Linux\n",
		strings.TrimSpace(read("proc/sys/kernel/hostname")),
		strings.TrimSpace(read("proc/sys/kernel/osrelease")), machine)
	entries = append(entries, hostfs.Entry{Name: "uname", Target: "sos_commands/kernel/uname_-a"})
	if a == sos3 {
		files[general+"date"] = h.Time.UTC().Format("Mon Jan _2 15:04:05 MST 2006") + "\n"
	} else {
		files["sos_commands/date/date"] = "Thu Jan  1 01:00:00 CET 1970\n"
		files["sos_commands/date/date_--utc"] = h.Time.UTC().Format("Mon Jan _2 15:04:05 MST 2006") + "\n"
	}
	if a == sos3 {
		files["sos_commands/kernel/sysctl_-a"] = renderSysctls(t, fsys)
		files["sos_commands/networking/netstat_-s"] = ""
		files["sos_commands/networking/nstat_-zas"] = renderNstat(read("proc/net/snmp"), read("proc/net/netstat"),
			read("proc/net/snmp6"))
	}
	networking := func(command, text string) { files["sos_commands/networking/"+mangle(command)] = text }
	networking("ip -d address", renderAddresses(h))
	networking("ip -s -d link", renderLinks(h, func(name, statistic string) string {
		if n := strings.TrimSpace(read("sys/class/net/" + name + "/statistics/" + statistic)); n != "" {
			return n
		}
		return "0"
	}))
	networking("ip -o addr", renderShort(h))
	networking("ip route show table all", renderRoutes(h.routes))
	networking("tc -s qdisc show", renderQdiscs(h.qdiscs))
	for _, name := range slices.Sorted(maps.Keys(h.cards)) {
		c := h.cards[name]
		networking("ethtool "+name, renderSettings(name, c))
		networking("ethtool -i "+name, renderDriver(c))
		networking("ethtool -S "+name, renderStatistics(c))
		networking("ethtool -g "+name, renderRings(name, c))
		networking("ethtool -l "+name, renderChannels(name, c))
		networking("ethtool -c "+name, renderCoalesce(name, c))
		networking("ethtool -k "+name, renderFeatures(name, c))
		renderCard(networking, name, c)
	}
	files["sos_commands/pci/lspci_-nnvv"] = renderPCI(fsys)
	_ = fs.WalkDir(fsys, "sys/devices", func(name string, d fs.DirEntry, err error) error {
		if address := path.Base(path.Dir(name)); path.Base(name) == "config" && isPCIAddress(address) {
			files["proc/bus/pci/"+address[5:7]+"/"+address[8:]] = read(name)
		}
		return err
	})
	files["sos_commands/hardware/dmidecode"] = renderFirmware(read)
	for name, text := range files {
		entries = append(entries, hostfs.Entry{Name: name, Content: []byte(text)})
	}
	entries = append(entries, hostfs.Entry{Name: "version.txt", Content: []byte("sosreport: 4.8.2\n")})
	return entries
}

// copied reports whether sos copies a file (its plugins kernel, hardware, memory, networking,
// process, processor, system).
func copied(name string, a age) bool {
	if a == sos3 {
		return slices.Contains([]string{
			"proc/cpuinfo", "proc/stat", "proc/meminfo", "proc/interrupts", "proc/net/dev", "proc/net/softnet_stat",
			"proc/net/sockstat", "proc/mounts",
			"proc/net/stat/arp_cache", "proc/net/stat/ndisc_cache", "proc/softirqs", "proc/pressure/cpu",
			"proc/pressure/memory", "proc/pressure/irq",
		}, name) || strings.HasPrefix(name, "proc/irq/") || strings.HasPrefix(name, "sys/devices/system/")
	}
	switch {
	case strings.HasPrefix(name, "proc/"):
		return true
	case path.Dir(name) == "sys/class/net", strings.Contains(name, "/dmi/id"),
		strings.HasPrefix(name, "sys/devices/system/"):
		return true
	case strings.HasPrefix(name, "sys/devices/"):
		return strings.Contains(name, "/net/") &&
			(path.Base(name) == "flags" || path.Base(path.Dir(name)) == "statistics" || path.Base(name) == "device") ||
			path.Base(name) == "numa_node"
	}
	return false
}

func renderSysctls(t testing.TB, fsys fs.FS) string {
	var b strings.Builder
	err := fs.WalkDir(fsys, "proc/sys", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		dotted := strings.NewReplacer("/", ".", ".", "/").Replace(strings.TrimPrefix(name, "proc/sys/"))
		for line := range strings.Lines(string(content)) {
			fmt.Fprintf(&b, "%s = %s\n", dotted, strings.TrimRight(line, "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func renderNstat(snmp, netstat, snmp6 string) string {
	b := "#kernel\n"
	all := append(strings.Split(strings.TrimSpace(snmp), "\n"), strings.Split(strings.TrimSpace(netstat), "\n")...)
	for i := 0; i+1 < len(all); i += 2 {
		names, numbers := strings.Fields(all[i]), strings.Fields(all[i+1])
		for j := 1; j < len(names) && j < len(numbers); j++ {
			// nstat leaves out what does not count up (useless_numbers).
			switch name := strings.TrimSuffix(names[0], ":") + names[j]; name {
			case "IpForwarding", "IpDefaultTTL", "TcpRtoAlgorithm", "TcpRtoMin", "TcpRtoMax", "TcpMaxConn",
				"TcpCurrEstab":
			default:
				b += fmt.Sprintf("%-32s%-16s 0.0\n", name, numbers[j])
			}
		}
	}
	for line := range strings.Lines(snmp6) {
		words := strings.Fields(line)
		b += fmt.Sprintf("%-32s%-16s 0.0\n", words[0], words[1])
	}
	return b
}

// head is the first line of an interface, with the words that ip link and ip address put in front
// of its group.
func head(h facts, l *printed.Link, mode string) string {
	name, flags, state, master := l.Name, []string{"BROADCAST", "MULTICAST"}, "UNKNOWN", ""
	for _, other := range h.links {
		if l.ParentIndex == other.Index && l.ParentIndex != 0 {
			name += "@" + other.Name
		}
		if l.MasterIndex == other.Index && l.MasterIndex != 0 {
			master = " master " + other.Name
		}
	}
	if l.ParentIndex != 0 && !strings.Contains(name, "@") {
		name += fmt.Sprintf("@if%d", l.ParentIndex)
	}
	if l.Name == "lo" {
		flags = []string{"LOOPBACK"}
	}
	if l.Up && !l.Carrier {
		flags = append([]string{"NO-CARRIER"}, flags...)
	}
	if l.Up {
		flags = append(flags, "UP")
	}
	if l.Carrier {
		flags = append(flags, "LOWER_UP")
		state = "UP"
	}
	qlen := ""
	if l.TxQueueLen > 0 {
		qlen = fmt.Sprintf(" qlen %d", l.TxQueueLen)
	}
	qdisc := ""
	if l.Qdisc != "" {
		qdisc = " qdisc " + l.Qdisc
	}
	return fmt.Sprintf("%d: %s: <%s> mtu %d%s%s state %s %sgroup default%s\n", l.Index, name, strings.Join(flags, ","),
		l.MTUBytes, qdisc, master, state, mode, qlen)
}

// detail are the lines that -d adds.
func detail(l *printed.Link) string {
	kind := "ether"
	mac := l.MAC + " brd ff:ff:ff:ff:ff:ff"
	switch {
	case l.Name == "lo":
		kind, mac = "loopback", "00:00:00:00:00:00 brd 00:00:00:00:00:00"
	case l.MAC == "":
		kind, mac = "none", ""
	}
	text := fmt.Sprintf("    link/%s %s promiscuity 0  allmulti 0 minmtu 68 maxmtu 9000 ", kind, mac)
	numbers := "numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535 gro_max_size 65536 \n"
	switch l.Kind {
	case "":
		return text + numbers
	case "vlan":
		return text + fmt.Sprintf("\n    vlan protocol %s id %d <REORDER_HDR> addrgenmode eui64 ", l.VLANProtocol,
			l.VLANID) + numbers
	case "bond":
		return text + "\n    bond mode " + l.BondMode + " miimon 100 updelay 0 downdelay 0 use_carrier 1 " + numbers
	}
	return text + "\n    " + l.Kind + " addrgenmode eui64 " + numbers
}

func renderAddresses(h facts) string {
	var b strings.Builder
	for _, l := range h.links {
		b.WriteString(head(h, l, "") + detail(l))
		for _, a := range h.addresses {
			if a.Index == l.Index {
				b.WriteString("    " + inet(a.CIDR) + " scope global " + l.Name +
					"\n       valid_lft forever preferred_lft forever\n")
			}
		}
	}
	return b.String()
}

func inet(cidr string) string {
	if strings.Contains(cidr, ":") {
		return "inet6 " + cidr
	}
	return "inet " + cidr
}

func renderLinks(h facts, statistic func(name, statistic string) string) string {
	var b strings.Builder
	for _, l := range h.links {
		b.WriteString(head(h, l, "mode DEFAULT ") + detail(l))
		b.WriteString("    RX:  bytes packets errors dropped  missed   mcast           \n    ")
		for _, name := range []string{"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_missed_errors",
			"multicast"} {
			fmt.Fprintf(&b, "%8s", " "+statistic(l.Name, name))
		}
		b.WriteString(" \n    TX:  bytes packets errors dropped carrier collsns           \n    ")
		for _, name := range []string{"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_carrier_errors",
			"collisions"} {
			fmt.Fprintf(&b, "%8s", " "+statistic(l.Name, name))
		}
		b.WriteString(" \n")
	}
	return b.String()
}

func renderShort(h facts) string {
	var b strings.Builder
	for _, a := range h.addresses {
		for _, l := range h.links {
			if a.Index == l.Index {
				fmt.Fprintf(&b, "%d: %s    %s scope global %s\\       valid_lft forever preferred_lft forever\n",
					l.Index, l.Name, inet(a.CIDR), l.Name)
			}
		}
	}
	return b.String()
}

// renderRoutes writes routes of both versions of IP, and among them such as are not asked for.
func renderRoutes(routes []host.Route) string {
	var four, six strings.Builder
	for _, r := range routes {
		b := &four
		if strings.Contains(r.Destination, ":") {
			b = &six
		}
		b.WriteString(strings.TrimSuffix(strings.TrimSuffix(strings.Replace(r.Destination, "::/0", "default", 1),
			"/32"), "/128"))
		word := func(key string, value any) {
			if value != "" && value != 0 && value != false {
				fmt.Fprintf(b, " %s %v", key, value)
			}
		}
		via := r.Gateway
		if strings.Contains(via, ":") && b == &four {
			via = "inet6 " + via
		}
		word("via", via)
		word("dev", r.Interface)
		if r.Protocol != "boot" {
			word("proto", r.Protocol)
		}
		if r.Gateway == "" && b == &four {
			word("scope", "link")
		}
		word("src", r.Source)
		word("metric", r.Priority)
		if slices.Contains(r.Locked, "mtu_lock") {
			word("mtu lock", r.MTUBytes)
		} else {
			word("mtu", r.MTUBytes)
		}
		word("advmss", r.AdvMSSBytes)
		word("window", r.WindowBytes)
		word("initcwnd", r.InitCwnd)
		if r.ECN {
			word("features", "ecn")
		}
		if r.RTOMinSec > 0 {
			word("rto_min lock", fmt.Sprintf("%.0fms", r.RTOMinSec*1e3))
		}
		word("initrwnd", r.InitRwnd)
		if r.Quickack {
			word("quickack", 1)
		}
		if slices.Contains(r.Locked, "congctl_lock") {
			word("congctl lock", r.Congestion)
		} else {
			word("congctl", r.Congestion)
		}
		if b == &six {
			word("pref", "medium")
		}
		b.WriteString(" \n")
	}
	return four.String() +
		"blackhole 198.51.100.128/25 \nlocal 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1 \n" +
		six.String() + "local ::1 dev lo table local proto kernel metric 0 pref medium\n"
}

func handleText(n uint32) string {
	if n&0xffff == 0 {
		return fmt.Sprintf("%x:", n>>16)
	}
	if n>>16 == 0 {
		return fmt.Sprintf(":%x", n)
	}
	return fmt.Sprintf("%x:%x", n>>16, n&0xffff)
}

func renderQdiscs(qdiscs []printed.Qdisc) string {
	var b strings.Builder
	for _, q := range qdiscs {
		place := "root refcnt 2"
		if q.Parent != nl.RootParent {
			place = "parent " + handleText(q.Parent)
		}
		fmt.Fprintf(&b, "qdisc %s %s dev %s %s ", q.Kind, handleText(q.Handle), q.Interface, place)
		if q.Kind == "fq_codel" && q.Parameters != nil {
			b.WriteString("limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 ")
		}
		fmt.Fprintf(&b, "\n Sent %d bytes %d pkt (dropped %d, overlimits %d requeues %d) \n backlog %db %dp requeues %d\n",
			q.Bytes, q.Packets, q.Drops, q.Overlimits, q.Requeues, q.BacklogBytes, q.BacklogPackets, q.Requeues)
	}
	return b.String()
}

// renderFirmware writes what dmidecode shows of the machine and its board.
func renderFirmware(read func(string) string) string {
	id := func(name string) string { return strings.TrimSpace(read("sys/class/dmi/id/" + name)) }
	return fmt.Sprintf("# dmidecode 3.4\nGetting SMBIOS data from sysfs.\n\n"+
		"Handle 0x0000, DMI type 0, 24 bytes\nBIOS Information\n\tVendor: %s\n\tVersion: 1\n\n"+
		"Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: %s\n\tProduct Name: %s\n\n"+
		"Handle 0x0200, DMI type 2, 8 bytes\nBase Board Information\n\tManufacturer: %s\n", id("bios_vendor"),
		id("sys_vendor"), id("product_name"), id("board_vendor"))
}

// renderPCI writes what lspci -nnvv shows of every function that a capture has the attributes of.
func renderPCI(fsys fs.FS) string {
	var b strings.Builder
	_ = fs.WalkDir(fsys, "sys/devices", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !isPCIAddress(path.Base(dir)) {
			return nil
		}
		file := func(name string) string {
			content, _ := fs.ReadFile(fsys, dir+"/"+name)
			return strings.TrimSpace(string(content))
		}
		id := func(vendor, device string) string {
			return fmt.Sprintf("[%s:%s]", strings.TrimPrefix(file(vendor), "0x"),
				strings.TrimPrefix(file(device), "0x"))
		}
		if file("vendor") == "" {
			return nil
		}
		fmt.Fprintf(&b, "%s Ethernet controller [0200]: Maker Model %s (rev 01)\n",
			strings.TrimPrefix(path.Base(dir), "0000:"), id("vendor", "device"))
		if file("subsystem_vendor") != "" {
			fmt.Fprintf(&b, "\tSubsystem: Maker Board %s\n", id("subsystem_vendor", "subsystem_device"))
		}
		if irq := file("irq"); irq != "" {
			fmt.Fprintf(&b, "\tInterrupt: pin A routed to IRQ %s\n", irq)
		}
		if node := file("numa_node"); node != "" && node != "-1" {
			fmt.Fprintf(&b, "\tNUMA node: %s\n", node)
		}
		// The bridge's own number of the bus below is that of the devices in its directory.
		below, _ := fs.ReadDir(fsys, dir)
		for _, e := range below {
			if isPCIAddress(e.Name()) {
				fmt.Fprintf(&b, "\tBus: primary=00, secondary=%s, subordinate=%s, sec-latency=0\n", e.Name()[5:7],
					e.Name()[5:7])
				break
			}
		}
		link := func(key, speed, width string) {
			if file(speed) != "" {
				fmt.Fprintf(&b, "\t\t%s:\tSpeed %s, Width x%s (ok)\n", key,
					strings.TrimSuffix(strings.Replace(file(speed), ".0 GT/s PCIe", "GT/s", 1), " PCIe"), file(width))
			}
		}
		link("LnkCap", "max_link_speed", "max_link_width")
		b.WriteString("\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+\n")
		link("LnkSta", "current_link_speed", "current_link_width")
		b.WriteString("\tKernel driver in use: some\n\n")
		return nil
	})
	return b.String()
}
