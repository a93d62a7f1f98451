package nl

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/sorting"
)

const (
	sizeIfInfo = unix.SizeofIfInfomsg
	sizeIfAddr = unix.SizeofIfAddrmsg
)

// ifInfo returns struct ifinfomsg: family, pad, type, index, flags, change mask.
//
// Index 0 in a request means that the attributes name the link (IFLA_IFNAME), or that the request
// covers all links. The mask selects the flags that count: without it the kernel would read every
// absent flag as "switch off" (rtnl_dev_combine_flags). With flags and mask zero the kernel changes
// no flag.
func ifInfo(index int, flags, mask uint32) []byte {
	b := make([]byte, sizeIfInfo)
	binary.NativeEndian.PutUint32(b[4:], uint32(int32(index)))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], mask)
	return b
}

// extSkipStats omits the counters from link messages (RTEXT_FILTER_SKIP_STATS, 4.4; ignored
// before).
//
// Package host reads counters from /proc/net/dev; here they would only lengthen the answer. The
// filter grew over the years: it first omitted the IPv6 counters, then those of virtual functions,
// and in the newest kernels IFLA_STATS itself. Nothing here depends on it.
const extSkipStats = 1 << 3

// links dumps all interfaces. It sorts them, because the kernel promises no order.
func (k *kernel) links() ([]Link, error) {
	req, err := Encode(ifInfo(0, 0, 0),
		func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_EXT_MASK, extSkipStats) })
	if err != nil {
		return nil, err
	}
	msgs, err := k.dump(unix.RTM_GETLINK, req)
	if err != nil {
		return nil, err
	}
	links := make([]Link, 0, len(msgs))
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWLINK {
			continue
		}
		l, err := parseLink(m.Data)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	sorting.Func(links, func(a, b Link) int { return a.Index - b.Index })
	return links, nil
}

// linkByName lets the kernel look the name up. One request is enough, and no race between a list
// and its use can occur.
func (k *kernel) linkByName(name string) (Link, error) {
	if err := CheckName(name); err != nil {
		return Link{}, err
	}
	return k.linkBy(unix.IFLA_IFNAME, name)
}

// ownName uses the attribute of the long names, with which the kernel finds the short ones as well.
func (k *kernel) ownName(name string) (string, error) {
	l, err := k.linkBy(unix.IFLA_ALT_IFNAME, name)
	return l.Name, err
}

func (k *kernel) linkBy(attribute uint16, name string) (Link, error) {
	req, err := Encode(ifInfo(0, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.String(attribute, name)
		ae.Uint32(unix.IFLA_EXT_MASK, extSkipStats)
	})
	if err != nil {
		return Link{}, err
	}
	m, err := k.get(unix.RTM_GETLINK, req)
	if err != nil {
		return Link{}, err
	}
	return parseLink(m.Data)
}

// index returns the number of a link for use in requests. If the link is deleted and recreated
// under the same name before the next request, it has another number, and that request fails with
// ENODEV instead of changing the wrong link.
func (k *kernel) index(name string) (int, error) {
	l, err := k.linkByName(name)
	return l.Index, err
}

// parseLink reads an RTM_NEWLINK message without its netlink header.
//
// The attribute names are those of linux/if_link.h. Kind is empty for hardware, because the kernel
// sends IFLA_LINKINFO only for drivers that register link operations.
func parseLink(data []byte) (Link, error) {
	ad, err := Attributes(data, sizeIfInfo)
	if err != nil {
		return Link{}, fmt.Errorf("link message: %w", err)
	}
	flags := u32(data[8:])
	l := Link{
		Index:   int(int32(u32(data[4:]))),
		Up:      flags&unix.IFF_UP != 0,
		Carrier: flags&unix.IFF_LOWER_UP != 0,
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_IFNAME:
			l.Name = ad.String()
		case unix.IFLA_ADDRESS:
			l.MAC = net.HardwareAddr(ad.Bytes()).String()
		case unix.IFLA_MTU:
			l.MTU = int(ad.Uint32())
		case unix.IFLA_MIN_MTU:
			l.MinMTU = int(ad.Uint32())
		case unix.IFLA_MAX_MTU:
			l.MaxMTU = int(ad.Uint32())
		case unix.IFLA_TXQLEN:
			l.TxQueueLen = int(ad.Uint32())
		case unix.IFLA_NUM_TX_QUEUES:
			l.TxQueues = int(ad.Uint32())
		case unix.IFLA_NUM_RX_QUEUES:
			l.RxQueues = int(ad.Uint32())
		case unix.IFLA_QDISC:
			l.Qdisc = ad.String()
		case unix.IFLA_LINK:
			l.ParentIndex = int(ad.Int32())
		case unix.IFLA_MASTER:
			l.MasterIndex = int(ad.Uint32())
		case unix.IFLA_GRO_MAX_SIZE:
			l.GROMaxBytes = int(ad.Uint32())
		case unix.IFLA_GSO_MAX_SIZE:
			l.GSOMaxBytes = int(ad.Uint32())
		case unix.IFLA_GRO_IPV4_MAX_SIZE:
			l.GROIPv4MaxBytes = int(ad.Uint32())
		case unix.IFLA_GSO_IPV4_MAX_SIZE:
			l.GSOIPv4MaxBytes = int(ad.Uint32())
		case unix.IFLA_LINKINFO:
			ad.Nested(l.parseInfo)
		}
	}
	if err := ad.Err(); err != nil {
		return Link{}, fmt.Errorf("link message: %w", err)
	}
	return l, nil
}

