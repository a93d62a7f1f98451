// Package recursor is the experiment on a name server of this host: which options of its
// configuration file make it answer faster, proven in pairs.
//
// # Model
//
// A segment restarts the server, so that every one begins with an empty cache and new memory, asks
// for every name once, and then measures a closed loop with the same names. Where a time to live is
// among the options, 1.5 s pass in between: a segment is otherwise over before a record expires.
// The objective is the capacity of the server: the sound answers per second that its CPU time
// permits.
//
//	answered share × answers / max(CPU time of the busiest thread, CPU time of all ÷ CPUs)
//
// It is made of CPU time and counts, not of wall time. A machine that is busy with other work makes
// a segment longer, and leaves the capacity as it is. A server with one thread on two CPUs has half
// the capacity that it could have; one that looks for evicted records spends CPU time on them; one
// whose socket overflows loses answers. At most 100 queries are outstanding, which a receive buffer
// of the usual size holds, so that a busy machine alone loses none. Late answers count, and a
// segment in which this process did not run for a second is discarded.
//
// A limit of the 99th percentile is a guard-rail: a change under which the median of the segments
// exceeds it is not kept. Rate and latency of each segment are in its label.
//
// Package tune decides: paired, in random order, kept only if proven, confirmed, and undone
// otherwise; every change goes through the journal.
//
// # Units
//
// Answers per second of CPU time; seconds.
//
// # Sources
//
// proc(5) for /proc/PID/task/TID/schedstat: nanoseconds on a CPU, Linux 2.6.23.
//
// # Limits
//
// Linux. CPU time that the kernel spends on packets in interrupts is not the server's. The capacity
// assumes that no lock is between the threads: it is an upper bound for more threads. A disk that
// the server waits for is not seen, except in the guard-rail. Queries come from this host.
package recursor
