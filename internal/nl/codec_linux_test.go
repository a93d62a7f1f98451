package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"io/fs"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// unknown is an attribute of a kernel that is newer than this program.
func unknown(ae *netlink.AttributeEncoder) {
	ae.Bytes(4000, []byte{1, 2, 3})
	ae.Nested(4001, func(nae *netlink.AttributeEncoder) error {
		nae.String(1, "later")
		return nil
	})
}

func encoded(t testing.TB, header []byte, fill func(ae *netlink.AttributeEncoder)) []byte {
	t.Helper()
	b, err := encode(header, fill)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func linkMessage(t testing.TB) []byte {
	return encoded(t, ifInfo(7, unix.IFF_UP|unix.IFF_LOWER_UP, 0), func(ae *netlink.AttributeEncoder) {
		unknown(ae)
		ae.String(unix.IFLA_IFNAME, "eth0.100")
		ae.Bytes(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 1})
		ae.Uint32(unix.IFLA_MTU, 9000)
		ae.Uint32(unix.IFLA_TXQLEN, 1000)
		ae.Uint32(unix.IFLA_LINK, 3)
		ae.Uint32(unix.IFLA_MASTER, 9)
		ae.String(unix.IFLA_QDISC, "mq")
		ae.Nested(unix.IFLA_LINKINFO, func(nae *netlink.AttributeEncoder) error {
			nae.String(unix.IFLA_INFO_KIND, "vlan")
			unknown(nae)
			return nil
		})
	})
}

func TestParseLink(t *testing.T) {
	got, err := parseLink(linkMessage(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Link{
		Index: 7, Name: "eth0.100", Kind: "vlan", MAC: "02:00:00:00:00:01", MTU: 9000, TxQueueLen: 1000, Up: true, Carrier: true,
		Qdisc: "mq", ParentIndex: 3, MasterIndex: 9,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseLink(make([]byte, 15)); !errors.Is(err, errShort) {
		t.Errorf("short message: %v", err)
	}
	broken := encoded(t, ifInfo(1, 0, 0), func(ae *netlink.AttributeEncoder) { ae.Uint16(unix.IFLA_MTU, 1) })
	if _, err := parseLink(broken); err == nil {
		t.Error("an MTU of two bytes was accepted")
	}
}

func addressMessage(t testing.TB, bits byte, local, address []byte) []byte {
	h := make([]byte, sizeIfAddr)
	h[0], h[1] = unix.AF_INET, bits
	binary.NativeEndian.PutUint32(h[4:], 4)
	return encoded(t, h, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_ADDRESS, address)
		if local != nil {
			ae.Bytes(unix.IFA_LOCAL, local)
		}
		unknown(ae)
	})
}

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want string
		ok   bool
	}{
		{"plain", addressMessage(t, 24, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 1}), "10.0.0.1/24", true},
		{"point to point: the local one counts", addressMessage(t, 32, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 2}), "10.0.0.1/32", true},
		{"IPv6 has no local attribute", addressMessage(t, 64, nil, netip.MustParseAddr("fd00::1").AsSlice()), "fd00::1/64", true},
		{"other family", addressMessage(t, 8, nil, []byte{1, 2, 3}), "", false},
		{"impossible length", addressMessage(t, 33, nil, []byte{10, 0, 0, 1}), "", false},
	} {
		got, ok, err := parseAddress(tc.data)
		if err != nil || ok != tc.ok || got.CIDR != tc.want {
			t.Errorf("%s: %+v %v %v", tc.name, got, ok, err)
		}
	}
}

