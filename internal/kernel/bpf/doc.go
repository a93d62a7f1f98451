// Package bpf counts in the kernel, exactly, what samples cannot see: the time that softirqs run,
// and the time that tasks wait for locks. It also asks the kernel for names of its functions.
//
// # Model
//
// [Watch] loads four small programs and attaches them to raw tracepoints: softirq_entry and
// softirq_exit, contention_begin and contention_end. [Watcher.Read] reads their tables. Closing the
// watcher removes everything: nothing is pinned and nothing outlives the process. It needs neither
// a library nor tracefs, kprobes, or type information of the kernel.
//
// [AskNames] loads a program that prints one address as the kernel does in its own messages.
// [Names.Function] runs it once: 2.5 µs, where the list of all functions takes 50 ms.
//
// # Units
//
// Times are nanoseconds of CLOCK_MONOTONIC, summed since the start. A wait belongs to the stack of
// the waiting task, leaf first, as addresses of /proc/kallsyms.
//
// # Sources
//
// bpf(2); include/uapi/linux/bpf.h and include/trace/events/{irq,lock}.h of Linux 6.18. The
// tracepoints of locks came with Linux 5.19, raw tracepoints with 4.17, bpf_snprintf with 5.13.
//
// # Limits
//
// Linux only. It needs CAP_BPF and CAP_PERFMON, or root. Each event takes about 100 ns while a
// watcher runs; [Counts.RunNanos] has the sum where the kernel lets this process measure it.
// Interrupts are not seen apart: their time inside a softirq is in it. Waiting for the owner of a
// socket (lock_sock) is no lock for the kernel's tracepoints; packets go to a backlog meanwhile.
package bpf
