package nft

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// The layout of a table of x_tables, which getsockopt(2) returns in host byte order: the entries of
// linux/netfilter_ipv4/ip_tables.h and of ip6_tables.h, and their matches and targets of
// linux/netfilter/x_tables.h.
const (
	xtName     = 29 // XT_EXTENSION_MAXNAMELEN
	xtHead     = 32 // of struct xt_entry_match and xt_entry_target: size, name, revision
	xtAccept   = -2 // -NF_ACCEPT - 1; others, for drop and return, are negative as well
	xtGoto     = 2  // IPT_F_GOTO, in the flags of an entry
	xtGotoSix  = 4  // IP6T_F_GOTO
	xtHooks    = 5  // NF_INET_NUMHOOKS
	xtInfoSize = 32 + 4 + 4*xtHooks + 4*xtHooks + 4 + 4
	xtListHead = 40 // of struct ipt_get_entries: name and size, aligned to eight bytes
)

// xtLayout is where an entry has its parts, in bytes.
type xtLayout struct {
	condition int // length of the addresses, interfaces and protocol that it compares, from 0
	flags     int
	goes      byte // flag of a goto
	target    int  // u16: offset of the target; the length of the entry follows
	counter   int  // u64: packets
	matches   int  // the first match, and the least offset of the target
}

var (
	xtFour = xtLayout{condition: 82, flags: 82, goes: xtGoto, target: 88, counter: 96, matches: 112}
	xtSix  = xtLayout{condition: 131, flags: 131, goes: xtGotoSix, target: 140, counter: 152, matches: 168}
)

// xtInfo is what IPT_SO_GET_INFO returns.
type xtInfo struct {
	valid            uint32
	hooks, underflow [xtHooks]uint32
	size             uint32
}

func parseXTInfo(b []byte) (i xtInfo, err error) {
	if len(b) < xtInfoSize {
		return i, errShort
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	i.valid = word(32)
	for h := range xtHooks {
		i.hooks[h], i.underflow[h] = word(36+4*h), word(56+4*h)
	}
	i.size = word(80)
	return i, nil
}

// parseXTables returns the base chains of one table of x_tables. Chains without a hook have no
// names in the kernel that matter here: a jump is to the offset of their first rule.
func parseXTables(family byte, table string, info xtInfo, entries []byte) ([]Chain, error) {
	layout := xtFour
	if families[family] == "ip6" {
		layout = xtSix
	}
	list, err := parseEntries(layout, entries)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", table, err)
	}
	rules := make(map[key][]step)
	// Each offset that something jumps to begins a chain, and so does each hook.
	for _, e := range list {
		if e.step.into != "" {
			rules[key{family, table, e.step.into}] = nil
		}
	}
	name := func(offset uint32) string { return fmt.Sprint(offset) }
	for h := range xtHooks {
		if info.valid&(1<<h) != 0 {
			rules[key{family, table, name(info.hooks[h])}] = nil
		}
	}
	for k := range rules {
		var from uint32
		if _, err := fmt.Sscan(k.name, &from); err == nil {
			rules[k] = chainFrom(list, from)
		}
	}
	var chains []Chain
	for h := range xtHooks {
		if info.valid&(1<<h) == 0 {
			continue
		}
		c := Chain{Family: families[family], Table: table, Hook: hookName(family, uint32(h)), Type: "filter", Legacy: true}
		if c.Name = xtChains[c.Hook]; table == "nat" {
			c.Type = "nat"
		}
		for _, e := range list {
			if e.offset >= info.hooks[h] && e.offset < info.underflow[h] {
				c.Rules++
			}
		}
		k := key{family, table, name(info.hooks[h])}
		most := walkOf(rules, true)
		c.Compared, c.AtMost = walkOf(rules, false).walked(k), most.walked(k)
		c.Counting = most.counting(family, table)
		chains = append(chains, c)
	}
	return chains, nil
}

// xtChains are the names of the built-in chains by hook.
var xtChains = map[string]string{"prerouting": "PREROUTING", "input": "INPUT", "forward": "FORWARD",
	"output": "OUTPUT", "postrouting": "POSTROUTING"}

// entry is one rule, or the policy at the end of a chain.
type entry struct {
	offset uint32
	step   step
	last   bool // it always decides, as the policy of a chain and the return at its end do
}

// chainFrom returns the rules from an offset to the first entry that always decides, without that
// one if it is the policy.
func chainFrom(list []entry, from uint32) []step {
	var all []step
	at, _ := slices.BinarySearchFunc(list, from, func(e entry, offset uint32) int { return cmp.Compare(e.offset, offset) })
	for _, e := range list[at:] {
		if e.last {
			break
		}
		all = append(all, e.step)
	}
	return all
}

// parseEntries reads the entries of a table in their order.
func parseEntries(l xtLayout, b []byte) ([]entry, error) {
	var all []entry
	for at := 0; at < len(b); {
		if len(b)-at < l.matches {
			return nil, errShort
		}
		e := b[at:]
		target, next := int(binary.NativeEndian.Uint16(e[l.target:])), int(binary.NativeEndian.Uint16(e[l.target+2:]))
		if target < l.matches || next < target+xtHead || next > len(e) {
			return nil, fmt.Errorf("entry at %d: target at %d of %d bytes", at, target, next)
		}
		all = append(all, parseEntry(l, e[:next], uint32(at), target))
		at += next
	}
	return all, nil
}

func parseEntry(l xtLayout, e []byte, offset uint32, target int) entry {
	out := entry{offset: offset}
	out.step.packets = binary.NativeEndian.Uint64(e[l.counter:])
	out.step.conditional = target > l.matches || len(bytes.Trim(e[:l.condition], "\x00")) > 0
	name, _, _ := bytes.Cut(e[target+2:target+2+xtName], []byte{0})
	if len(name) > 0 || len(e) < target+xtHead+4 {
		// LOG, MARK and others go on, REJECT and others decide: a packet that matches none goes on.
		out.step = step{packets: out.step.packets}
		return out
	}
	verdict := int32(binary.NativeEndian.Uint32(e[target+xtHead:]))
	switch {
	case verdict >= 0 && uint32(verdict) == offset+uint32(len(e)):
		out.step = step{packets: out.step.packets, counts: true} // no target: on to the next rule
	case verdict >= 0:
		out.step.into, out.step.ends = fmt.Sprint(verdict), e[l.flags]&l.goes != 0
	case !out.step.conditional:
		out.last = true
	default:
		accepts := verdict == xtAccept && stateful(e[l.matches:target])
		out.step = step{packets: out.step.packets, ends: accepts}
	}
	return out
}

// stateful reports whether one of the matches tests the state of the connection; a rule that
// accepts by state accepts existing connections.
func stateful(matches []byte) bool {
	for len(matches) >= xtHead {
		size := int(binary.NativeEndian.Uint16(matches))
		name, _, _ := bytes.Cut(matches[2:2+xtName], []byte{0})
		if string(name) == "conntrack" || string(name) == "state" {
			return true
		}
		if size < xtHead || size > len(matches) {
			return false
		}
		matches = matches[size:]
	}
	return false
}
