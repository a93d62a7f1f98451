package sosreport

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// address is one entry of linerate/addresses.json.
type address struct {
	Index int    `json:"index"`
	CIDR  string `json:"cidr"`
}

// card is one interface of linerate/ethtool.json.
type card struct {
	Driver          string                  `json:"driver,omitempty"`
	Bus             string                  `json:"bus,omitempty"`
	SpeedBitsPerSec float64                 `json:"speed_bits_per_second,omitempty"`
	Duplex          string                  `json:"duplex,omitempty"`
	Rings           *host.Rings             `json:"rings,omitempty"`
	Coalesce        map[string]uint32       `json:"coalesce,omitempty"`
	Features        map[string]host.Feature `json:"features,omitempty"`
	Channels        *host.Channels          `json:"channels,omitempty"`
	Statistics      map[string]uint64       `json:"statistics,omitempty"`
	Card            *host.Card              `json:"card,omitempty"`
}

// archive derives what the report does not hold as files of the kernel.
func (s *source) archive(ctx context.Context) ([]hostfs.Entry, error) {
	if s.process != "" {
		s.putLink("proc/self", s.process)
	}
	// In order of need: later steps look up what earlier ones derive.
	s.settings()
	s.counters()
	now, boot := s.moments()
	if now.IsZero() {
		s.say("the report has no time of its making (date, uptime)")
	} else {
		s.write("host.json", map[string]time.Time{"time": now})
	}
	if !boot.IsZero() {
		// The only known line of the file; without the others the CPU times are not known.
		s.put("proc/stat", "btime "+strconv.FormatInt(boot.Unix(), 10)+"\n")
	}
	s.processes()
	s.firmware()

	links := s.links()
	cards := make(map[string]card, len(links))
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := s.card(l.Name)
		cards[l.Name] = c
		if l.Totals == nil && !s.net("dev") {
			l.Totals = totalsOf(c.Statistics)
		}
	}
	devices := printed.ParsePCI(s.output("lspci -nnvv", "lspci -nvv", "lspci"))
	s.pci(devices)
	// A partial result is used; package host reports errors.
	interrupts, _ := procfs.ParseInterrupts([]byte(s.text("proc/interrupts")))
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := cards[l.Name]
		s.sysfs(l, &c, devices, interrupts)
		cards[l.Name] = c
	}
	s.devices(links)
	if len(s.nameless) > 0 {
		s.say("drivers: not there: ethtool -i of " + some(s.nameless))
	}
	s.netlink(links, cards)
	// Kernels with the module list their bonds here, the only place where a reading of the counters
	// looks.
	var bonds []string
	for _, l := range links {
		if l.Kind == "bond" {
			bonds = append(bonds, l.Name)
		}
	}
	s.value("sys/class/net/bonding_masters", strings.Join(bonds, " "))
	return s.made, nil
}

// netlink writes what netlink would have reported.
func (s *source) netlink(links []*printed.Link, cards map[string]card) {
	if len(links) > 0 {
		var addresses []address
		for _, l := range links {
			for _, a := range l.Addresses {
				addresses = append(addresses, address{l.Index, a})
			}
		}
		s.write("links.json", links)
		s.write("addresses.json", addresses)
		s.write("ethtool.json", cards)
	} else {
		s.say("interfaces: not there: ip address and ip link printed nothing, " +
			"so cards, links and addresses are not known")
	}
	// Without a named table ip shows both versions of IP; the output shows whether it did.
	routes := printed.ParseRoutes(s.output("ip route show table all", "ip route show"), false)
	if !slices.ContainsFunc(routes, func(r host.Route) bool { return strings.Contains(r.Destination, ":") }) {
		routes = append(routes, printed.ParseRoutes(s.output("ip -6 route show table all"), true)...)
	}
	if len(routes) > 0 {
		s.write("routes.json", routes)
	}
	if qdiscs := printed.ParseQdiscs(s.output("tc -s qdisc show")); len(qdiscs) > 0 {
		s.write("qdiscs.json", qdiscs)
	} else {
		s.say("queueing disciplines: not there: tc -s qdisc show")
	}
}

// write writes one file of the linerate directory. A report has no file of that name: wanted does
// not accept it.
func (s *source) write(name string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.say(fmt.Sprintf("%s: %v", name, err)) // A type that cannot be marshalled; contents never cause this.
		return
	}
	s.put("linerate/"+name, string(b)+"\n")
}

