package standing

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// Picture is what stands on some interfaces, as plain data.
type Picture struct {
	Links []Link `json:"links"`
	// The kernel's messages without their netlink headers, in the order of its lists.
	Addresses   [][]byte `json:"addresses,omitempty"`
	Neighbours  [][]byte `json:"neighbours,omitempty"`
	Disciplines [][]byte `json:"disciplines,omitempty"`
	Classes     [][]byte `json:"classes,omitempty"`
	Routes      [][]byte `json:"routes,omitempty"`
}

// Link is what an interface itself has.
type Link struct {
	Index     int      `json:"index"`
	Name      string   `json:"name"`
	Flags     uint32   `json:"flags"`             // IFF_UP and those of kept
	Running   bool     `json:"running,omitempty"` // the kernel has reported the carrier, and it is there
	MAC       []byte   `json:"mac"`
	Broadcast []byte   `json:"broadcast,omitempty"`
	Alias     string   `json:"alias,omitempty"`
	Group     uint32   `json:"group,omitempty"`
	Dormant   bool     `json:"dormant,omitempty"` // IF_LINK_MODE_DORMANT
	AltNames  []string `json:"alternative_names,omitempty"`
}

// kept are the flags that a user sets, besides IFF_UP.
const kept = unix.IFF_PROMISC | unix.IFF_ALLMULTI | unix.IFF_NOARP | unix.IFF_MULTICAST | unix.IFF_BROADCAST

// Attributes that x/sys/unix lacks, and their values (linux/if.h, linux/if_link.h,
// linux/rtnetlink.h).
const (
	iflaXDP       = 43
	iflaXDPOn     = 2
	operUp        = 6 // IF_OPER_UP
	rtaNextHop    = 30
	ndaDst        = 1
	ndaLladdr     = 2
	ndaVLAN       = 5
	nudPermanent  = 0x80
	ntfProxy      = 8
	tcaKind       = 1
	tcaOptions    = 2
	tcaStab       = 8
	ingressParent = 0xfffffff1 // TC_H_INGRESS, also of clsact
	ingressHook   = 0xfffffff2 // TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
	egressHook    = 0xfffffff3
)

// Refusal reports something that could not be put back.
type Refusal struct{ Interface, Why string }

func (r *Refusal) Error() string { return r.Interface + ": " + r.Why + ", which would not come back" }

// replayed are disciplines that the kernel takes back as it reports them.
var replayed = []string{"bfifo", "cake", "clsact", "fq", "fq_codel", "htb", "ingress", "netem", "noqueue",
	"pfifo", "pfifo_fast", "prio", "sfq", "tbf"}

// Take returns what stands on interfaces, or a *Refusal.
func Take(c *nl.Client, names ...string) (Picture, error) {
	var p Picture
	msgs, err := c.Dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		return p, nl.Wrap("list links", "", err)
	}
	for _, name := range names {
		l, err := linkOf(msgs, name)
		if err != nil {
			return p, err
		}
		p.Links = append(p.Links, l)
	}
	for _, step := range []func(*nl.Client) error{p.addresses, p.neighbours, p.queues, p.routes} {
		if err := step(c); err != nil {
			return p, err
		}
	}
	return p, nil
}

// running reports whether a carrier is there and reported. IFF_RUNNING does not show that: a new
// interface has it before the first report (IF_OPER_UNKNOWN; netif_oper_up in linux/netdevice.h),
// and that report can be of the carrier that it did not have yet.
func running(flags uint32, operstate []byte) bool {
	return flags&unix.IFF_LOWER_UP != 0 && len(operstate) == 1 && operstate[0] == operUp
}

