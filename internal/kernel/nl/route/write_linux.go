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

// defaultPriority6 is the value that the kernel uses for priority 0 in IPv6 (IP6_RT_PRIO_USER).
//
// A zero in a request means 1024 for IPv6 and 0 for IPv4, so a search for priority 0 must translate
// before it compares.
const defaultPriority6 = 1024

// lookup returns the route to a destination with the given priority. With a negative priority it
// returns the route in use, which has the lowest priority value.
//
// It compares prefix and priority only. If two routes differ only in their type of service, both
// reads and writes use the first one of the dump.
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

// probe asks the kernel for the table entry that matches an address of the prefix (RTM_F_FIB_MATCH,
// 4.13), and accepts the answer if it has this very prefix.
//
// No dump is limited to one destination: strict filtering (4.20) supports only table, protocol,
// type and interface, and a full Internet table takes a second and hundreds of megabytes. An
// address may match a longer prefix, a rule that selects another table, or nothing. Then probe
// tries the next address, and after the last one the caller reads the table.
func (k kernel) probe(dst netip.Prefix) (rawRoute, bool) {
	for _, addr := range probes(dst) {
		m, err := k.askRoute(addr, 0, unix.RTM_F_FIB_MATCH)
		if err != nil {
			continue // also if a link is down: the table still has the route
		}
		r, err := parseRawRoute(m.Data)
		if err != nil {
			continue
		}
		// A kernel before 4.13 returns the address itself, as a clone of the entry.
		d, ok := r.destination()
		if ok && d == dst && r.wanted() {
			return r, true
		}
	}
	return rawRoute{}, false
}

// probes returns addresses that are unlikely to match a longer prefix: the last and the first of
// dst, and two unusual ones between them. For the default routes they lie in ranges without
// assigned addresses (240.0.0.0/4 of RFC 1112, 4000::/3); 0.0.0.0 would mean this host.
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
			// The bits after the prefix, from the left.
			free := min(max(8*(i+1)-dst.Bits(), 0), 8)
			b[i] |= fill & byte(1<<free-1)
		}
		if a, ok := netip.AddrFromSlice(b); ok && !(len(out) > 0 && out[len(out)-1] == a) {
			out = append(out, a)
		}
	}
	return out
}

// kernelPriority translates a priority for a search. A request may hold the zero unchanged.
func kernelPriority(dst netip.Prefix, priority int) uint32 {
	if priority == 0 && dst.Addr().Is6() {
		return defaultPriority6
	}
	return uint32(priority)
}

// errAdvertised is the reason for a refusal: the kernel identifies such a route by flags that
// netlink cannot set, so a replacement would exist beside the next refresh.
var errAdvertised = fmt.Errorf("%w: the route comes from router advertisements and is renewed by the kernel",
	nl.ErrNotSupported)

