package nl

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// From linux/pkt_sched.h and linux/gen_stats.h; x/sys/unix lacks them.
const (
	sizeTcMsg      = 20 // family, 3 pad, ifindex, handle, parent, info
	statsBasic     = 1  // u64 bytes, u32 packets
	statsQueue     = 3  // u32 each: qlen, backlog, drops, requeues, overlimits
	statsPackets64 = 8  // u64 packets, since 5.5
	tbfParms       = 1
	tbfRate64      = 4
	tbfBurst       = 6
	rootHandle     = 0xffffffff // TC_H_ROOT
)

// qdiscs uses two dumps, because messages of queueing disciplines identify their link by number
// only. Index 0 in the request selects all links.
func (k *kernel) qdiscs() ([]Qdisc, error) {
	links, err := k.links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Index] = l.Name
	}
	msgs, err := k.dump(unix.RTM_GETQDISC, make([]byte, sizeTcMsg))
	if err != nil {
		return nil, err
	}
	out := make([]Qdisc, 0, len(msgs))
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWQDISC {
			continue
		}
		q, index, err := parseQdisc(m.Data)
		if err != nil {
			return nil, err
		}
		// A link that appeared or disappeared between the two dumps is omitted; its counters would
		// be new or gone anyway.
		if q.Interface = names[index]; q.Interface != "" {
			out = append(out, q)
		}
	}
	return out, nil
}

// parseQdisc reads an RTM_NEWQDISC message and returns the index of its link.
//
// It reads only TCA_STATS2: the flat TCA_STATS beside it holds the same numbers in the older struct
// tc_stats, which cannot grow.
func parseQdisc(data []byte) (q Qdisc, index int, err error) {
	ad, err := Attributes(data, sizeTcMsg)
	if err != nil {
		return Qdisc{}, 0, fmt.Errorf("qdisc message: %w", err)
	}
	index = int(int32(u32(data[4:])))
	q.Handle, q.Parent = u32(data[8:]), u32(data[12:])
	for ad.Next() {
		switch ad.Type() {
		case unix.TCA_KIND:
			q.Kind = ad.String()
		case unix.TCA_OPTIONS:
			q.Options = ad.Bytes()
		case unix.TCA_STATS2:
			ad.Nested(func(nad *netlink.AttributeDecoder) error {
				q.parseStats(nad)
				return nil
			})
		}
	}
	if err := ad.Err(); err != nil {
		return Qdisc{}, 0, fmt.Errorf("qdisc message: %w", err)
	}
	return q, index, nil
}

// parseStats reads the nest TCA_STATS2. Structures may grow at their end, so only a minimum length
// is required.
func (q *Qdisc) parseStats(ad *netlink.AttributeDecoder) {
	wide := false // whether a 64-bit packet count was read; the kernel promises no order
	for ad.Next() {
		b := ad.Bytes()
		switch {
		case ad.Type() == statsBasic && len(b) >= 12:
			q.Bytes = binary.NativeEndian.Uint64(b)
			if !wide {
				q.Packets = uint64(u32(b[8:]))
			}
		case ad.Type() == statsPackets64 && len(b) >= 8:
			q.Packets, wide = binary.NativeEndian.Uint64(b), true
		case ad.Type() == statsQueue && len(b) >= 20:
			q.BacklogPackets = uint64(u32(b))
			q.BacklogBytes = uint64(u32(b[4:]))
			q.Drops = uint64(u32(b[8:]))
			q.Requeues = uint64(u32(b[12:]))
			q.Overlimits = uint64(u32(b[16:]))
		}
	}
}

// replaceTBF shapes with a token bucket. The rate in struct tc_ratespec has 32 bits, in bytes per
// second, which allows 34 Gb/s; above that the field holds all ones and TCA_TBF_RATE64 (3.13) the
// true rate. The limit is the size in bytes of the queue in front of the bucket. Packets that do
// not fit are dropped, as on a full link.
func (k *kernel) replaceTBF(name string, t TBF) error {
	rate := t.RateBitsPerSecond / 8
	if !(rate >= 1) || t.BurstBytes <= 0 || t.LimitBytes <= 0 || t.BurstBytes > math.MaxInt32 ||
		t.LimitBytes > math.MaxInt32 {
		return fmt.Errorf("token bucket of %g bit/s, burst %d, limit %d bytes: want positive values",
			t.RateBitsPerSecond, t.BurstBytes, t.LimitBytes)
	}
	// struct tc_tbf_qopt: two tc_ratespec of 12 bytes (cell log, link layer, overhead, cell align,
	// mpu, rate), then limit, buffer, mtu. The burst has its own attribute in bytes (3.14), which
	// avoids clock ticks and a rate table.
	parms := make([]byte, 36)
	const linkLayerEthernet = 1
	parms[1] = linkLayerEthernet
	binary.NativeEndian.PutUint32(parms[8:], uint32(min(rate, math.MaxUint32)))
	binary.NativeEndian.PutUint32(parms[24:], uint32(t.LimitBytes))
	return k.setQdisc(name, "tbf", func(ae *netlink.AttributeEncoder) error {
		ae.Bytes(tbfParms, parms)
		ae.Uint32(tbfBurst, uint32(t.BurstBytes))
		if rate >= math.MaxUint32 {
			ae.Uint64(tbfRate64, uint64(rate))
		}
		return nil
	})
}

