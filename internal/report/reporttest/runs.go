package reporttest

import (
	"math"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

// spread is a distribution around a median.
func spread(median float64) *stats.Latencies {
	return &stats.Latencies{
		Count: 100, Min: 0.9 * median, Mean: 1.05 * median, P50: median, P90: 1.3 * median, P99: 2 * median,
		P999: 3 * median, Max: 3 * median, StdDev: 0.2 * median,
	}
}

// measured are single tests, each with every figure of its kind.
func measured() map[string]traffic.Result {
	cost := traffic.Ends{
		Local: traffic.End{Host: "near", CPUSeconds: 1.5, UserSeconds: 0.1, SystemSeconds: 1.1, SoftIRQSeconds: 0.2,
			IRQSeconds:     0.1,
			TestCPUSeconds: 0.96, CPUSecondsPerGigabyte: 0.41,
			TestCPUSecondsPerGigabyte: 0.26, CPUSecondsPerMillion: 0.6,
			Placement: []traffic.Placement{{Stream: 0, CPU: 0}, {Stream: 1, CPU: 2}, {Stream: 2, CPU: 0}}},
		Remote: traffic.End{Host: "far", CPUSeconds: 1.2, SystemSeconds: 1.2, CPUSecondsPerGigabyte: 0.33},
	}
	base := func(test traffic.Test) traffic.Result {
		return traffic.Result{Test: test, Direction: traffic.Up, StartTime: Noon, DurationSeconds: 2,
			Streams: 1, Ends: cost}
	}
	udp := base(traffic.UDP)
	udp.Direction, udp.Method, udp.ThroughputBitsPerSec, udp.PacketsPerSec, udp.LossRatio = traffic.Bidir, "udp", 200e6,
		17857, new(0.0125)
	udp.UpBitsPerSec, udp.DownBitsPerSec = 100e6, 100e6
	one := traffic.DatagramCounts{Sent: 20000, Received: 19750, Lost: 250, Duplicates: new(uint64(3)),
		Reordered: new(uint64(7)), JitterSeconds: 12e-6, DelayVariation: spread(80e-6)}
	udp.UDP = &traffic.Datagrams{DatagramCounts: traffic.DatagramCounts{Sent: 40000, Received: 39500, Lost: 500,
		Duplicates: new(uint64(6)), Reordered: new(uint64(14)), JitterSeconds: 12e-6},
		Batch: "gso", Up: &one, Down: &one}
	udp.Pacing = &traffic.Pacing{TargetBitsPerSec: 100e6, AchievedBitsPerSec: 99.9e6, Gaps: spread(112e-6),
		Method: "own"}
	udp.Losses = []drops.Loss{
		{Place: drops.ReceiverSocket, Packets: 300, Source: "SO_RXQ_OVFL"},
		{Place: drops.SenderQdisc, Packets: 50, Source: "qdisc.eth0.drops"},
		{Place: drops.OnPath, Packets: 150},
	}
	mtu := base(traffic.MTU)
	mtu.Method, mtu.MTU = "icmp echo", &traffic.PathMTU{UpBytes: 1400, BlackHoleUp: true, LocalMTUBytes: 1500,
		RemoteMTUBytes: 9000, ReportedMTUBytes: 1400, MSSBytes: 1348, LocalMSSBytes: 1460, RemoteMSSBytes: 8960,
		MSSClampedUp: true}
	// the test's own packets that were too large: reported as a fact of the path, not as lost
	mtu.Ends.Local.Drops = []drops.Drop{{Place: "Ip.OutDiscards", Total: 24}}
	load := base(traffic.Load)
	load.Warnings = []string{"load up: CPU 1 of far was 99 % busy and may be what was measured"}
	load.Method, load.RTT = "icmp echo", spread(0.02)
	load.Load = &traffic.LoadResult{Idle: spread(0.02), Up: spread(0.12), Down: spread(0.04), Both: spread(0.1),
		BothBitsPerSec: 100e6, UpBitsPerSec: 20e6, DownBitsPerSec: 90e6, AddedSeconds: 0.1, RoundTripsPerMinute: 500}
	for i := range 200 {
		phase, rtt := "idle", 0.02
		if i >= 100 {
			phase, rtt = "up", 0.02+0.1*math.Min(1, float64(i-100)/50)
		}
		load.Load.Curve = append(load.Load.Curve,
			traffic.LoadPoint{AtSeconds: float64(i) / 10, Phase: phase, RTTSeconds: rtt})
	}
	burst := base(traffic.Burst)
	burst.Method, burst.Losses = "udp, sendmmsg", []drops.Loss{
		{Place: drops.ReceiverRing, Packets: 13, Source: "nic.eth0.rx_missed_errors"},
		{Place: drops.ReceiverSocket, Packets: 2, Source: "SO_RXQ_OVFL"}}
	burst.Burst = &traffic.BurstResult{PacketBytes: 1400, HeldPackets: 268, LostAtPackets: 272, LongestPackets: 32768,
		Place: drops.ReceiverRing, Losses: burst.Losses,
		Bounds: []traffic.BurstBound{
			{Place: drops.SenderQdisc, Interface: "eth0", Source: "txqueuelen", Packets: 1000},
			{Place: drops.ReceiverRing, Interface: "eth0", Source: "ring.rx", Packets: 256, FullAfter: 0.00315},
			{Place: drops.ReceiverSocket, Source: "net.core.rmem_default, 2304 bytes of memory a frame", Packets: 92}},
		Trains: []traffic.BurstTrain{{Packets: 256, Received: 256},
			{Packets: 512, Received: 301, Lost: 211, Place: drops.ReceiverRing},
			{Packets: 272, Received: 257, Lost: 15, Place: drops.ReceiverRing}, {Packets: 268, Received: 268}}}
	whole := base(traffic.Burst)
	whole.Burst = &traffic.BurstResult{PacketBytes: 1400, HeldPackets: 32768, LongestPackets: 32768,
		Trains: []traffic.BurstTrain{{Packets: 32768, Received: 32768}}}
	stream := base(traffic.Stream)
	stream.Method, stream.SendMethod, stream.ReceiveMethod, stream.VerifiedBytes = "tcp, blocking, pinned", "sendfile",
		"truncate", 64<<20
	stream.ThroughputBitsPerSec, stream.Bytes, stream.CongestionControl, stream.MSSBytes, stream.MTUBytes = 41e9, 10e9,
		"cubic", 1448, 1500
	stream.Confidence = &traffic.Confidence{Rounds: 30, Mean: 40.8e9, Low: 38e9, High: 43e9, HalfWidthRatio: 0.061}
	stream.Pacing = &traffic.Pacing{TargetBitsPerSec: 50e9, AchievedBitsPerSec: 41e9, Method: "SO_MAX_PACING_RATE"}
	// A few kilobytes to another program's server: the cost of a gigabyte and the way of receiving
	// are unknown.
	few := base(traffic.Stream)
	few.Method, few.SendMethod, few.ThroughputBitsPerSec, few.Bytes = "iperf3, tcp, splice", "splice", 8e6, 2000
	few.Pacing = &traffic.Pacing{TargetBitsPerSec: 8e6, AchievedBitsPerSec: 8e6, Method: "user+SO_MAX_PACING_RATE"}
	few.Ends.Local.CPUSecondsPerGigabyte, few.Ends.Local.CPUSecondsPerMillion = 133674761.54, 133674.76
	// A slow test on a busy host: a cost of many digits.
	slow := base(traffic.Stream)
	slow.Method, slow.ReceiveMethod, slow.ThroughputBitsPerSec, slow.Bytes = "tcp", "copy", 8e6, 2e6
	slow.Ends.Local.CPUSecondsPerGigabyte, slow.Ends.Local.CPUSecondsPerMillion = 753.19, 28437.5
	crr := base(traffic.CRR)
	crr.TransactionsPerSec, crr.RTT = 9800, spread(100e-6)
	crr.Confidence = &traffic.Confidence{Rounds: 4, Mean: 9800, Low: 9700, High: 9900, HalfWidthRatio: 0.0102,
		Reached: true}
	// A reflector that counts, with clocks that are known to be right only in the direction up. It
	// reports nothing about its own host.
	ping := base(traffic.Ping)
	ping.Method, ping.RTT, ping.LossRatio, ping.Ends.Remote = "stamp, unauthenticated", spread(0.02), new(0.02),
		traffic.End{Drops: []drops.Drop{}}
	ping.UDP = &traffic.Datagrams{DatagramCounts: traffic.DatagramCounts{Sent: 100, Received: 98, Lost: 2,
		JitterSeconds: 12e-6}}
	ping.OneWay = &traffic.OneWayResult{
		Up: traffic.OneWay{Delay: spread(0.01), DelayErrorSeconds: 2e-6, DelayVariation: spread(80e-6),
			Lost: new(uint64(2))},
		Down: traffic.OneWay{DelayVariation: spread(90e-6), Lost: new(uint64(0))},
	}
	ping.Hops = &traffic.HopCounts{Up: 5}
	return map[string]traffic.Result{"ping": ping, "udp": udp, "mtu": mtu, "load": load, "stream": stream, "crr": crr,
		"few": few, "slow": slow, "burst": burst, "burst-whole": whole}
}