// linkOf reads an interface from a list of all.
func linkOf(msgs []netlink.Message, name string) (Link, error) {
	var found *Link
	var why string
	for _, m := range msgs {
		attrs, err := attributes(m.Data, unix.SizeofIfInfomsg)
		if err != nil {
			return Link{}, err
		}
		if string(bytes.TrimRight(attrs.find(unix.IFLA_IFNAME), "\x00")) != name {
			continue
		}
		flags := u32(m.Data[8:])
		l := Link{Index: int(u32(m.Data[4:])), Name: name,
			Flags: flags & (kept | unix.IFF_UP), Running: running(flags, attrs.find(unix.IFLA_OPERSTATE)),
			MAC: attrs.find(unix.IFLA_ADDRESS), Broadcast: attrs.find(unix.IFLA_BROADCAST),
			Alias: string(bytes.TrimRight(attrs.find(unix.IFLA_IFALIAS), "\x00")), Group: attrs.uint32(unix.IFLA_GROUP)}
		if mode := attrs.find(unix.IFLA_LINKMODE); len(mode) > 0 {
			l.Dormant = mode[0] == 1
		}
		if props, err := netlink.UnmarshalAttributes(attrs.find(unix.IFLA_PROP_LIST)); err == nil {
			for _, a := range props {
				if nl.TypeOf(a) == unix.IFLA_ALT_IFNAME {
					l.AltNames = append(l.AltNames, string(bytes.TrimRight(a.Data, "\x00")))
				}
			}
		}
		if attrs.uint32(unix.IFLA_MASTER) != 0 {
			why = "it is a port of a bridge, bond or VRF"
		}
		if xdp, err := netlink.UnmarshalAttributes(attrs.find(iflaXDP)); err == nil {
			if on := (list(xdp)).find(iflaXDPOn); len(on) > 0 && on[0] != 0 {
				why = "an XDP program is attached to it"
			}
		}
		found = &l
	}
	if found == nil {
		return Link{}, nl.Wrap("read link", name, unix.ENODEV)
	}
	for _, m := range msgs {
		attrs, err := attributes(m.Data, unix.SizeofIfInfomsg)
		if err != nil {
			return Link{}, err
		}
		// IFLA_LINK is the index in another namespace where IFLA_LINK_NETNSID is present.
		if attrs.uint32(unix.IFLA_LINK) == uint32(found.Index) && u32(m.Data[4:]) != uint32(found.Index) &&
			attrs.find(unix.IFLA_LINK_NETNSID) == nil {
			why = string(bytes.TrimRight(attrs.find(unix.IFLA_IFNAME), "\x00")) + " stands on it"
		}
	}
	if why != "" {
		return Link{}, &Refusal{name, why}
	}
	return *found, nil
}

// has reports whether an index is one of the picture's.
func (p *Picture) has(index uint32) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool { return uint32(l.Index) == index })
}

func (p *Picture) name(index uint32) string {
	for _, l := range p.Links {
		if uint32(l.Index) == index {
			return l.Name
		}
	}
	return ""
}

func (p *Picture) addresses(c *nl.Client) error {
	msgs, err := c.Dump(unix.RTM_GETADDR, make([]byte, unix.SizeofIfAddrmsg))
	if err != nil {
		return nl.Wrap("list addresses", "", err)
	}
	for _, m := range msgs {
		if len(m.Data) < unix.SizeofIfAddrmsg || !p.has(u32(m.Data[4:])) {
			continue
		}
		if m.Data[0] == unix.AF_INET6 && m.Data[2]&unix.IFA_F_TEMPORARY != 0 {
			continue // the kernel makes them
		}
		p.Addresses = append(p.Addresses, slices.Clone(m.Data))
	}
	return nil
}

func (p *Picture) neighbours(c *nl.Client) error {
	for _, flags := range []byte{0, ntfProxy} {
		request := make([]byte, unix.SizeofNdMsg)
		request[10] = flags
		msgs, err := c.Dump(unix.RTM_GETNEIGH, request)
		if err != nil {
			return nl.Wrap("list neighbours", "", err)
		}
		for _, m := range msgs {
			if len(m.Data) < unix.SizeofNdMsg || !p.has(u32(m.Data[4:])) {
				continue
			}
			state, proxy := binary.NativeEndian.Uint16(m.Data[8:]), m.Data[10]&ntfProxy != 0
			if family := m.Data[0]; family != unix.AF_INET && family != unix.AF_INET6 || !proxy && state&nudPermanent == 0 {
				continue
			}
			attrs, err := attributes(m.Data, unix.SizeofNdMsg)
			if err != nil {
				return err
			}
			message, err := attrs.only(m.Data[:unix.SizeofNdMsg], ndaDst, ndaLladdr, ndaVLAN)
			if err != nil {
				return err
			}
			p.Neighbours = append(p.Neighbours, message)
		}
	}
	return nil
}

