package nl

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func TestNetnsVeth(t *testing.T) {
	inNetNS(t, func(c *Client) {
		far := netNSFd(t)
		must(t, c.AddVeth("near.100", "far0", far)) // a name with a dot, as VLAN interfaces have
		must(t, c.SetMTU("near.100", 9000))
		must(t, c.SetTxQueueLen("near.100", 77))
		must(t, c.SetMAC("near.100", "02:00:00:00:00:01"))
		must(t, c.AddAddress("near.100", "10.9.0.1/24"))
		must(t, c.AddAddress("near.100", "fd00:9::1/64"))

		f := dialIn(t, far)
		must(t, f.SetUp("far0"))
		must(t, c.SetUp("near.100"))

		l, err := c.LinkByName("near.100")
		must(t, err)
		want := Link{
			Index: l.Index, Name: "near.100", Kind: "veth", MAC: "02:00:00:00:00:01", MTU: 9000, MinMTU: 68, MaxMTU: 65535, TxQueueLen: 77,
			TxQueues: l.TxQueues, RxQueues: l.RxQueues, Up: true, Carrier: true, Qdisc: l.Qdisc, ParentIndex: l.ParentIndex,
			// GSO_LEGACY_MAX_SIZE and GRO_LEGACY_MAX_SIZE of linux/netdevice.h; the others are younger than some kernels.
			GSOMaxBytes: 65536, GROMaxBytes: l.GROMaxBytes, GROIPv4MaxBytes: l.GROIPv4MaxBytes, GSOIPv4MaxBytes: l.GSOIPv4MaxBytes,
		}
		if diff := cmp.Diff(want, l); diff != "" {
			t.Errorf("link (-want +got):\n%s", diff)
		}
		addrs, err := c.Addresses()
		must(t, err)
		var got []string
		for _, a := range addrs {
			if a.Index == l.Index && !strings.HasPrefix(a.CIDR, "fe80") {
				got = append(got, a.CIDR)
			}
		}
		if diff := cmp.Diff([]string{"10.9.0.1/24", "fd00:9::1/64"}, got); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		if _, err := c.LinkByName("far0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("far end seen from the near namespace: %v", err)
		}

		must(t, c.SetDown("near.100"))
		must(t, c.MoveToNetNS("near.100", far))
		if _, err := f.LinkByName("near.100"); err != nil {
			t.Errorf("moved link: %v", err)
		}
		must(t, f.DeleteLink("far0"))
		links, err := f.Links()
		must(t, err)
		if len(links) != 1+countIFB(links) {
			t.Errorf("links left after deletion: %+v", links)
		}
	})
}

// countIFB counts the ifb devices that some kernels make in every new namespace.
func countIFB(links []Link) (n int) {
	for _, l := range links {
		if l.Kind == "ifb" || l.Kind == "tunl" || l.Kind == "sit" {
			n++
		}
	}
	return n
}

func TestNetnsBridgePorts(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("a", "b", -1))
		if err := c.AddLink("br0", "bridge"); errors.Is(err, ErrNotSupported) {
			t.Skipf("kernel without bridge: %v", err)
		} else {
			must(t, err)
		}
		must(t, c.SetMaster("a", "br0"))
		a, err := c.LinkByName("a")
		must(t, err)
		br, err := c.LinkByName("br0")
		must(t, err)
		if a.MasterIndex != br.Index || br.Kind != "bridge" {
			t.Errorf("a: %+v, bridge: %+v", a, br)
		}
		must(t, c.SetMaster("a", ""))
		if err := c.SetMaster("a", "nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing master: %v", err)
		}
	})
}

