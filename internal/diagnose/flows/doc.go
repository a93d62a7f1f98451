// Package flows judges what holds a TCP flow and what the path does to it.
//
// # Model
//
// One rule is one file: what it needs to see, its thresholds with their reason, the look-alikes it must reject, and the settings worth trying. Rules
// look at an [evidence.Flow] and are pure.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// struct tcp_info and its chronographs (linux/tcp.h); ip-sysctl.rst; RFC 7323, RFC 5681, RFC 6298, RFC 8985.
//
// # Limits
//
// The sender has to be Linux, as its kernel is the witness.
package flows
