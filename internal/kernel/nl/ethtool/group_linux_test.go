package ethtool

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// The words of the old structs have the order of the attributes. The test checks them against the
// names in linux/ethtool.h.
func TestByAttribute(t *testing.T) {
	words := func(n int) []byte {
		b := make([]byte, 4*n)
		for i := range n {
			binary.NativeEndian.PutUint32(b[4*i:], uint32(100+i))
		}
		return b
	}
	for _, tc := range []struct {
		name string
		g    group
		at   map[uint16]int // attribute: word of the struct
	}{
		{"ethtool_ringparam", groupRings, map[uint16]int{
			unix.ETHTOOL_A_RINGS_RX_MAX: 1, unix.ETHTOOL_A_RINGS_TX_MAX: 4, unix.ETHTOOL_A_RINGS_RX: 5,
			unix.ETHTOOL_A_RINGS_TX: 8,
		}},
		{"ethtool_channels", groupChannels, map[uint16]int{
			unix.ETHTOOL_A_CHANNELS_RX_MAX: 1, unix.ETHTOOL_A_CHANNELS_COMBINED_MAX: 4,
			unix.ETHTOOL_A_CHANNELS_RX_COUNT:       5,
			unix.ETHTOOL_A_CHANNELS_COMBINED_COUNT: 8,
		}},
		{"ethtool_coalesce", groupCoalesce, map[uint16]int{
			unix.ETHTOOL_A_COALESCE_RX_USECS: 1, unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES: 6,
			unix.ETHTOOL_A_COALESCE_STATS_BLOCK_USECS: 9,
			unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX:   10, unix.ETHTOOL_A_COALESCE_PKT_RATE_LOW: 12,
			unix.ETHTOOL_A_COALESCE_PKT_RATE_HIGH:        17,
			unix.ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL: 22,
		}},
		{"ethtool_pauseparam", groupPause, map[uint16]int{
			unix.ETHTOOL_A_PAUSE_AUTONEG: 1, unix.ETHTOOL_A_PAUSE_RX: 2, unix.ETHTOOL_A_PAUSE_TX: 3,
		}},
	} {
		got := byAttribute(words(tc.g.oldWords))
		if len(got) != tc.g.oldWords-1 {
			t.Errorf("%s: %d numbers of %d words", tc.name, len(got), tc.g.oldWords)
		}
		for attr, word := range tc.at {
			if got[attr] != uint32(100+word) {
				t.Errorf("%s: attribute %d is %d, want word %d", tc.name, attr, got[attr], word)
			}
		}
	}
}

func TestMoved(t *testing.T) {
	for _, tc := range []struct {
		name                string
		before, after, want map[uint16]uint32
		err                 error
	}{
		{"as asked", map[uint16]uint32{1: 50}, map[uint16]uint32{1: 100}, map[uint16]uint32{1: 100}, nil},
		{"rounded", map[uint16]uint32{1: 50}, map[uint16]uint32{1: 128}, map[uint16]uint32{1: 100}, nil},
		{"swallowed", map[uint16]uint32{1: 50}, map[uint16]uint32{1: 50}, map[uint16]uint32{1: 100}, nl.ErrNotApplied},
		{"another one moved", map[uint16]uint32{1: 50, 2: 7}, map[uint16]uint32{1: 50, 2: 8}, map[uint16]uint32{1: 100},
			nl.ErrNotApplied},
		{"one of two", map[uint16]uint32{1: 0, 2: 0}, map[uint16]uint32{1: 1, 2: 0},
			map[uint16]uint32{1: 1, 2: 1}, nil},
		{"set meanwhile by another program", map[uint16]uint32{1: 100}, map[uint16]uint32{1: 100},
			map[uint16]uint32{1: 100}, nil},
	} {
		if err := moved(tc.before, tc.after, tc.want); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.err)
		}
	}
}

