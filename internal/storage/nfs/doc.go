// Package nfs shows where the calls of an NFS mount wait.
//
// # Model
//
// [Read] parses /proc/self/mountstats into [Mount] values, each with its [Operation] values and
// transports. [Since] subtracts an earlier reading. A call passes three stations: it waits in this
// host for a slot or for the transport (queue), it is on its way to the server and back and in the
// server (round trip), and its answer waits to be processed here (the rest of the execution time).
// The network's part of the round trip is estimated by the quickest small procedure of the same
// mount (GETATTR, ACCESS, LOOKUP), which needs the server's memory only. Twenty calls show it, or
// two that take ten milliseconds; fewer are a bound of it, and what is below the bound is "network
// or server". [Mount].Waits names the station with the most time, over all calls.
//
// Slots are those of a transport, or, with NFS 4.1, of a session that all connections share.
//
// Beside that, the options in effect are compared with those that /etc/fstab asks for, and
// read-ahead with the size of a read.
//
// # Units
//
// Seconds and bytes.
//
// # Sources
//
// rpc_count_iostats_metrics and rpc_clnt_show_stats in net/sunrpc/stats.c, xs_tcp_print_stats in
// net/sunrpc/xprtsock.c, nfs_show_stats in fs/nfs/super.c; nfs(5), nfsiostat(8), mountstats(8).
//
// # Limits
//
// The kernel's NFS client only. Times have a resolution of a millisecond, summed over the calls. A
// server that answers small procedures slowly looks like a slow network. A call of many bytes may
// need further round trips, which count to the network; what a slow path takes beyond them counts
// to the server. Counters of an operation that the kernel has let wrap are left out and reported.
package nfs
