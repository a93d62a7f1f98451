package main

import "fmt"

// The goals are the advantages that justify a change of tools. They are set in advance, not fitted
// to results.
const (
	goalStream     = 2.0
	goalCopy       = 1.4
	goalCost       = 1 / 0.6 // at most 0.6 of the best peer's CPU time per gigabyte
	goalScale      = 0.9
	goalRR         = 1.1
	goalBusyPoll   = 1.5
	goalDatagrams  = 3.0
	goalNoOffload  = 1.3
	goalConnection = 1.0
	goalPacing     = 0.99
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
	table := []row{
		{test: "stream", unit: "Gb/s", scale: gigabit, goal: goalStream,
			programs: append([]program{ours(throughput, stream...)}, bulk...)},
		{test: "stream, both sides copy", unit: "Gb/s", scale: gigabit, goal: goalCopy,
			programs: append([]program{ours(throughput, with(stream, "--copy")...)}, copying...)},
		{test: "stream, cost", unit: "CPU s/GB", goal: goalCost, cost: true,
			programs: append([]program{ours(throughput, "--test", "stream", "--warm-up", "0s")}, bulk...)},
		{test: "stream down", unit: "Gb/s", scale: gigabit, goal: goalStream,
			programs: []program{ours(throughput, with(stream, "--reverse")...), iperf3("iperf3 -R", false, "-R"),
				iperf3("iperf3 -R -Z", false, "-R", "-Z"), nuttcp("nuttcp -r", "-r")}},
	}
	for _, n := range []int{2, 4, 16, 256} {
		p := fmt.Sprint(n)
		r := row{test: "stream, " + p + " connections", unit: "Gb/s", scale: gigabit, goal: goalScale,
			programs: []program{
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
	rr := []string{"--test", "rr", "--warm-up", "100ms"}
	udp := []string{"--test", "udp", "--length", "64", "--warm-up", "100ms"}
	flood := []program{iperf3("iperf3 -u -b 0", true, "-u", "-b", "0", "-l", "64")}
	table = append(table,
		row{test: "rr", unit: "k/s", scale: thousand, goal: goalRR,
			programs: []program{ours(transactions, rr...), sockperf(), plain(self, "rr")}},
		row{test: "rr, busy-poll", unit: "k/s", scale: thousand, goal: goalBusyPoll, programs: []program{
			ours(transactions, with(rr, "--busy-poll")...), named("linerate, blocking", ours(transactions, rr...)),
		}},
		row{test: "udp, 64 bytes", unit: "k/s", scale: thousand, goal: goalDatagrams,
			programs: append([]program{ours(packets, udp...)}, flood...)},
		row{test: "udp, 64 bytes, no GSO", unit: "k/s", scale: thousand, goal: goalNoOffload,
			programs: append([]program{ours(packets, with(udp, "--batch", "mmsg")...)}, flood...)},
		// No peer connects, asks, gets a reply and closes (iperf2 --connect-only asks nothing), so
		// a plain loop over package net replaces them.
		row{test: "crr", unit: "k/s", scale: thousand, goal: goalConnection, programs: []program{
			ours(transactions, "--test", "crr", "--warm-up", "100ms"), plain(self, "crr"),
		}},
	)
	for _, rate := range []string{"10M", "100M", "1G"} {
		table = append(table,
			row{test: "pacing tcp " + rate, unit: "of target", scale: 1, goal: goalPacing, programs: []program{
				ours(accuracy, with(stream, "--rate", rate)...), named("exact", exactly(1)),
				iperf3Paced("iperf3 -b "+rate, rate),
			}},
			row{test: "pacing udp " + rate, unit: "of target", scale: 1, goal: goalPacing, programs: []program{
				ours(accuracy, "--test", "udp", "--length", "1400", "--warm-up", "100ms", "--rate", rate),
				named("exact", exactly(1)),
				iperf3Paced("iperf3 -u -b "+rate, rate, "-u", "-l", "1400"),
			}},
		)
	}
	return table
}