func TestNetnsErrors(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		for _, tc := range []struct {
			name string
			err  error
			is   error
			text string
		}{
			{"missing link", c.SetMTU("nope", 1500), fs.ErrNotExist, "set mtu of nope: no such device"},
			{"empty name", c.SetUp(""), fs.ErrNotExist, "set up: no such device"},
			{"name too long", c.SetUp("a-name-beyond-IFNAMSIZ"), fs.ErrNotExist, "no such device"},
			{"exists", c.AddVeth("v0", "v2", -1), fs.ErrExist, "file exists"},
			{"kernel's sentence", c.SetMTU("v0", 10), unix.EINVAL, "mtu less than device minimum"},
			{"negative", c.SetMTU("v0", -1), unix.ERANGE, ""},
			{"unknown kind", c.AddLink("x", "no-such-kind"), ErrNotSupported, "Unknown device type"},
			{"rings of a veth", second(c.Channels("lo")), ErrNotSupported, ""},
			{"missing link, ethtool", second(c.Features("nope")), fs.ErrNotExist, ""},
			{"missing link, ioctl", second(c.Statistics("nope")), fs.ErrNotExist, ""},
			{
				"missing route", c.SetRouteMetric("10.99.0.0/16", MetricWindow, 1), fs.ErrNotExist,
				"set window of route 10.99.0.0/16: file does not exist: no such route in the main table",
			},
			{"bad destination", c.AddRoute(Route{Destination: "10.0.0/8"}), nil, "10.0.0/8"},
			{"bad address", c.AddAddress("v0", "10.0.0.1"), nil, "no '/'"},
		} {
			if tc.err == nil || tc.is != nil && !errors.Is(tc.err, tc.is) || !strings.Contains(tc.err.Error(), tc.text) {
				t.Errorf("%s: %v; want %v with %q", tc.name, tc.err, tc.is, tc.text)
			}
			var e *Error
			if tc.err != nil && !errors.As(tc.err, &e) {
				t.Errorf("%s: %T is no *Error", tc.name, tc.err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestNetnsPermission(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		// Capabilities belong to the thread, which is thrown away after the test. A new client is opened, since the kernel
		// looks at the credentials of the opener too.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		must(t, unix.Capset(&header, &none[0]))
		weak, err := Dial()
		must(t, err)
		defer func() { _ = weak.Close() }()
		if _, err := weak.LinkByName("v0"); err != nil {
			t.Errorf("reading needs no capability: %v", err)
		}
		for what, err := range map[string]error{
			"mtu":     weak.SetMTU("v0", 1400),
			"feature": weak.SetFeature("v0", "tx-tcp-segmentation", false),
			"veth":    weak.AddVeth("x", "y", -1),
			"channel": weak.SetChannel("v0", "rx", 1<<20), // permission is asked before the number is looked at
		} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v; want fs.ErrPermission", what, err)
			}
		}
	})
}

func TestNetnsFeatures(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		read := func(name string) Feature {
			t.Helper()
			m, err := c.Features("v0")
			must(t, err)
			f, ok := m[name]
			if !ok {
				t.Fatalf("no feature %s in %v", name, m)
			}
			return f
		}
		for _, name := range []string{"tx-tcp-segmentation", "rx-gro"} {
			was := read(name)
			if was.Fixed {
				t.Errorf("%s is fixed", name)
			}
			for _, on := range []bool{!was.On, was.On} {
				must(t, c.SetFeature("v0", name, on))
				if got := read(name); got.On != on {
					t.Errorf("%s: on %v after setting %v", name, got.On, on)
				}
			}
		}
		if !read("tx-vlan-stag-hw-insert").On || !read("rx-fcs").Fixed {
			t.Errorf("unexpected defaults of a veth: %+v %+v", read("tx-vlan-stag-hw-insert"), read("rx-fcs"))
		}
		if err := c.SetFeature("v0", "rx-fcs", true); !errors.Is(err, ErrNotSupported) {
			t.Errorf("fixed feature: %v", err)
		}
		must(t, c.SetFeature("v0", "rx-fcs", false)) // it is off already
		if err := c.SetFeature("v0", "tx-warp-drive", true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown feature: %v", err)
		}
		// Segmentation needs scatter-gather: the kernel takes the wish and does not follow it.
		must(t, c.SetFeature("v0", "tx-scatter-gather", false))
		if err := c.SetFeature("v0", "tx-tcp-segmentation", true); !errors.Is(err, ErrNotApplied) {
			t.Errorf("segmentation without scatter-gather: %v", err)
		}
		must(t, c.SetFeature("v0", "tx-scatter-gather", true))
		if !read("tx-tcp-segmentation").On {
			t.Error("the wish was not followed when scatter-gather came back")
		}
	})
}

