package ceiling_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

func TestGoodputRatio(t *testing.T) {
	for _, c := range []struct {
		mtu        int
		ipv6       bool
		timestamps bool
		want       float64
	}{
		{1500, false, true, 1448.0 / 1538},
		{1500, false, false, 1460.0 / 1538},
		{1500, true, true, 1428.0 / 1538},
		{9000, false, true, 8948.0 / 9038},
		{9000, true, false, 8940.0 / 9038},
		{576, false, true, 524.0 / 614},
		{53, false, true, 1.0 / 91},
		{41, false, false, 1.0 / 84}, // padded to the smallest frame
		{52, false, true, 0},
		{0, false, false, 0},
		{-5, true, true, 0},
	} {
		if got := ceiling.GoodputRatio(c.mtu, c.ipv6, c.timestamps); !near(got, c.want, 1e-12) {
			t.Errorf("GoodputRatio(%d, %v, %v) = %v, want %v", c.mtu, c.ipv6, c.timestamps, got, c.want)
		}
	}
	// A larger frame never carries a smaller share, and timestamps never help.
	for mtu := 60; mtu < 9000; mtu++ {
		a, b := ceiling.GoodputRatio(mtu, false, true), ceiling.GoodputRatio(mtu+1, false, true)
		if b < a || a >= ceiling.GoodputRatio(mtu, false, false) || a >= 1 {
			t.Fatalf("ratio at %d: %v, at %d: %v", mtu, a, mtu+1, b)
		}
	}
}

func named(t *testing.T, s *host.Snapshot, name string) ceiling.Rate {
	t.Helper()
	for _, c := range ceiling.All(s) {
		if c.Name == name {
			if c.Why == "" || c.BitsPerSec <= 0 || math.IsInf(c.BitsPerSec, 0) || math.IsNaN(c.BitsPerSec) {
				t.Errorf("ceiling %+v is no statement", c)
			}
			return c
		}
	}
	return ceiling.Rate{}
}

// TestFieldNotesBuses holds the bus arithmetic of the field notes of 2005: a gigabit card needs 125
// MB/s; conventional PCI gives 133 MB/s on paper and about 80 in practice, 266 at 66 MHz, 532 at 64
// bits as well.
func TestFieldNotesBuses(t *testing.T) {
	const megabyte = 8e6 // bits
	for _, c := range []struct {
		name             string
		width            int
		megahertz        string
		nominal, usable  float64 // MB/s
		gigabitFitsInUse bool
	}{
		{"PCI 32/33", 32, "33", 133, 80, false},
		{"PCI 32/66", 32, "66", 266, 160, true},
		{"PCI 64/66", 64, "66", 532, 320, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := slotted(c.width, c.megahertz+" MHz PCI").Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			bus := s.Interfaces[0].Bus
			if bus == nil || bus.Width != c.width || !near(bus.CapacityBitsPerSec, c.nominal*megabyte, 0.005) {
				t.Fatalf("bus %+v, want %v MB/s", bus, c.nominal)
			}
			use := named(t, s, "bus:eth0").BitsPerSec
			if !near(use, c.usable*megabyte, 0.005) {
				t.Errorf("usable %v MB/s, want %v", use/megabyte, c.usable)
			}
			gigabit := named(t, s, "link:eth0").BitsPerSec
			if gigabit != 125*megabyte {
				t.Errorf("gigabit Ethernet is %v MB/s, want 125", gigabit/megabyte)
			}
			if fits := use >= gigabit; fits != c.gigabitFitsInUse {
				t.Errorf("gigabit fits: %v", fits)
			}
		})
	}
}

// slotted is a host with one gigabit card, PCI-X by its capability, in a slot that runs at that
// speed.
func slotted(width int, speed string) host.Root {
	config := make([]byte, 256)
	binary.LittleEndian.PutUint16(config[0:], 0x8086)
	binary.LittleEndian.PutUint16(config[6:], 1<<4|1<<5)
	config[0x34], config[0x40] = 0x40, 0x07
	if width == 64 {
		binary.LittleEndian.PutUint32(config[0x44:], 1<<16)
	}
	const device = "sys/devices/pci0000:00/0000:00:1e.0/0000:02:05.0"
	return host.Root{FS: hostfs.NewMemory([]hostfs.Entry{
		{Name: device + "/config", Content: config},
		{Name: device + "/subsystem", Target: "../../../../bus/pci"},
		{Name: "sys/class/net/eth0/device", Target: "../../../../" + device},
		{Name: "sys/class/net/eth0/ifindex", Content: []byte("2\n")},
		{Name: "sys/class/net/eth0/speed", Content: []byte("1000\n")},
		{Name: "sys/class/net/eth0/duplex", Content: []byte("full\n")},
		{Name: "sys/class/net/eth0/mtu", Content: []byte("1500\n")},
		{Name: "sys/bus/pci/slots/1/address", Content: []byte("0000:02:05\n")},
		{Name: "sys/bus/pci/slots/1/cur_bus_speed", Content: []byte(speed + "\n")},
		{Name: "proc/sys/kernel/osrelease", Content: []byte("2.6.15\n")},
	})}
}

