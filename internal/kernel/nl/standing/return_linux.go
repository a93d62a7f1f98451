package standing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/tc"
)

// Rename gives an interface that is down another name.
func Rename(c *nl.Client, index int, name string) error {
	return nl.Wrap("rename to", name, setLink(c, index, 0, 0, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
	}))
}

func setLink(c *nl.Client, index int, flags, mask uint32, fill func(*netlink.AttributeEncoder)) error {
	header := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(header[4:], uint32(index))
	binary.NativeEndian.PutUint32(header[8:], flags)
	binary.NativeEndian.PutUint32(header[12:], mask)
	request, err := nl.Encode(header, fill)
	if err != nil {
		return err
	}
	return c.Change(unix.RTM_NEWLINK, 0, request)
}

// Dress gives the interface with an index what the picture has of a link, except that it is up. The
// interface has its name already.
func (l Link) Dress(c *nl.Client, index int) error {
	now, err := c.LinkByName(l.Name)
	if err != nil {
		return err
	}
	var errs []error
	// A driver refuses an address while the link is up, and most hosts never set one.
	if mac := net.HardwareAddr(l.MAC).String(); mac != now.MAC {
		errs = append(errs, c.SetMAC(l.Name, mac))
	}
	errs = append(errs, nl.Wrap("set up as before", l.Name, setLink(c, index, l.Flags&kept, kept&^unix.IFF_BROADCAST,
		func(ae *netlink.AttributeEncoder) {
			if l.Alias != "" {
				ae.Bytes(unix.IFLA_IFALIAS, []byte(l.Alias))
			}
			ae.Uint32(unix.IFLA_GROUP, l.Group)
			if len(l.Broadcast) > 0 {
				ae.Bytes(unix.IFLA_BROADCAST, l.Broadcast)
			}
			if l.Dormant {
				ae.Uint8(unix.IFLA_LINKMODE, 1)
			}
		})))
	for _, name := range l.AltNames {
		errs = append(errs, altName(c, index, name))
	}
	return errors.Join(errs...)
}

// altName adds an alternative name (Linux 5.5).
func altName(c *nl.Client, index int, name string) error {
	header := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(header[4:], uint32(index))
	request, err := nl.Encode(header, func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.IFLA_PROP_LIST, func(in *netlink.AttributeEncoder) error {
			in.String(unix.IFLA_ALT_IFNAME, name)
			return nil
		})
	})
	if err == nil {
		err = c.Change(unix.RTM_NEWLINKPROP, netlink.Create|netlink.Excl, request)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil // udev was faster
	}
	return nl.Wrap("add alternative name "+name, "", err)
}

// SetUp brings an interface up if it was up.
func (l Link) SetUp(c *nl.Client) error {
	if l.Flags&unix.IFF_UP == 0 {
		return nil
	}
	return c.SetUp(l.Name)
}

// Return sends addresses, neighbours, disciplines, classes and routes, given the new index of each
// old one. What exists already is left as it is, so it can be repeated.
func (p Picture) Return(c *nl.Client, index map[int]int) error {
	var errs []error
	errs = append(errs, replay(c, unix.RTM_NEWADDR, p.Addresses, func(m []byte) { move(m[4:], index) }))
	errs = append(errs, replay(c, unix.RTM_NEWNEIGH, p.Neighbours, func(m []byte) { move(m[4:], index) }))
	var queues []queued
	for _, m := range p.Disciplines {
		queues = append(queues, queued{unix.RTM_NEWQDISC, m})
	}
	for _, m := range p.Classes {
		queues = append(queues, queued{unix.RTM_NEWTCLASS, m})
	}
	errs = append(errs, replayAll(c, queues, func(m []byte) { move(m[4:], index) }))
	errs = append(errs, replay(c, unix.RTM_NEWROUTE, p.Routes, func(m []byte) { moveRoute(m, index) }))
	return errors.Join(errs...)
}

// move replaces an index.
func move(at []byte, index map[int]int) {
	if to, ok := index[int(u32(at))]; ok {
		binary.NativeEndian.PutUint32(at, uint32(to))
	}
}