func routeMessage(t testing.TB, family byte, dst netip.Prefix, flags uint32) []byte {
	h := make([]byte, sizeRtMsg)
	h[0], h[1], h[4], h[5], h[7] = family, byte(dst.Bits()), unix.RT_TABLE_MAIN, unix.RTPROT_DHCP, unix.RTN_UNICAST
	binary.NativeEndian.PutUint32(h[8:], flags)
	return encoded(t, h, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.RTA_DST, dst.Addr().AsSlice())
		ae.Uint32(unix.RTA_OIF, 4)
		ae.Uint32(unix.RTA_PRIORITY, 100)
		ae.Nested(unix.RTA_METRICS, func(nae *netlink.AttributeEncoder) error {
			nae.Uint32(unix.RTAX_LOCK, 4)
			nae.Uint32(unix.RTAX_WINDOW, 65535)
			nae.Uint32(unix.RTAX_QUICKACK, 1)
			nae.String(unix.RTAX_CC_ALGO, "bbr")
			unknown(nae)
			return nil
		})
		ae.Bytes(unix.RTA_VIA, append([]byte{10, 0}, netip.MustParseAddr("fe80::1").AsSlice()...))
		ae.Bytes(unix.RTA_CACHEINFO, binary.NativeEndian.AppendUint32(make([]byte, 8), 12300))
		unknown(ae)
	})
}

func TestParseRoute(t *testing.T) {
	raw, err := parseRawRoute(routeMessage(t, unix.AF_INET, netip.MustParsePrefix("10.0.0.0/8"), unix.RTNH_F_ONLINK|unix.RTNH_F_LINKDOWN))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := raw.route(map[int]string{4: "eth0"})
	want := Route{
		Destination: "10.0.0.0/8", Gateway: "fe80::1", Interface: "eth0", Priority: 100, Protocol: "dhcp", Window: 65535, Quickack: true,
		Congestion: "bbr", Locked: []RouteMetric{MetricMTULock},
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok %v (-want +got):\n%s", ok, diff)
	}
	back, err := raw.sendable()
	if err != nil {
		t.Fatal(err)
	}
	if u32(back.header[8:]) != unix.RTNH_F_ONLINK {
		t.Errorf("flags %#x are sent back; only onlink is configuration", u32(back.header[8:]))
	}
	if back.find(unix.RTA_CACHEINFO) != nil || back.uint32(unix.RTA_EXPIRES) != 123 {
		t.Error("the remaining lifetime of 123 s was not sent back as one")
	}
	raw.header[0], raw.header[5] = unix.AF_INET6, unix.RTPROT_RA
	if _, err := raw.sendable(); !errors.Is(err, ErrNotSupported) {
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

func qdiscMessage(t testing.TB) []byte {
	h := make([]byte, sizeTcMsg)
	binary.NativeEndian.PutUint32(h[4:], 4)
	binary.NativeEndian.PutUint32(h[8:], 0x10000)
	binary.NativeEndian.PutUint32(h[12:], rootHandle)
	return encoded(t, h, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.TCA_KIND, "fq")
		ae.Nested(unix.TCA_STATS2, func(nae *netlink.AttributeEncoder) error {
			basic := binary.NativeEndian.AppendUint64(nil, 5e9)
			nae.Bytes(statsPackets64, binary.NativeEndian.AppendUint64(nil, 1<<33))
			nae.Bytes(statsBasic, binary.NativeEndian.AppendUint64(basic, 77)) // 32-bit count and padding
			var queue []byte
			for i := range uint32(5) {
				queue = binary.NativeEndian.AppendUint32(queue, i+1)
			}
			nae.Bytes(statsQueue, append(queue, 9, 9, 9, 9)) // a structure that grew
			unknown(nae)
			return nil
		})
		unknown(ae)
	})
}

func TestParseQdisc(t *testing.T) {
	got, index, err := parseQdisc(qdiscMessage(t))
	want := Qdisc{
		Kind: "fq", Parent: rootHandle, Handle: 0x10000, Bytes: 5e9, Packets: 1 << 33,
		BacklogPackets: 1, BacklogBytes: 2, Drops: 3, Requeues: 4, Overlimits: 5,
	}
	if diff := cmp.Diff(want, got); err != nil || index != 4 || diff != "" {
		t.Errorf("index %d, %v (-want +got):\n%s", index, err, diff)
	}
}

