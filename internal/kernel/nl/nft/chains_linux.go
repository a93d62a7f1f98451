package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// long is the number of rules from which on it is asked which of them are walked: less than
	// that costs a packet about a microsecond.
	long = 100
	// attempts bounds the repetition of a list that changed while it was read.
	attempts = 3
)

// Chains lists the base chains in the network namespace of the calling thread, those of all
// families, in the kernel's order. The error is errors.ErrUnsupported where the kernel has no
// nftables, and EPERM for ordinary users.
func Chains() ([]Chain, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("list firewall chains: %w", unsupported(err))
	}
	defer c.Close()
	chains, err := list(c)
	if err != nil {
		return nil, fmt.Errorf("list firewall chains: %w", unsupported(err))
	}
	return chains, nil
}

func list(c *netlink.Conn) ([]Chain, error) {
	messages, err := dump(c, unix.NFT_MSG_GETCHAIN, 0, nil)
	if err != nil {
		return nil, err
	}
	var chains []Chain
	var keys []key
	// Tables, keys without the name of a chain: in which a chain is long, and through which every
	// packet goes. Those of nat alone, which are the long ones of a host that balances the load of
	// thousands of services, are nothing that a packet of a connection that exists is compared
	// with.
	isLong, passed := make(map[key]bool), make(map[key]bool)
	for _, m := range messages {
		chain, k, base, err := parseChain(m.Data)
		if err != nil {
			return nil, err
		}
		table := key{family: k.family, table: k.table}
		isLong[table] = isLong[table] || chain.Rules >= long
		if base {
			passed[table] = passed[table] || chain.Type != "nat"
			chains, keys = append(chains, chain), append(keys, k)
		}
	}
	for table := range isLong {
		if !isLong[table] || !passed[table] {
			continue
		}
		rules, err := rulesOf(c, table)
		if err != nil {
			return nil, err
		}
		w := walk{rules: rules, known: make(map[key]int)}
		for i, k := range keys {
			if k.family == table.family && k.table == table.table {
				chains[i].Compared = w.walked(k)
			}
		}
	}
	return chains, nil
}

// rulesOf reads the rules of one table, by chain, in their order.
func rulesOf(c *netlink.Conn, table key) (map[key][]step, error) {
	e := netlink.NewAttributeEncoder()
	e.String(ruleTable, table.table)
	filter, err := e.Encode()
	if err != nil {
		return nil, err
	}
	messages, err := dump(c, unix.NFT_MSG_GETRULE, table.family, filter)
	if err != nil {
		return nil, err
	}
	rules := make(map[key][]step)
	for _, m := range messages {
		k, s, err := parseRule(m.Data)
		if err != nil {
			return nil, err
		}
		rules[k] = append(rules[k], s)
	}
	return rules, nil
}

// dump asks for a list. One that changed while it was read is asked for again.
func dump(c *netlink.Conn, kind uint16, family byte, filter []byte) ([]netlink.Message, error) {
	request := binary.BigEndian.AppendUint16([]byte{family, 0}, 0) // struct nfgenmsg
	for range attempts {
		messages, err := c.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind),
				Flags: netlink.Request | netlink.Dump},
			Data: append(request, filter...),
		})
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		torn := false
		for _, m := range messages {
			torn = torn || m.Header.Flags&netlink.DumpInterrupted != 0
		}
		if !torn {
			return messages, nil
		}
	}
	return nil, fmt.Errorf("rules changed during each of %d readings", attempts)
}

// unsupported gives the kernel's ways of saying that it has no nftables one name.
func unsupported(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