// moveRoute replaces the indexes in a route, in place: they have the same length.
func moveRoute(m []byte, index map[int]int) {
	for b := m[unix.SizeofRtMsg:]; len(b) >= 4; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		switch binary.NativeEndian.Uint16(b[2:]) &^ (netlink.Nested | netlink.NetByteOrder) {
		case unix.RTA_OIF:
			move(b[4:], index)
		case unix.RTA_MULTIPATH:
			_ = hops(b[4:n], func(hop []byte) { move(hop[4:], index) })
		}
		b = b[min((n+3)&^3, len(b)):]
	}
}

// queued is one request.
type queued struct {
	kind    uint16
	message []byte
}

func replay(c *nl.Client, kind uint16, messages [][]byte, moved func([]byte)) error {
	var all []queued
	for _, m := range messages {
		all = append(all, queued{kind, m})
	}
	return replayAll(c, all, moved)
}

// replayAll sends requests until all are accepted or none of a round is: a route over a gateway
// needs the route to the gateway, a class its discipline.
func replayAll(c *nl.Client, left []queued, moved func([]byte)) error {
	for len(left) > 0 {
		var failed []queued
		var errs []error
		for _, q := range left {
			m := slices.Clone(q.message)
			moved(m)
			if q.kind == unix.RTM_NEWQDISC {
				m = sent(m)
			}
			flags := netlink.Create | netlink.Excl
			if q.kind == unix.RTM_NEWNEIGH || q.kind == unix.RTM_NEWROUTE && isMultipath(m) {
				// A route over several interfaces lost one of its hops; a neighbour has no second.
				flags = netlink.Create | netlink.Replace
			}
			if err := c.Change(q.kind, flags, m); err != nil && !errors.Is(err, unix.EEXIST) {
				failed = append(failed, q)
				errs = append(errs, fmt.Errorf("%s: %w", describe(q), err))
			}
		}
		if len(failed) == len(left) {
			return errors.Join(errs...)
		}
		left = failed
	}
	return nil
}

// sent returns a discipline as a request: some kernels report options otherwise than they take
// them; see tc.Whole.
func sent(m []byte) []byte {
	attrs, err := attributes(m, sizeTc)
	if err != nil || !slices.Contains(tc.Kinds(), attrs.text(tcaKind)) {
		return m
	}
	for i, a := range attrs {
		if nl.TypeOf(a) != tcaOptions {
			continue
		}
		if options, err := tc.Whole(attrs.text(tcaKind), a.Data, "", ""); err == nil {
			attrs[i].Data = options
		}
	}
	if out, err := attrs.after(m[:sizeTc]); err == nil {
		return out
	}
	return m
}

func isMultipath(route []byte) bool {
	attrs, err := attributes(route, unix.SizeofRtMsg)
	return err == nil && attrs.find(unix.RTA_MULTIPATH) != nil
}

// describe names a message for an error.
func describe(q queued) string {
	ip := func(size int, typ uint16) string {
		attrs, err := attributes(q.message, size)
		if err != nil || attrs.find(typ) == nil {
			return "default"
		}
		return net.IP(attrs.find(typ)).String()
	}
	switch q.kind {
	case unix.RTM_NEWADDR:
		return fmt.Sprintf("address %s/%d", ip(unix.SizeofIfAddrmsg, unix.IFA_ADDRESS), q.message[1])
	case unix.RTM_NEWROUTE:
		return fmt.Sprintf("route to %s/%d", ip(unix.SizeofRtMsg, unix.RTA_DST), q.message[1])
	case unix.RTM_NEWNEIGH:
		return "neighbour " + ip(unix.SizeofNdMsg, ndaDst)
	}
	attrs, _ := attributes(q.message, sizeTc)
	what := "qdisc "
	if q.kind == unix.RTM_NEWTCLASS {
		what = "class of "
	}
	return fmt.Sprintf("%s%s %x:", what, attrs.text(tcaKind), u32(q.message[8:])>>16)
}

