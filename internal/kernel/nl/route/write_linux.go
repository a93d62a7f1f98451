package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// rtaNextHopID is RTA_NH_ID, a reference to a nexthop object (5.3), which x/sys/unix lacks.
const rtaNextHopID = 30

// defaultPriority6 is what the kernel makes of priority 0 for IPv6 (IP6_RT_PRIO_USER).
//
// A zero in a request means 1024 for IPv6 and truly 0 for IPv4, so that a search for "priority 0"
// has to translate before it compares.
const defaultPriority6 = 1024

// lookup finds the route to a destination: the one with that priority, or the one in use (lowest
// priority) when priority is negative.
//
// It compares prefix and priority only. Two routes that differ in nothing but their type of service
// are told apart by neither, and the first of them in the dump is taken, by reads as by writes.
func (k kernel) lookup(dst netip.Prefix, priority int) (raw rawRoute, found bool, err error) {
	if priority < 0 {
		if raw, ok := k.probe(dst); ok {
			return raw, true, nil
		}
	}
	raws, err := k.rawRoutes(family(dst.Addr()))
	if err != nil {
		return rawRoute{}, false, err
	}
	for _, r := range raws {
		if d, ok := r.destination(); !ok || d != dst {
			continue
		}
		p := r.uint32(unix.RTA_PRIORITY)
		switch {
		case priority < 0:
			if !found || p < raw.uint32(unix.RTA_PRIORITY) {
				raw, found = r, true
			}
		case p == kernelPriority(dst, priority):
			return r, true, nil
		}
	}
	return raw, found, nil
}

// probe asks the kernel which entry of its table an address of the prefix meets (RTM_F_FIB_MATCH,
// 4.13), and is content when it is this very prefix.
//
// No dump can be asked for one destination: strict filtering (4.20) knows table, protocol, type and
// interface alone, and a full table of the Internet takes a second and hundreds of megabytes. An
// address may meet a longer prefix, a rule that leads to another table or nothing at all; then the
// next one is tried, and after the last the table is read.
func (k kernel) probe(dst netip.Prefix) (rawRoute, bool) {
	for _, addr := range probes(dst) {
		m, err := k.askRoute(addr, 0, unix.RTM_F_FIB_MATCH)
		if err != nil {
			continue // also where a link is down: the table has the route all the same
		}
		r, err := parseRawRoute(m.Data)
		if err != nil {
			continue
		}
		// A kernel before 4.13 answers with the address itself, as a clone of the entry.
		d, ok := r.destination()
		if ok && d == dst && r.wanted() {
			return r, true
		}
	}
	return rawRoute{}, false
}

// probes are addresses that have a chance to meet no longer prefix: the last and the first of it,
// and two between them that nobody picks. Of the default routes they lie where nobody gives
// addresses out (240.0.0.0/4 of RFC 1112, 4000::/3); 0.0.0.0 would mean this host.
func probes(dst netip.Prefix) []netip.Addr {
	if dst.Bits() == 0 {
		if dst.Addr().Is4() {
			return []netip.Addr{netip.AddrFrom4([4]byte{251, 89, 173, 37}), netip.AddrFrom4([4]byte{243, 201, 94, 11})}
		}
		return []netip.Addr{netip.AddrFrom16([16]byte{0x5a, 0x93, 0xc7, 15: 0x35}),
			netip.AddrFrom16([16]byte{0x47, 0x1e, 0x6b, 15: 0x99})}
	}
	first := dst.Addr().AsSlice()
	var out []netip.Addr
	for _, fill := range []byte{0xff, 0xa7, 0x4b, 0x00} {
		b := append([]byte(nil), first...)
		for i := range b {
			// The bits behind the prefix, from the left.
			free := min(max(8*(i+1)-dst.Bits(), 0), 8)
			b[i] |= fill & byte(1<<free-1)
		}
		if a, ok := netip.AddrFromSlice(b); ok && !(len(out) > 0 && out[len(out)-1] == a) {
			out = append(out, a)
		}
	}
	return out
}

// kernelPriority translates for a search; a request may hold the zero as it is.
func kernelPriority(dst netip.Prefix, priority int) uint32 {
	if priority == 0 && dst.Addr().Is6() {
		return defaultPriority6
	}
	return uint32(priority)
}

