// Package uring queues reads and writes of one file through io_uring(7), so that many are in flight
// from one thread.
//
// # Model
//
// A [Ring] belongs to one thread, which is locked to it: [Ring.Queue] puts an operation into the
// submission queue, [Ring.Enter] passes the queue to the kernel and waits for completions, and
// [Ring.Next] takes them one by one. The file and the buffers are registered once, so that an
// operation costs neither a reference to the file nor a walk of page tables. Where the kernel
// allows it, completions run only inside Enter (IORING_SETUP_DEFER_TASKRUN, Linux 6.1): no
// interrupt of the thread's own work.
//
// # Units
//
// Bytes and offsets in bytes; results are those of read(2) and write(2), with a negative errno.
//
// # Sources
//
// io_uring(7), io_uring_setup(2), io_uring_enter(2), io_uring_register(2);
// include/uapi/linux/io_uring.h of Linux 6.18 for the layouts.
//
// # Limits
//
// Linux 5.11 or later, for IORING_ENTER_EXT_ARG. A container's seccomp filter, or the sysctl
// kernel.io_uring_disabled, may refuse io_uring_setup(2); the caller then uses threads. Registered
// buffers count towards RLIMIT_MEMLOCK of a process without CAP_IPC_LOCK.
package uring