// sizeTc is the size of struct tcmsg: family, index, handle, parent, info.
const sizeTc = 20

// queues takes disciplines and classes. Those with the handle 0 are the kernel's own, which makes
// them again.
func (p *Picture) queues(c *nl.Client) error {
	msgs, err := c.Dump(unix.RTM_GETQDISC, make([]byte, sizeTc))
	if err != nil {
		return nl.Wrap("list qdiscs", "", err)
	}
	for _, m := range msgs {
		if len(m.Data) < sizeTc || !p.has(u32(m.Data[4:])) {
			continue
		}
		attrs, err := attributes(m.Data, sizeTc)
		if err != nil {
			return err
		}
		name, kind, handle := p.name(u32(m.Data[4:])), attrs.text(tcaKind), u32(m.Data[8:])
		if err := noFilters(c, name, m.Data, handle); err != nil {
			return err
		}
		if handle == 0 {
			continue
		}
		if !slices.Contains(replayed, kind) {
			return &Refusal{name, "it has the queueing discipline " + kind}
		}
		message, err := attrs.only(m.Data[:sizeTc], tcaKind, tcaOptions, tcaStab)
		if err != nil {
			return err
		}
		binary.NativeEndian.PutUint32(message[16:], 0) // the use count
		if kind == "htb" {
			asRequested(message)
		}
		p.Disciplines = append(p.Disciplines, message)
	}
	for _, l := range p.Links {
		msgs, err := c.Dump(unix.RTM_GETTCLASS, tcHeader(l.Index, 0))
		if err != nil {
			return nl.Wrap("list classes of", l.Name, err)
		}
		for _, m := range msgs {
			if len(m.Data) < sizeTc {
				continue
			}
			attrs, err := attributes(m.Data, sizeTc)
			if err != nil {
				return err
			}
			if attrs.text(tcaKind) != "htb" {
				continue // part of its discipline
			}
			message, err := attrs.only(m.Data[:sizeTc], tcaKind, tcaOptions)
			if err != nil {
				return err
			}
			binary.NativeEndian.PutUint32(message[16:], 0) // the discipline in it, which has a message of its own
			p.Classes = append(p.Classes, message)
		}
	}
	return nil
}

// asRequested turns the options that the kernel reports of an htb into those that it takes, in
// place: the version is only the major one (htb_init), and the last number counts packets (struct
// tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts).
func asRequested(message []byte) {
	const tcaHtbInit, sizeGlob = 2, 20
	attrs, err := netlink.UnmarshalAttributes(message[sizeTc:])
	if err != nil {
		return
	}
	options := list(attrs).find(tcaOptions)
	nested, err := netlink.UnmarshalAttributes(options)
	if err != nil {
		return
	}
	init := list(nested).find(tcaHtbInit)
	at := bytes.Index(message, init)
	if len(init) < sizeGlob || at < 0 {
		return
	}
	binary.NativeEndian.PutUint32(message[at:], u32(init)>>16)
	binary.NativeEndian.PutUint32(message[at+16:], 0)
}

func tcHeader(index int, parent uint32) []byte {
	b := make([]byte, sizeTc)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[12:], parent)
	return b
}

// noFilters refuses an interface with filters.
func noFilters(c *nl.Client, name string, qdisc []byte, handle uint32) error {
	parents := []uint32{handle}
	if u32(qdisc[12:]) == ingressParent {
		parents = []uint32{ingressHook, egressHook}
	}
	for _, parent := range parents {
		msgs, err := c.Dump(unix.RTM_GETTFILTER, tcHeader(int(u32(qdisc[4:])), parent))
		if err != nil {
			continue // a discipline without classes has no filters
		}
		if len(msgs) > 0 {
			return &Refusal{name, "a traffic filter is attached to it"}
		}
	}
	return nil
}

