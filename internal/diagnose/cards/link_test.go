package cards

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

func modes(autoneg bool, supported, advertised, partner []string) func(*host.Interface) {
	return func(x *host.Interface) {
		x.SpeedBitsPerSec = 100e6
		x.Card = &host.Card{Port: "twisted-pair", Modes: &host.LinkModes{Autoneg: autoneg, Supported: supported,
			Advertised: advertised, Partner: partner}}
	}
}

func TestLinkNegotiatedLow(t *testing.T) {
	hundred, thousand := []string{"100baseT/Half", "100baseT/Full"}, []string{"100baseT/Full", "1000baseT/Full"}
	fibre := func(x *host.Interface) { x.Card.Port = "fibre" }
	busyLink := counts{"rx_packets": 25_000, "rx_bytes": 36_500_000} // 97 Mb/s
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"quiet, both have more", watched(gigabit(modes(true, thousand, thousand, thousand)), nil),
			want{evidence.Notice, "both ends of the cable support a faster mode"}},
		{"full, both have more", watched(gigabit(modes(true, thousand, thousand, thousand)), busyLink),
			want{evidence.Warning, "runs at 100 Mb/s and supports 1.00 Gb/s"}},
		{"loaded", watched(gigabit(modes(true, thousand, thousand, thousand)), busyLink,
			loadedBy(94e6, 0, traffic.Down)), want{evidence.Warning, ""}},
		{"loaded and held by something else", watched(gigabit(modes(true, thousand, thousand, thousand)), nil,
			loadedBy(20e6, 0, traffic.Down)), want{evidence.Notice, ""}},
		{"not offered", watched(gigabit(modes(true, thousand, hundred, thousand)), busyLink),
			want{evidence.Warning, "does not advertise a faster mode that both support"}},
		{"forced", watched(gigabit(modes(false, thousand, nil, nil)), busyLink), want{evidence.Warning, "forced"}},
		{"not offered, partner unknown", watched(gigabit(modes(true, thousand, hundred, nil)), nil),
			want{evidence.Notice, "does not advertise all"}},
		{"offered, partner unknown", watched(gigabit(modes(true, thousand, thousand, nil)), nil),
			want{evidence.Notice, "the other end does not report"}},
		{"the partner has no more", watched(gigabit(modes(true, thousand, thousand, hundred)), busyLink), want{}},
		{"the card has no more", watched(gigabit(modes(true, hundred, hundred, thousand)), busyLink), want{}},
		{"a module that has no more", watched(gigabit(modes(false, thousand, nil, nil), fibre), busyLink), want{}},
		{"an imitated speed", watched(gigabit(modes(false, thousand, nil, nil)), counts{"rx_bytes": 187e6}),
			want{evidence.Warning, ""}},
		{"modes not reported", watched(
			gigabit(func(x *host.Interface) { x.SpeedBitsPerSec = 100e6; x.Card = &host.Card{} }), busyLink), want{}},
		{"history", watched(gigabit(modes(true, thousand, thousand, thousand)), busyLink, sinceBoot),
			want{evidence.Notice, ""}},
		{"no carrier", watched(gigabit(modes(true, thousand, thousand, thousand),
			func(x *host.Interface) { x.Carrier = false }), nil), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, linkLow(c.span), c.want) })
	}
}

func TestFastest(t *testing.T) {
	for text, speed := range map[string]float64{"1000baseT/Full": 1e9, "2500baseX/Full": 2.5e9, "10000baseKR_FEC": 10e9,
		"Autoneg": 0, "basename": 0,
		"100000baseCR4/Full": 100e9} {
		if got := fastest([]string{"10baseT/Half", text}); got != max(speed, 10e6) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestHalfDuplex(t *testing.T) {
	half := func(x *host.Interface) { x.Duplex, x.SpeedBitsPerSec, x.Driver = "half", 100e6, "e1000e" }
	some := counts{"rx_packets": 10_000, "tx_packets": 10_000}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"quiet", watched(gigabit(half), nil), want{evidence.Notice, "runs half duplex at 100 Mb/s"}},
		{"collisions", watched(gigabit(half), some.with(counts{"collisions": 900})), want{evidence.Warning, ""}},
		{"two fifths full, collisions not counted", watched(gigabit(half), some.with(counts{"rx_bytes": 18e6})),
			want{evidence.Warning, ""}},
		{"few collisions", watched(gigabit(half), some.with(counts{"collisions": 20})), want{evidence.Notice, ""}},
		{"a mismatch", watched(gigabit(half), some.with(counts{"ethtool.eth0.tx_abort_late_coll": 40})),
			want{evidence.Warning, ""}},
		{"late collisions at a link that says that it is full",
			watched(gigabit(), some.with(counts{"tx_window_errors": 40})),
			want{evidence.Warning, "40 late collisions"}},
		{"full duplex", watched(gigabit(), some), want{}},
		{"damaged frames at the full end", watched(gigabit(), some.with(counts{"rx_crc_errors": 400})), want{}},
		{"history", watched(gigabit(half), some.with(counts{"collisions": 900}), sinceBoot), want{evidence.Notice, ""}},
		{"no link", watched(gigabit(half, func(x *host.Interface) { x.Carrier = false }), nil), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, halfDuplex(c.span), c.want) })
	}
}

