package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
)

// Chain is one base chain.
type Chain struct {
	Family   string // ip, ip6, inet, arp, bridge, netdev
	Table    string
	Name     string
	Type     string // filter, route, or nat, which only the first packet of a connection passes
	Hook     string // prerouting, input, forward, output, postrouting, ingress, egress
	Priority int32  // lower ones run first
	Rules    int
	Compared int // package comment
	AtMost   int // the same with every conditional jump taken
	Counting int // rules that only count packets, of those in AtMost
	Legacy   bool
}

// key identifies a chain.
type key struct {
	family      byte
	table, name string
}

// Attributes and numbers of nf_tables.h. They are defined here because x/sys has them for Linux
// only, while recorded messages are parsed on any system.
const (
	chainTable, chainName, chainHook, chainUse, chainType = 1, 3, 4, 6, 7

	hookNumber, hookPriority = 1, 2

	ruleTable, ruleChain, ruleExpressions = 1, 2, 4

	generationID = 1

	expressionName, expressionData = 1, 2

	dataValue, dataVerdict          = 1, 2
	verdictCode, verdictChain       = 1, 2
	immediateRegister, immediateNow = 1, 2
	lookupDestination               = 3
	ctKey                           = 2
	bitwiseMask                     = 4
	matchName                       = 1
	counterPackets                  = 2

	registerVerdict = 0 // NFT_REG_VERDICT: its content is a verdict, not a value
	ctState         = 0 // NFT_CT_STATE
	// NF_CT_STATE_BIT(IP_CT_ESTABLISHED) of nf_conntrack_common.h; bit 0 marks packets that belong
	// to no known connection.
	established = 1 << 1

	verdictDrop, verdictAccept, verdictJump, verdictGoto = 0, 1, -3, -4
)

// families and hooks map numbers (NFPROTO_*, NF_INET_*, NF_NETDEV_*, NF_ARP_*) to names.
var families = map[byte]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

func hookName(family byte, number uint32) string {
	hooks := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	switch family {
	case 3:
		hooks = []string{"input", "output", "forward"}
	case 5:
		hooks = []string{"ingress", "egress"}
	}
	if int(number) >= len(hooks) {
		return fmt.Sprintf("hook %d", number)
	}
	return hooks[number]
}

// errShort reports a message without its header, which no kernel sends.
var errShort = errors.New("message shorter than its header")

// body removes the header struct nfgenmsg from a message: family, version, and a resource that is
// zero here.
func body(b []byte) (family byte, attributes []byte, err error) {
	if len(b) < 4 {
		return 0, nil, errShort
	}
	return b[0], b[4:], nil
}

// attributes decodes a list of attributes, whose numbers are in network byte order except the
// contents of registers.
func attributes(b []byte, visit func(*netlink.AttributeDecoder)) error {
	d, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		visit(d)
	}
	return d.Err()
}

// parseChain reads NFT_MSG_NEWCHAIN. base is false for a chain without a hook, which only jumps
// reach.
func parseChain(b []byte) (c Chain, k key, base bool, err error) {
	family, b, err := body(b)
	if err != nil {
		return c, k, false, err
	}
	var hook []byte
	err = attributes(b, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case chainTable:
			c.Table = d.String()
		case chainName:
			c.Name = d.String()
		case chainType:
			c.Type = d.String()
		case chainUse:
			c.Rules = int(d.Uint32())
		case chainHook:
			hook, base = d.Bytes(), true
		}
	})
	if err == nil && base {
		err = attributes(hook, func(d *netlink.AttributeDecoder) {
			switch d.Type() {
			case hookNumber:
				c.Hook = hookName(family, d.Uint32())
			case hookPriority:
				c.Priority = int32(d.Uint32())
			}
		})
	}
	c.Family = families[family]
	if c.Family == "" {
		c.Family = fmt.Sprintf("family %d", family)
	}
	// No rule can jump to a base chain, so its use count equals its rule count.
	c.Compared, c.AtMost = c.Rules, c.Rules
	return c, key{family, c.Table, c.Name}, base, err
}

