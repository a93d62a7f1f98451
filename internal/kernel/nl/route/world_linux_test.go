package route

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func TestNetnsRoutes(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		for _, n := range []string{"v0", "v1"} {
			nltest.Must(t, c.SetUp(n))
		}
		nltest.Must(t, c.AddAddress("v0", "10.9.0.1/24"))
		nltest.Must(t, c.AddAddress("v0", "fd00:9::1/64"))
		full := Route{
			Destination: "10.20.0.0/16", Gateway: "10.9.0.2", Interface: "v0", Source: "10.9.0.1", Priority: 7,
			Protocol: "static",
			Window:   65536, MTU: 1400, InitCwnd: 20, InitRwnd: 30, AdvMSS: 1300, Quickack: true, Congestion: "cubic",
		}
		six := Route{Destination: "fd00:20::/32", Gateway: "fd00:9::2", Interface: "v0", Priority: 1024,
			Protocol: "static", InitCwnd: 16}
		nltest.Must(t, c.routes.Add(full))
		nltest.Must(t, c.routes.Add(six))
		nltest.Must(t, c.routes.Add(Route{Destination: "default", Gateway: "10.9.0.2"}))
		nltest.Must(t, c.routes.Add(Route{Destination: "::/0", Gateway: "fd00:9::2"}))

		find := func(dst string) Route {
			t.Helper()
			routes, err := c.routes.List()
			nltest.Must(t, err)
			for _, r := range routes {
				if r.Destination == dst {
					return r
				}
			}
			t.Fatalf("no route to %s in %+v", dst, routes)
			return Route{}
		}
		for _, want := range []Route{
			full, six,
			{Destination: "default", Gateway: "10.9.0.2", Interface: "v0", Protocol: "static"},
			{Destination: "::/0", Gateway: "fd00:9::2", Interface: "v0", Protocol: "static", Priority: 1024},
		} {
			if diff := cmp.Diff(want, find(want.Destination)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", want.Destination, diff)
			}
		}

		// The answer to a query names the entry that matched and its metrics.
		r, err := c.routes.To("10.20.3.4")
		nltest.Must(t, err)
		if diff := cmp.Diff(full, r); diff != "" {
			t.Errorf("route to 10.20.3.4 (-want +got):\n%s", diff)
		}
		if r, err := c.routes.To("fd00:9::5"); err != nil || r.Destination != "fd00:9::/64" || r.Interface != "v0" ||
			r.Source != "fd00:9::1" {
			t.Errorf("route to fd00:9::5: %+v %v", r, err)
		}

		// One metric is changed and cleared; the rest of the route remains.
		for m, value := range map[Metric]int{MetricWindow: 20000, MetricInitCwnd: 33, MetricInitRwnd: 44,
			MetricMTU: 1280, MetricAdvMSS: 900} {
			for _, v := range []int{value, 0, full.Metric(m)} {
				nltest.Must(t, c.routes.SetMetric(full.Destination, m, v))
				if got := find(full.Destination).Metric(m); got != v {
					t.Errorf("%s: %d after setting it to %d", m, got, v)
				}
			}
		}
		nltest.Must(t, c.routes.SetMetric(full.Destination, MetricQuickack, 0))
		nltest.Must(t, c.routes.SetMetric(full.Destination, MetricQuickack, 1))
		if diff := cmp.Diff(full, find(full.Destination)); diff != "" {
			t.Errorf("after changing and restoring every metric (-want +got):\n%s", diff)
		}
		nltest.Must(t, c.routes.SetMetric("::/0", MetricInitCwnd, 40))
		nltest.Must(t, c.routes.SetMetric("fd00:9::/64", MetricInitRwnd, 41)) // created by the kernel
		if a, b := find("::/0"), find("fd00:9::/64"); a.InitCwnd != 40 || a.Gateway != "fd00:9::2" ||
			b.InitRwnd != 41 || b.Protocol != "kernel" {
			t.Errorf("IPv6: %+v %+v", a, b)
		}
		// created by the kernel with a source address
		nltest.Must(t, c.routes.SetMetric("10.9.0.0/24", MetricInitCwnd, 12))
		if r := find("10.9.0.0/24"); r.InitCwnd != 12 || r.Source != "10.9.0.1" || r.Protocol != "kernel" {
			t.Errorf("connected route: %+v", r)
		}

		changed := full
		changed.Window, changed.Gateway, changed.Congestion = 0, "10.9.0.3", ""
		nltest.Must(t, c.routes.Replace(changed))
		if diff := cmp.Diff(changed, find(full.Destination)); diff != "" {
			t.Errorf("replaced (-want +got):\n%s", diff)
		}
		fresh := Route{Destination: "10.30.0.0/16", Gateway: "10.9.0.2", Interface: "v0", Protocol: "static",
			InitCwnd: 11}
		nltest.Must(t, c.routes.Replace(fresh))
		if diff := cmp.Diff(fresh, find(fresh.Destination)); diff != "" {
			t.Errorf("created by Replace (-want +got):\n%s", diff)
		}

		for _, v := range []int{-1, 65536} {
			if err := c.routes.SetMetric(full.Destination, MetricMTU, v); !errors.Is(err, unix.ERANGE) {
				t.Errorf("mtu %d: %v", v, err)
			}
		}
		if err := c.routes.SetMetric(full.Destination, "colour", 1); !errors.Is(err, nl.ErrNotSupported) {
			t.Errorf("unknown metric: %v", err)
		}
	})
}