// errAdvertised: the kernel keeps such a route by flags that netlink cannot set, so that a
// replacement would stand beside the next refresh.
var errAdvertised = fmt.Errorf("%w: the route comes from router advertisements and is renewed by the kernel",
	nl.ErrNotSupported)

// sendable drops from a reported route what the kernel computes itself and does not take back.
func (r rawRoute) sendable() (rawRoute, error) {
	expires := int32(0)
	if ci := r.find(unix.RTA_CACHEINFO); len(ci) >= 12 {
		expires = int32(u32(ci[8:])) // rta_expires, in ticks of 1/100 s
	}
	// NLM_F_REPLACE would leave a second route with our metrics beside the one of the router, and
	// the next advertisement would bring back what was changed. Refusing is the only answer that an
	// undo can keep.
	if r.family() == unix.AF_INET6 && r.header[5] == unix.RTPROT_RA {
		return rawRoute{}, errAdvertised
	}
	out := rawRoute{header: append([]byte(nil), r.header...), attrs: r.attrs}
	// Of the flags only onlink is configuration; dead, linkdown, offload and trap are state, and
	// dead ones are refused.
	binary.NativeEndian.PutUint32(out.header[8:], u32(out.header[8:])&unix.RTNH_F_ONLINK)
	out.set(unix.RTA_CACHEINFO, nil)
	// RTA_EXPIRES takes whole seconds. A route with less than a second to live is gone either way.
	if expires > 0 {
		out.set(unix.RTA_EXPIRES, binary.NativeEndian.AppendUint32(nil, uint32(expires)/100))
	}
	if out.uint32(rtaNextHopID) != 0 {
		// A route over a nexthop object is reported with the object's content as well, and refused
		// with both.
		for _, a := range []uint16{unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_VIA, unix.RTA_MULTIPATH, unix.RTA_ENCAP,
			unix.RTA_ENCAP_TYPE} {
			out.set(a, nil)
		}
	}
	if mp := out.find(unix.RTA_MULTIPATH); mp != nil {
		clean, err := cleanMultipath(mp)
		if err != nil {
			return rawRoute{}, err
		}
		out.set(unix.RTA_MULTIPATH, clean)
	}
	return out, nil
}

