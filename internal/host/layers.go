package host

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// readLayers sets what each interface is made of, once all are known. Two sources are needed,
// because neither is complete:
//
// sysfs has a link lower_NAME or upper_NAME for every pair that the kernel keeps together (since
// Linux 3.13: VLANs, bonds, bridges, teams, macvlans; netdev_adjacent_sysfs_add in net/core/dev.c).
// rtnetlink has the master of a port (IFLA_MASTER) and the interface that one was made on
// (IFLA_LINK), which is the only source for tunnels. A report of another program may lack one of
// them; then its name is all that is known, and it stays in Above or Below.
func readLayers(src *source, interfaces []Interface, links []linkFact, own bool) {
	position := make(map[int]int, len(interfaces)) // by interface index
	for i, dev := range interfaces {
		position[dev.Index] = i
	}
	layers := layering{interfaces: interfaces, joined: make(map[[2]int]bool)}
	byIndex := make(map[int]linkFact, len(links))
	for _, l := range links {
		byIndex[l.Index] = l
	}
	// sysfs first: it names both ends and is never wrong about a namespace that it shows.
	if own {
		layers.fromSysfs(src)
	}
	for _, l := range links {
		i, ok := position[l.Index]
		if !ok {
			continue
		}
		dev := &interfaces[i]
		dev.Kind, dev.VLANID, dev.VLANProtocol, dev.BondMode = readKind(src, dev, l, own), l.VLANID,
			l.VLANProtocol, l.BondMode
		if master, ok := position[l.MasterIndex]; ok && l.MasterIndex != 0 {
			layers.join(master, i) // a port is below its bond or bridge
		}
		if l.Master != "" && !slices.Contains(dev.Above, l.Master) {
			dev.Above = append(dev.Above, l.Master)
		}
		if l.Parent != "" && !nl.IsPair(l.Kind) && !slices.Contains(dev.Below, l.Parent) {
			dev.Below = append(dev.Below, l.Parent)
		}
		if parent, ok := position[l.ParentIndex]; ok && l.ParentIndex != 0 && parent != i {
			switch {
			case nl.IsPair(l.Kind):
				// The index may belong to another namespace; the two ends name each other.
				if p := byIndex[l.ParentIndex]; p.Kind == l.Kind && p.ParentIndex == l.Index {
					dev.Peer = interfaces[parent].Name
				}
			// A VLAN or macvlan that was moved into this namespace has its lower interface in
			// another one, whose index may belong to any interface here. sysfs knows; where it is
			// not available the index is used.
			case !own || len(dev.Below) == 0 && !adjacent[l.Kind]:
				layers.join(i, parent)
			}
		}
	}
	for i := range interfaces {
		slices.Sort(interfaces[i].Below)
		slices.Sort(interfaces[i].Above)
	}
	names := make(map[string]int, len(interfaces))
	for i, dev := range interfaces {
		names[dev.Name] = i
	}
	for i := range interfaces {
		interfaces[i].Carriers = carriers(interfaces, names, i)
	}
}

// adjacent are the kinds whose lower interface sysfs shows: if it shows none, the lower interface
// is in another namespace.
var adjacent = map[string]bool{"vlan": true, "macvlan": true, "macvtap": true, "ipvlan": true, "ipvtap": true,
	"macsec": true, "vrf": true}

// layering collects which interface rests on which.
type layering struct {
	interfaces []Interface
	joined     map[[2]int]bool // above, below
}

func (l layering) fromSysfs(src *source) {
	position := make(map[string]int, len(l.interfaces))
	for i, dev := range l.interfaces {
		position[dev.Name] = i
	}
	for i := range l.interfaces {
		names, _ := src.List("sys/class/net/" + l.interfaces[i].Name) // An interface that has just gone has no layers.
		for _, name := range names {
			lower, ok := strings.CutPrefix(name, "lower_")
			if !ok {
				continue
			}
			if j, known := position[lower]; known {
				l.join(i, j)
			}
		}
	}
}

// join records, once, that one interface rests on another.
func (l layering) join(above, below int) {
	pair := [2]int{above, below}
	if l.joined[pair] {
		return
	}
	l.joined[pair] = true
	up, down := &l.interfaces[above], &l.interfaces[below]
	up.Below, down.Above = append(up.Below, down.Name), append(down.Above, up.Name)
}

// readKind returns the kind of an interface, in the words of ip(8). tun and tap are one driver: bit
// 1 of its flags is IFF_TAP (linux/if_tun.h).
func readKind(src *source, dev *Interface, l linkFact, own bool) string {
	switch {
	case l.Kind == "tun" || l.Kind == "" && dev.Driver == "tun":
		if !own {
			return "tun"
		}
		if flags, ok := src.Number("sys/class/net/" + dev.Name + "/tun_flags"); ok && flags&2 != 0 {
			return "tap"
		}
		return "tun"
	case l.Kind != "":
		return l.Kind
	case dev.Name == "lo":
		return "loopback"
	case !dev.Virtual:
		return "physical"
	}
	return ""
}

// mostBelow bounds the interfaces that carriers visits below one: a kernel nests eight deep
// (MAX_NEST_DEV), and a bond has some dozens of ports; an archive may claim a chain of all it has.
const mostBelow = 512

// carriers removes all layers: it returns the cards below an interface. Cycles of interfaces, which
// a kernel refuses but an archive may contain, end at interfaces already seen.
func carriers(interfaces []Interface, position map[string]int, top int) []string {
	var found []string
	// Breadth first, skipping interfaces already seen: two VLANs of one bond lead to the same two
	// cards.
	seen := map[int]bool{top: true}
	for next := []int{top}; len(next) > 0 && len(seen) <= mostBelow; {
		i := next[0]
		next = next[1:]
		if i != top && !interfaces[i].Virtual {
			found = append(found, interfaces[i].Name)
			continue
		}
		for _, name := range interfaces[i].Below {
			// A report may name an interface that it does not have.
			if j, ok := position[name]; ok && !seen[j] {
				seen[j] = true
				next = append(next, j)
			}
		}
	}
	slices.Sort(found)
	return found
}