// parseInfo reads IFLA_LINKINFO. The meaning of its nest IFLA_INFO_DATA depends on the kind. The
// kernel sends the kind first but does not promise to, so the data is kept until both have been
// read.
func (l *Link) parseInfo(ad *netlink.AttributeDecoder) error {
	var data []byte
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_INFO_KIND:
			l.Kind = ad.String()
		case unix.IFLA_INFO_DATA:
			data = ad.Bytes()
		}
	}
	if l.Kind != "vlan" && l.Kind != "bond" {
		return nil
	}
	info, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return fmt.Errorf("%s data: %w", l.Kind, err)
	}
	for info.Next() {
		switch typ := info.Type(); {
		case l.Kind == "vlan" && typ == unix.IFLA_VLAN_ID:
			l.VLANID = int(info.Uint16())
		case l.Kind == "vlan" && typ == unix.IFLA_VLAN_PROTOCOL:
			// This is the only attribute here in network byte order: it is the EtherType as the
			// frame carries it.
			if b := info.Bytes(); len(b) == 2 {
				l.VLANProtocol = vlanProtocol(binary.BigEndian.Uint16(b))
			}
		case l.Kind == "bond" && typ == unix.IFLA_BOND_MODE:
			if m := int(info.Uint8()); m < len(bondModes) {
				l.BondMode = bondModes[m]
			}
		}
	}
	return info.Err()
}

// bondModes names BOND_MODE_* of linux/if_bonding.h as ip-link(8) does.
var bondModes = []string{"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb",
	"balance-alb"}

// vlanProtocol returns the name of a VLAN tag, or its number if ip-link(8) has no name for it, so
// that a report still identifies it.
func vlanProtocol(etherType uint16) string {
	switch etherType {
	case unix.ETH_P_8021Q:
		return "802.1Q"
	case unix.ETH_P_8021AD:
		return "802.1ad"
	}
	return fmt.Sprintf("0x%04x", etherType)
}

// addresses sends a header without a family (AF_UNSPEC), which requests all families in one dump.
func (k *kernel) addresses() ([]Address, error) {
	msgs, err := k.dump(unix.RTM_GETADDR, make([]byte, sizeIfAddr))
	if err != nil {
		return nil, err
	}
	out := make([]Address, 0, len(msgs))
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWADDR {
			continue
		}
		a, ok, err := parseAddress(m.Data)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, a)
		}
	}
	return out, nil
}

// parseAddress reads an RTM_NEWADDR message. ok is false for families other than IP.
func parseAddress(data []byte) (a Address, ok bool, err error) {
	ad, err := Attributes(data, sizeIfAddr)
	if err != nil {
		return Address{}, false, fmt.Errorf("address message: %w", err)
	}
	bits, index := int(data[1]), int(u32(data[4:]))
	var local, addr netip.Addr
	for ad.Next() {
		switch ad.Type() {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.IFA_ADDRESS:
			addr, _ = netip.AddrFromSlice(ad.Bytes())
		}
	}
	if err := ad.Err(); err != nil {
		return Address{}, false, fmt.Errorf("address message: %w", err)
	}
	// On a point-to-point link IFA_ADDRESS is the peer and IFA_LOCAL the local address; IPv6 sends
	// IFA_LOCAL only in that case.
	if !local.IsValid() {
		local = addr
	}
	// Other families (MPLS, DECnet of old kernels) have addresses of other lengths, which netip
	// does not accept; they are not valid here.
	p := netip.PrefixFrom(local, bits)
	if !p.IsValid() {
		return Address{}, false, nil
	}
	return Address{Index: index, CIDR: p.String()}, true, nil
}