// cleanMultipath clears the state flags of every struct rtnexthop (u16 length, u8 flags, u8 weight,
// i32 index, attributes).
func cleanMultipath(b []byte) ([]byte, error) {
	out := append([]byte(nil), b...)
	for rest := out; len(rest) >= unix.SizeofRtNexthop; {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < unix.SizeofRtNexthop || n > len(rest) {
			return nil, errors.New("next hop list: bad length")
		}
		rest[2] &= unix.RTNH_F_ONLINK
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	return out, nil
}

// send makes or replaces a route.
//
// The answer is awaited (NLM_F_ACK): a route that the kernel refuses is refused as a whole, there
// is no half-written one.
func (k kernel) send(r rawRoute, flags netlink.HeaderFlags) error {
	b, err := netlink.MarshalAttributes(r.attrs)
	if err != nil {
		return err
	}
	return k.Change(unix.RTM_NEWROUTE, flags, append(append([]byte(nil), r.header...), b...))
}

// metric types of the kernel for our names, and the largest value that it does not silently cut.
//
// From fib_metrics.c: an MTU above 65 535 − 15 and an MSS above 65 535 − 40 are lowered without an
// error, and a read-back would then report a change that nobody asked for. Initial windows of 0
// mean "the kernel's own" (10 segments since 2.6.39).
var metricTypes = map[Metric]struct {
	typ uint16
	max int64
}{
	MetricWindow:   {unix.RTAX_WINDOW, math.MaxUint32},
	MetricMTU:      {unix.RTAX_MTU, 65535 - 15},
	MetricAdvMSS:   {unix.RTAX_ADVMSS, 65535 - 40},
	MetricInitCwnd: {unix.RTAX_INITCWND, math.MaxUint32},
	MetricInitRwnd: {unix.RTAX_INITRWND, math.MaxUint32},
	MetricQuickack: {unix.RTAX_QUICKACK, 1},
	// milliseconds, turned into ticks when it is used (dst_metric_rtt)
	MetricRTOMin: {unix.RTAX_RTO_MIN, math.MaxInt32},
}

// metricBits are those of our names that are one bit of a mask. The mask of locks has a bit for
// each type of metric.
var metricBits = map[Metric]struct {
	typ uint16
	bit uint32
}{
	MetricECN:         {unix.RTAX_FEATURES, unix.RTAX_FEATURE_ECN},
	MetricMTULock:     {unix.RTAX_LOCK, 1 << unix.RTAX_MTU},
	MetricCongctlLock: {unix.RTAX_LOCK, 1 << unix.RTAX_CC_ALGO},
}

// setMetric changes one metric inside the nest, 0 removes it. Lock bits stay, so that a restored
// value is locked as it was.
func (r *rawRoute) setMetric(m Metric, value int) error {
	if b, ok := metricBits[m]; ok {
		return r.setMetricBit(b.typ, b.bit, value)
	}
	t, ok := metricTypes[m]
	if !ok {
		return fmt.Errorf("%w: route metric %q", nl.ErrNotSupported, m)
	}
	if value < 0 || int64(value) > t.max {
		return fmt.Errorf("value %d: want 0 to %d: %w", value, t.max, unix.ERANGE)
	}
	var data []byte
	if value != 0 {
		data = binary.NativeEndian.AppendUint32(nil, uint32(value))
	}
	return r.setMetricBytes(t.typ, data)
}

// setMetricBit changes one bit and keeps the others. A mask of zero is left out, which is how a
// route without any is reported.
func (r *rawRoute) setMetricBit(typ uint16, bit uint32, value int) error {
	if value != 0 && value != 1 {
		return fmt.Errorf("value %d: want 0 or 1: %w", value, unix.ERANGE)
	}
	metrics, err := netlink.UnmarshalAttributes(r.find(unix.RTA_METRICS))
	if err != nil {
		return fmt.Errorf("route metrics: %w", err)
	}
	mask := (rawRoute{attrs: metrics}).uint32(typ) &^ bit
	if value == 1 {
		mask |= bit
	}
	var data []byte
	if mask != 0 {
		data = binary.NativeEndian.AppendUint32(nil, mask)
	}
	return r.setMetricBytes(typ, data)
}

// A metric is removed by leaving it out, not by sending 0: the replacement is the whole route, and
// metrics that it does not name are unset.
func (r *rawRoute) setMetricBytes(typ uint16, data []byte) error {
	metrics, err := netlink.UnmarshalAttributes(r.find(unix.RTA_METRICS))
	if err != nil {
		return fmt.Errorf("route metrics: %w", err)
	}
	metrics = setAttr(metrics, typ, data)
	// An empty nest is sent too: without one, a route over a nexthop object gets the metrics of
	// whatever other route uses that object (fib_find_info_nh, seen on 6.18), among them those that
	// are to be cleared.
	b, err := netlink.MarshalAttributes(metrics)
	if err != nil {
		return err
	}
	r.set(unix.RTA_METRICS, b)
	return nil
}

// routeInUse is lookup for those who need a route to be there.
func (k kernel) routeInUse(dst netip.Prefix) (rawRoute, error) {
	raw, found, err := k.lookup(dst, -1)
	if err == nil && !found {
		err = fmt.Errorf("%w: no such route in the main table", fs.ErrNotExist)
	}
	return raw, err
}

// get needs the names of links besides: a route names its link by number. That is a dump of the
// links and not of the routes, of which a host has hundreds at most.
func (k kernel) get(destination string) (Route, error) {
	dst, err := parseDestination(destination)
	if err != nil {
		return Route{}, err
	}
	raw, err := k.routeInUse(dst)
	if err != nil {
		return Route{}, err
	}
	names, err := k.linkNames()
	if err != nil {
		return Route{}, err
	}
	r, _ := raw.route(names) // its family is the one that was asked for
	return r, nil
}

// setMetric is read, change, write. Netlink has no compare-and-swap, so that a change by another
// program between the two requests is overwritten with what stood there before; package knob
// serialises its own writers, package journal reads back.
func (k kernel) setMetric(destination string, m Metric, value int) error {
	return k.editRoute(destination, func(r *rawRoute) error { return r.setMetric(m, value) })
}

// setCongestion names the algorithm; an unknown one is refused by the kernel, which tries to load
// it first.
func (k kernel) setCongestion(destination, algorithm string) error {
	return k.editRoute(destination, func(r *rawRoute) error { return r.setCongestion(algorithm) })
}

// setCongestion sends the name with its closing zero; the kernel keeps a number and loads the
// module of that name.
func (r *rawRoute) setCongestion(algorithm string) error {
	var cc []byte
	if algorithm != "" {
		cc = append([]byte(algorithm), 0)
	}
	return r.setMetricBytes(unix.RTAX_CC_ALGO, cc)
}

// editRoute changes the message that the kernel told and sends it back, so that what has no name
// here stays.
func (k kernel) editRoute(destination string, edit func(*rawRoute) error) error {
	dst, err := parseDestination(destination)
	if err != nil {
		return err
	}
	raw, err := k.routeInUse(dst)
	if err != nil {
		return err
	}
	if raw, err = raw.sendable(); err != nil {
		return err
	}
	if err := edit(&raw); err != nil {
		return err
	}
	// Without NLM_F_CREATE: if the route has gone meanwhile, it is not brought back.
	return k.send(raw, netlink.Replace)
}

// replace is for the worlds of package lab, where nobody else changes routes.
func (k kernel) replace(r Route) error {
	dst, err := parseDestination(r.Destination)
	if err != nil {
		return err
	}
	raw, found, err := k.lookup(dst, r.Priority)
	if err != nil {
		return err
	}
	if !found {
		raw = newRoute(dst, r)
	} else if raw, err = raw.sendable(); err != nil {
		return err
	}
	if err := k.fill(&raw, r); err != nil {
		return err
	}
	return k.send(raw, netlink.Create|netlink.Replace)
}

// add is refused with EEXIST where a route of the same prefix, priority and type of service is: the
// flag Excl asks for that.
func (k kernel) add(r Route) error {
	dst, err := parseDestination(r.Destination)
	if err != nil {
		return err
	}
	raw := newRoute(dst, r)
	if err := k.fill(&raw, r); err != nil {
		return err
	}
	return k.send(raw, createNew)
}

// newRoute starts a unicast route of the main table, marked as made by an administrator (static) so
// that routing daemons leave it alone.
//
// The scope is link without a gateway and universe (0) with one: the kernel refuses a gateway that
// is not nearer than the route that uses it.
func newRoute(dst netip.Prefix, r Route) rawRoute {
	h := make([]byte, sizeRtMsg)
	h[0], h[1] = family(dst.Addr()), byte(dst.Bits())
	h[4], h[5], h[7] = unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RTN_UNICAST
	if r.Gateway == "" {
		h[6] = unix.RT_SCOPE_LINK
	}
	raw := rawRoute{header: h}
	if dst.Bits() > 0 {
		raw.set(unix.RTA_DST, dst.Addr().AsSlice())
	}
	if r.Priority != 0 {
		raw.set(unix.RTA_PRIORITY, binary.NativeEndian.AppendUint32(nil, uint32(r.Priority)))
	}
	return raw
}

// fill writes what a Route says into a raw one.
func (k kernel) fill(raw *rawRoute, r Route) error {
	if r.Interface != "" {
		link, err := k.LinkByName(r.Interface)
		if err != nil {
			return err
		}
		raw.set(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(link.Index)))
	}
	for _, f := range []struct {
		typ  uint16
		text string
	}{{unix.RTA_GATEWAY, r.Gateway}, {unix.RTA_PREFSRC, r.Source}} {
		if f.text == "" {
			continue
		}
		a, err := netip.ParseAddr(f.text)
		if err != nil {
			return err
		}
		// An IPv4 destination behind an IPv6 router (RFC 5549) needs RTA_VIA, which names the
		// family in front of the address; Linux has it for IPv4 since 5.2.
		if f.typ == unix.RTA_GATEWAY && family(a) != raw.family() {
			via := binary.NativeEndian.AppendUint16(nil, uint16(family(a)))
			raw.set(unix.RTA_VIA, append(via, a.AsSlice()...))
			continue
		}
		raw.set(f.typ, a.AsSlice())
	}
	for m := range metricTypes {
		if m == MetricRTOMin {
			continue // stays as it was, with the lock bits and the features
		}
		if err := raw.setMetric(m, r.Metric(m)); err != nil {
			return err
		}
	}
	return raw.setCongestion(r.Congestion)
}