// sendable removes from a reported route the parts that the kernel computes and does not accept.
func (r rawRoute) sendable() (rawRoute, error) {
	expires := int32(0)
	if ci := r.find(unix.RTA_CACHEINFO); len(ci) >= 12 {
		expires = int32(u32(ci[8:])) // rta_expires, in ticks of 1/100 s
	}
	// NLM_F_REPLACE would leave a second route with the changed metrics beside the router's, and
	// the next advertisement would revert the change. Only a refusal is compatible with an undo.
	if r.family() == unix.AF_INET6 && r.header[5] == unix.RTPROT_RA {
		return rawRoute{}, errAdvertised
	}
	out := rawRoute{header: append([]byte(nil), r.header...), attrs: r.attrs}
	// Of the flags only onlink is configuration. The flags dead, linkdown, offload and trap are
	// state, and the kernel refuses dead.
	binary.NativeEndian.PutUint32(out.header[8:], u32(out.header[8:])&unix.RTNH_F_ONLINK)
	out.set(unix.RTA_CACHEINFO, nil)
	// RTA_EXPIRES has whole seconds. A route with less than a second to live expires either way.
	if expires > 0 {
		out.set(unix.RTA_EXPIRES, binary.NativeEndian.AppendUint32(nil, uint32(expires)/100))
	}
	if out.uint32(rtaNextHopID) != 0 {
		// For a route over a nexthop object the kernel also reports the object's content, but
		// refuses a request with both.
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

// send creates or replaces a route.
//
// It awaits the answer (NLM_F_ACK). The kernel refuses a route as a whole and never writes half of
// it.
func (k kernel) send(r rawRoute, flags netlink.HeaderFlags) error {
	b, err := netlink.MarshalAttributes(r.attrs)
	if err != nil {
		return err
	}
	return k.Change(unix.RTM_NEWROUTE, flags, append(append([]byte(nil), r.header...), b...))
}

// metricTypes maps names to the kernel's metric types, with the largest value that the kernel does
// not silently reduce.
//
// From fib_metrics.c: the kernel lowers an MTU above 65 535 − 15 and an MSS above 65 535 − 40
// without an error, and a read-back would report a value that was not requested. Initial windows of
// 0 mean the kernel's default (10 segments since 2.6.39).
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
	// milliseconds, converted to ticks on use (dst_metric_rtt)
	MetricRTOMin: {unix.RTAX_RTO_MIN, math.MaxInt32},
}

// metricBits are the metrics that are one bit of a mask. The mask of locks has a bit for each type
// of metric.
var metricBits = map[Metric]struct {
	typ uint16
	bit uint32
}{
	MetricECN:         {unix.RTAX_FEATURES, unix.RTAX_FEATURE_ECN},
	MetricMTULock:     {unix.RTAX_LOCK, 1 << unix.RTAX_MTU},
	MetricCongctlLock: {unix.RTAX_LOCK, 1 << unix.RTAX_CC_ALGO},
}

// setMetric changes one metric inside the nest; 0 removes it. Lock bits remain, so that a restored
// value is locked as before.
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

// setMetricBit changes one bit and keeps the others. It omits a mask of zero, as the kernel does
// when it reports a route.
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

// A metric is removed by omitting it, not by sending 0: the replacement is the whole route, and the
// kernel unsets metrics that it omits.
func (r *rawRoute) setMetricBytes(typ uint16, data []byte) error {
	metrics, err := netlink.UnmarshalAttributes(r.find(unix.RTA_METRICS))
	if err != nil {
		return fmt.Errorf("route metrics: %w", err)
	}
	metrics = setAttr(metrics, typ, data)
	// An empty nest is sent too: without it, a route over a nexthop object gets the metrics of any
	// other route that uses the object (fib_find_info_nh, seen on 6.18), possibly including the
	// cleared ones.
	b, err := netlink.MarshalAttributes(metrics)
	if err != nil {
		return err
	}
	r.set(unix.RTA_METRICS, b)
	return nil
}

// routeInUse is lookup with an error for a missing route.
func (k kernel) routeInUse(dst netip.Prefix) (rawRoute, error) {
	raw, found, err := k.lookup(dst, -1)
	if err == nil && !found {
		err = fmt.Errorf("%w: no such route in the main table", fs.ErrNotExist)
	}
	return raw, err
}

// get also needs the names of links, because a route identifies its link by number. That is a dump
// of the links, at most hundreds, and not of the routes.
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
	r, _ := raw.route(names) // its family is that of the request
	return r, nil
}

// setMetric reads, changes and writes the route. Netlink has no compare-and-swap, so the write
// reverts a change by another program between the two requests. Package knob serialises this
// program's writers; package journal reads back.
func (k kernel) setMetric(destination string, m Metric, value int) error {
	return k.editRoute(destination, func(r *rawRoute) error { return r.setMetric(m, value) })
}

// setCongestion sets the algorithm of a route. The kernel tries to load an unknown algorithm and
// then refuses it.
func (k kernel) setCongestion(destination, algorithm string) error {
	return k.editRoute(destination, func(r *rawRoute) error { return r.setCongestion(algorithm) })
}

// setCongestion encodes the name with a terminating zero. The kernel loads the module of that name
// and stores a number.
func (r *rawRoute) setCongestion(algorithm string) error {
	var cc []byte
	if algorithm != "" {
		cc = append([]byte(algorithm), 0)
	}
	return r.setMetricBytes(unix.RTAX_CC_ALGO, cc)
}

// editRoute changes the message that the kernel reported and sends it back, so that unnamed
// properties remain.
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
	// Without NLM_F_CREATE, a route that has disappeared is not recreated.
	return k.send(raw, netlink.Replace)
}

// replace is for the worlds of package lab, where no other program changes routes.
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

// add sets the flag Excl, so that the kernel returns EEXIST if a route has the same prefix,
// priority and type of service.
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

// newRoute returns a unicast route of the main table, marked as made by an administrator (static),
// so that routing daemons do not change it.
//
// The scope is link without a gateway and universe (0) with one: the kernel requires the gateway to
// have a narrower scope than the route that uses it.
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

// fill writes the content of a Route into a raw one.
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
		// An IPv4 destination behind an IPv6 router (RFC 5549) needs RTA_VIA, which has the family
		// before the address. Linux supports it for IPv4 since 5.2.
		if f.typ == unix.RTA_GATEWAY && family(a) != raw.family() {
			via := binary.NativeEndian.AppendUint16(nil, uint16(family(a)))
			raw.set(unix.RTA_VIA, append(via, a.AsSlice()...))
			continue
		}
		raw.set(f.typ, a.AsSlice())
	}
	for m := range metricTypes {
		if m == MetricRTOMin {
			continue // unchanged, like the lock bits and the features
		}
		if err := raw.setMetric(m, r.Metric(m)); err != nil {
			return err
		}
	}
	return raw.setCongestion(r.Congestion)
}