// modify sends RTM_NEWLINK for an existing link.
//
// It does not set NLM_F_CREATE, so a link that has disappeared causes an error instead of being
// recreated.
func (k *kernel) modify(name string, flags, mask uint32, fill func(*netlink.AttributeEncoder)) error {
	index, err := k.index(name)
	if err != nil {
		return err
	}
	req, err := Encode(ifInfo(index, flags, mask), fill)
	if err != nil {
		return err
	}
	return k.change(unix.RTM_NEWLINK, 0, req)
}

// setMTU leaves the range check to the kernel, which knows the driver's limits and reports them in
// the extended acknowledgement. The kernel disables IPv6 on a link whose MTU falls below 1280 (RFC
// 8200 §5) and deletes its addresses; restoring the old MTU does not restore them.
func (k *kernel) setMTU(name string, bytes int) error {
	return k.setUint32(name, unix.IFLA_MTU, bytes)
}

// setTxQueueLen changes the default limit of queueing disciplines created afterwards. Of the
// existing ones, only some (pfifo_fast) follow; the rest copied the number at their creation.
func (k *kernel) setTxQueueLen(name string, packets int) error {
	return k.setUint32(name, unix.IFLA_TXQLEN, packets)
}

// setSizeLimit reads the value back, because the kernel silently ignores attributes of RTM_NEWLINK
// that it does not know.
func (k *kernel) setSizeLimit(name string, which SizeLimit, bytes int) error {
	attr, ok := map[SizeLimit]uint16{
		LimitGRO: unix.IFLA_GRO_MAX_SIZE, LimitGSO: unix.IFLA_GSO_MAX_SIZE,
		LimitGROIPv4: unix.IFLA_GRO_IPV4_MAX_SIZE, LimitGSOIPv4: unix.IFLA_GSO_IPV4_MAX_SIZE,
	}[which]
	if !ok {
		return fmt.Errorf("%w: the kernel has no size limit %q", fs.ErrNotExist, which)
	}
	before, err := k.linkByName(name)
	switch {
	case err != nil:
		return err
	case before.SizeLimit(which) == 0:
		return fmt.Errorf("%w: this kernel has no %s", ErrNotSupported, which)
	case before.SizeLimit(which) == bytes:
		return nil
	}
	if err := k.setUint32(name, attr, bytes); err != nil {
		return err
	}
	after, err := k.linkByName(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if after.SizeLimit(which) == before.SizeLimit(which) {
		return ErrNotApplied
	}
	return nil
}

// setUint32 refuses a value that would be truncated to 32 bits in the attribute.
func (k *kernel) setUint32(name string, attr uint16, v int) error {
	if v < 0 || int64(v) > 1<<32-1 {
		return unix.ERANGE
	}
	return k.modify(name, 0, 0, func(ae *netlink.AttributeEncoder) { ae.Uint32(attr, uint32(v)) })
}

// setUp sends one flag and a mask with that one bit, so that promiscuous mode and the other flags
// do not change.
func (k *kernel) setUp(name string, up bool) error {
	var flags uint32
	if up {
		flags = unix.IFF_UP
	}
	return k.modify(name, flags, unix.IFF_UP, nil)
}

// setMAC sets the hardware address. Many drivers refuse it while the link is up (EBUSY); drivers
// that accept it set IFF_LIVE_ADDR_CHANGE.
func (k *kernel) setMAC(name, mac string) error {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	return k.modify(name, 0, 0, func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.IFLA_ADDRESS, hw) })
}

// moveToNetNS identifies the namespace by a descriptor instead of a process id. A process may end
// and its id be reused between the two calls, but a descriptor holds the namespace.
func (k *kernel) moveToNetNS(name string, fd int) error {
	return k.modify(name, 0, 0, func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_NET_NS_FD, uint32(fd)) })
}

// setMaster detaches a port with index 0, as `ip link set nomaster` does.
func (k *kernel) setMaster(name, master string) error {
	index := 0
	if master != "" {
		var err error
		if index, err = k.index(master); err != nil {
			return &Error{Op: "read link", Subject: master, Err: err}
		}
	}
	return k.modify(name, 0, 0, func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_MASTER, uint32(index)) })
}

