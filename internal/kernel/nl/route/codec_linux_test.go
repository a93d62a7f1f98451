package route

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func routeMessage(t testing.TB, family byte, dst netip.Prefix, flags uint32) []byte {
	h := make([]byte, sizeRtMsg)
	h[0], h[1], h[4], h[5], h[7] = family, byte(dst.Bits()), unix.RT_TABLE_MAIN, unix.RTPROT_DHCP, unix.RTN_UNICAST
	binary.NativeEndian.PutUint32(h[8:], flags)
	return nltest.Encoded(t, h, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.RTA_DST, dst.Addr().AsSlice())
		ae.Uint32(unix.RTA_OIF, 4)
		ae.Uint32(unix.RTA_PRIORITY, 100)
		ae.Nested(unix.RTA_METRICS, func(nae *netlink.AttributeEncoder) error {
			nae.Uint32(unix.RTAX_LOCK, 4)
			nae.Uint32(unix.RTAX_WINDOW, 65535)
			nae.Uint32(unix.RTAX_QUICKACK, 1)
			nae.String(unix.RTAX_CC_ALGO, "bbr")
			nltest.Unknown(nae)
			return nil
		})
		ae.Bytes(unix.RTA_VIA, append([]byte{10, 0}, netip.MustParseAddr("fe80::1").AsSlice()...))
		ae.Bytes(unix.RTA_CACHEINFO, binary.NativeEndian.AppendUint32(make([]byte, 8), 12300))
		nltest.Unknown(ae)
	})
}

func TestParseRoute(t *testing.T) {
	raw, err := parseRawRoute(routeMessage(t, unix.AF_INET, netip.MustParsePrefix("10.0.0.0/8"),
		unix.RTNH_F_ONLINK|unix.RTNH_F_LINKDOWN))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := raw.route(map[int]string{4: "eth0"})
	want := Route{
		Destination: "10.0.0.0/8", Gateway: "fe80::1", Interface: "eth0", Priority: 100, Protocol: "dhcp",
		Window: 65535, Quickack: true,
		Congestion: "bbr", Locked: []Metric{MetricMTULock},
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok %v (-want +got):\n%s", ok, diff)
	}
	back, err := raw.sendable()
	if err != nil {
		t.Fatal(err)
	}
	if u32(back.header[8:]) != unix.RTNH_F_ONLINK {
		t.Errorf("flags %#x are in the request; only onlink is configuration", u32(back.header[8:]))
	}
	if back.find(unix.RTA_CACHEINFO) != nil || back.uint32(unix.RTA_EXPIRES) != 123 {
		t.Error("the request lost the remaining lifetime of 123 s")
	}
	raw.header[0], raw.header[5] = unix.AF_INET6, unix.RTPROT_RA
	if _, err := raw.sendable(); !errors.Is(err, nl.ErrNotSupported) {
		t.Errorf("route of a router advertisement: %v", err)
	}
	if _, ok := raw.destination(); ok {
		t.Error("IPv6 route with an IPv4 destination accepted")
	}
}

func TestCleanMultipath(t *testing.T) {
	hop := []byte{8, 0, unix.RTNH_F_LINKDOWN | unix.RTNH_F_ONLINK, 5, 1, 0, 0, 0}
	got, err := cleanMultipath(append(append([]byte(nil), hop...), hop...))
	if err != nil || got[2] != unix.RTNH_F_ONLINK || got[10] != unix.RTNH_F_ONLINK || got[3] != 5 {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range [][]byte{{0, 0, 0, 0, 0, 0, 0, 0}, {200, 0, 0, 0, 0, 0, 0, 0}} {
		if _, err := cleanMultipath(bad); err == nil {
			t.Errorf("%v accepted", bad)
		}
	}
}

func TestParseDestination(t *testing.T) {
	for in, want := range map[string]string{
		"default": "0.0.0.0/0", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0", "10.1.2.3": "10.1.2.3/32",
		"10.1.2.3/8": "10.0.0.0/8", "fd00::1": "fd00::1/128",
	} {
		if got, err := parseDestination(in); err != nil || got.String() != want {
			t.Errorf("%s: %v %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/33", "eth0", "10.0.0/8"} {
		if _, err := parseDestination(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(routeMessage(f, unix.AF_INET, netip.MustParsePrefix("10.0.0.0/8"), 0))
	f.Add(routeMessage(f, unix.AF_INET6, netip.MustParsePrefix("fd00::/8"), 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		// No parser may panic on any bytes.
		_, _ = cleanMultipath(data)
		raw, err := parseRawRoute(data)
		if err != nil {
			return
		}
		_, _ = raw.route(nil)
		back, err := raw.sendable()
		if err != nil {
			return
		}
		if err := back.setMetric(MetricInitCwnd, 10); err != nil {
			return
		}
		b, err := netlink.MarshalAttributes(back.attrs)
		if err != nil {
			return // an attribute longer than its 16-bit length
		}
		again, err := parseRawRoute(append(append([]byte(nil), back.header...), b...))
		if err != nil {
			t.Fatalf("own route message: %v", err)
		}
		if r, ok := again.route(nil); ok && r.InitCwnd != 10 {
			t.Errorf("initcwnd %d after setting it to 10", r.InitCwnd)
		}
	})
}
