// Package evidence is what a verdict rests on and what it consists of: the case as rules see it,
// and the form of what they say.
//
// # Model
//
// A [Case] holds snapshots of both hosts, the runs between them, what was watched without a run,
// and the probes that rules asked for. Rules do not look at it in the raw but through two views: a
// [Flow] is one loaded direction with both of its ends (who sends, who receives, what TCP_INFO
// says), a [Span] is one host over a time (what it counted, what its processors did). A [Rule]
// gives one code. A [Finding] carries its [Evidence], the alternatives it rejected with their
// numbers, and a [Remedy] whose [Candidate] settings an experiment can try. The registry
// (findings.json) holds every code with its title and meaning; codes never change meaning.
//
// The physics behind the rules: a window W and a round trip R bound the rate to W/R; the same
// window on an empty path (minimum R) tells a window that limits from a window that merely bounds a
// queue; a loss-based sender under loss p moves about MSS/R·1.22/√p (Mathis); a bottleneck shows as
// a flat delivery with a queue in front of it or a paced sender behind it.
//
// # Severity
//
// Critical: traffic does not get through, or fails. Warning: shown to cost this host or this flow
// something now. Notice: wrong or seen, and not shown to cost anything. Info: asks for nothing.
//
// # Units
//
// Rates bits per second, sizes bytes, times seconds, shares and confidence as ratios 0…1.
//
// # Sources
//
// struct tcp_info of linux/tcp.h and the chronographs behind tcpi_busy_time, tcpi_rwnd_limited and
// tcpi_sndbuf_limited (Linux 4.10), tcpi_snd_wnd (5.4), tcpi_rcv_wnd (6.2);
// Documentation/networking/ip-sysctl.rst; RFC 7323 (window scale), RFC 3649 and Mathis et al. 1997
// (rate under loss); proc(5) for processor time.
//
// # Limits
//
// Verdicts on a flow need TCP_INFO of its sender, so they need Linux at the sending end. Counters
// are of a whole host: what another program did at the same time is in them.
package evidence
