package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

const (
	// long is the number of rules from which the rules are read to find those that are evaluated.
	// Fewer rules cost a packet less than a tenth of the rest of its way.
	long = 20
	// attempts limits how often a list is read again because it changed during the reading.
	attempts = 3
)

// Chains returns the base chains of all families in the network namespace of the calling thread, in
// the kernel's order. The error is errors.ErrUnsupported if the kernel has no nftables, and EPERM
// for unprivileged users.
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

// Generation returns the number of the ruleset in the network namespace of the calling thread,
// which each change raises. The error is errors.ErrUnsupported if the kernel has no nftables, and
// EPERM for unprivileged users.
func Generation() (uint32, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("read generation of the firewall: %w", unsupported(err))
	}
	defer c.Close()
	messages, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN),
			Flags: netlink.Request},
		Data: []byte{unix.AF_UNSPEC, 0, 0, 0}, // struct nfgenmsg
	})
	if err != nil {
		return 0, fmt.Errorf("read generation of the firewall: %w", unsupported(err))
	}
	for _, m := range messages {
		if id, err := parseGeneration(m.Data); err == nil {
			return id, nil
		}
	}
	return 0, fmt.Errorf("read generation of the firewall: %w", errShort)
}

func list(c *netlink.Conn) ([]Chain, error) {
	messages, err := dump(c, unix.NFT_MSG_GETCHAIN, 0, nil)
	if err != nil {
		return nil, err
	}
	var chains []Chain
	var keys []key
	// Tables, as keys without a chain name: tables with a long chain, and tables that every packet
	// passes. Tables with nat chains only, which are the long ones on a host that balances the load
	// of thousands of services, never see packets of an existing connection.
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
		fewest := walkOf(rules, false)
		for i, k := range keys {
			if k.family == table.family && k.table == table.table {
				most := walkOf(rules, true)
				chains[i].Compared, chains[i].AtMost = fewest.walked(k), most.walked(k)
				chains[i].Counting = most.counting(k.family, k.table)
			}
		}
	}
	return chains, nil
}

// rulesOf returns the rules of one table, by chain, in their order.
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

// dump reads a list.
func dump(c *netlink.Conn, kind uint16, family byte, filter []byte) ([]netlink.Message, error) {
	request := binary.BigEndian.AppendUint16([]byte{family, 0}, 0) // struct nfgenmsg
	return nl.Execute(c, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind),
			Flags: netlink.Request | netlink.Dump},
		Data: append(request, filter...),
	})
}

// unsupported maps the kernel's various errors for missing nftables to one.
func unsupported(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