// TestVirtualSpeedsBoundNothing: a configured number is no ceiling.
func TestVirtualSpeedsBoundNothing(t *testing.T) {
	for _, dev := range []host.Interface{
		{Name: "x", Virtual: true, SpeedBitsPerSec: 1e10, MTUBytes: 1500},
		{Name: "x", Driver: "virtio_net", SpeedBitsPerSec: 1e10, MTUBytes: 1500, Bus: &host.Bus{Kind: "virtio"}},
		{Name: "x", Driver: "e1000", SpeedBitsPerSec: 1e9, MTUBytes: 1500,
			Bus: &host.Bus{Kind: "pci", CapacityBitsPerSec: 1e9}},
		{Name: "x", MTUBytes: 1500}, // no speed known
	} {
		s := &host.Snapshot{Virtualization: "kvm+container", Interfaces: []host.Interface{dev}}
		if c := ceiling.All(s); len(c) != 0 {
			t.Errorf("%+v: %+v", dev, c)
		}
	}
	// The same card in a machine of iron, in a container or not, is a fact.
	for _, virtualization := range []string{"", "container"} {
		s := &host.Snapshot{Virtualization: virtualization,
			Interfaces: []host.Interface{{Name: "x", Driver: "e1000", SpeedBitsPerSec: 1e9, MTUBytes: 1500}}}
		if got := named(t, s, "goodput:x").BitsPerSec; !near(got, 941.48e6, 1e-5) {
			t.Errorf("goodput %v", got)
		}
	}
}

func settings(pairs ...string) []host.Setting {
	var s []host.Setting
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		s = append(s, host.Setting{Knob: "sysctl:net.ipv4." + name, Value: value})
	}
	return s
}

func TestWindow(t *testing.T) {
	const rmem = "tcp_rmem=4096 131072 6291456"
	for _, c := range []struct {
		name     string
		kernel   string
		settings []host.Setting
		side     ceiling.Side
		window   float64 // bytes; 0: no statement
	}{
		{"half since 6.6", "6.18.44", settings(rmem), ceiling.Receive, 3 << 20},
		{"adv_win_scale is ignored since 6.6", "6.6.0", settings(rmem, "tcp_adv_win_scale=-2"),
			ceiling.Receive, 3 << 20},
		{"half before by default", "6.1.0-28-amd64", settings(rmem), ceiling.Receive, 3 << 20},
		{"three quarters before 3.4", "2.6.15", settings(rmem), ceiling.Receive, 6291456 * 3 / 4},
		{"scale 3", "5.10.0", settings(rmem, "tcp_adv_win_scale=3"), ceiling.Receive, 6291456 * 7 / 8},
		{"scale 0", "5.10.0", settings(rmem, "tcp_adv_win_scale=0"), ceiling.Receive, 6291456},
		{"scale -2", "5.10.0", settings(rmem, "tcp_adv_win_scale=-2"), ceiling.Receive, 6291456 / 4},
		{"no moderation", "6.18.44", settings(rmem, "tcp_moderate_rcvbuf=0"), ceiling.Receive, 65536},
		{"no scaling", "6.18.44", settings(rmem, "tcp_window_scaling=0"), ceiling.Receive, 65535},
		{"no scaling, smaller buffer", "6.18.44", settings("tcp_rmem=4096 4096 8192", "tcp_window_scaling=0"),
			ceiling.Receive, 4096},
		{"send", "6.18.44", settings("tcp_wmem=4096 16384 4194304"), ceiling.Send, 4 << 20},
		{"send without scaling", "6.18.44", settings("tcp_wmem=4096 16384 4194304", "tcp_window_scaling=0"),
			ceiling.Send, 65535},
		{"more than the header can hold", "6.18.44", settings("tcp_wmem=4096 16384 2147483647"), ceiling.Send,
			65535 << 14},
		{"not known", "6.18.44", nil, ceiling.Receive, 0},
		{"not a triple", "6.18.44", settings("tcp_rmem=4096"), ceiling.Receive, 0},
		{"zero", "6.18.44", settings("tcp_rmem=0 0 0"), ceiling.Receive, 0},
		{"no such side", "6.18.44", settings(rmem), "sideways", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &host.Snapshot{Kernel: c.kernel, Settings: c.settings}
			got, ok := ceiling.Window(s, 20*time.Millisecond, c.side)
			if ok != (c.window > 0) || !near(got.BitsPerSec, c.window*8/0.020, 1e-9) {
				t.Errorf("got %+v %v, want window %v", got, ok, c.window)
			}
			if ok && (got.Name != fmt.Sprintf("window:%s@20ms", c.side) || got.Why == "") {
				t.Errorf("name or reason: %+v", got)
			}
			if _, ok := ceiling.Window(s, 0, c.side); ok {
				t.Error("a path of no length has a ceiling")
			}
		})
	}
}

// TestNarrowBuffersOfTheFieldNotes: 20 ms and the buffers of 2005 carry about 52 Mb/s, whatever the
// card.
func TestNarrowBuffersOfTheFieldNotes(t *testing.T) {
	s := &host.Snapshot{Kernel: "2.6.15", Settings: settings("tcp_rmem=4096 87380 174760", "tcp_adv_win_scale=2")}
	if got := named(t, s, "window:receive@20ms").BitsPerSec; !near(got, 52.4e6, 0.01) {
		t.Errorf("receive window carries %v", got)
	}
}

// TestNothingKnown: out of nothing follows nothing.
func TestNothingKnown(t *testing.T) {
	if got := ceiling.All(&host.Snapshot{Interfaces: []host.Interface{{Name: "eth0"}}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