func (k *kernel) replaceQdisc(name, kind string) error { return k.setQdisc(name, kind, nil) }

// setQdisc creates or replaces the root of a link. With handle 0 the kernel assigns the next free
// one.
func (k *kernel) setQdisc(name, kind string, options func(*netlink.AttributeEncoder) error) error {
	var body []byte
	if options != nil {
		ae := netlink.NewAttributeEncoder()
		if err := options(ae); err != nil {
			return err
		}
		var err error
		if body, err = ae.Encode(); err != nil {
			return err
		}
	}
	return k.putQdisc(name, QdiscNode{Kind: kind, Parent: rootHandle, Options: body}, netlink.Create|netlink.Replace)
}

// putQdisc sends RTM_NEWQDISC. The effect depends on the flags and on whether the handle is that of
// the present discipline (tc_modify_qdisc in net/sched/sch_api.c):
//
//   - no flags and the present handle: the parameters change, the queue remains;
//   - create and replace, with an unused handle, or with no handle and another kind: a new
//     discipline replaces the old one, and packets that waited in the old one are lost;
//   - create and replace, no handle and the same kind: the parameters change, unless the kernel
//     installed the discipline as its default.
func (k *kernel) putQdisc(name string, n QdiscNode, flags netlink.HeaderFlags) error {
	h, err := k.tcHeader(name, n.Handle, n.Parent)
	if err != nil {
		return err
	}
	req, err := Encode(h, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.TCA_KIND, n.Kind)
		if n.Options != nil {
			// The flag for nests is absent: the options of a fifo are not a nest, and tc(8) does
			// not set it either.
			ae.Bytes(unix.TCA_OPTIONS, n.Options)
		}
	})
	if err != nil {
		return err
	}
	return k.change(unix.RTM_NEWQDISC, flags, req)
}

// changeQdisc sends no flags, which tc(8) calls "change": a discipline that has disappeared causes
// an error instead of being recreated.
func (k *kernel) changeQdisc(name string, n QdiscNode) error { return k.putQdisc(name, n, 0) }

func (k *kernel) newQdisc(name string, n QdiscNode) error {
	return k.putQdisc(name, n, netlink.Create|netlink.Replace)
}

// deleteRootQdisc needs no handle: a link has only one root. The kernel refuses to delete its own
// default (handle 0), so the call works only for a discipline that a program installed.
func (k *kernel) deleteRootQdisc(name string) error {
	h, err := k.tcHeader(name, 0, rootHandle)
	if err != nil {
		return err
	}
	return k.change(unix.RTM_DELQDISC, 0, h)
}

// tcHeader returns struct tcmsg for one link.
func (k *kernel) tcHeader(name string, handle, parent uint32) ([]byte, error) {
	index, err := k.index(name)
	if err != nil {
		return nil, err
	}
	h := make([]byte, sizeTcMsg)
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	binary.NativeEndian.PutUint32(h[8:], handle)
	binary.NativeEndian.PutUint32(h[12:], parent)
	return h, nil
}

// qdiscTree selects one link from the dump of all links: the kernel filters a dump of classes by
// link, but not a dump of disciplines (tc_dump_qdisc).
func (k *kernel) qdiscTree(name string) ([]QdiscNode, error) {
	// A message identifies its link by index, so the name is looked up first. A link renamed
	// meanwhile keeps its index; a link deleted and recreated has another one, and no disciplines
	// are found for it.
	index, err := k.index(name)
	if err != nil {
		return nil, err
	}
	msgs, err := k.dump(unix.RTM_GETQDISC, make([]byte, sizeTcMsg))
	if err != nil {
		return nil, err
	}
	var out []QdiscNode
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWQDISC || len(m.Data) < sizeTcMsg || int(int32(u32(m.Data[4:]))) != index {
			continue
		}
		n, err := parseQdiscNode(m.Data)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	// For a link that disappeared between the two requests, report that instead of an empty list.
	if len(out) == 0 {
		_, err = k.index(name)
	}
	return out, err
}

// parseQdiscNode keeps the options as bytes, for package tc to interpret.
func parseQdiscNode(data []byte) (QdiscNode, error) {
	ad, err := Attributes(data, sizeTcMsg)
	if err != nil {
		return QdiscNode{}, fmt.Errorf("qdisc message: %w", err)
	}
	n := QdiscNode{Handle: u32(data[8:]), Parent: u32(data[12:])}
	for ad.Next() {
		switch ad.Type() {
		case unix.TCA_KIND:
			n.Kind = ad.String()
		case unix.TCA_OPTIONS:
			n.Options = ad.Bytes()
		}
	}
	if err := ad.Err(); err != nil {
		return QdiscNode{}, fmt.Errorf("qdisc message: %w", err)
	}
	return n, nil
}