func TestNetnsEthtoolReads(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		must(t, c.SetUp("v0"))
		must(t, c.SetUp("v1"))
		d, err := c.Driver("v0")
		must(t, err)
		if d.Driver != "veth" {
			t.Errorf("driver %+v", d)
		}
		speed, duplex, err := c.LinkMode("v0")
		must(t, err)
		if speed != 10e9 || duplex != "full" {
			t.Errorf("link mode %v %q; veth says 10 Gb/s, full", speed, duplex)
		}
		ch, err := c.Channels("v0")
		must(t, err)
		if ch.Rx+ch.Combined == 0 {
			t.Errorf("channels %+v", ch)
		}
		info, err := c.LinkInfo("v0")
		must(t, err)
		if info.Port == "" {
			t.Errorf("link info %+v", info)
		}
		peer, err := c.LinkByName("v1")
		must(t, err)
		stats, err := c.Statistics("v0")
		must(t, err)
		if stats["peer_ifindex"] != uint64(peer.Index) {
			t.Errorf("peer_ifindex %d, want %d; all: %v", stats["peer_ifindex"], peer.Index, stats)
		}
	})
}

func TestNetnsRoutes(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		for _, n := range []string{"v0", "v1"} {
			must(t, c.SetUp(n))
		}
		must(t, c.AddAddress("v0", "10.9.0.1/24"))
		must(t, c.AddAddress("v0", "fd00:9::1/64"))
		full := Route{
			Destination: "10.20.0.0/16", Gateway: "10.9.0.2", Interface: "v0", Source: "10.9.0.1", Priority: 7, Protocol: "static",
			Window: 65536, MTU: 1400, InitCwnd: 20, InitRwnd: 30, AdvMSS: 1300, Quickack: true, Congestion: "cubic",
		}
		six := Route{Destination: "fd00:20::/32", Gateway: "fd00:9::2", Interface: "v0", Priority: 1024, Protocol: "static", InitCwnd: 16}
		must(t, c.AddRoute(full))
		must(t, c.AddRoute(six))
		must(t, c.AddRoute(Route{Destination: "default", Gateway: "10.9.0.2"}))
		must(t, c.AddRoute(Route{Destination: "::/0", Gateway: "fd00:9::2"}))

		find := func(dst string) Route {
			t.Helper()
			routes, err := c.Routes()
			must(t, err)
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
		r, err := c.RouteTo("10.20.3.4")
		must(t, err)
		if diff := cmp.Diff(full, r); diff != "" {
			t.Errorf("route to 10.20.3.4 (-want +got):\n%s", diff)
		}
		if r, err := c.RouteTo("fd00:9::5"); err != nil || r.Destination != "fd00:9::/64" || r.Interface != "v0" || r.Source != "fd00:9::1" {
			t.Errorf("route to fd00:9::5: %+v %v", r, err)
		}

		// One metric is changed and cleared, everything else stays.
		for m, value := range map[RouteMetric]int{MetricWindow: 20000, MetricInitCwnd: 33, MetricInitRwnd: 44, MetricMTU: 1280, MetricAdvMSS: 900} {
			for _, v := range []int{value, 0, full.Metric(m)} {
				must(t, c.SetRouteMetric(full.Destination, m, v))
				if got := find(full.Destination).Metric(m); got != v {
					t.Errorf("%s: %d after setting %d", m, got, v)
				}
			}
		}
		must(t, c.SetRouteMetric(full.Destination, MetricQuickack, 0))
		must(t, c.SetRouteMetric(full.Destination, MetricQuickack, 1))
		if diff := cmp.Diff(full, find(full.Destination)); diff != "" {
			t.Errorf("after changing and restoring every metric (-want +got):\n%s", diff)
		}
		must(t, c.SetRouteMetric("::/0", MetricInitCwnd, 40))
		must(t, c.SetRouteMetric("fd00:9::/64", MetricInitRwnd, 41)) // made by the kernel
		if a, b := find("::/0"), find("fd00:9::/64"); a.InitCwnd != 40 || a.Gateway != "fd00:9::2" || b.InitRwnd != 41 || b.Protocol != "kernel" {
			t.Errorf("IPv6: %+v %+v", a, b)
		}
		must(t, c.SetRouteMetric("10.9.0.0/24", MetricInitCwnd, 12)) // made by the kernel with a source address
		if r := find("10.9.0.0/24"); r.InitCwnd != 12 || r.Source != "10.9.0.1" || r.Protocol != "kernel" {
			t.Errorf("connected route: %+v", r)
		}

		changed := full
		changed.Window, changed.Gateway, changed.Congestion = 0, "10.9.0.3", ""
		must(t, c.ReplaceRoute(changed))
		if diff := cmp.Diff(changed, find(full.Destination)); diff != "" {
			t.Errorf("replaced (-want +got):\n%s", diff)
		}
		fresh := Route{Destination: "10.30.0.0/16", Gateway: "10.9.0.2", Interface: "v0", Protocol: "static", InitCwnd: 11}
		must(t, c.ReplaceRoute(fresh))
		if diff := cmp.Diff(fresh, find(fresh.Destination)); diff != "" {
			t.Errorf("made by replace (-want +got):\n%s", diff)
		}

		for _, v := range []int{-1, 65536} {
			if err := c.SetRouteMetric(full.Destination, MetricMTU, v); !errors.Is(err, unix.ERANGE) {
				t.Errorf("mtu %d: %v", v, err)
			}
		}
		if err := c.SetRouteMetric(full.Destination, "colour", 1); !errors.Is(err, ErrNotSupported) {
			t.Errorf("unknown metric: %v", err)
		}
	})
}