// settings adds those of sysctl -a that the copy of /proc/sys lacks, with the names of host, kernel
// and boot.
func (s *source) settings() {
	all := printed.ParseSysctls(s.output("sysctl -a"))
	// The rest (dev, fs, user, …) does not concern a network, and some reports have thousands of
	// lines.
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if first, _, _ := strings.Cut(name, "/"); first == "net" || first == "vm" || first == "kernel" {
			s.put("proc/sys/"+name, all[name]+"\n")
		}
	}
	name, release, machine := printed.ParseUname(s.output("uname -a", "uname"))
	if plain := strings.TrimSpace(s.output("hostname")); plain != "" && !strings.ContainsAny(plain, "\n ") {
		name = plain
	}
	s.value("proc/sys/kernel/hostname", name)
	s.value("proc/sys/kernel/osrelease", release)
	s.value("proc/sys/kernel/arch", machine) // A file only since Linux 6.1.
	if !s.kernel("proc/sys/net/ipv4/tcp_rmem") {
		s.say("settings: not there: neither /proc/sys nor sysctl -a")
	}
}

// counters adds the tables of protocols that the copy of /proc/net lacks.
func (s *source) counters() {
	found := printed.ParseNstat(s.output("nstat -zas"))
	if len(found) == 0 {
		found = printed.ParseNetstat(s.output("netstat -s"))
	}
	tables := found.Tables()
	// Newer versions of sos keep it as a link to the directory of the process that copied it.
	dir, ok := s.resolve("proc/net")
	if !ok {
		dir = "proc/net"
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if !s.net(name) {
			s.put(dir+"/"+name, tables[name])
		}
	}
	for _, name := range []string{"snmp", "netstat", "softnet_stat"} {
		if !s.net(name) && !s.has[dir+"/"+name] {
			s.say("counters of /proc/net/" + name + ": not there")
		}
	}
}

// totalsOf returns the totals that a driver has under the kernel's own names; nil: it names them
// otherwise. Those of errors and drops are left out, which drivers count differently.
func totalsOf(statistics map[string]uint64) map[string]uint64 {
	totals := make(map[string]uint64)
	for _, name := range []string{"rx_bytes", "rx_packets", "tx_bytes", "tx_packets"} {
		n, ok := statistics[name]
		if !ok {
			return nil
		}
		totals[name] = n
	}
	return totals
}

// devices makes /proc/net/dev of the totals that ip -s showed, or the driver counted. Two of its
// columns have no place in them, and are zero: the packets that overflowed (fifo), which the others
// include, and compressed ones. Those of a driver have no errors either, which ethtool -S counts.
func (s *source) devices(links []*printed.Link) {
	if s.net("dev") {
		return
	}
	var b strings.Builder
	for _, l := range links {
		if t := l.Totals; t != nil {
			fmt.Fprintf(&b, "%s: %d %d %d %d 0 0 0 %d %d %d %d %d 0 %d %d 0\n", l.Name, t["rx_bytes"], t["rx_packets"],
				t["rx_errors"], t["rx_dropped"]+t["rx_missed_errors"], t["multicast"], t["tx_bytes"], t["tx_packets"],
				t["tx_errors"], t["tx_dropped"], t["collisions"], t["tx_carrier_errors"])
		}
	}
	if b.Len() == 0 {
		s.say("counters of /proc/net/dev: not there")
		return
	}
	dir, ok := s.resolve("proc/net")
	if !ok {
		dir = "proc/net"
	}
	s.put(dir+"/dev", b.String())
}

// firmware writes what dmidecode prints about the machine as files of sysfs: it shows what a guest
// runs on.
func (s *source) firmware() {
	if s.any("sys/class/dmi/id/sys_vendor") {
		return
	}
	for name, value := range printed.ParseFirmware(s.output("dmidecode")) {
		s.value("sys/class/dmi/id/"+name, value)
	}
}

// processes writes the names of programs, which sos has in /proc/N/status, as /proc/N/comm.
func (s *source) processes() {
	entries, err := s.tree.ReadDir("proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if !number(e.Name()) {
			continue
		}
		first, _, _ := strings.Cut(s.text("proc/"+e.Name()+"/status"), "\n")
		if name, ok := strings.CutPrefix(first, "Name:"); ok {
			s.value("proc/"+e.Name()+"/comm", strings.TrimSpace(name))
		}
	}
}

// links merges what the forms of ip print about each interface, in the order of their numbers.
func (s *source) links() []*printed.Link {
	var all []*printed.Link
	byIndex := make(map[int]*printed.Link)
	leftOut := false
	// Three outputs about one thing, each with something that the others lack; of each the richest
	// form in the report.
	for _, commands := range [][]string{
		{"ip -d address", "ip address"}, {"ip -s -d link", "ip -d link", "ip -s link", "ip link"},
		{"ip -o addr", "ip_addr"},
	} {
		text := s.output(commands...)
		// iproute2 before 3.6 read 16 KiB at a time, less than a card with many virtual functions has.
		if strings.Contains(text, "Message truncated\n") {
			s.say(commands[0] + ": incomplete: ip says \"Message truncated\", and may lack interfaces")
		}
		for _, l := range printed.ParseLinks(text) {
			switch known, ok := byIndex[l.Index]; {
			case !ok && len(all) >= host.MaxInterfaces:
				leftOut = true
			case !namesInterface(l.Name):
				s.say(fmt.Sprintf("interface %.40q: left out: not a valid name for the kernel", l.Name))
			case !ok:
				byIndex[l.Index] = l
				all = append(all, l)
			default:
				merge(known, l)
			}
		}
	}
	if leftOut {
		s.say(fmt.Sprintf("more than %d interfaces: the rest is left out", host.MaxInterfaces))
	}
	byName := make(map[string]*printed.Link, len(all))
	for _, l := range all {
		byName[l.Name] = l
	}
	s.bonds(all, byName)
	// Names become numbers once all interfaces are known: a bond follows its members.
	for _, l := range all {
		l.MasterIndex, l.MasterName = s.refer(byName, l, l.Master)
		l.ParentIndex, l.ParentName = s.refer(byName, l, l.Peer)
	}
	sorting.StableFunc(all, func(a, b *printed.Link) int { return a.Index - b.Index })
	return all
}

