package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
)

// limits by memory, of Linux.
const (
	gib           = 1 << 30
	leastWmem     = 64 << 10 // third number of tcp_wmem on the smallest host
	perMemory     = 128      // a socket may take this part of memory
	hashPerBucket = 16384 * 8
)

// conntrackSized is the kernel whose connection table has as many entries as buckets; before, four
// times as many entries as the smaller number of buckets that it had then.
var conntrackSized = advice.Release{5, 15}

// ofMemory returns what the kernel makes of a default on the memory of the host, and whether that
// is only near the number: some depend on the memory that is free at boot. Facts have the default
// of a large host. Sources: tcp_init in net/ipv4/tcp.c; nf_conntrack_init_start in
// net/netfilter/nf_conntrack_core.c.
func (s *Situation) ofMemory(name, value string) (was string, about bool) {
	memory := int64(s.Memory)
	if s.System.OS != advice.Linux || memory == 0 || value == "" {
		return value, false
	}
	switch name {
	case "sysctl:net.netfilter.nf_conntrack_max":
		switch {
		case memory > 4*gib:
			return value, false
		case memory > gib:
			return "65536", false
		}
		entries := max(memory/hashPerBucket, 1024)
		if s.System.Judged != nil && slices.Compare(s.System.Judged, conntrackSized) < 0 {
			entries = memory / hashPerBucket * 4
		}
		return strconv.FormatInt(entries, 10), true
	case "sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem":
		f := strings.Fields(value)
		if len(f) != 3 {
			return value, false
		}
		least, _ := strconv.ParseInt(f[1], 10, 64)
		if strings.HasSuffix(name, "wmem") {
			least = leastWmem
		}
		most, _ := strconv.ParseInt(f[2], 10, 64)
		// The kernel itself takes some of the memory: an eighth is left for it.
		if memory/perMemory*7/8 >= most {
			return value, false
		}
		return fmt.Sprintf("%s %s %d", f[0], f[1], max(min(most, memory/perMemory), least)), true
	}
	return value, false
}

// shrunk reports whether advice holds a value against the default of a large host, and this host
// has a smaller one that the value raises.
func (m *maker) shrunk(l *Line) bool {
	large := advice.Default(m.System.OS, m.System.Judged, l.Knob)
	return l.Default != large && l.Verdict != advice.StillRight && more(l.Value, l.Default) && !more(l.Value, large)
}
