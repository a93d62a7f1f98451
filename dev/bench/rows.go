package main

import "fmt"

// The goals are the advantages that justify a change of tools. They are set in advance, not fitted
// to results.
const (
	goalStream     = 2.0
	goalCopy       = 1.15    // under cubic both do the same copies; the rest is system calls
	goalCost       = 1 / 0.6 // at most 0.6 of the best peer's CPU time per gigabyte
	goalScale      = 0.9
	goalRR         = 1.1
	goalBusyPoll   = 1.5
	goalDatagrams  = 3.0
	goalNoOffload  = 1.3
	goalConnection = 1.2
	goalSingle     = 1.1
	goalPacing     = 0.99

	steadyStream = 0.05
)

// What another program could do as well, and which row compares like with like.
const (
	waysStream = "any program can receive by MSG_TRUNC, write megabytes from a block that stays in the cache and " +
		"keep a short queue (TCP_NOTSENT_LOWAT); with copies at both ends: see the row with copies"
	waysCopy = "like with like: every program copies at both ends; calls of megabytes, the short queue and " +
		"SO_RCVLOWAT remain, and are open to all"
	waysMany = "any program can serve many connections by a thread per CPU with epoll, and hand whole segments " +
		"over under BBR; iperf3 and iperf2 use a loop or a thread for each"
	waysRR = "like with like: each end sleeps in a system call for each message; raw calls on a pinned thread " +
		"instead of a poller are open to all; sockperf makes them too"
	waysSpin   = "any program can poll instead of sleeping, at the cost of a whole CPU at each end"
	waysSingle = "like with like: one system call for each datagram at both ends; napping instead of waiting for " +
		"each datagram is open to all"
	waysCost = "any program can copy less: MSG_TRUNC at the receiver, sendfile or vmsplice at the sender; iperf3 -Z " +
		"uses sendfile, no other program drops in place"
	waysDatagrams = "any program can hand over and take many datagrams a call (sendmmsg, UDP_SEGMENT, UDP_GRO); like " +
		"with like: see the row of single calls"
	waysPacing = "like with like: each program's own rate; a schedule that catches up, and SO_MAX_PACING_RATE, are " +
		"open to all"
	waysCRR = "both ends sleep, as in the plain loop; any program can use one socket again after a reset, " +
		"TCP_DEFER_ACCEPT at both ends, accept4 and raw calls"
)

