package nl

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// infoMessage is a link message with the data nest in front of the kind, the order that the kernel does not use.
func infoMessage(t testing.TB, kind string, data func(*netlink.AttributeEncoder)) []byte {
	return encoded(t, ifInfo(7, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
			info.Nested(unix.IFLA_INFO_DATA, func(d *netlink.AttributeEncoder) error {
				data(d)
				unknown(d)
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
		{"vlan", vlanMessage(t, unix.ETH_P_8021Q), func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "802.1Q" }},
		{"service tag", vlanMessage(t, unix.ETH_P_8021AD), func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "802.1ad" }},
		{"tag of the vendor", vlanMessage(t, 0x9100), func(l *Link) { l.Kind, l.VLANID, l.VLANProtocol = "vlan", 4094, "0x9100" }},
		{"bond", bondMessage(t, 4), func(l *Link) { l.Kind, l.BondMode = "bond", "802.3ad" }},
		{"bond of a mode to come", bondMessage(t, 7), func(l *Link) { l.Kind = "bond" }},
		// IFLA_BOND_MODE and IFLA_VLAN_ID have the same number: only the kind tells them apart.
		{"another kind", infoMessage(t, "ipvlan", func(d *netlink.AttributeEncoder) { d.Uint16(1, 2) }), func(l *Link) { l.Kind = "ipvlan" }},
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

func TestNetnsSizeLimits(t *testing.T) {
	inNetNS(t, func(c *Client) {
		must(t, c.AddVeth("v0", "v1", -1))
		read := func(which SizeLimit) int {
			t.Helper()
			l, err := c.LinkByName("v0")
			must(t, err)
			return l.SizeLimit(which)
		}
		for _, which := range []SizeLimit{LimitGRO, LimitGSO, LimitGROIPv4, LimitGSOIPv4} {
			was := read(which)
			if was == 0 { // a kernel before 6.3
				if err := c.SetSizeLimit("v0", which, 4096); !errors.Is(err, ErrNotSupported) {
					t.Errorf("%s: %v", which, err)
				}
				continue
			}
			for _, bytes := range []int{40000, was} {
				must(t, c.SetSizeLimit("v0", which, bytes))
				if got := read(which); got != bytes {
					t.Errorf("%s: %d after setting %d", which, got, bytes)
				}
			}
			if which == LimitGRO && read(LimitGROIPv4) == 0 {
				continue // a kernel before 6.3 takes any number for this one
			}
			if err := c.SetSizeLimit("v0", which, 1<<30); !errors.Is(err, unix.EINVAL) {
				t.Errorf("%s: a gigabyte: %v", which, err)
			}
		}
		if err := c.SetSizeLimit("v0", "size", 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown limit: %v", err)
		}
		if err := c.SetSizeLimit("nope", LimitGRO, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no link: %v", err)
		}
		if read("size") != 0 {
			t.Error("an unknown limit has a value")
		}
	})
}

func fecMessage(t testing.TB, auto byte, active uint32, modes ...string) []byte {
	return encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Nested(fecModes, bitset(modes, nil))
		ae.Uint8(fecAuto, auto)
		if active != 0 {
			ae.Uint32(fecActive, active)
		}
		unknown(ae)
	})
}

func TestParseFEC(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want FEC
	}{
		{"chosen by the driver", fecMessage(t, 1, unix.ETHTOOL_LINK_MODE_FEC_RS_BIT, "RS", "BASER"), FEC{Auto: true, Modes: []string{"baser", "rs"}, Active: "rs"}},
		{"off", fecMessage(t, 0, unix.ETHTOOL_LINK_MODE_FEC_NONE_BIT, "None"), FEC{Modes: []string{"off"}, Active: "off"}},
		{"no link", fecMessage(t, 0, 0, "LLRS"), FEC{Modes: []string{"llrs"}}},
		{"a mode to come", fecMessage(t, 0, 200, "XYZ"), FEC{Modes: []string{"XYZ"}}},
		{"nothing told", nil, FEC{}},
	} {
		got, err := parseFEC(tc.data)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
		}
	}
	if fecBits[unix.ETHTOOL_LINK_MODE_FEC_BASER_BIT] != "baser" || fecBits[unix.ETHTOOL_LINK_MODE_FEC_LLRS_BIT] != "llrs" {
		t.Errorf("numbers of link modes: %v", fecBits)
	}
}

func rssMessage(t testing.TB, function uint32, key int, queues ...uint32) []byte {
	return encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(rssHashFunction, function)
		ae.Bytes(rssKey, make([]byte, key))
		ae.Bytes(rssIndirection, words(queues...))
		unknown(ae)
	})
}

