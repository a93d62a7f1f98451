// Command bench compares linerate with the tools it wants to replace, side by side in one go.
//
// # Model
//
// Two network namespaces joined by a veth pair are the hosts; everything at the near one runs on
// one CPU and everything at the far one on another, whoever's program it is. A row is one figure,
// measured by ours and by each peer. The rounds of a row are interleaved: in every round each
// program runs once, in an order that turns by one from round to round, so that whatever else the
// machine does meets all of them alike. A ratio is formed within each round, ours over the best
// peer's (the peer with the highest median); the row gives the medians of the figures, the median
// of the ratio and its exact signed-rank interval. Ratios are oriented so that more is better,
// costs included.
//
// # Units
//
// The unit of a row is in the row. CPU time is that of the whole machine, user, system and
// interrupts of both hosts together.
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
