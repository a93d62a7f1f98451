package ruleset

import (
	"slices"
	"strings"
)

// The flags of TCP by their bits, as the programs name them, and as pf abbreviates them.
var flagNames = []string{"fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"}

const (
	flagLetters  = "FSRPAUEW"
	flagSYN      = 0x02
	flagACK      = 0x10
	flagsOfSetup = 0x17 // that --syn of iptables looks at: FIN, SYN, RST and ACK
)

// flagTest holds for a packet of TCP whose flags under the mask are the value.
type flagTest struct {
	mask, value byte
	negated     bool
	others      bool // what it says of packets of other protocols
}

// Answers reports whether a condition without a field of the model holds for the packet. The first
// packet of a TCP connection has SYN alone; of the others no more than ACK is known, and of a
// packet in no connection nothing.
func (p Packet) Answers(o Opaque) (holds, known bool) {
	w := strings.Fields(o.Text)
	negated := len(w) > 1 && (w[0] == "not" || w[1] == "!")
	w = slices.DeleteFunc(w, func(s string) bool { return s == "not" })
	switch {
	case o.Text == "check-state":
		return false, p.State == StateNew
	case o.Text == "flags any":
		return true, true
	case len(w) > 1 && (w[0] == "via" || w[0] == "on"):
		// The interface is the one of the packet's direction. Tables, addresses and groups of interfaces
		// have this form too.
		name := w[len(w)-1]
		if w[1] == "rdomain" || strings.ContainsAny(strings.TrimSuffix(name, "*"), "(.:?[*") ||
			w[0] == "on" && strings.Trim(name[len(name)-1:], "0123456789") != "" {
			return false, false
		}
		at := p.Out
		if at == "" {
			at = p.In
		}
		return Names(name).Contains(Name(at)) != negated, true
	}
	t, ok := flagsOf(o.Text)
	if !ok {
		return false, false
	}
	if p.Protocol != 6 {
		return t.others, true
	}
	var flags, sure byte
	switch p.State {
	case StateNew:
		flags, sure = flagSYN, 0xff
	case StateEstablished:
		flags, sure = flagACK, flagACK
	}
	differs := (flags^t.value)&t.mask&sure != 0 || t.value&^t.mask != 0
	return differs == t.negated, differs || t.mask&^sure == 0
}

// flagsOf reads a condition on flags in any of the four languages.
func flagsOf(text string) (t flagTest, ok bool) {
	text = strings.NewReplacer("(", "", ")", "", " | ", ",", "|", ",", "-m tcp ", "").Replace(text)
	w := strings.Fields(text)
	nft := strings.HasPrefix(text, "tcp flags ")
	if !nft {
		all := len(w)
		w = slices.DeleteFunc(w, func(s string) bool { return s == "!" || s == "not" })
		t.negated = len(w) < all
	}
	last := len(w) - 1
	mask, value := "", ""
	switch {
	case last == 0 && w[0] == "--syn":
		t.mask, t.value = flagsOfSetup, flagSYN
		return t, true
	case last == 0 && w[0] == "setup":
		mask, value, t.others = "syn,ack", "syn", t.negated
	case last == 0 && w[0] == "established":
		mask, value, t.others, t.negated = "syn,rst,ack", "syn", t.negated, !t.negated
	case last == 1 && w[0] == "tcpflags":
		mask, value, t.others = strings.ReplaceAll(w[1], "!", ""), w[1], t.negated
	case last == 2 && w[0] == "--tcp-flags":
		mask, value = w[1], w[2]
	case last == 1 && w[0] == "flags":
		value, mask, ok = strings.Cut(w[1], "/")
		for i := range flagLetters {
			if strings.IndexByte(mask, flagLetters[i]) >= 0 {
				t.mask |= 1 << i
			}
			if strings.IndexByte(value, flagLetters[i]) >= 0 {
				t.value |= 1 << i
			}
		}
		t.others = true
		return t, ok
	case nft && last >= 2:
		mask, value = "all,ecn,cwr", w[last]
		switch t.negated = slices.Contains(w, "!="); {
		case last > 3 && w[last-1] == "/":
			mask, value = w[last], w[last-2]
		case w[2] == "&" && last > 3:
			mask = w[3]
		case w[2] == "!":
			mask, value = w[last], ""
		case w[2] != "==" && !t.negated: // any of them
			mask, value, t.negated = w[last], "", true
		}
	default:
		return t, false
	}
	var okMask, okValue bool
	t.mask, okMask = flagBits(mask)
	t.value, okValue = flagBits(value)
	return t, okMask && okValue
}

// flagBits reads names of flags with commas between them.
func flagBits(names string) (bits byte, ok bool) {
	for name := range strings.SplitSeq(strings.ToLower(names), ",") {
		switch i := slices.Index(flagNames, name); {
		case strings.HasPrefix(name, "!"): // ipfw: is not set
		case i >= 0:
			bits |= 1 << i
		case name == "all":
			bits |= 0x3f
		case name != "" && name != "none" && strings.Trim(name, "0x") != "":
			return bits, false
		}
	}
	return bits, true
}
