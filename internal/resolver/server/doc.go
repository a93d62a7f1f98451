// Package server reads what a name server and its host say about it: the server's own counters, and
// the sockets, threads and writes of its processes.
//
// # Model
//
// [Parse] recognises the output of one server and returns its [Statistics]: values under names that
// are the same for all servers, each with the server's own name for it. A name that ends in _total
// counts since the server's start; [Since] subtracts two readings. A value that a server does not
// expose is absent, never zero.
//
// [Observe] reads a running server twice. It finds the server's processes by the sockets on its
// port, and the server's statistics by the sockets on which these processes listen: the statistics
// channel of named, the control sockets of Unbound, Knot Resolver and PowerDNS Recursor, and the
// monitor of systemd-resolved. dnsmasq answers queries about itself. Nothing is written, and no
// counter is reset.
//
// # Units
//
// The names carry them: _total counts, _bytes, _seconds; settings are 0 or 1.
//
// # Sources
//
// BIND 9 administrator reference manual (statistics channels, statistics file, rndc);
// unbound.conf(5) and unbound-control(8); the manual of Knot Resolver 5 (stats, cache, worker,
// control sockets); the manual of PowerDNS Recursor (metrics, rec_control) and rec_channel.cc of
// 4.8; dnsmasq(8), NOTES; resolvectl(1), io.systemd.Resolve.Monitor of systemd 257. proc(5), and
// Documentation/scheduler/sched-stats.rst for the time that a thread waits for a CPU.
//
// # Limits
//
// Processes and sockets are read on Linux alone, and those of other users only by root. Views of
// BIND add up, so a cache that two views share counts twice. Unbound's control port with
// certificates is not spoken: save the output of `unbound-control stats_noreset` instead.
package server
