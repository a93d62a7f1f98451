package ethtool

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// bitset encodes named bits. With nil values it is a set without mask.
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
		nltest.Unknown(set)
		return nil
	}
}

func featuresMessage(t testing.TB) []byte {
	return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		all := []string{"rx-gro", "tx-tcp-segmentation", "rx-fcs", "highdma"}
		ae.Nested(unix.ETHTOOL_A_FEATURES_HEADER, func(nae *netlink.AttributeEncoder) error {
			nae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, 4)
			return nil
		})
		ae.Nested(unix.ETHTOOL_A_FEATURES_HW,
			bitset(all, map[string]bool{"rx-gro": true, "tx-tcp-segmentation": true, "highdma": true}))
		ae.Nested(unix.ETHTOOL_A_FEATURES_WANTED, bitset([]string{"rx-gro", "tx-tcp-segmentation"}, nil))
		ae.Nested(unix.ETHTOOL_A_FEATURES_ACTIVE, bitset([]string{"rx-gro", "highdma"}, nil))
		ae.Nested(unix.ETHTOOL_A_FEATURES_NOCHANGE, bitset(all, map[string]bool{"highdma": true}))
		nltest.Unknown(ae)
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
	if got, err := parseStrings(b, 2); err != nil ||
		!cmp.Equal(got, []string{"rx_queue_0_drops", "a_name_that_fills_its_32_bytes"}) {
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

func fecMessage(t testing.TB, auto byte, active uint32, modes ...string) []byte {
	return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Nested(fecModes, bitset(modes, nil))
		ae.Uint8(fecAuto, auto)
		if active != 0 {
			ae.Uint32(fecActive, active)
		}
		nltest.Unknown(ae)
	})
}

func TestParseFEC(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want FEC
	}{
		{"driver's choice", fecMessage(t, 1, unix.ETHTOOL_LINK_MODE_FEC_RS_BIT, "RS", "BASER"),
			FEC{Auto: true, Modes: []string{"baser", "rs"}, Active: "rs"}},
		{"off", fecMessage(t, 0, unix.ETHTOOL_LINK_MODE_FEC_NONE_BIT, "None"),
			FEC{Modes: []string{"off"}, Active: "off"}},
		{"no link", fecMessage(t, 0, 0, "LLRS"), FEC{Modes: []string{"llrs"}}},
		{"unknown mode", fecMessage(t, 0, 200, "XYZ"), FEC{Modes: []string{"XYZ"}}},
		{"nothing reported", nil, FEC{}},
	} {
		got, err := parseFEC(tc.data)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
		}
	}
	if fecBits[unix.ETHTOOL_LINK_MODE_FEC_BASER_BIT] != "baser" ||
		fecBits[unix.ETHTOOL_LINK_MODE_FEC_LLRS_BIT] != "llrs" {
		t.Errorf("numbers of link modes: %v", fecBits)
	}
}

func rssMessage(t testing.TB, function uint32, key int, queues ...uint32) []byte {
	return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(rssHashFunction, function)
		ae.Bytes(rssKey, make([]byte, key))
		ae.Bytes(rssIndirection, words(queues...))
		nltest.Unknown(ae)
	})
}

func words(v ...uint32) (b []byte) {
	for _, n := range v {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

// rxfh returns the same as the ioctl does.
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
		{"usual", 1, 40, []uint32{0, 1, 2, 3, 0, 1},
			RSS{HashFunction: "toeplitz", KeyBytes: 40, Indirection: []uint32{0, 1, 2, 3, 0, 1}}},
		{"table of one entry", 2, 0, []uint32{5}, RSS{HashFunction: "xor", Indirection: []uint32{5}}},
		{"virtio without steering", 1, 0, nil, RSS{HashFunction: "toeplitz"}},
		{"nothing reported", 0, 0, nil, RSS{}},
		{"crc", 4, 0, nil, RSS{HashFunction: "crc32"}},
		{"unknown function", 8, 0, nil, RSS{HashFunction: "0x8"}},
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
		t.Error("a truncated key was accepted")
	}
	if _, err := parseRxfh(long[:sizeRxfh-1]); !errors.Is(err, nl.ErrShort) {
		t.Errorf("short struct: %v", err)
	}
}

func privateFlagsMessage(t testing.TB) []byte {
	return nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.ETHTOOL_A_PRIVFLAGS_FLAGS,
			bitset([]string{"rx_cqe_compress", "rx_striding_rq"}, map[string]bool{"rx_striding_rq": true}))
		nltest.Unknown(ae)
	})
}

func TestParsePrivateFlags(t *testing.T) {
	got, err := parsePrivateFlags(privateFlagsMessage(t))
	if diff := cmp.Diff(map[string]bool{"rx_cqe_compress": false, "rx_striding_rq": true}, got); err != nil ||
		diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// The decoder of the kernel's sets reads a request that changes one bit as one bit, with a mask and
// the value.
func TestOneBit(t *testing.T) {
	for _, on := range []bool{true, false} {
		got, err := parsePrivateFlags(nltest.Encoded(t, nil,
			func(ae *netlink.AttributeEncoder) { oneBit(ae, unix.ETHTOOL_A_PRIVFLAGS_FLAGS, "legacy-rx", on) }))
		if diff := cmp.Diff(map[string]bool{"legacy-rx": on}, got); err != nil || diff != "" {
			t.Errorf("%v %v (-want +got):\n%s", on, err, diff)
		}
	}
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
	f.Add(nltest.Encoded(f, nil, func(ae *netlink.AttributeEncoder) {
		groupCoalesce.encode(ae,
			map[uint16]uint32{unix.ETHTOOL_A_COALESCE_RX_USECS: 50, unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: 1})
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := byAttribute(data); len(got) > len(data)/4 {
			t.Errorf("%d numbers from %d bytes", len(got), len(data))
		}
		_, _ = uint32s(data)
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(featuresMessage(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		// No parser may panic on any bytes.
		_, _ = parseFeatures(data)
		_, _ = uint32s(data)
		_ = parseDriver(data)
		_, _ = parseStrings(data, 64)
		_, _ = parseStatistics(data, 64)
	})
}