// routes takes the routes over the interfaces, and those of other interfaces that prefer one of
// their addresses as the source: the kernel deletes both.
func (p *Picture) routes(c *nl.Client) error {
	var own [][]byte
	for _, a := range p.Addresses {
		if attrs, err := attributes(a, unix.SizeofIfAddrmsg); err == nil {
			own = append(own, attrs.find(unix.IFA_ADDRESS), attrs.find(unix.IFA_LOCAL))
		}
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, unix.SizeofRtMsg)
		request[0] = family
		msgs, err := c.Dump(unix.RTM_GETROUTE, request)
		if err != nil {
			return nl.Wrap("list routes", "", err)
		}
		for _, m := range msgs {
			if len(m.Data) < unix.SizeofRtMsg {
				continue
			}
			attrs, err := attributes(m.Data, unix.SizeofRtMsg)
			if err != nil {
				return err
			}
			over := p.over(attrs)
			source := attrs.find(unix.RTA_PREFSRC)
			preferred := func(a []byte) bool { return source != nil && bytes.Equal(a, source) }
			if over == "" && !slices.ContainsFunc(own, preferred) {
				continue
			}
			protocol, table := m.Data[5], m.Data[4]
			if u32(m.Data[8:])&unix.RTM_F_CLONED != 0 || protocol == unix.RTPROT_RA ||
				protocol == unix.RTPROT_KERNEL && table == unix.RT_TABLE_LOCAL {
				continue // the kernel makes them, or the router's next advertisement does
			}
			if attrs.uint32(rtaNextHop) != 0 {
				return &Refusal{over, "a route over it uses a nexthop object"}
			}
			message, err := sendable(m.Data[:unix.SizeofRtMsg], attrs)
			if err != nil {
				return err
			}
			p.Routes = append(p.Routes, message)
		}
	}
	return nil
}

// over returns the name of an interface of the picture over which a route goes, or "".
func (p *Picture) over(attrs list) string {
	if name := p.name(attrs.uint32(unix.RTA_OIF)); name != "" {
		return name
	}
	name := ""
	_ = hops(attrs.find(unix.RTA_MULTIPATH), func(hop []byte) {
		if n := p.name(u32(hop[4:])); n != "" {
			name = n
		}
	})
	return name
}

// hops calls f for each struct rtnexthop (u16 length, u8 flags, u8 weight, i32 index, attributes).
func hops(b []byte, f func(hop []byte)) error {
	for len(b) >= unix.SizeofRtNexthop {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtNexthop || n > len(b) {
			return fmt.Errorf("next hops: %w", nl.ErrShort)
		}
		f(b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// sendable drops from a reported route what the kernel computes and does not take.
func sendable(header []byte, attrs list) ([]byte, error) {
	header = slices.Clone(header)
	binary.NativeEndian.PutUint32(header[8:], u32(header[8:])&unix.RTNH_F_ONLINK)
	var out list
	for _, a := range attrs {
		switch nl.TypeOf(a) {
		case unix.RTA_CACHEINFO:
			const perSecond = 100 // USER_HZ
			if len(a.Data) >= 12 && int32(u32(a.Data[8:])) > 0 {
				seconds := binary.NativeEndian.AppendUint32(nil, u32(a.Data[8:])/perSecond)
				out = append(out, netlink.Attribute{Type: unix.RTA_EXPIRES, Data: seconds})
			}
			continue
		case unix.RTA_MULTIPATH:
			a.Data = slices.Clone(a.Data)
			if err := hops(a.Data, func(hop []byte) { hop[2] &= unix.RTNH_F_ONLINK }); err != nil {
				return nil, err
			}
		}
		out = append(out, a)
	}
	return out.after(header)
}