// Attributes without a name here (lock bits, further metrics, several next hops, nexthop objects)
// survive a change of one metric.
func TestNetnsRouteKeepsTheRest(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		nltest.Must(t, c.SetUp("v0"))
		nltest.Must(t, c.SetUp("v1"))
		nltest.Must(t, c.AddAddress("v0", "10.9.0.1/24"))
		nltest.Must(t, c.AddAddress("v0", "fd00:9::1/64"))
		l, err := c.LinkByName("v0")
		nltest.Must(t, err)

		u32b := func(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
		nest := func(attrs ...netlink.Attribute) []byte {
			t.Helper()
			b, err := netlink.MarshalAttributes(attrs)
			nltest.Must(t, err)
			return b
		}
		hop := func(gw []byte, weight byte) []byte {
			attrs := nest(netlink.Attribute{Type: unix.RTA_GATEWAY, Data: gw})
			b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtNexthop+len(attrs)))
			b = append(b, 0, weight)
			return append(append(b, u32b(uint32(l.Index))...), attrs...)
		}
		odd := nest(
			netlink.Attribute{Type: unix.RTAX_LOCK, Data: u32b(1<<unix.RTAX_MTU | 1<<unix.RTAX_WINDOW)},
			netlink.Attribute{Type: unix.RTAX_MTU, Data: u32b(1400)},
			netlink.Attribute{Type: unix.RTAX_RTO_MIN, Data: u32b(7)},
			netlink.Attribute{Type: unix.RTAX_HOPLIMIT, Data: u32b(33)},
		)
		const nhid = 5
		header := make([]byte, 8) // struct nhmsg
		header[0], header[2] = unix.AF_INET, unix.RTPROT_STATIC
		nexthop := append(header, nest(
			netlink.Attribute{Type: 1 /* NHA_ID */, Data: u32b(nhid)},
			netlink.Attribute{Type: 5 /* NHA_OIF */, Data: u32b(uint32(l.Index))},
			netlink.Attribute{Type: 6 /* NHA_GATEWAY */, Data: []byte{10, 9, 0, 4}},
		)...)
		nltest.Must(t, c.Change(unix.RTM_NEWNEXTHOP, createNew, nexthop))

		cases := map[string]struct {
			dst   string
			attrs []netlink.Attribute
		}{
			"locks and further metrics": {"10.40.0.0/16", []netlink.Attribute{
				{Type: unix.RTA_GATEWAY, Data: []byte{10, 9, 0, 2}},
				{Type: unix.RTA_METRICS | netlink.Nested, Data: odd},
			}},
			"several next hops": {"10.41.0.0/16", []netlink.Attribute{
				{Type: unix.RTA_MULTIPATH, Data: append(hop([]byte{10, 9, 0, 2}, 3), hop([]byte{10, 9, 0, 3}, 0)...)},
			}},
			"nexthop object": {"10.42.0.0/16", []netlink.Attribute{{Type: rtaNextHopID, Data: u32b(nhid)}}},
			"several next hops, IPv6": {"fd00:41::/32", []netlink.Attribute{
				{Type: unix.RTA_MULTIPATH, Data: append(
					hop(net.ParseIP("fd00:9::2"), 0), hop(net.ParseIP("fd00:9::3"), 0)...)},
			}},
		}
		for name, tc := range cases {
			dst, err := parseDestination(tc.dst)
			nltest.Must(t, err)
			raw := newRoute(dst, Route{Gateway: "x"})
			raw.attrs = append(raw.attrs, tc.attrs...)
			nltest.Must(t, c.routes.k.send(raw, createNew))
			before, ok, err := c.routes.k.lookup(dst, -1)
			nltest.Must(t, err)
			if !ok {
				t.Fatalf("%s: route not found", name)
			}
			nltest.Must(t, c.routes.SetMetric(tc.dst, MetricInitCwnd, 25))
			changed, _, err := c.routes.k.lookup(dst, -1)
			nltest.Must(t, err)
			if r, _ := changed.route(nil); r.InitCwnd != 25 {
				t.Errorf("%s: initcwnd %d after setting it to 25", name, r.InitCwnd)
			}
			nltest.Must(t, c.routes.SetMetric(tc.dst, MetricInitCwnd, 0))
			after, _, err := c.routes.k.lookup(dst, -1)
			nltest.Must(t, err)
			if diff := cmp.Diff(flat(before), flat(after)); diff != "" {
				t.Errorf("%s: not the same after setting and clearing a metric (-before +after):\n%s", name, diff)
			}
		}
	})
}

// flat returns the content of a route without its counters.
func flat(r rawRoute) map[uint16][]byte {
	m := map[uint16][]byte{0: r.header}
	for _, a := range r.attrs {
		if nl.TypeOf(a) != unix.RTA_CACHEINFO {
			m[nl.TypeOf(a)] = a.Data
		}
	}
	return m
}

func TestNetnsErrors(t *testing.T) {
	inNetNS(t, func(c world) {
		for _, tc := range []struct {
			name string
			err  error
			is   error
			text string
		}{
			{
				"missing route", c.routes.SetMetric("10.99.0.0/16", MetricWindow, 1), fs.ErrNotExist,
				"set window of route 10.99.0.0/16: file does not exist: no such route in the main table",
			},
			{"bad destination", c.routes.Add(Route{Destination: "10.0.0/8"}), nil, "10.0.0/8"},
			{"no such link", c.routes.Add(Route{Destination: "10.0.0.0/8", Interface: "nope"}), fs.ErrNotExist,
				"read link nope: no such device"},
		} {
			if tc.err == nil || tc.is != nil && !errors.Is(tc.err, tc.is) ||
				!strings.Contains(tc.err.Error(), tc.text) {
				t.Errorf("%s: %v; want %v and the text %q", tc.name, tc.err, tc.is, tc.text)
			}
			var e *nl.Error
			if !errors.As(tc.err, &e) {
				t.Errorf("%s: %T is not *nl.Error", tc.name, tc.err)
			}
		}
	})
}