// Missing names what the picture has and the interfaces with its names have not.
func (p Picture) Missing(c *nl.Client) ([]string, error) {
	var names []string
	for _, l := range p.Links {
		names = append(names, l.Name)
	}
	now, err := Take(c, names...)
	if err != nil {
		return nil, err
	}
	index := map[int]int{}
	var missing []string
	for i, l := range p.Links {
		n := now.Links[i]
		index[l.Index] = n.Index
		if l.Flags != n.Flags || !bytes.Equal(l.MAC, n.MAC) || l.Alias != n.Alias || l.Group != n.Group ||
			slices.ContainsFunc(l.AltNames, func(a string) bool { return !slices.Contains(n.AltNames, a) }) {
			missing = append(missing, fmt.Sprintf("state of %s (flags %#x, were %#x)", l.Name, n.Flags, l.Flags))
		}
		if l.dark(n) {
			missing = append(missing, carrierOf(l))
		}
	}
	compare := func(kind uint16, old, new [][]byte, moved func([]byte), same func(a, b []byte) bool) {
		for _, m := range old {
			m = slices.Clone(m)
			moved(m)
			if !slices.ContainsFunc(new, func(n []byte) bool { return same(m, n) }) {
				missing = append(missing, describe(queued{kind, m}))
			}
		}
	}
	tail := func(m []byte) { move(m[4:], index) }
	compare(unix.RTM_NEWADDR, p.Addresses, now.Addresses, tail, sameAddress)
	compare(unix.RTM_NEWNEIGH, p.Neighbours, now.Neighbours, tail, bytes.Equal)
	compare(unix.RTM_NEWQDISC, p.Disciplines, now.Disciplines, tail, bytes.Equal)
	compare(unix.RTM_NEWTCLASS, p.Classes, now.Classes, tail, bytes.Equal)
	compare(unix.RTM_NEWROUTE, p.Routes, now.Routes, func(m []byte) { moveRoute(m, index) }, sameRoute)
	return missing, nil
}

// dark reports whether the carrier of a link is not back. A late report of the lost carrier takes
// the proxy neighbours away (neigh_carrier_down in net/core/neighbour.c): what was returned stays
// only when the link is back.
func (l Link) dark(now Link) bool { return l.Running && !now.Running }

func carrierOf(l Link) string { return "carrier of " + l.Name }

// Dark is the part of [Picture.Missing] that comes back without another write: the carriers.
func (p Picture) Dark(c *nl.Client) (missing []string, err error) {
	msgs, err := c.Dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		return nil, nl.Wrap("list links", "", err)
	}
	for _, l := range p.Links {
		now, err := linkOf(msgs, l.Name)
		if err != nil {
			return nil, err
		}
		if l.dark(now) {
			missing = append(missing, carrierOf(l))
		}
	}
	return missing, nil
}

// sameAddress compares address, length and interface: flags and lifetimes go on.
func sameAddress(a, b []byte) bool {
	x, errX := attributes(a, unix.SizeofIfAddrmsg)
	y, errY := attributes(b, unix.SizeofIfAddrmsg)
	return errX == nil && errY == nil && a[0] == b[0] && a[1] == b[1] && bytes.Equal(a[3:8], b[3:8]) &&
		bytes.Equal(x.find(unix.IFA_ADDRESS), y.find(unix.IFA_ADDRESS)) &&
		bytes.Equal(x.find(unix.IFA_LOCAL), y.find(unix.IFA_LOCAL))
}

// sameRoute compares all but the lifetime, which goes on.
func sameRoute(a, b []byte) bool {
	without := func(m []byte) []byte {
		attrs, err := attributes(m, unix.SizeofRtMsg)
		if err != nil {
			return nil
		}
		attrs = slices.DeleteFunc(attrs, func(x netlink.Attribute) bool { return nl.TypeOf(x) == unix.RTA_EXPIRES })
		out, err := attrs.after(m[:unix.SizeofRtMsg])
		if err != nil {
			return nil
		}
		return out
	}
	x := without(a)
	return x != nil && bytes.Equal(x, without(b))
}
