// Package evidence defines what a verdict rests on and what it consists of: the case that the rules
// see, and the form of their findings.
//
// # Model
//
// A [Case] holds the snapshots of both hosts, the runs between them, observations without a run,
// and the probes that rules asked for. Rules read it through two views. A [Flow] is one loaded
// direction with both of its ends: the sender, the receiver, and the sender's TCP_INFO. A [Span] is
// one host over a period: its counters and its CPU times. A [Rule] gives one code. A [Finding]
// carries its [Evidence], the alternatives it rejected with their numbers, and a [Remedy] with
// [Candidate] settings that an experiment can try. The registry (findings/*.json) describes every
// code; codes never change meaning.
//
// The rules rest on this physics. A window W and a round trip R bound the rate to W/R. The same
// window on the empty path (smallest R) distinguishes a window that limits the flow from one that
// merely bounds a queue. A loss-based sender under loss p reaches about MSS/R·1.22/√p (Mathis). A
// bottleneck shows as a flat delivery rate with a queue in front of it or a paced sender behind it.
//
// # Severity
//
// Critical: traffic does not get through, or fails. Warning: the fault costs this host or this flow
// something now. Notice: a rule saw the fault but no cost. Info: needs no action.
//
// # Units
//
// Rates are bits per second, sizes bytes, times seconds. Shares and confidence are ratios 0…1.
//
// # Sources
//
// struct tcp_info of linux/tcp.h and the chronographs behind tcpi_busy_time, tcpi_rwnd_limited and
// tcpi_sndbuf_limited (Linux 4.10), tcpi_snd_wnd (5.4), tcpi_rcv_wnd (6.2);
// Documentation/networking/ip-sysctl.rst; RFC 7323 (window scale), RFC 3649 and Mathis et al. 1997
// (rate under loss); proc(5) for CPU time.
//
// # Limits
//
// Verdicts on a flow need the TCP_INFO of its sender, so the sending end must run Linux. Counters
// cover a whole host: they include what other programs did at the same time.
package evidence