// Attributes without a name here (lock bits, further metrics, several next hops, nexthop objects) survive a change of one metric.
func TestNetnsRouteKeepsTheRest(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		must(t, c.SetUp("v0"))
		must(t, c.SetUp("v1"))
		must(t, c.AddAddress("v0", "10.9.0.1/24"))
		must(t, c.AddAddress("v0", "fd00:9::1/64"))
		l, err := c.LinkByName("v0")
		must(t, err)

		u32b := func(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
		nest := func(attrs ...netlink.Attribute) []byte {
			t.Helper()
			b, err := netlink.MarshalAttributes(attrs)
			must(t, err)
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
		must(t, c.k.change(unix.RTM_NEWNEXTHOP, createNew, nexthop))

		cases := map[string]struct {
			dst   string
			attrs []netlink.Attribute
		}{
			"locks and further metrics": {"10.40.0.0/16", []netlink.Attribute{
				{Type: unix.RTA_GATEWAY, Data: []byte{10, 9, 0, 2}}, {Type: unix.RTA_METRICS | netlink.Nested, Data: odd},
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
			must(t, err)
			raw := newRoute(dst, Route{Gateway: "x"})
			raw.attrs = append(raw.attrs, tc.attrs...)
			must(t, c.k.send(raw, createNew))
			before, ok, err := c.k.lookup(dst, -1)
			must(t, err)
			if !ok {
				t.Fatalf("%s: route not found", name)
			}
			must(t, c.SetRouteMetric(tc.dst, MetricInitCwnd, 25))
			changed, _, err := c.k.lookup(dst, -1)
			must(t, err)
			if r, _ := changed.route(nil); r.InitCwnd != 25 {
				t.Errorf("%s: initcwnd %d after setting 25", name, r.InitCwnd)
			}
			must(t, c.SetRouteMetric(tc.dst, MetricInitCwnd, 0))
			after, _, err := c.k.lookup(dst, -1)
			must(t, err)
			if diff := cmp.Diff(flat(before), flat(after)); diff != "" {
				t.Errorf("%s: not the same after setting and clearing a metric (-before +after):\n%s", name, diff)
			}
		}
	})
}

// flat is a route's content without what the kernel counts up.
func flat(r rawRoute) map[uint16][]byte {
	m := map[uint16][]byte{0: r.header}
	for _, a := range r.attrs {
		if attrType(a) != unix.RTA_CACHEINFO {
			m[attrType(a)] = a.Data
		}
	}
	return m
}

func TestNetnsQdiscCounters(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		must(t, c.SetUp("v0"))
		must(t, c.SetUp("v1"))
		must(t, c.AddAddress("v0", "10.9.0.1/24"))
		root := func() Qdisc {
			t.Helper()
			qs, err := c.Qdiscs()
			must(t, err)
			for _, q := range qs {
				if q.Interface == "v0" && q.Parent == rootHandle {
					return q
				}
			}
			t.Fatalf("no root qdisc of v0 in %+v", qs)
			return Qdisc{}
		}
		if err := c.ReplaceTBF("v0", TBF{}); err == nil {
			t.Error("token bucket without rate accepted")
		}
		// At 8 kbit/s the bucket passes a few frames, keeps a few and drops the rest.
		must(t, c.ReplaceTBF("v0", TBF{RateBitsPerSecond: 8e3, BurstBytes: 3000, LimitBytes: 3000}))
		before := root()
		if before.Kind != "tbf" {
			t.Fatalf("root qdisc %+v", before)
		}
		// The destination needs no neighbour: the broadcast address of the link.
		conn, err := net.Dial("udp4", "10.9.0.255:9")
		if err != nil {
			// Broadcast needs a socket option, which Dial of package net sets by itself.
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		const datagrams = 40
		for range datagrams {
			_, _ = conn.Write(make([]byte, 1000)) // a full queue may be reported as ENOBUFS, which is what we want to see counted
		}
		after := root()
		sent, dropped := after.Packets-before.Packets, after.Drops-before.Drops
		if dropped == 0 || sent == 0 || sent > 10 || after.Overlimits == 0 || after.BacklogBytes == 0 || after.BacklogPackets == 0 {
			t.Errorf("of %d datagrams %d sent, %d dropped; %+v", datagrams, sent, dropped, after)
		}
		must(t, c.ReplaceTBF("v0", TBF{RateBitsPerSecond: 100e9, BurstBytes: 1 << 20, LimitBytes: 1 << 20})) // beyond 32 bits of bytes per second
		must(t, c.ReplaceQdisc("v0", "pfifo"))
		if q := root(); q.Kind != "pfifo" {
			t.Errorf("replaced: %+v", q)
		}
	})
}

// A client works in the namespace in which it was dialled, whatever thread calls it.
func TestNetnsClientFromOtherThreads(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("only-here", "peer", -1))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if _, err := c.LinkByName("only-here"); err != nil {
						t.Error(err)
					}
					if _, err := c.Features("only-here"); err != nil {
						t.Error(err)
					}
					if _, err := c.Routes(); err != nil {
						t.Error(err)
					}
					if _, err := c.Statistics("only-here"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// A client that is closed leaves no descriptor behind, one that fails neither.
func TestNetnsClientLeavesNothingOpen(t *testing.T) {
	inNetNS(t, func(c *Client) {
		count := func() int {
			entries, err := os.ReadDir("/proc/self/fd")
			must(t, err)
			return len(entries)
		}
		before := count()
		for range 50 {
			other, err := Dial()
			must(t, err)
			_, _ = other.Features("nope")
			must(t, other.Close())
			if _, err := other.Links(); err == nil {
				t.Error("a closed client answers")
			}
			if _, err := other.Driver("lo"); err == nil {
				t.Error("a closed client answers")
			}
		}
		if after := count(); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}