// Widths are part of the kernel's policy: it refuses a switch of four bytes and a number of one
// byte.
func TestGroupEncode(t *testing.T) {
	want := map[uint16]uint32{unix.ETHTOOL_A_COALESCE_RX_USECS: 50, unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: 1}
	data := nltest.Encoded(t, nil, func(ae *netlink.AttributeEncoder) { groupCoalesce.encode(ae, want) })
	attrs, err := netlink.UnmarshalAttributes(data)
	nltest.Must(t, err)
	if len(attrs) != 2 || len(attrs[0].Data) != 4 || len(attrs[1].Data) != 1 {
		t.Errorf("%+v", attrs)
	}
	got, err := uint32s(data)
	nltest.Must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// bothWays runs a test over netlink and over the ioctl of kernels before 5.6, which every later
// kernel still has.
func bothWays(t *testing.T, f func(t *testing.T, c world)) {
	for _, way := range []string{"netlink", "ioctl"} {
		t.Run(way, func(t *testing.T) {
			inNetNS(t, func(c world) {
				if way == "ioctl" {
					c.k.testOnlyByIoctl = true
				}
				f(t, c)
			})
		})
	}
}

// The tun driver accepts at most NAPI_POLL_WEIGHT frames and reduces larger numbers to that
// (tun_set_coalesce).
func TestNetnsCoalesce(t *testing.T) {
	bothWays(t, func(t *testing.T, c world) {
		nltest.AddTap(t, "tap0")
		read := func() uint32 {
			t.Helper()
			m, err := c.Coalesce("tap0")
			nltest.Must(t, err)
			v, ok := m["rx-frames"]
			if !ok {
				t.Fatalf("no rx-frames in %v", m)
			}
			return v
		}
		was := read()
		nltest.Must(t, c.SetCoalesce("tap0", "rx-frames", 16))
		if got := read(); got != 16 {
			t.Errorf("rx-frames %d after setting it to 16", got)
		}
		nltest.Must(t, c.SetCoalesce("tap0", "rx-frames", 100))
		if got := read(); got != 64 {
			t.Errorf("asked 100, got %d; the driver rounds to 64", got)
		}
		if err := c.SetCoalesce("tap0", "rx-frames", 100); !errors.Is(err, nl.ErrNotApplied) {
			t.Errorf("already at its limit: %v", err)
		}
		nltest.Must(t, c.SetCoalesce("tap0", "rx-frames", 64)) // already set
		nltest.Must(t, c.SetCoalesce("tap0", "rx-frames", was))
		if got := read(); got != was {
			t.Errorf("rx-frames %d after restoring %d", got, was)
		}
		for _, tc := range []struct {
			what string
			err  error
			is   error
		}{
			{"parameter this driver lacks", c.SetCoalesce("tap0", "rx-usecs-irq", 5), nl.ErrNotSupported},
			{"parameter no driver has", c.SetCoalesce("tap0", "rx-moons", 5), fs.ErrNotExist},
			{"switch", c.SetCoalesce("tap0", "adaptive-rx", 2), unix.ERANGE},
			{"no device", c.SetCoalesce("tap9", "rx-frames", 5), fs.ErrNotExist},
			{"rings", c.SetRing("tap0", "rx", 256), nl.ErrNotSupported},
			{"rss", nltest.Second(c.RSS("tap0")), nl.ErrNotSupported},
			{"rss of a missing device", nltest.Second(c.RSS("tap9")), fs.ErrNotExist},
			{"pause", c.SetPause("tap0", Pause{Rx: true}), nl.ErrNotSupported},
		} {
			if !errors.Is(tc.err, tc.is) {
				t.Errorf("%s: %v, want %v", tc.what, tc.err, tc.is)
			}
		}
	})
}

func TestNetnsChannels(t *testing.T) {
	bothWays(t, func(t *testing.T, c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		was, err := c.Channels("v0")
		nltest.Must(t, err)
		for _, kind := range []string{"rx", "tx"} {
			read := func() uint32 {
				t.Helper()
				ch, err := c.Channels("v0")
				nltest.Must(t, err)
				return map[string]uint32{"rx": ch.Rx, "tx": ch.Tx}[kind]
			}
			most := map[string]uint32{"rx": was.MaxRx, "tx": was.MaxTx}[kind]
			before := read()
			// A veth has as many queues as the machine may have CPUs. With one CPU nothing changes
			// and the calls are no-ops.
			for _, n := range []uint32{most, before} {
				nltest.Must(t, c.SetChannel("v0", kind, n))
				if got := read(); got != n {
					t.Errorf("%s: %d channels after setting %d", kind, got, n)
				}
			}
			err := c.SetChannel("v0", kind, most+1)
			if !errors.Is(err, unix.EINVAL) {
				t.Errorf("%s: %d channels of %d: %v", kind, most+1, most, err)
			}
			// Only netlink carries the kernel's message.
			var e *nl.Error
			if errors.As(err, &e) && !c.k.predatesNetlink() && e.Kernel == "" {
				t.Errorf("%s: %v lacks the kernel's message", kind, err)
			}
		}
		if err := c.SetChannel("v0", "both", 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown kind: %v", err)
		}
		if err := c.SetRing("v0", "up", 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unknown direction: %v", err)
		}
	})
}

// Virtual devices have none of these settings. The error must differ from that for a missing
// device.
func TestNetnsNotOfAVirtualLink(t *testing.T) {
	inNetNS(t, func(c world) {
		nltest.Must(t, c.AddVeth("v0", "v1", -1))
		for _, name := range []string{"v0", "nope"} {
			want := nl.ErrNotSupported
			if name == "nope" {
				want = fs.ErrNotExist
			}
			for what, err := range map[string]error{
				"pause":            nltest.Second(c.Pause(name)),
				"eee":              nltest.Second(c.EEE(name)),
				"fec":              nltest.Second(c.FEC(name)),
				"rss":              nltest.Second(c.RSS(name)),
				"private flags":    nltest.Second(c.PrivateFlags(name)),
				"coalescing":       nltest.Second(c.Coalesce(name)),
				"set eee":          c.SetEEE(name, false),
				"set private flag": c.SetPrivateFlag(name, "rx_cqe_compress", true),
				"set pause":        c.SetPause(name, Pause{}),
				"set ring":         c.SetRing(name, "rx", 512),
				"set rx-usecs":     c.SetCoalesce(name, "rx-usecs", 8),
			} {
				if !errors.Is(err, want) {
					t.Errorf("%s of %s: %v, want %v", what, name, err, want)
				}
			}
		}
	})
}