// bitset encodes named bits; values nil makes a set without mask.
func bitset(names []string, values map[string]bool) func(*netlink.AttributeEncoder) error {
	return func(set *netlink.AttributeEncoder) error {
		if values == nil {
			set.Flag(unix.ETHTOOL_A_BITSET_NOMASK, true)
		}
		set.Uint32(unix.ETHTOOL_A_BITSET_SIZE, 64)
		set.Nested(unix.ETHTOOL_A_BITSET_BITS, func(bits *netlink.AttributeEncoder) error {
			for i, n := range names {
				bits.Nested(unix.ETHTOOL_A_BITSET_BITS_BIT, func(bit *netlink.AttributeEncoder) error {
					bit.Uint32(unix.ETHTOOL_A_BITSET_BIT_INDEX, uint32(i))
					bit.String(unix.ETHTOOL_A_BITSET_BIT_NAME, n)
					bit.Flag(unix.ETHTOOL_A_BITSET_BIT_VALUE, values[n])
					return nil
				})
			}
			return nil
		})
		unknown(set)
		return nil
	}
}

func featuresMessage(t testing.TB) []byte {
	return encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		all := []string{"rx-gro", "tx-tcp-segmentation", "rx-fcs", "highdma"}
		ae.Nested(unix.ETHTOOL_A_FEATURES_HEADER, func(nae *netlink.AttributeEncoder) error {
			nae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, 4)
			return nil
		})
		ae.Nested(unix.ETHTOOL_A_FEATURES_HW, bitset(all, map[string]bool{"rx-gro": true, "tx-tcp-segmentation": true, "highdma": true}))
		ae.Nested(unix.ETHTOOL_A_FEATURES_WANTED, bitset([]string{"rx-gro", "tx-tcp-segmentation"}, nil))
		ae.Nested(unix.ETHTOOL_A_FEATURES_ACTIVE, bitset([]string{"rx-gro", "highdma"}, nil))
		ae.Nested(unix.ETHTOOL_A_FEATURES_NOCHANGE, bitset(all, map[string]bool{"highdma": true}))
		unknown(ae)
	})
}

