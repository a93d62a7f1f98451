// Package flows judges what holds a TCP flow and what the path does to it.
//
// # Model
//
// One rule is one file: what it needs to see, its thresholds with their reason, the look-alikes it
// must reject, and the settings worth trying. Rules are pure. Most look at an [evidence.Flow], a
// loaded direction of ours; those on packet sizes and queues at the whole case; and those that end
// in Watched at an [evidence.Span], at the connections that the programs of a host have open.
//
// Loss and rate of one run fit several causes: chance, a policer, a short queue, reordering, a
// control that is too careful. Where it matters which, a rule asks for one more run in which the
// causes part ([evidence.Case.Ask]): eight streams, a paced one, one with another congestion
// control, packets of growing size.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// struct tcp_info and its chronographs (linux/tcp.h); ip-sysctl.rst; RFC 896 and RFC 1122 §4.2.3.2
// (small segments, delayed acknowledgements), RFC 4821 (sizes by trying), RFC 5681, RFC 6298, RFC
// 6928, RFC 7323, RFC 8985; Mathis et al. 1997 (rate under loss); Flach et al., "An Internet-Wide
// Analysis of Traffic Policing", 2016.
//
// # Limits
//
// The sender has to be Linux, as its kernel is the witness. A queue of a few packets at a fast link
// cannot be told from a policer. Whether frames larger than an interface is set to would pass
// cannot be tried from it. From one end of a watched connection a slow reader looks like a small
// buffer. A slow start after a pause is counted nowhere and follows from arithmetic.
package flows
