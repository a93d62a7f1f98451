package printed

import (
	"slices"
	"strings"
)

// Counters are tables of counters by group and name, in the kernel's words:
// c["Tcp"]["RetransSegs"].
type Counters map[string]map[string]uint64

// put keeps a counter.
func (c Counters) put(group, name string, n uint64) {
	if c[group] == nil {
		c[group] = make(map[string]uint64)
	}
	c[group][name] = n
}

// nstatGroups are the groups whose names precede the counters' in one word. A name that begins with
// another group's name comes before it. Groups of IPv6 have their rows in /proc/net/snmp6, where
// group and name are one word as well.
var nstatGroups = []string{
	"IcmpMsg", "Icmp6", "UdpLite6", "UdpLite", "MPTcpExt", "TcpExt", "IpExt", "Ip6", "Udp6", "Icmp", "Tcp", "Udp", "Ip",
}

// ParseNstat parses "nstat -zas": "TcpRetransSegs 17 0.0" after a title. It is
// /proc/net/{snmp,netstat,snmp6} in another form (nstat.c of iproute2).
func ParseNstat(text string) Counters {
	found := make(Counters)
	for line := range lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		n, ok := count(words[1])
		if !ok {
			continue
		}
		// Where a word of one group begins with the name of another (Ip6InReceives, IpInReceives)
		// the order of the list decides.
		i := slices.IndexFunc(nstatGroups,
			func(group string) bool { return strings.HasPrefix(words[0], group) && len(words[0]) > len(group) })
		if i >= 0 {
			found.put(nstatGroups[i], strings.TrimPrefix(words[0], nstatGroups[i]), n)
		}
	}
	return found
}

// Tables formats counters as the kernel does. Every group has a line of names and one of numbers,
// and those of IPv6 a line for each counter. Empty tables are omitted.
func (c Counters) Tables() map[string]string {
	files := make(map[string]string)
	for _, f := range []struct {
		name   string
		groups []string
	}{
		{"snmp", []string{"Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite"}},
		{"netstat", []string{"TcpExt", "IpExt", "MPTcpExt"}},
		{"snmp6", []string{"Ip6", "Icmp6", "Udp6", "UdpLite6"}},
	} {
		var b strings.Builder
		for _, group := range f.groups {
			c.writeGroup(&b, group, f.name == "snmp6")
		}
		if b.Len() > 0 {
			files[f.name] = b.String()
		}
	}
	return files
}
