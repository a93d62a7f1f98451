// Package tc translates the options of queueing disciplines between the kernel's bytes and the
// terms of tc(8).
//
// # Model
//
// A discipline has a kind (fq, fq_codel, cake, pfifo, bfifo) and options, which the kernel carries
// in the attribute TCA_OPTIONS. For most kinds the options are attributes with numbers private to
// the kind; for the two fifos they are one bare number. [Get] reads one parameter from the options.
// [Change] encodes options that change one parameter and leave all others. [Whole] encodes the
// options of a new, equal discipline. [Custom] lists the parameters that differ from their
// defaults. Nothing here calls the kernel: package nl carries the bytes.
//
// # Units
//
// Packets, bytes, microseconds and nanoseconds as in tc(8), without suffixes. Rates are in bits per
// second; the kernel uses bytes, so they are rounded down to a multiple of 8. Masks are decimal. In
// thresholds, 4294967295 means "never", as in the kernel.
//
// # Sources
//
// include/uapi/linux/pkt_sched.h of Linux 6.18; the init, change and dump functions of
// net/sched/sch_{fq,fq_codel,cake,fifo}.c; the names are those of tc-fq(8), tc-fq_codel(8),
// tc-cake(8) and tc-pfifo(8).
//
// # Limits
//
// Trees and shapers with classes (htb, hfsc, prio, tbf, …) are not supported. The bands of fq (6.7:
// priomap, weights) have no name here, but are kept when a discipline is recreated.
package tc