func TestCRCErrors(t *testing.T) {
	passed := counts{"rx_packets": 1_000_000, "rx_bytes": 1_500_000_000}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"mild: worse than a cable may be", watched(gigabit(), passed.with(counts{"rx_crc_errors": 8})),
			want{evidence.Notice, "8 damaged frames in 3"}},
		{"plain", watched(gigabit(), passed.with(counts{"rx_crc_errors": 100})), want{evidence.Warning, "one in 10"}},
		{"symbols", watched(gigabit(func(x *host.Interface) { x.Driver = "mlx5_core" }),
			passed.with(counts{"ethtool.eth0.rx_symbol_err_phy": 5000})),
			want{evidence.Warning, ""}},
		{"the flow lost them", watched(gigabit(), passed.with(counts{"rx_crc_errors": 300}),
			loadedBy(600e6, 3e-4, traffic.Down)), want{evidence.Warning, ""}},
		{"the flow lost none", watched(gigabit(), passed.with(counts{"rx_crc_errors": 300}),
			loadedBy(600e6, 0, traffic.Down)), want{evidence.Notice, ""}},
		{"an accident", watched(gigabit(), passed.with(counts{"rx_crc_errors": 4})), want{}},
		{"frames too long", watched(gigabit(), passed.with(counts{"rx_length_errors": 4000})), want{}},
		{"a ring that is full", watched(gigabit(), passed.with(counts{"rx_missed_errors": 4000})), want{}},
		{"history of a year ago", watched(gigabit(), counts{"rx_packets": 1e10, "rx_crc_errors": 1e6}, sinceBoot),
			want{evidence.Notice, "since boot"}},
		{"clean history", watched(gigabit(), counts{"rx_packets": 1e10, "rx_crc_errors": 1000}, sinceBoot), want{}},
		{"wrong sums in good frames",
			watched(gigabit(), passed.with(counts{"Tcp.InCsumErrors": 400, "Tcp.InSegs": 100_000})),
			want{evidence.Warning, "400 arrived"}},
		{"datagrams of IPv6", watched(gigabit(), passed.with(counts{"Udp6.InCsumErrors": 400, "Udp6.InDatagrams": 90_000})),
			want{evidence.Warning, "400 arrived"}},
		{"a few of them", watched(gigabit(), passed.with(counts{"Tcp.InCsumErrors": 6, "Tcp.InSegs": 100_000})),
			want{evidence.Notice, "6 arrived"}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, crcErrors(c.span), c.want) })
	}
}

func TestBusLimited(t *testing.T) {
	pcie := func(speed float64, width, maxWidth int) func(*host.Interface) {
		return func(x *host.Interface) {
			x.Driver, x.SpeedBitsPerSec = "ixgbe", speed
			lane := 4e9 // 5 GT/s, 8b/10b
			x.Bus = &host.Bus{Kind: "pcie", Address: "0000:03:00.0", Width: width, MaxWidth: maxWidth,
				SpeedGigatransfers: 5, CapacityBitsPerSec: lane * float64(width),
				MaxCapacityBitsPerSec: lane * float64(maxWidth)}
		}
	}
	pci := func(x *host.Interface) {
		x.Driver = "tg3"
		x.Bus = &host.Bus{Kind: "pci", Address: "0000:02:05.0", Width: 32, CapacityBitsPerSec: 1064e6,
			SharedWith: []string{"0000:02:06.0"}}
	}
	rate := func(bits float64) counts { return counts{"rx_bytes": uint64(bits * 3 / 8), "rx_packets": 1e6} }
	neighbour := func(s *evidence.Span) {
		n := gigabit(pci)
		n.Name, n.Bus = "eth1", &host.Bus{Kind: "pci", Address: "0000:02:06.0"}
		s.Host.Interfaces = append(s.Host.Interfaces, n)
		s.Counters["nic.eth1.tx_bytes"] = 300e6 * 3 / 8
	}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"ten gigabit in one lane, quiet", watched(gigabit(pcie(10e9, 1, 8)), nil),
			want{evidence.Notice, "NIC and slot support 32.0 Gb/s"}},
		{"ten gigabit in one lane, full", watched(gigabit(pcie(10e9, 1, 8)), rate(3.2e9)),
			want{evidence.Warning, "The slot of eth0"}},
		{"ten gigabit in one lane, whose NIC loses frames", watched(gigabit(pcie(10e9, 1, 8), func(x *host.Interface) {
			x.Driver = "mlx5_core"
		}), rate(1e9).with(counts{"ethtool.eth0.rx_discards_phy": 20_000})), want{evidence.Warning, "The slot of eth0"}},
		{"ten gigabit in one lane, held by something else", watched(gigabit(pcie(10e9, 1, 8)), rate(1e9)),
			want{evidence.Notice, ""}},
		{"narrower than the card and wide enough", watched(gigabit(pcie(10e9, 4, 8)), rate(9.4e9)), want{}},
		{"conventional PCI, full", watched(gigabit(pci), rate(600e6)), want{evidence.Warning, ""}},
		{"conventional PCI, quiet", watched(gigabit(pci), rate(100e6)), want{evidence.Notice, ""}},
		{"conventional PCI, full with its neighbour", watched(gigabit(pci), rate(300e6), neighbour),
			want{evidence.Warning, ""}},
		{"history", watched(gigabit(pcie(10e9, 1, 8)), rate(3.2e9), sinceBoot), want{evidence.Notice, ""}},
		{"a virtual machine's bus",
			watched(gigabit(func(x *host.Interface) { x.Driver, x.Bus = "virtio_net", &host.Bus{Kind: "virtio"} }),
				rate(9e9)), want{}},
		{"no bus reported", watched(gigabit(), rate(9e8)), want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, busLimited(c.span), c.want) })
	}
}

