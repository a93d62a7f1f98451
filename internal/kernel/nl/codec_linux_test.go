package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

func linkMessage(t testing.TB) []byte {
	return nltest.Encoded(t, ifInfo(7, unix.IFF_UP|unix.IFF_LOWER_UP, 0), func(ae *netlink.AttributeEncoder) {
		nltest.Unknown(ae)
		ae.String(unix.IFLA_IFNAME, "eth0.100")
		ae.Bytes(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 1})
		ae.Uint32(unix.IFLA_MTU, 9000)
		ae.Uint32(unix.IFLA_TXQLEN, 1000)
		ae.Uint32(unix.IFLA_LINK, 3)
		ae.Uint32(unix.IFLA_MASTER, 9)
		ae.String(unix.IFLA_QDISC, "mq")
		ae.Nested(unix.IFLA_LINKINFO, func(nae *netlink.AttributeEncoder) error {
			nae.String(unix.IFLA_INFO_KIND, "vlan")
			nltest.Unknown(nae)
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
		Index: 7, Name: "eth0.100", Kind: "vlan", MAC: "02:00:00:00:00:01", MTU: 9000, TxQueueLen: 1000, Up: true,
		Carrier: true,
		Qdisc:   "mq", ParentIndex: 3, MasterIndex: 9,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parseLink(make([]byte, 15)); !errors.Is(err, ErrShort) {
		t.Errorf("short message: %v", err)
	}
	broken := nltest.Encoded(t, ifInfo(1, 0, 0), func(ae *netlink.AttributeEncoder) { ae.Uint16(unix.IFLA_MTU, 1) })
	if _, err := parseLink(broken); err == nil {
		t.Error("an MTU of two bytes was accepted")
	}
}

func addressMessage(t testing.TB, bits byte, local, address []byte) []byte {
	h := make([]byte, sizeIfAddr)
	h[0], h[1] = unix.AF_INET, bits
	binary.NativeEndian.PutUint32(h[4:], 4)
	return nltest.Encoded(t, h, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_ADDRESS, address)
		if local != nil {
			ae.Bytes(unix.IFA_LOCAL, local)
		}
		nltest.Unknown(ae)
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
		{"point to point: the local one counts", addressMessage(t, 32, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 2}),
			"10.0.0.1/32", true},
		{"IPv6 has no local attribute", addressMessage(t, 64, nil, netip.MustParseAddr("fd00::1").AsSlice()),
			"fd00::1/64", true},
		{"other family", addressMessage(t, 8, nil, []byte{1, 2, 3}), "", false},
		{"impossible length", addressMessage(t, 33, nil, []byte{10, 0, 0, 1}), "", false},
	} {
		got, ok, err := parseAddress(tc.data)
		if err != nil || ok != tc.ok || got.CIDR != tc.want {
			t.Errorf("%s: %+v %v %v", tc.name, got, ok, err)
		}
	}
}

func qdiscMessage(t testing.TB) []byte {
	h := make([]byte, sizeTcMsg)
	binary.NativeEndian.PutUint32(h[4:], 4)
	binary.NativeEndian.PutUint32(h[8:], 0x10000)
	binary.NativeEndian.PutUint32(h[12:], rootHandle)
	return nltest.Encoded(t, h, func(ae *netlink.AttributeEncoder) {
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
			nltest.Unknown(nae)
			return nil
		})
		nltest.Unknown(ae)
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

// infoMessage returns a link message with the data nest before the kind, an order that the kernel
// does not use.
func infoMessage(t testing.TB, kind string, data func(*netlink.AttributeEncoder)) []byte {
	return nltest.Encoded(t, ifInfo(7, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
			info.Nested(unix.IFLA_INFO_DATA, func(d *netlink.AttributeEncoder) error {
				data(d)
				nltest.Unknown(d)
				return nil
			})
			info.String(unix.IFLA_INFO_KIND, kind)
			return nil
		})
		ae.Uint32(unix.IFLA_GRO_MAX_SIZE, 185000)
		ae.Uint32(unix.IFLA_GSO_MAX_SIZE, 262144)
		ae.Uint32(unix.IFLA_GRO_IPV4_MAX_SIZE, 65536)
		ae.Uint32(unix.IFLA_GSO_IPV4_MAX_SIZE, 65535)
	})
}

