// Package diagnose turns what two hosts saw and counted into findings: what limits the path, with evidence.
//
// # Model
//
// A [Case] holds snapshots of both hosts and the runs between them. [Judge] looks at every loaded direction as one flow (who sends,
// who receives, what TCP_INFO and the counters of each end say), asks every rule, lets causes mute their symptoms, and gives the
// findings most important first. A rule is one file: what it needs to see, its thresholds with their reason, the look-alikes it
// must reject, and the settings worth trying. The registry (findings.json) holds every code with its title and meaning; codes never
// change meaning. A [Finding] carries its [Evidence], the alternatives it rejected with their numbers, and a [Remedy] whose
// [Candidate] settings an experiment can try. A finding is a suspicion with reasons; only an experiment proves a remedy.
//
// The physics behind the rules: a window W and a round trip R bound the rate to W/R; the same window on an empty path (minimum R)
// tells a window that limits from a window that merely bounds a queue; a loss-based sender under loss p moves about
// MSS/R·1.22/√p (Mathis); a bottleneck shows as a flat delivery with a queue in front of it or a paced sender behind it.
//
// # Units
//
// Rates bits per second, sizes bytes, times seconds, shares and confidence as ratios 0…1.
//
// # Sources
//
// struct tcp_info of linux/tcp.h and the chronographs behind tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited (Linux
// 4.10), tcpi_snd_wnd (5.4), tcpi_rcv_wnd (6.2); Documentation/networking/ip-sysctl.rst; RFC 7323 (window scale), RFC 3649 and
// Mathis et al. 1997 (rate under loss).
//
// # Limits
//
// Verdicts on a flow need TCP_INFO of its sender, so they need Linux at the sending end. Without a run only settings that are
// wrong whatever the path is can be found.
package diagnose