// parseGeneration reads NFT_MSG_NEWGEN, whose first attribute is the number.
func parseGeneration(b []byte) (id uint32, err error) {
	_, b, err = body(b)
	if err != nil {
		return 0, err
	}
	found := false
	err = attributes(b, func(d *netlink.AttributeDecoder) {
		if d.Type() == generationID {
			id, found = d.Uint32(), true
		}
	})
	if err == nil && !found {
		err = errShort
	}
	return id, err
}

// step is the effect of a rule on a packet of an existing connection.
type step struct {
	ends bool   // the evaluation ends; of a conditional jump, if it is taken
	into string // the chain of a jump
	// the jump has a condition; packets are those that its counter saw
	conditional bool
	packets     uint64
	counts      bool // the rule counts packets and decides nothing
}

// parseRule reads NFT_MSG_NEWRULE.
func parseRule(b []byte) (k key, s step, err error) {
	family, b, err := body(b)
	if err != nil {
		return k, s, err
	}
	k.family = family
	var list []byte
	err = attributes(b, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case ruleTable:
			k.table = d.String()
		case ruleChain:
			k.name = d.String()
		case ruleExpressions:
			list = d.Bytes()
		}
	})
	if err != nil {
		return k, s, err
	}
	s, err = meaning(list)
	return k, s, err
}

// rule collects the properties of a rule's expressions.
type rule struct {
	conditions  int  // expressions that may not match
	state       bool // one of them tests the state of the connection
	established bool // and matches an existing connection
	verdict     int32
	decided     bool
	chain       string
	mapped      bool // a map from something to a verdict
	counter     bool
	packets     uint64 // that the counter saw
}

// meaning returns the effect of a rule's expressions.
func meaning(list []byte) (step, error) {
	var r rule
	var failed error
	err := attributes(list, func(d *netlink.AttributeDecoder) {
		if err := r.expression(d.Bytes()); err != nil {
			failed = err
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return step{}, err
	}
	jumps := r.decided && (r.verdict == verdictJump || r.verdict == verdictGoto)
	switch {
	case r.conditions > 0 && jumps:
		return step{into: r.chain, ends: r.verdict == verdictGoto, conditional: true, packets: r.packets}, nil
	case r.state && r.mapped, r.state && r.established && r.decided && r.verdict == verdictAccept:
		return step{ends: true}, nil
	case r.conditions > 0 || !r.decided:
		return step{counts: r.counter && !r.decided && !r.mapped, packets: r.packets}, nil
	case jumps:
		return step{into: r.chain, ends: r.verdict == verdictGoto, packets: r.packets}, nil
	}
	return step{ends: r.verdict == verdictAccept || r.verdict == verdictDrop}, nil
}

// expression adds one expression. Counters, logs and marks match every packet; a load alone decides
// nothing, but its comparison does.
func (r *rule) expression(b []byte) error {
	var name string
	var data []byte
	if err := attributes(b, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case expressionName:
			name = d.String()
		case expressionData:
			data = d.Bytes()
		}
	}); err != nil {
		return err
	}
	switch name {
	case "immediate":
		return r.immediate(data)
	case "counter":
		return attributes(data, func(d *netlink.AttributeDecoder) {
			if r.counter = true; d.Type() == counterPackets {
				r.packets = d.Uint64()
			}
		})
	case "cmp", "range", "limit", "connlimit", "quota", "fib", "socket", "dynset":
		r.conditions++
	case "lookup":
		r.conditions++
		return attributes(data, func(d *netlink.AttributeDecoder) {
			if d.Type() == lookupDestination {
				r.mapped = r.mapped || d.Uint32() == registerVerdict
			}
		})
	case "ct":
		return attributes(data, func(d *netlink.AttributeDecoder) {
			if d.Type() == ctKey && d.Uint32() == ctState {
				r.state = true
			}
		})
	case "bitwise":
		var mask []byte
		err := attributes(data, func(d *netlink.AttributeDecoder) {
			if d.Type() == bitwiseMask {
				mask = d.Bytes()
			}
		})
		if err != nil || !r.state {
			return err
		}
		// The state is one bit of many, tested by a mask in host byte order.
		return attributes(mask, func(d *netlink.AttributeDecoder) {
			if v := d.Bytes(); d.Type() == dataValue && len(v) == 4 {
				r.established = r.established || binary.NativeEndian.Uint32(v)&established != 0
			}
		})
	case "match":
		// The condition of an xtables match is not parsed. For a match on the state, the verdict
		// decides: a rule that accepts by state accepts existing connections.
		r.conditions++
		return attributes(data, func(d *netlink.AttributeDecoder) {
			if d.Type() == matchName && (d.String() == "conntrack" || d.String() == "state") {
				r.state, r.established = true, true
			}
		})
	case "target", "reject":
		r.conditions, r.decided = r.conditions+1, true // its condition is not parsed
	}
	return nil
}