func words(v ...uint32) (b []byte) {
	for _, n := range v {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

// rxfh is the same as an ioctl tells it.
func rxfh(function byte, key int, queues ...uint32) []byte {
	b := words(unix.ETHTOOL_GRSSH, 0, uint32(len(queues)), uint32(key), 0, 0)
	b[16] = function
	return append(append(b, words(queues...)...), make([]byte, key)...)
}

func TestParseRSS(t *testing.T) {
	for _, tc := range []struct {
		name     string
		function byte
		key      int
		queues   []uint32
		want     RSS
	}{
		{"usual", 1, 40, []uint32{0, 1, 2, 3, 0, 1}, RSS{HashFunction: "toeplitz", KeyBytes: 40, Indirection: []uint32{0, 1, 2, 3, 0, 1}}},
		{"one entry is no number", 2, 0, []uint32{5}, RSS{HashFunction: "xor", Indirection: []uint32{5}}},
		{"virtio without steering", 1, 0, nil, RSS{HashFunction: "toeplitz"}},
		{"nothing told", 0, 0, nil, RSS{}},
		{"crc", 4, 0, nil, RSS{HashFunction: "crc32"}},
		{"a function to come", 8, 0, nil, RSS{HashFunction: "0x8"}},
	} {
		got, err := parseRSS(rssMessage(t, uint32(tc.function), tc.key, tc.queues...))
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
		}
		got, err = parseRxfh(rxfh(tc.function, tc.key, tc.queues...))
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s, ioctl: %v (-want +got):\n%s", tc.name, err, diff)
		}
	}
	long := rxfh(1, 40, 1, 2, 3)
	if _, err := parseRxfh(long[:len(long)-1]); err == nil {
		t.Error("a key that was cut off was accepted")
	}
	if _, err := parseRxfh(long[:sizeRxfh-1]); !errors.Is(err, errShort) {
		t.Errorf("short struct: %v", err)
	}
}

func privateFlagsMessage(t testing.TB) []byte {
	return encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.ETHTOOL_A_PRIVFLAGS_FLAGS, bitset([]string{"rx_cqe_compress", "rx_striding_rq"}, map[string]bool{"rx_striding_rq": true}))
		unknown(ae)
	})
}

func TestParsePrivateFlags(t *testing.T) {
	got, err := parsePrivateFlags(privateFlagsMessage(t))
	if diff := cmp.Diff(map[string]bool{"rx_cqe_compress": false, "rx_striding_rq": true}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A request that changes one bit is read as one by the decoder that reads the kernel's sets: with a mask, and the value told.
func TestOneBit(t *testing.T) {
	for _, on := range []bool{true, false} {
		got, err := parsePrivateFlags(encoded(t, nil, func(ae *netlink.AttributeEncoder) { oneBit(ae, unix.ETHTOOL_A_PRIVFLAGS_FLAGS, "legacy-rx", on) }))
		if diff := cmp.Diff(map[string]bool{"legacy-rx": on}, got); err != nil || diff != "" {
			t.Errorf("%v %v (-want +got):\n%s", on, err, diff)
		}
	}
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

func FuzzFEC(f *testing.F) {
	f.Add(fecMessage(f, 1, unix.ETHTOOL_LINK_MODE_FEC_RS_BIT, "RS", "BASER"))
	f.Add(fecMessage(f, 0, 0, "None"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := parseFEC(data); err == nil && !slices.IsSorted(v.Modes) {
			t.Errorf("modes %q are not sorted", v.Modes)
		}
	})
}

func FuzzRSS(f *testing.F) {
	f.Add(rssMessage(f, 1, 40, 0, 1, 2, 3))
	f.Add(rxfh(1, 40, 0, 1, 2, 3))
	f.Add(rxfh(2, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (RSS, error){parseRSS, parseRxfh} {
			if r, err := parse(data); err == nil && 4*len(r.Indirection)+r.KeyBytes > len(data) {
				t.Errorf("%d entries and %d bytes of key from %d bytes", len(r.Indirection), r.KeyBytes, len(data))
			}
		}
	})
}

func FuzzPrivateFlags(f *testing.F) {
	f.Add(privateFlagsMessage(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		flags, err := parsePrivateFlags(data)
		if _, ok := flags[""]; err == nil && ok {
			t.Error("a flag without a name")
		}
	})
}

func FuzzGroup(f *testing.F) {
	f.Add(words(unix.ETHTOOL_GPAUSEPARAM, 1, 0, 1))
	f.Add(encoded(f, nil, func(ae *netlink.AttributeEncoder) {
		groupCoalesce.encode(ae, map[uint16]uint32{unix.ETHTOOL_A_COALESCE_RX_USECS: 50, unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: 1})
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := byAttribute(data); len(got) > len(data)/4 {
			t.Errorf("%d numbers from %d bytes", len(got), len(data))
		}
		_, _ = uint32s(data)
	})
}