// deleteLink uses the index, so that it deletes the right link even if that was renamed meanwhile.
func (k *kernel) deleteLink(name string) error {
	index, err := k.index(name)
	if err != nil {
		return err
	}
	return k.change(unix.RTM_DELLINK, 0, ifInfo(index, 0, 0))
}

// createNew makes an "add" fail with EEXIST if the name exists. Without NLM_F_EXCL the kernel would
// change the existing link or route instead.
const createNew = netlink.Create | netlink.Excl

// addLink lets the kernel load the module of the kind (rtnl-link-KIND). For a kind that the kernel
// lacks, the error is EOPNOTSUPP.
func (k *kernel) addLink(name, kind string) error {
	if err := checkNewName(name); err != nil {
		return err
	}
	req, err := Encode(ifInfo(0, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
			info.String(unix.IFLA_INFO_KIND, kind)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return k.change(unix.RTM_NEWLINK, createNew, req)
}

// vethInfoPeer is VETH_INFO_PEER of linux/veth.h: a whole link message for the other end.
const vethInfoPeer = 1

// addVeth creates both ends in one request, so that neither is ever in the wrong namespace. The
// nest IFLA_INFO_DATA holds VETH_INFO_PEER, which holds a whole struct ifinfomsg followed by
// attributes, not a nest of attributes; hence Do with bytes.
func (k *kernel) addVeth(a, b string, bNetNSFd int) error {
	for _, n := range []string{a, b} {
		if err := checkNewName(n); err != nil {
			return err
		}
	}
	req, err := Encode(ifInfo(0, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, a)
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
			info.String(unix.IFLA_INFO_KIND, "veth")
			info.Nested(unix.IFLA_INFO_DATA, func(data *netlink.AttributeEncoder) error {
				data.Do(vethInfoPeer, func() ([]byte, error) {
					return Encode(ifInfo(0, 0, 0), func(peer *netlink.AttributeEncoder) {
						peer.String(unix.IFLA_IFNAME, b)
						if bNetNSFd >= 0 {
							peer.Uint32(unix.IFLA_NET_NS_FD, uint32(bNetNSFd))
						}
					})
				})
				return nil
			})
			return nil
		})
	})
	if err != nil {
		return err
	}
	return k.change(unix.RTM_NEWLINK, createNew, req)
}

// checkNewName explains the rule in its error, unlike CheckName, because the user chose this name.
// The kernel checks the characters (dev_valid_name).
func checkNewName(name string) error {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface name %q: want 1 to %d bytes", name, unix.IFNAMSIZ-1)
	}
	return nil
}

// addAddress sends the address twice, as the local address and as that of the prefix. IPv4 expects
// this for an address without a peer; IPv6 accepts either.
func (k *kernel) addAddress(name, cidr string) error {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return err
	}
	index, err := k.index(name)
	if err != nil {
		return err
	}
	h := make([]byte, sizeIfAddr)
	h[0], h[1] = unix.AF_INET, byte(p.Bits())
	if p.Addr().Is6() {
		h[0] = unix.AF_INET6
		// Duplicate address detection would keep the address tentative for about a second, in which
		// no socket can bind to it (RFC 4862 §5.4). In a newly created lab world no other host can
		// have the address.
		h[2] = unix.IFA_F_NODAD
	}
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	req, err := Encode(h, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_LOCAL, p.Addr().AsSlice())
		ae.Bytes(unix.IFA_ADDRESS, p.Addr().AsSlice())
		// Neither a /31 (RFC 3021) nor a /32 has a broadcast address.
		if p.Addr().Is4() && p.Bits() < 31 {
			ae.Bytes(unix.IFA_BROADCAST, broadcast(p))
		}
	})
	if err != nil {
		return err
	}
	return k.change(unix.RTM_NEWADDR, createNew, req)
}

// broadcast returns the last address of an IPv4 prefix.
//
// The kernel does not derive it (ip(8) does, with "broadcast +"). Without it, programs that send to
// the subnet find no broadcast address.
func broadcast(p netip.Prefix) []byte {
	a := p.Masked().Addr().As4()
	v := binary.BigEndian.Uint32(a[:]) | (1<<(32-p.Bits()) - 1)
	return binary.BigEndian.AppendUint32(nil, v)
}