// bonds adds what /proc/net/bonding has: kernels before 2.6.39 and outputs without -d have no kind
// of a bond, nor its mode.
func (s *source) bonds(all []*printed.Link, byName map[string]*printed.Link) {
	for _, l := range all {
		if l.Kind != "" && l.Kind != "bond" {
			continue
		}
		mode, members := printed.ParseBond(s.netText("bonding/" + l.Name))
		if mode == "" {
			continue
		}
		l.Kind, l.BondMode = "bond", cmp.Or(l.BondMode, mode)
		for _, name := range members {
			if m, ok := byName[name]; ok && m != l && m.Master == "" {
				m.Master = l.Name
			}
		}
	}
}

// namesInterface reports whether the kernel accepts a name (dev_valid_name); the name is an element
// of a path as well.
func namesInterface(name string) bool {
	// The kernel allows any bytes, but JSON would replace those that are no text.
	return name != "" && name != "." && name != ".." && len(name) < 16 && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "/: \t\x00\\")
}

// refer returns the interface that another one names: its number, or its name where the report has
// no such interface, because its commands were cut or lost. ip prints "if7" for an interface of
// another network namespace, and NONE for a tunnel without a lower interface.
func (s *source) refer(byName map[string]*printed.Link, of *printed.Link, name string) (index int, absent string) {
	if l, ok := byName[name]; ok {
		return l.Index, ""
	}
	if number, ok := strings.CutPrefix(name, "if"); ok {
		if n, err := strconv.Atoi(number); err == nil {
			return max(n, 0), ""
		}
	}
	if name == "NONE" || !namesInterface(name) {
		return 0, ""
	}
	s.say(fmt.Sprintf("interface %s: not there: %s names it, and the output of ip lacks it", name, of.Name))
	return 0, name
}

// merge adds to an interface what another output has about it.
func merge(l, more *printed.Link) {
	if l.MTUBytes == 0 { // A form without heads, such as ip -o, lacks everything in a head.
		addresses, totals := l.Addresses, l.Totals
		*l = *more
		l.Addresses, l.Totals = addresses, totals
	}
	if l.Kind == "" {
		l.Kind, l.VLANID, l.VLANProtocol, l.BondMode = more.Kind, more.VLANID, more.VLANProtocol, more.BondMode
	}
	l.Ethernet, l.Detailed = l.Ethernet || more.Ethernet, l.Detailed || more.Detailed
	if l.MAC == "" {
		l.MAC = more.MAC
	}
	if l.ParentDev == "" {
		l.ParentDev = more.ParentDev
	}
	if l.Totals == nil {
		l.Totals = more.Totals
	}
	if len(l.Addresses) == 0 {
		l.Addresses = more.Addresses
	}
}

// card reads what ethtool printed about one interface.
func (s *source) card(name string) card {
	option := func(o string) string { return s.output("ethtool " + o + " " + name) }
	d, link := printed.ParseDriver(option("-i")), printed.ParseSettings(s.output("ethtool "+name))
	c := card{
		Driver: d.Name, Bus: d.Bus, SpeedBitsPerSec: link.SpeedBitsPerSec, Duplex: link.Duplex,
		Rings:    printed.ParseRings(option("-g")),
		Coalesce: printed.ParseCoalesce(option("-c")),
		Features: printed.ParseFeatures(option("-k")), Channels: printed.ParseChannels(option("-l")),
		Statistics: printed.ParseStatistics(option("-S")),
	}
	// For software, package host ignores all of this. sysfs may know hardware better than a driver
	// that does not report its bus.
	c.Card = &host.Card{
		FirmwareVersion: d.Firmware, DriverVersion: d.Version, Pause: printed.ParsePause(option("-a")),
		EEE:          printed.ParseEEE(option("--show-eee")),
		FEC:          printed.ParseFEC(option("--show-fec")),
		PrivateFlags: printed.ParsePrivateFlags(option("--show-priv-flags")),
		PermanentMAC: printed.ParsePermanent(option("-P")), Port: link.Port, Modes: link.Modes,
		Optic: printed.ParseModule(option("-m")),
	}
	return c
}