// rows returns the table. exe is the linerate under test, and self is this program.
func rows(exe, key, self string) []row {
	const gigabit, thousand = 1e9, 1e3
	ours := func(pick func(result) float64, flags ...string) program { return linerate(exe, key, pick, flags...) }
	named := func(name string, p program) program { p.name = name; return p }
	// A short fixed warm-up: the peers' figures also cover their start, and iperf3 -O would discard
	// most of a short run.
	stream := []string{"--test", "stream", "--warm-up", "100ms"}
	with := func(base []string, more ...string) []string { return append(append([]string{}, base...), more...) }
	bulk := []program{
		iperf3("iperf3", false), iperf3("iperf3 -Z", false, "-Z"), iperf2("iperf2"), nuttcp("nuttcp"),
	}
	copying := []program{iperf3("iperf3", false), iperf2("iperf2"), nuttcp("nuttcp")}
	// The default of most hosts, and that of hosts tuned for throughput.
	both := []string{"cubic", "bbr"}
	table := []row{
		{test: "stream", unit: "Gb/s", scale: gigabit, steady: steadyStream, ways: waysStream, goal: goalStream,
			congestion: both,
			programs:   append([]program{ours(throughput, stream...)}, bulk...)},
		{test: "stream, both sides copy", unit: "Gb/s", scale: gigabit, steady: steadyStream, ways: waysCopy,
			goal: goalCopy, congestion: both,
			programs: append([]program{ours(throughput, with(stream, "--copy")...)}, copying...)},
		{test: "stream, cost", unit: "CPU s/GB", goal: goalCost, cost: true, ways: waysCost, congestion: both,
			programs: append([]program{ours(throughput, "--test", "stream", "--warm-up", "0s")}, bulk...)},
		// The same without what else ran on the machine: interrupts outside the programs' threads, and
		// other programs. On a machine that is not quiet, this is the cost that means something.
		{test: "stream, cost of the programs alone", unit: "CPU s/GB", goal: goalCost, cost: true, own: true,
			ways: waysCost, congestion: both,
			programs: append([]program{ours(throughput, "--test", "stream", "--warm-up", "0s")}, bulk...)},
		{test: "stream down", unit: "Gb/s", scale: gigabit, goal: goalStream, ways: waysStream, congestion: both,
			programs: []program{ours(throughput, with(stream, "--reverse")...), iperf3("iperf3 -R", false, "-R"),
				iperf3("iperf3 -R -Z", false, "-R", "-Z"), nuttcp("nuttcp -r", "-r")}},
	}
	for _, n := range []int{2, 4, 16, 256} {
		p := fmt.Sprint(n)
		r := row{test: "stream, " + p + " connections", unit: "Gb/s", scale: gigabit, goal: goalScale, ways: waysMany,
			congestion: both, programs: []program{
				ours(throughput, with(stream, "--parallel", p)...),
				// One connection is the fastest case of this engine; the ratio shows the loss from
				// more connections.
				named("linerate, 1 connection", ours(throughput, stream...)),
				iperf2("iperf2 -P "+p, "-P", p),
			}}
		if n <= 128 { // the most that iperf3 takes
			r.programs = append(r.programs, iperf3("iperf3 -P "+p, false, "-P", p))
		}
		table = append(table, r)
	}
	// What a CPU second of the test's own threads carries is a ratio that other programs of the
	// machine move less than throughput. The sending end bounds it, because it does most of the work.
	for _, n := range []string{"16", "256"} {
		table = append(table, row{test: "stream, " + n + " connections, bytes per CPU time", unit: "GB per CPU s",
			scale: 1, goal: goalScale, ways: waysMany, congestion: both, programs: []program{
				ours(perNearCPU, with(stream, "--parallel", n)...),
				named("linerate, 1 connection", ours(perNearCPU, stream...)),
			}})
	}
	rr := []string{"--test", "rr", "--warm-up", "100ms"}
	udp := []string{"--test", "udp", "--length", "64", "--warm-up", "100ms"}
	crr := []string{"--test", "crr", "--warm-up", "100ms"}
	flood := []program{iperf3("iperf3 -u -b 0", true, "-u", "-b", "0", "-l", "64")}
	table = append(table,
		row{test: "rr", unit: "k/s", scale: thousand, goal: goalRR, ways: waysRR,
			programs: []program{ours(transactions, rr...), sockperf(), plain(self, "rr")}},
		row{test: "rr, busy-poll", unit: "k/s", scale: thousand, goal: goalBusyPoll, ways: waysSpin, programs: []program{
			ours(transactions, with(rr, "--busy-poll")...), named("linerate, blocking", ours(transactions, rr...)),
		}},
		row{test: "udp, 64 bytes", unit: "k/s", scale: thousand, goal: goalDatagrams, ways: waysDatagrams,
			programs: append([]program{ours(packets, udp...)}, flood...)},
		row{test: "udp, 64 bytes, no GSO", unit: "k/s", scale: thousand, goal: goalNoOffload, ways: waysDatagrams,
			programs: append([]program{ours(packets, with(udp, "--batch", "mmsg")...)}, flood...)},
		row{test: "udp, 64 bytes, single calls", unit: "k/s", scale: thousand, goal: goalSingle, ways: waysSingle,
			programs: append([]program{ours(packets, with(udp, "--batch", "single")...)}, flood...)},
		// No peer connects, asks, gets a reply and closes (iperf2 --connect-only asks nothing), so
		// a plain loop over package net replaces them.
		row{test: "crr", unit: "k/s", scale: thousand, goal: goalConnection, ways: waysCRR, programs: []program{
			ours(transactions, crr...), plain(self, "crr"),
		}},
		row{test: "crr, busy-poll", unit: "k/s", scale: thousand, goal: goalConnection, ways: waysSpin,
			programs: []program{
				ours(transactions, with(crr, "--busy-poll")...), named("linerate, blocking", ours(transactions, crr...)),
				plain(self, "crr"),
			}},
	)
	for _, rate := range []string{"10M", "100M", "1G"} {
		table = append(table,
			row{test: "pacing tcp " + rate, unit: "of target", scale: 1, goal: goalPacing, ways: waysPacing,
				congestion: both, programs: []program{
					ours(accuracy, with(stream, "--rate", rate)...), named("exact", exactly(1)),
					iperf3Paced("iperf3 -b "+rate, rate),
				}},
			row{test: "pacing udp " + rate, unit: "of target", scale: 1, goal: goalPacing, ways: waysPacing,
				programs: []program{
					ours(accuracy, "--test", "udp", "--length", "1400", "--warm-up", "100ms", "--rate", rate),
					named("exact", exactly(1)),
					iperf3Paced("iperf3 -u -b "+rate, rate, "-u", "-l", "1400"),
				}},
		)
	}
	return table
}
