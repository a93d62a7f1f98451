package printed

import (
	"net/netip"
	"strconv"
	"strings"
)

// Link is one interface as ip(8) shows it. Its part in an archive of package host has the keys of
// linerate/links.json.
type Link struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	Kind       string `json:"kind,omitempty"` // vlan, bond, veth, …; empty: hardware, or ip ran without -d
	MAC        string `json:"mac,omitempty"`
	MTUBytes   int    `json:"mtu_bytes"`
	TxQueueLen int    `json:"tx_queue_length_packets,omitempty"`
	Up         bool   `json:"up"`      // IFF_UP: the administrative state
	Carrier    bool   `json:"carrier"` // IFF_LOWER_UP: the link has a carrier
	Qdisc      string `json:"qdisc,omitempty"`
	// of Peer; with MasterIndex of Master set by a caller that has all interfaces
	ParentIndex  int    `json:"parent_index,omitempty"`
	MasterIndex  int    `json:"master_index,omitempty"`
	VLANID       int    `json:"vlan_id,omitempty"`
	VLANProtocol string `json:"vlan_protocol,omitempty"`
	BondMode     string `json:"bond_mode,omitempty"`

	// The master and the lower interface by name where the output lacks these interfaces. A caller
	// that has all interfaces sets them.
	MasterName string `json:"master,omitempty"`
	ParentName string `json:"parent,omitempty"`

	// Peer follows the @ of the name: the lower interface, or the other end of a veth; "ifN" for
	// one in another network namespace.
	Peer      string            `json:"-"`
	Master    string            `json:"-"` // the bridge or bond of this port
	ParentDev string            `json:"-"` // the device below, as virtio1; since iproute2 5.13
	Ethernet  bool              `json:"-"` // link/ether, link/infiniband: what a card has
	Detailed  bool              `json:"-"` // ip ran with -d, so that an empty Kind means hardware
	Addresses []string          `json:"-"` // CIDR
	Totals    map[string]uint64 `json:"-"` // of ip -s, by the names of /sys/class/net/X/statistics; nil: not known
}

// ParseLinks parses the output of "ip address", "ip link" and their forms with -d and -s: a head
// for each interface with its number in the first column, and lines below it with a distinctive
// first word. From one-line forms (-o) it takes the addresses.
func ParseLinks(text string) []*Link {
	var all []*Link
	byIndex := make(map[int]*Link)
	var l *Link
	var columns []string // of the totals in the next line, if this one named them
	var virtual bool     // the lines of a card's virtual functions have begun
	for line := range lines(text) {
		if line == "" {
			continue
		}
		if line[0] >= '0' && line[0] <= '9' {
			index, rest, ok := strings.Cut(line, ": ")
			n, err := strconv.Atoi(index)
			if !ok || err != nil || n <= 0 {
				l = nil
				continue
			}
			// ip -o repeats the number for each address. A repeated number is the same interface,
			// since sos runs each command in one network namespace.
			if l = byIndex[n]; l == nil {
				l = &Link{Index: n}
				byIndex[n] = l
				all = append(all, l)
			}
			l.readHead(rest)
			columns, virtual = nil, false
			continue
		}
		if l == nil {
			continue
		}
		// With -s ip prints the totals of each virtual function below its line, after those of the
		// card (print_linkinfo in ip/ipaddress.c).
		virtual = virtual || strings.HasPrefix(strings.TrimLeft(line, " \t"), "vf ")
		if columns = l.readLine(line, columns); virtual {
			columns = nil
		}
	}
	return all
}

// readHead reads "v0@v1: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc pfifo master br0 state UP group
// default qlen 1000", or of ip -o "lo inet 127.0.0.1/8 …".
func (l *Link) readHead(text string) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return
	}
	name, isHead := strings.CutSuffix(words[0], ":")
	if !isHead {
		l.Name = words[0]
		l.readAddress(words[1:])
		return
	}
	// A name never contains an @ in practice, although the kernel would allow one.
	l.Name, l.Peer, _ = strings.Cut(name, "@")
	for _, w := range words[1:] {
		flags, ok := strings.CutPrefix(w, "<")
		if !ok {
			continue
		}
		for flag := range strings.SplitSeq(strings.TrimSuffix(flags, ">"), ",") {
			switch flag {
			case "UP":
				l.Up = true
			case "LOWER_UP":
				l.Carrier = true
			}
		}
		break
	}
	l.MTUBytes = l.numberAfter(words, "mtu")
	l.TxQueueLen = l.numberAfter(words, "qlen")
	l.Qdisc, _ = after(words, "qdisc")
	l.Master, _ = after(words, "master")
}

// numberAfter returns the number after a word, 0 if the word is missing; for all the words used
// here that is the kernel's own zero.
func (l *Link) numberAfter(words []string, key string) int {
	text, _ := after(words, key)
	n, _ := strconv.Atoi(text) // A missing number is 0.
	return n
}