// immediate is a verdict, or a value for a register.
func (r *rule) immediate(b []byte) error {
	verdict := false
	var data, word []byte
	err := attributes(b, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case immediateRegister:
			verdict = d.Uint32() == registerVerdict
		case immediateNow:
			data = d.Bytes()
		}
	})
	if err != nil || !verdict {
		return err
	}
	if err := attributes(data, func(d *netlink.AttributeDecoder) {
		if d.Type() == dataVerdict {
			word = d.Bytes()
		}
	}); err != nil {
		return err
	}
	return attributes(word, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case verdictCode:
			r.verdict, r.decided = int32(d.Uint32()), true
		case verdictChain:
			r.chain = d.String()
		}
	})
}

// walk counts rules, each chain once. Many rules may jump to one chain, and chains to chains, so
// following each jump again could take longer than the kernel needs for a packet.
type walk struct {
	rules map[key][]step
	known map[key]int
	most  uint64 // packets that the rule of the table saw that saw most; 0: none has a counter
	all   bool   // take every conditional jump, for the most rules that a packet may meet
}

// walkOf returns a walk through the rules of one table.
func walkOf(rules map[key][]step, all bool) walk {
	w := walk{rules: rules, known: make(map[key]int), all: all}
	for _, chain := range rules {
		for _, s := range chain {
			w.most = max(w.most, s.packets)
		}
	}
	return w
}

// takes reports whether most packets take a jump: an unconditional one, or one whose counter saw
// half as many as the rule of the table that saw most. iptables-nft gives each rule a counter.
func (w walk) takes(s step) bool {
	return !s.conditional || w.all || s.packets > 0 && s.packets >= w.most/2
}

// walked counts the rules evaluated in a chain. A chain that is still being counted counts as
// empty: the kernel allows no cycle of jumps, but a list read while rules change may contain one.
func (w walk) walked(k key) int {
	if n, ok := w.known[k]; ok {
		return n
	}
	w.known[k] = 0
	n := 0
	for _, s := range w.rules[k] {
		n++
		if !w.takes(s) {
			continue
		}
		if s.into != "" {
			n = min(n+w.walked(key{k.family, k.table, s.into}), maxWalk)
		}
		// Where every jump is taken, a conditional goto must not hide what follows it.
		if s.ends && !(s.conditional && w.all) {
			break
		}
	}
	w.known[k] = n
	return n
}

// counting returns how many rules that only count the last walk met.
func (w walk) counting(family byte, table string) int {
	n := 0
	for k := range w.known {
		if k.family != family || k.table != table {
			continue
		}
		for _, s := range w.rules[k] {
			if s.counts {
				n++
			}
		}
	}
	return n
}

// maxWalk exceeds the number of rules that any packet passes, and keeps sums of sums far from
// overflow.
const maxWalk = 1 << 30
