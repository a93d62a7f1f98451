package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host"
)

// foldFrom is how many interfaces of one kind in one place make a single row, as forty VLANs on a
// NIC do.
const foldFrom = 4

// layer is one row of the interfaces: one interface, or several that differ only in name and
// number.
type layer struct {
	depth   int
	members []host.Interface // never empty
}

// layers puts every interface behind those that it rests on, and folds similar ones. An interface
// that rests on several, as a bond does, comes behind the last of these. Two interfaces that rest
// on each other, which no kernel allows but a document may claim, come at the end.
func layers(interfaces []host.Interface) []layer {
	var rows []layer
	printed := make(map[string]bool, len(interfaces))
	groups := make(map[string]int) // row of foldable interfaces, by fold key
	sizes := make(map[string]int)
	for _, i := range interfaces {
		sizes[foldKey(i)]++
	}
	// above has the interfaces that rest on one, and waits how many of those below are still to come.
	above, waits := make(map[string][]int), make([]int, len(interfaces))
	for n, i := range interfaces {
		waits[n] = len(i.Below)
		for _, below := range i.Below {
			above[below] = append(above[below], n)
		}
	}
	var put func(i host.Interface, depth int)
	put = func(i host.Interface, depth int) {
		printed[i.Name] = true
		key := foldKey(i)
		if row, ok := groups[key]; ok && sizes[key] >= foldFrom {
			rows[row].members = append(rows[row].members, i)
		} else {
			groups[key] = len(rows)
			rows = append(rows, layer{depth, []host.Interface{i}})
		}
		for _, n := range above[i.Name] {
			if waits[n]--; waits[n] == 0 && !printed[interfaces[n].Name] {
				put(interfaces[n], depth+1)
			}
		}
	}
	for _, i := range interfaces {
		if len(i.Below) == 0 && !printed[i.Name] {
			put(i, 0)
		}
	}
	for _, i := range interfaces {
		if !printed[i.Name] {
			put(i, 0)
		}
	}
	return rows
}

// foldKey is equal for interfaces that fold into one row: of one kind, on the same interfaces,
// below the same interfaces. NICs never fold.
func foldKey(i host.Interface) string {
	if !i.Virtual || i.Kind == "" || i.Kind == "loopback" {
		return "\x00" + i.Name
	}
	return strings.Join([]string{i.Kind, strings.Join(i.Below, " "), strings.Join(i.Above, " ")}, "\x00")
}

// name returns the name of a row: "bond0", or "eth0.100 … eth0.139 (40)" for a fold.
func (l layer) name() string {
	indent := strings.Repeat("  ", l.depth)
	first, last := l.members[0], l.members[len(l.members)-1]
	if len(l.members) == 1 {
		return indent + first.Name
	}
	return fmt.Sprintf("%s%s … %s (%d)", indent, first.Name, last.Name, len(l.members))
}

// driver returns the driver or kind of a row; of a fold only the kind, because numbers and peers
// differ.
func (l layer) driver() string {
	if len(l.members) > 1 {
		return l.members[0].Kind
	}
	return kindText(l.members[0])
}

// each joins a text of each member of a row, most frequent first: "38 up, 2 down", or "up" where
// all members agree.
func (l layer) each(say func(host.Interface) string) string {
	counts := make(map[string]int)
	var words []string
	for _, i := range l.members {
		word := say(i)
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	sorting.StableFunc(words, func(a, b string) int { return counts[b] - counts[a] })
	for n, word := range words {
		words[n] = strings.TrimSpace(strconv.Itoa(counts[word]) + " " + word)
	}
	return strings.Join(words, ", ")
}

// addresses returns the addresses of a row; of a fold only their number.
func (l layer) addresses() string {
	if len(l.members) == 1 {
		return strings.Join(l.members[0].Addresses, " ")
	}
	n := 0
	for _, i := range l.members {
		n += len(i.Addresses)
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

// kindText returns what an interface is: the mode of a bond, the number of a VLAN, the other end of
// a pair, and otherwise the driver.
func kindText(i host.Interface) string {
	switch {
	case i.Kind == "bond" && i.BondMode != "":
		return "bond " + i.BondMode
	case i.Kind == "vlan" && i.VLANID > 0:
		return fmt.Sprintf("vlan %d", i.VLANID)
	case i.Peer != "":
		return i.Kind + " to " + i.Peer
	case i.Driver != "":
		return i.Driver
	// The driver is not known; the link shows that it is a NIC.
	case i.Kind == "loopback", i.Kind == "physical":
		return ""
	}
	return i.Kind
}

// carries returns, for every NIC, the interfaces that use it: "bond0, 40 vlan, br0".
func carries(all []host.Interface) map[string]string {
	type users struct {
		counts map[string]int
		names  map[string]string // of the first of a kind
		kinds  []string
	}
	cards := make(map[string]*users)
	for _, i := range all {
		for _, card := range i.Carriers {
			u := cards[card]
			if u == nil {
				u = &users{counts: make(map[string]int), names: make(map[string]string)}
				cards[card] = u
			}
			if u.counts[i.Kind]++; u.counts[i.Kind] == 1 {
				u.kinds = append(u.kinds, i.Kind)
				u.names[i.Kind] = i.Name
			}
		}
	}
	texts := make(map[string]string, len(cards))
	for card, u := range cards {
		for n, kind := range u.kinds {
			if u.counts[kind] > 1 {
				u.kinds[n] = strings.TrimSpace(strconv.Itoa(u.counts[kind]) + " " + kind)
			} else {
				u.kinds[n] = u.names[kind]
			}
		}
		texts[card] = strings.Join(u.kinds, ", ")
	}
	return texts
}
