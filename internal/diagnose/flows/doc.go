// Package flows has the rules about what limits a TCP flow and what the path does to it.
//
// # Model
//
// Each rule has a file of its own with the evidence it needs, its thresholds and their reasons, the
// look-alikes it rejects, and the settings to try. Rules are pure functions. Most examine an
// [evidence.Flow], one loaded direction of a test. Rules on packet sizes and queues examine the
// whole case. Rules with names that end in Watched examine an [evidence.Span]: the open connections
// of a host's own programs.
//
// Loss and rate of one run fit several causes: random loss, a policer, a short queue, reordering, a
// congestion control that is too careful. Where the cause matters, a rule asks for another run that
// separates them ([evidence.Case.Ask]): eight streams, a paced one, one with another congestion
// control, packets of growing size.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// struct tcp_info and its chronographs (linux/tcp.h); ip-sysctl.rst; RFC 896 and RFC 1122 §4.2.3.2
// (small segments, delayed acknowledgements), RFC 4821 (path MTU discovery by probing), RFC 5681,
// RFC 6298, RFC 6928, RFC 7323, RFC 8985; Mathis et al. 1997 (rate under loss); Flach et al., "An
// Internet-Wide Analysis of Traffic Policing", 2016.
//
// # Limits
//
// The sender must run Linux, because its kernel provides the evidence. A queue of a few packets at
// a fast link looks like a policer. An interface cannot test frames larger than its own MTU. From
// one end of a watched connection a slow reader looks like a small buffer. No counter shows slow
// start after a pause; the rule infers it from arithmetic.
package flows