// readLine reads a line below a head. It returns the columns of the totals in the next line, if it
// named any.
func (l *Link) readLine(line string, columns []string) []string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	if columns != nil {
		l.readTotals(columns, words)
		return nil
	}
	// Since 5.13 iproute2 appends it to the most detailed line.
	if dev, ok := after(words, "parentdev"); ok {
		l.ParentDev = dev
	}
	switch first := words[0]; {
	case strings.HasPrefix(first, "link/"):
		l.Ethernet = first == "link/ether" || first == "link/infiniband"
		// -d adds it to this line since iproute2 3.11, and kinds are in the output before that too.
		_, l.Detailed = after(words, "promiscuity")
		// Tunnels have their own address here, of four or sixteen bytes, and other interfaces
		// nothing.
		if len(words) > 1 && isMAC(words[1]) {
			l.MAC = words[1]
		}
	case first == "inet", first == "inet6":
		l.readAddress(words)
	case first == "RX:", first == "TX:":
		return words
	// The kind is indented by four blanks. Its details, and those of an address, are indented
	// deeper or begin with a word that is no kind.
	case l.Kind == "" && strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "     ") && isKind(first):
		l.readKind(words)
	}
	return nil
}

// notKinds begin other lines in the place of the kind.
var notKinds = map[string]bool{
	"altname": true, "alias": true, "vf": true, "prog": true, "link-netns": true, "link-netnsid": true, "xdp": true,
	"promiscuity": true,
	"addrgenmode": true, "numtxqueues": true, "inet": true, "inet6": true, "openvswitch_slave": true, "altnames": true,
	"qdisc": true, "new": true, "valid_lft": true,
}

// isKind reports whether a word is a kind of interface, rather than another word or a number. Words
// about a port of a bridge or bond end in _slave.
func isKind(word string) bool {
	return word[0] >= 'a' && word[0] <= 'z' && !notKinds[word] && !strings.HasSuffix(word, "_slave") &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// readKind parses "vlan protocol 802.1Q id 100 <REORDER_HDR>" and "bond mode 802.3ad …". Before
// iproute2 3.9 the protocol of a VLAN was always the same and not printed.
func (l *Link) readKind(words []string) {
	l.Kind = words[0]
	switch l.Kind {
	case "vlan":
		l.VLANID = l.numberAfter(words, "id")
		l.VLANProtocol = "802.1Q"
		if p, ok := after(words, "protocol"); ok {
			l.VLANProtocol = p
		}
	case "bond":
		l.BondMode, _ = after(words, "mode")
	case "vxlan":
		// Its name has no @: the interface by which its packets leave is a separate attribute
		// (IFLA_VXLAN_LINK).
		l.Peer, _ = after(words, "dev")
	}
}

// readAddress parses "inet 10.0.0.1 peer 10.0.0.2/32 …": the own address comes first; the prefix
// length follows one of the two.
func (l *Link) readAddress(words []string) {
	if len(words) < 2 || words[0] != "inet" && words[0] != "inet6" {
		return
	}
	text := words[1]
	// The length belongs to the address of the other end, which is the whole network of such a
	// link.
	if peer, ok := after(words, "peer"); ok && !strings.Contains(text, "/") {
		if _, length, ok := strings.Cut(peer, "/"); ok {
			text += "/" + length
		}
	}
	// An address of a point-to-point link without a length is a single address.
	if a, err := netip.ParseAddr(text); err == nil {
		text = netip.PrefixFrom(a, a.BitLen()).String()
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		l.Addresses = append(l.Addresses, p.String())
	}
}

// totalNames are the columns of ip -s with the same meaning as one counter of sysfs. "dropped" of
// the receiver is rx_dropped without rx_missed_errors, as there. The column after it, "overrun"
// before iproute2 5.11 and "missed" since, is a different counter in the two.
var totalNames = map[string]string{
	"RX: bytes": "rx_bytes", "RX: packets": "rx_packets", "RX: errors": "rx_errors", "RX: dropped": "rx_dropped",
	"RX: missed":  "rx_missed_errors",
	"RX: overrun": "rx_over_errors", "RX: mcast": "multicast", "TX: bytes": "tx_bytes", "TX: packets": "tx_packets",
	"TX: errors":  "tx_errors",
	"TX: dropped": "tx_dropped", "TX: carrier": "tx_carrier_errors", "TX: collsns": "collisions",
}

// readTotals assigns a line of numbers to the columns named by the line above it.
func (l *Link) readTotals(columns, numbers []string) {
	for i, n := range numbers {
		if i+1 >= len(columns) {
			return
		}
		name := totalNames[columns[0]+" "+columns[i+1]]
		if v, ok := count(n); ok && name != "" {
			if l.Totals == nil {
				l.Totals = make(map[string]uint64)
			}
			l.Totals[name] = v
		}
	}
}