func vlanMessage(t testing.TB, etherType uint16) []byte {
	return infoMessage(t, "vlan", func(d *netlink.AttributeEncoder) {
		d.Uint16(unix.IFLA_VLAN_ID, 4094)
		d.Bytes(unix.IFLA_VLAN_PROTOCOL, binary.BigEndian.AppendUint16(nil, etherType))
	})
}

func bondMessage(t testing.TB, mode byte) []byte {
	return infoMessage(t, "bond", func(d *netlink.AttributeEncoder) { d.Uint8(unix.IFLA_BOND_MODE, mode) })
}

func TestParseLinkInfo(t *testing.T) {
	sizes := Link{Index: 7, GROMaxBytes: 185000, GSOMaxBytes: 262144, GROIPv4MaxBytes: 65536, GSOIPv4MaxBytes: 65535}
	for _, tc := range []struct {
		name string
		data []byte
		want func(*Link)
	}{
		{"vlan", vlanMessage(t, unix.ETH_P_8021Q),
			func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "802.1Q" }},
		{"service tag", vlanMessage(t, unix.ETH_P_8021AD),
			func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "802.1ad" }},
		{"vendor's tag", vlanMessage(t, 0x9100),
			func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "0x9100" }},
		{"bond", bondMessage(t, 4), func(l *Link) { l.Kind, l.BondMode = "bond", "802.3ad" }},
		{"bond with an unknown mode", bondMessage(t, 7), func(l *Link) { l.Kind = "bond" }},
		// IFLA_BOND_MODE and IFLA_VLAN_ID have the same number: only the kind distinguishes them.
		{"another kind", infoMessage(t, "ipvlan", func(d *netlink.AttributeEncoder) { d.Uint16(1, 2) }),
			func(l *Link) { l.Kind = "ipvlan" }},
	} {
		want := sizes
		tc.want(&want)
		got, err := parseLink(tc.data)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
		}
	}
	short := infoMessage(t, "vlan", func(d *netlink.AttributeEncoder) { d.Uint8(unix.IFLA_VLAN_ID, 1) })
	if _, err := parseLink(short); err == nil {
		t.Error("a VLAN number of one byte was accepted")
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
		err := Wrap("set mtu of", "eth0", tc.err)
		for _, is := range tc.is {
			if !errors.Is(err, is) {
				t.Errorf("%v is not %v", err, is)
			}
		}
		for _, not := range tc.not {
			if errors.Is(err, not) {
				t.Errorf("%v is %v", err, not)
			}
		}
	}
	if Wrap("x", "y", nil) != nil {
		t.Error("Wrap of nil returned an error")
	}
	bare := &Error{Kernel: "a sentence", Err: syscall.EINVAL}
	if got := Wrap("set mtu of", "eth0", bare).Error(); got != "set mtu of eth0: invalid argument: a sentence" {
		t.Error(got)
	}
	// The text still names the request that failed.
	second := fmt.Errorf("read back: %w", &Error{Kernel: "a sentence", Err: syscall.ENODEV})
	err := Wrap("set feature rx-gro of", "eth0", second)
	if got := err.Error(); got != "set feature rx-gro of eth0: read back: no such device: a sentence" ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, missing: %v", got, errors.Is(err, fs.ErrNotExist))
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(linkMessage(f))
	f.Add(addressMessage(f, 24, []byte{10, 0, 0, 1}, []byte{10, 0, 0, 1}))
	f.Add(qdiscMessage(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		// No parser may panic on any bytes, and an accepted address must be valid.
		_, _ = parseLink(data)
		_, _, _ = parseQdisc(data)
		_, _ = parseLinkState(data, LinkCounters{Name: "eth0", PermanentMAC: "02:00:00:00:00:01"})
		_, _ = parseQdiscCounters(data, "fq")
		_, _ = parseStats64(data, new([LinkCounts]uint64))
		if a, ok, err := parseAddress(data); ok && err == nil {
			if _, err := netip.ParsePrefix(a.CIDR); err != nil {
				t.Errorf("address %q: %v", a.CIDR, err)
			}
		}
	})
}

func FuzzLinkInfo(f *testing.F) {
	f.Add(vlanMessage(f, unix.ETH_P_8021Q))
	f.Add(vlanMessage(f, 0))
	f.Add(bondMessage(f, 6))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseLink(data)
		if err == nil && (l.BondMode != "" && l.Kind != "bond" || l.VLANProtocol != "" && l.Kind != "vlan") {
			t.Errorf("data of another kind: %+v", l)
		}
	})
}