// TestHeldByBus: mlx5 counts frames that found no room at the port apart from those without a
// descriptor, and bnx2x those of its receive buffer (BRB) apart from those of its rings.
func TestHeldByBus(t *testing.T) {
	of := func(driver string) host.Interface {
		return gigabit(func(x *host.Interface) { x.Driver = driver })
	}
	const port = "ethtool.eth0.rx_discards_phy"
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"a port without room", watched(of("mlx5_core"), counts{"rx_packets": 1e6, port: 20_000}),
			want{evidence.Warning, "NIC eth0 lost 20.0 k frames in 3.00 s in its own buffer"}},
		{"since boot", watched(of("mlx5_core"), counts{"rx_packets": 1e6, port: 20_000}, sinceBoot),
			want{evidence.Warning, "the bus took them too late"}},
		{"a few", watched(of("mlx5_core"), counts{"rx_packets": 1e6, port: 3}), want{}},
		{"rings that lost more", watched(of("mlx5_core"), counts{"rx_packets": 1e6, port: 2000,
			"ethtool.eth0.rx_out_of_buffer": 30_000}), want{}},
		{"the receive buffer of bnx2x", watched(of("bnx2x"), counts{"rx_packets": 1e6,
			"ethtool.eth0.rx_brb_discard": 20_000, "rx_over_errors": 20_000}), want{evidence.Warning, "20.0 k frames"}},
		{"the rings of bnx2x", watched(of("bnx2x"), counts{"rx_packets": 1e6, "ethtool.eth0.rx_discards": 20_000,
			"rx_fifo_errors": 20_000}), want{}},
		{"seconds of waiting, and no loss", watched(of("mlx5_core"), counts{"rx_packets": 1e5,
			"ethtool.eth0.outbound_pci_stalled_wr_events": 20_000}, sinceBoot), want{}},
		{"transmission that ran out of data", watched(of("tg3"), counts{"rx_packets": 1e6, "tx_fifo_errors": 20_000}),
			want{}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, busLimited(c.span), c.want) })
	}
}

func TestEmulatedNIC(t *testing.T) {
	card := func(driver, board string) host.Interface {
		return gigabit(func(x *host.Interface) { x.Driver, x.Card = driver, &host.Card{Subsystem: board} })
	}
	in := func(vm string) func(*evidence.Span) { return func(s *evidence.Span) { s.Host.Virtualization = vm } }
	load := counts{"rx_packets": 150_000, "tx_packets": 50_000}
	for _, c := range []struct {
		name string
		span *evidence.Span
		want want
	}{
		{"quiet", watched(card("e1000", ""), nil, in("kvm")),
			want{evidence.Notice, "is emulated for the driver e1000"}},
		{"full", watched(card("e1000", "1af4:1100"), load, in("kvm"), busy),
			want{evidence.Warning, "CPU 1 is saturated at"}},
		{"loaded, with time to spare", watched(card("e1000e", "15ad:07e0"), load, in("vmware")),
			want{evidence.Notice, ""}},
		{"the processor is imitated too", watched(card("e1000e", "1af4:1100"), load, in("qemu"), busy),
			want{evidence.Notice, ""}},
		{"the board that no real card has", watched(card("e1000e", "8086:0000"), load, in("kvm"), busy),
			want{evidence.Warning, ""}},
		{"the processor is imitated too, and the card is of the costliest",
			watched(card("8139cp", "1af4:1100"), load, in("qemu"), busy), want{evidence.Warning, ""}},
		{"many packets", watched(card("e1000", ""), counts{"rx_packets": 900_000}, in("kvm"), busy),
			want{evidence.Notice, ""}},
		{"iron", watched(card("e1000", "8086:1376"), load, busy), want{}},
		{"a container on iron", watched(card("e1000e", "8086:1376"), load, in("container")), want{}},
		{"a real card handed over", watched(card("e1000e", "8086:a01f"), load, in("kvm"), busy), want{}},
		{"a physical igb passed through, board unknown", watched(card("igb", ""), load, in("kvm"), busy), want{}},
		{"paravirtual", watched(card("virtio_net", "1af4:0001"), load, in("kvm"), busy), want{}},
		{"history", watched(card("8139cp", ""), load, in("xen"), busy, sinceBoot), want{evidence.Notice, ""}},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, emulatedNIC(c.span), c.want) })
	}
}
