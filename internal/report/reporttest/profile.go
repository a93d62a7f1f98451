package reporttest

import (
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/report"
)

// profiled is a router that a second of two CPUs was sampled of: its packets cost factor times as
// much in the firewall as in the first profile.
func profiled(factor uint64) *profile.Profile {
	b := profile.NewBuilder("cpu-clock", true)
	packets := make([]float64, 20)
	for slice := range 20 {
		for _, s := range []struct {
			count   uint64
			process string
			kind    profile.Kind
			names   []string
		}{
			{6 * factor, "idle", profile.KernelFrame, []string{"nft_do_chain", "nf_hook_slow", "ip_forward", "ip_rcv",
				"net_rx_action", "handle_softirqs", "do_idle"}},
			{3, "idle", profile.KernelFrame, []string{"_raw_spin_unlock_irqrestore", "try_to_wake_up", "sock_def_readable",
				"tcp_v4_rcv", "net_rx_action", "handle_softirqs", "do_idle"}},
			{2, "db", profile.KernelFrame, []string{"_copy_to_iter", "tcp_recvmsg_locked", "tcp_recvmsg", "do_syscall_64"}},
			{1, "db", profile.UserFrame, []string{"db\x1b[31m"}},
			{5, "idle", profile.KernelFrame, []string{"pv_native_safe_halt", "do_idle"}},
		} {
			var frames []int
			for _, n := range s.names {
				frames = append(frames, b.Frame(profile.Frame{Name: n, Kind: s.kind}))
			}
			b.Add(profile.Seen{Frames: frames, Offset: -1, Slice: slice, Process: s.process, Count: s.count})
		}
		packets[slice] = 5000
	}
	p := b.Finish(profile.Window{SampleSeconds: 0.005025127, PacketsBySlice: packets, BytesBySlice: packets, Slices: 20})
	handled, bytes := uint64(100_000), uint64(15_000_000)
	p.Duration, p.Period, p.RatePerSecond, p.CPUs = 1.0004, 5_025_127, 199, []int{0, 1}
	p.RunningRatio, p.PacketsTotal, p.BytesTotal = 1, &handled, &bytes
	p.Packets = &profile.Packets{Interfaces: []string{"eth0", "eth1"}, Received: 90_000, Sent: 95_000, Forwarded: 85_000,
		ReceivedBytes: 7_000_000, SentBytes: 8_000_000}
	p.Cost = &profile.Cost{SampleSeconds: 26e-6, CPURatio: 0.009, OwnSeconds: 0.004}
	p.Events = []profile.Asked{{Event: "cycles", Answer: "not-supported", Reason: "the processor shows no counters"},
		{Event: "cpu-clock", Answer: "works"}}
	p.Exact = &profile.Exact{Duration: 1.0002, Locks: true, CostSeconds: 0.0021,
		SoftIRQs: []profile.SoftIRQTime{{CPU: 0, Name: "NET_RX", Runs: 42_000, Seconds: 0.386, Ratio: 0.386,
			Delay: 12e-6},
			{CPU: 1, Name: "TIMER", Runs: 250, Seconds: 0.0004, Ratio: 0.0004}},
		RunQueue: []profile.ThreadWait{{Name: "ksoftirqd/0", Runs: 310, Seconds: 0.042, Ratio: 0.042},
			{Name: "db\x1b[31m", Runs: 12, Seconds: 0.003, Ratio: 0.003}},
		Waits: []profile.LockWait{{Kind: "spinlock", Function: "lock_sock_nested", Callers: "tcp_sendmsg < sock_sendmsg",
			Stage: "socket/syscall", Waits: 40, PerSecond: 40, Seconds: 0.00088, Ratio: 0.00088}}}
	return p
}

// profileDocuments are a profile, one of another program, an idle one, and comparisons with and
// without a difference.
func profileDocuments() []Document {
	first, second := profiled(1), profiled(3)
	of := profile.NewBuilder("CLOCK.HARD", false)
	of.Add(profile.Seen{Frames: []int{of.Frame(profile.Frame{Name: "_mtx_lock_sleep"}),
		of.Frame(profile.Frame{Name: "tcp_output"})}, Offset: -1, Count: 136})
	other := of.Finish(profile.Window{})
	other.Source, other.Format = "out.pmc", "pmcstat -G"
	with := report.NewProfile(Envelope(), first)
	with.With = &report.ProfiledTest{Target: "192.0.2.7", Test: "stream", ThroughputBitsPerS: 940e6,
		FarRefused: "this linerate (1.0) does not know the call"}
	both := report.NewProfile(Envelope(), first)
	both.With = &report.ProfiledTest{Target: "192.0.2.7", Test: "stream", ThroughputBitsPerS: 940e6, Far: profiled(2)}
	report.FillSlices(both)
	return []Document{
		{"profile", with},
		{"profile-both", both},
		{"profile-other", report.NewProfile(Envelope(), other)},
		{"profile-idle", report.NewProfile(Envelope(), profile.NewBuilder("cpu-clock", true).Finish(profile.Window{}))},
		{"profile-compare", report.NewProfileCompare(Envelope(), profile.Compare(first, second))},
		{"profile-compare-same", report.NewProfileCompare(Envelope(), profile.Compare(first, first))},
		{"profile-compare-other", report.NewProfileCompare(Envelope(), profile.Compare(other, first))},
	}
}
