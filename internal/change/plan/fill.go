package plan

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
)

// candidateTable are the settings that roles may need; its head says how a line is read.
//
//go:embed candidates.txt
var candidateTable string

// tcpip is the registry key of the TCP/IP stack of Windows.
const tcpip = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`

// windowScaled is the largest window with the usual level of auto-tuning of Windows: a scale of 8
// bits.
const windowScaled = 65535 << 8

// table returns the word for the system in candidateTable.
func (s System) table() string {
	major := s.major()
	switch {
	case s.OS == advice.FreeBSD && major < 7:
		return "bsd5"
	case s.OS == advice.Windows && major < 6:
		return "xp"
	case (s.OS == advice.Solaris || s.OS == advice.Illumos) && major >= 11:
		return "ipadm"
	}
	return string(s.OS)
}

// candidates reads the lines of the table that concern the situation.
func (m *maker) candidates() []candidate {
	table, fill := m.System.table(), m.filler()
	holds := m.conditions()
	var all []candidate
	for _, line := range strings.Split(strings.TrimSpace(candidateTable), "\n") {
		f := strings.SplitN(line, "|", 6)
		if len(f) < 6 || f[0] != "*" && !contains(strings.Split(f[0], ","), table) || !m.Role.among(f[1]) {
			continue
		}
		if f[2] != "" {
			missing := false
			for _, c := range strings.Split(f[2], ",") {
				missing = missing || !holds[c]
			}
			if missing {
				continue
			}
		}
		if f[3] == "note" {
			m.note(fill(f[5]))
			continue
		}
		value, limit := strings.CutPrefix(f[4], ">")
		all = append(all, candidate{knob: fill(f[3]), value: fill(value), reason: fill(f[5]), cap: limit,
			need: strings.Contains(f[5], "{need}")})
	}
	return all
}

// among reports whether a word of the table means the role.
func (r Role) among(word string) bool {
	return word == "*" || word == string(r) || word == "buffers" && r.windows() || word == "forward" && r.forwards()
}

// conditions are the words of the third column that hold.
func (m *maker) conditions() map[string]bool {
	driver := strings.TrimRight(m.Interface, "0123456789")
	major := m.System.major()
	nconnect := m.System.Judged == nil || slices.Compare(m.System.Judged, advice.Release{5, 3}) >= 0 // nfs(5)
	return map[string]bool{
		"nconnect": nconnect, "no nconnect": !nconnect,
		"ring": m.RingMax > 0, "queues": m.Queues > 1,
		"10g": m.Link >= 10e9, "connections": m.Connections > 0, "mtu": m.MTU > 0,
		"long": m.RoundTrip.Milliseconds() >= 10, "13": major < 14, "aim": major >= 14, "5": major < 6, "6": major >= 6,
		"em": driver == "em", "other": driver != "em", "lowered": m.sizes.memory.Lowered, "old": m.System.old(),
		"nic":    m.Interface != "",
		"e1000g": m.Driver == "e1000g" || driver == "e1000g" || m.Interface == "" && m.System.table() == "solaris",
		"huge":   m.sizes.need > windowScaled, "heuristics": m.Present["netsh:tcp/heuristics"] == "enabled",
	}
}

// usualNIC are the interfaces that texts name where the situation has none.
var usualNIC = map[advice.OS]string{advice.Linux: "eth0", advice.FreeBSD: "em0", advice.Illumos: "net0",
	advice.Windows: "Ethernet"}

// nic is the interface of the situation, or the usual one.
func (m *maker) nic() string {
	usual := usualNIC[m.System.OS]
	if m.System.OS == advice.Solaris {
		usual = "net0"
		if m.System.major() < 11 {
			usual = "e1000g0"
		}
	}
	return cmp.Or(m.Interface, usual)
}

// filler returns the function that fills in the places of the table.
func (m *maker) filler() func(string) string {
	b, n := m.sizes.buffer, m.sizes.memory.Connections
	nic := m.nic()
	driver := strings.TrimRight(nic, "0123456789")
	entries := m.Connections * 2
	// MaxFrameSize of e1000g: a frame has 18 bytes more than its payload (e1000g.conf).
	class := "3"
	switch {
	case m.MTU <= 1500:
		class = "0"
	case m.MTU <= 4096-18:
		class = "1"
	case m.MTU <= 8192-18:
		class = "2"
	}
	bytes := func(b unit.Bytes) string { return strconv.FormatInt(int64(b), 10) }
	return strings.NewReplacer(
		"{rmem}", m.firstTwo("sysctl:net.ipv4.tcp_rmem"), "{wmem}", m.firstTwo("sysctl:net.ipv4.tcp_wmem"),
		"{buffer}", bytes(b), "{size}", b.String(), "{need}", m.sizes.need.String(), "{why}", m.sizes.why,
		// A buffer also pays for the mbuf of each cluster: kern.ipc.maxsockbuf × 2048 / 2304 is usable
		// (sb_max_adj in sys/kern/uipc_sockbuf.c).
		"{cap}", bytes(rounded(b*9/8)),
		"{clusters}", bytes(max(32768, b*unit.Bytes(n)*4/2048)), "{n}", strconv.Itoa(n),
		"{window}", bytes(b/1460*1460), // a multiple of the segment size (TcpWindowSize, Server 2003)
		"{burst}", bytes(burst(m.Link, 1<<20)), "{burst8}", bytes(burst(m.Link, 8<<20)),
		// Half of the data under way, in segments of 1448 bytes.
		"{segments}", bytes((m.perPath()/2+1447)/1448),
		"{system}", m.System.String(), "{carries}", carries(b/max(m.sizes.factor, 1), m.RoundTrip).String(),
		"{scaled}", carries(windowScaled, m.RoundTrip).String(),
		"{ring}", strconv.Itoa(m.RingMax), "{queues}", strconv.Itoa(m.Queues),
		"{mtu}", strconv.Itoa(m.MTU), "{frame}", strconv.Itoa(m.MTU+14),
		"{class}", class, "{nic}", nic, "{instance}", driver+"."+nic[len(driver):], "{tcpip}", tcpip,
		"{connections}", strconv.Itoa(m.Connections), "{entries}", strconv.Itoa(entries),
		"{table}", unit.Bytes(entries*320).String(),
	).Replace
}

// firstTwo are the first two numbers of tcp_rmem and tcp_wmem: of the host, or of the release.
func (m *maker) firstTwo(name string) string {
	f := strings.Fields(cmp.Or(m.Present[name], advice.Default(advice.Linux, m.System.Judged, name)))
	if len(f) != 3 {
		return "4096 16384"
	}
	return f[0] + " " + f[1]
}

// burst is what a link carries in 5 ms, from 256 KiB to the given size.
func burst(link unit.BitRate, most unit.Bytes) unit.Bytes {
	return min(max(rounded(unit.Bytes(float64(link)/8*0.005)), 256<<10), most)
}
