// Package tc translates the options of queueing disciplines between the kernel's bytes and the
// words of tc(8).
//
// # Model
//
// A discipline has a kind (fq, fq_codel, cake, pfifo, bfifo) and options: what the kernel carries
// in the attribute TCA_OPTIONS. Of most kinds the options are attributes with numbers of that
// kind's own, of the two fifos one bare number. [Get] reads one parameter out of them, [Change]
// makes the options that change one and leave all others, [Whole] makes those from which an equal
// discipline can be made, and [Custom] tells which parameters somebody has set. Nothing here talks
// to a kernel: package nl carries the bytes.
//
// # Units
//
// Packets, bytes, microseconds and nanoseconds as tc(8) has them, without their suffixes. Rates are
// bits per second; the kernel has bytes, so that they go down to the next multiple of 8. Masks are
// decimal. 4294967295 is the kernel's word for "never" in thresholds.
//
// # Sources
//
// include/uapi/linux/pkt_sched.h of Linux 6.18; the init, change and dump functions of
// net/sched/sch_{fq,fq_codel,cake,fifo}.c; the names are those of tc-fq(8), tc-fq_codel(8),
// tc-cake(8) and tc-pfifo(8).
//
// # Limits
//
// Trees and shapers with classes (htb, hfsc, prio, tbf, …) are not known here. The bands of fq
// (6.7: priomap, weights) are kept when a discipline is made again and have no name.
package tc