func TestParseFeatures(t *testing.T) {
	got, err := parseFeatures(featuresMessage(t))
	want := map[string]Feature{
		"rx-gro":              {On: true},
		"tx-tcp-segmentation": {}, // wanted but not active
		"rx-fcs":              {Fixed: true},
		"highdma":             {On: true, Fixed: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeLinkMode(t *testing.T) {
	for _, tc := range []struct {
		in     map[uint16]uint32
		speed  float64
		duplex string
	}{
		{map[uint16]uint32{unix.ETHTOOL_A_LINKMODES_SPEED: 1000, unix.ETHTOOL_A_LINKMODES_DUPLEX: 1}, 1e9, "full"},
		{map[uint16]uint32{unix.ETHTOOL_A_LINKMODES_SPEED: 10, unix.ETHTOOL_A_LINKMODES_DUPLEX: 0}, 1e7, "half"},
		{map[uint16]uint32{unix.ETHTOOL_A_LINKMODES_SPEED: 1<<32 - 1, unix.ETHTOOL_A_LINKMODES_DUPLEX: 255}, 0, ""},
		{nil, 0, ""},
	} {
		if speed, duplex := decodeLinkMode(tc.in); speed != tc.speed || duplex != tc.duplex {
			t.Errorf("%v: %v %q", tc.in, speed, duplex)
		}
	}
}

func TestIoctlReplies(t *testing.T) {
	b := make([]byte, 12+2*stringLength)
	binary.NativeEndian.PutUint32(b[8:], 2)
	copy(b[12:], "rx_queue_0_drops")
	copy(b[12+stringLength:], "  a_name_that_fills_its_32_bytes")
	if got, err := parseStrings(b, 2); err != nil || !cmp.Equal(got, []string{"rx_queue_0_drops", "a_name_that_fills_its_32_bytes"}) {
		t.Errorf("%q %v", got, err)
	}
	if _, err := parseStrings(b, 1); err == nil {
		t.Error("more names than room")
	}
	binary.NativeEndian.PutUint32(b[4:], 1<<31)
	if _, err := parseStatistics(b, 1<<20); err == nil {
		t.Error("more values than room")
	}
	d := make([]byte, 4+4*32)
	copy(d[4:], "e1000e")
	copy(d[4+64:], "N/A")
	copy(d[4+96:], "0000:00:19.0")
	if diff := cmp.Diff(DriverInfo{Driver: "e1000e", Bus: "0000:00:19.0"}, parseDriver(d)); diff != "" {
		t.Error(diff)
	}
	if got := parseDriver(nil); got != (DriverInfo{}) {
		t.Errorf("%+v", got)
	}
}

func TestErrorAnswers(t *testing.T) {
	for _, tc := range []struct {
		err error
		is  []error
		not []error
	}{
		{syscall.ENODEV, []error{fs.ErrNotExist, syscall.ENODEV}, []error{fs.ErrPermission, ErrNotSupported}},
		{syscall.ESRCH, []error{fs.ErrNotExist}, []error{ErrNotSupported}},
		{syscall.EPERM, []error{fs.ErrPermission}, []error{fs.ErrNotExist}},
		{syscall.EOPNOTSUPP, []error{ErrNotSupported}, []error{fs.ErrNotExist, fs.ErrPermission}},
		{fmt.Errorf("%w: why", ErrNotSupported), []error{ErrNotSupported}, []error{fs.ErrNotExist}},
		{&Error{Kernel: "a sentence", Err: syscall.EINVAL}, []error{syscall.EINVAL}, []error{fs.ErrNotExist}},
	} {
		err := wrap("set mtu of", "eth0", tc.err)
		for _, is := range tc.is {
			if !errors.Is(err, is) {
				t.Errorf("%v is no %v", err, is)
			}
		}
		for _, not := range tc.not {
			if errors.Is(err, not) {
				t.Errorf("%v is %v", err, not)
			}
		}
	}
	if wrap("x", "y", nil) != nil {
		t.Error("no error became one")
	}
	if got := wrap("set mtu of", "eth0", &Error{Kernel: "a sentence", Err: syscall.EINVAL}).Error(); got != "set mtu of eth0: invalid argument: a sentence" {
		t.Error(got)
	}
	// Which of several requests failed stays in the text.
	second := fmt.Errorf("read back: %w", &Error{Kernel: "a sentence", Err: syscall.ENODEV})
	err := wrap("set feature rx-gro of", "eth0", second)
	if got := err.Error(); got != "set feature rx-gro of eth0: read back: no such device: a sentence" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, missing: %v", got, errors.Is(err, fs.ErrNotExist))
	}
}

func TestParseDestination(t *testing.T) {
	for in, want := range map[string]string{
		"default": "0.0.0.0/0", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0", "10.1.2.3": "10.1.2.3/32", "10.1.2.3/8": "10.0.0.0/8", "fd00::1": "fd00::1/128",
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
	f.Add(linkMessage(f))
	f.Add(addressMessage(f, 24, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 1}))
	f.Add(routeMessage(f, unix.AF_INET, netip.MustParsePrefix("10.0.0.0/8"), 0))
	f.Add(routeMessage(f, unix.AF_INET6, netip.MustParsePrefix("fd00::/8"), 0))
	f.Add(qdiscMessage(f))
	f.Add(featuresMessage(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Whatever the bytes are, no parser may panic, and an address that was accepted is one.
		_, _ = parseLink(data)
		_, _, _ = parseQdisc(data)
		_, _ = parseFeatures(data)
		_, _ = uint32s(data)
		_ = parseDriver(data)
		_, _ = parseStrings(data, 64)
		_, _ = parseStatistics(data, 64)
		_, _ = cleanMultipath(data)
		if a, ok, err := parseAddress(data); ok && err == nil {
			if _, err := netip.ParsePrefix(a.CIDR); err != nil {
				t.Errorf("address %q: %v", a.CIDR, err)
			}
		}
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
			t.Errorf("initcwnd %d after setting 10", r.InitCwnd)
		}
	})
}
