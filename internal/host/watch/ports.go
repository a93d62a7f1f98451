package watch

import (
	"cmp"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
)

// Destination is one peer of outgoing connections, with the number of local ports taken towards it.
// A port can be used once towards each destination, so connecting fails (EADDRNOTAVAIL) when all of
// net.ipv4.ip_local_port_range but the reserved ones are taken towards it, even if other ports are
// plentiful elsewhere.
type Destination struct {
	Local  netip.Addr     `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	// Ports are the taken ports of the range, without reserved ones; Waiting is the part that no
	// program owns any more: closed by this end a minute ago or less (TIME_WAIT).
	Ports   int `json:"ports_taken"`
	Waiting int `json:"ports_in_time_wait"`
}

// keptDestinations is how many are kept: one that runs out of ports stands out clearly.
const keptDestinations = 4

// portStates are the states of a connection in which it holds its port (include/net/tcp_states.h):
// all but closed and listening ones. 6 is TIME_WAIT.
var portStates = [...]sockdiag.State{1, 2, 3, 4, 5, timeWait, 8, 9, 11}

const timeWait sockdiag.State = 6

// destinations counts the local ports by destination if they may run short. Connections in
// TIME_WAIT are many, and listing them needlessly would cost a busy server more than everything
// else that is watched. The gauges decide: with fewer connections than half of the available ports
// no destination has exhausted them.
func destinations(values map[string]uint64) ([]Destination, error) {
	first, last := values["sockets.port_first"], values["sockets.port_last"]
	if last < first {
		return nil, nil
	}
	list, err := hostfs.Running().Text("proc/sys/net/ipv4/ip_local_reserved_ports")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	kept := ParsePorts(list)
	if 2*(values["sockets.tcp_tw"]+values["sockets.tcp_inuse"]) < last-first+1-kept.Within(first, last) {
		return nil, nil
	}
	counts := make(map[Destination]Destination)
	seen := 0
	err = sockdiag.Each(sockdiag.Query{Protocol: sockdiag.TCP, States: portStates[:], Limit: socketTime},
		func(s *sockdiag.Socket) bool {
			seen++
			// The local port of an incoming connection is that of a listener, mostly below the
			// range.
			if p := uint64(s.Local.Port()); p >= first && p <= last && !kept.Has(p) {
				key := Destination{Local: s.Local.Addr(), Remote: s.Remote}
				d := counts[key]
				d.Ports++
				if s.State == timeWait {
					d.Waiting++
				}
				counts[key] = d
			}
			return seen < maxSockets
		})
	if err != nil && !errors.Is(err, sockdiag.ErrLimit) {
		return nil, err
	}
	found := make([]Destination, 0, len(counts))
	for key, n := range counts {
		key.Ports, key.Waiting = n.Ports, n.Waiting
		found = append(found, key)
	}
	sorting.Func(found, func(a, b Destination) int {
		return cmp.Or(cmp.Compare(b.Ports, a.Ports), a.Remote.Compare(b.Remote), a.Local.Compare(b.Local))
	})
	return found[:min(len(found), keptDestinations)], nil
}

// Ports are ranges of ports, each with its first and last.
type Ports [][2]uint64

// ParsePorts reads a list like "8080,9148-9150" of net.ipv4.ip_local_reserved_ports. connect(2)
// never chooses a reserved port (inet_is_local_reserved_port); a program that names one gets it.
// The kernel prints a bitmap, so that no port is listed twice (proc_do_large_bitmap).
func ParsePorts(list string) Ports {
	var ports Ports
	for one := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		low, high, ranged := strings.Cut(one, "-")
		if !ranged {
			high = low
		}
		a, errA := strconv.ParseUint(low, 10, 16)
		b, errB := strconv.ParseUint(high, 10, 16)
		if errA == nil && errB == nil && a <= b {
			ports = append(ports, [2]uint64{a, b})
		}
	}
	return ports
}

// Has reports whether a port is listed.
func (r Ports) Has(port uint64) bool {
	return slices.ContainsFunc(r, func(one [2]uint64) bool { return one[0] <= port && port <= one[1] })
}

// Within returns how many ports from first to last are listed.
func (r Ports) Within(first, last uint64) uint64 {
	var n uint64
	for _, one := range r {
		if a, b := max(one[0], first), min(one[1], last); a <= b {
			n += b - a + 1
		}
	}
	return n
}
