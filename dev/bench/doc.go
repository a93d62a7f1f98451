// Command bench compares linerate with the tools that it wants to replace, side by side in one run.
//
// # Model
//
// Two network namespaces joined by a veth pair are the hosts. All programs at the near host run on
// one CPU, and all programs at the far host on another. A row is one figure, measured by linerate
// and by each peer. The rounds of a row are interleaved: in every round each program runs once, and
// the order rotates by one from round to round, so other load on the machine affects all programs
// equally. A ratio is formed within each round, linerate over the best peer (the peer with the
// highest median). The row reports the medians of the figures, the median of the ratio and its
// exact signed-rank interval. Ratios are oriented so that more is better, costs included.
//
// Stream rows are played under CUBIC, the default of most hosts, and under BBR; the worse ratio is
// the row's. A row whose other programs of the machine used more than a twentieth of its CPUs is
// not judged: -patience waits for a quiet moment before each round, and -only repeats a row. Each
// row names those of linerate's ways that another program could use as well.
//
// # Units
//
// Each row names its unit. CPU time is that of the whole machine: user, system and interrupts of
// both hosts together. Rows "of the programs alone" count the threads of the two programs instead,
// with the softirqs that ran in them.
//
// # Sources
//
// proc(5) for /proc/stat; the manual pages of iperf3(1), iperf(1), nuttcp(8) and sockperf(3).
//
// # Limits
//
// Linux and root, for the namespaces. Only ratios within one run mean anything; absolute figures
// are those of a veth pair on this machine. Programs that are not installed are skipped by name.
package main
