// Package profile is the model of a CPU profile of a host that moves packets: stacks of functions,
// the stage of the network path that each belongs to, and what each costs per packet.
//
// # Model
//
// A [Builder] counts stacks, from samples of this host (room record) or from files of other
// profilers (room foreign), and [Builder.Finish] makes a [Profile] of them. Each busy sample is
// billed on two axes. Its work is what the leaf does: copy, lock, memory, checksum, protocol. Its
// stage is the nearest function above the leaf, the leaf included, that belongs to the network
// path: GRO, netfilter, TCP rx. Both come from one table, stages.txt, and from prefixes of names
// where the table has no row ([StageOf]). Samples outside of the path keep the stage of their leaf:
// a program, the scheduler, or "other kernel" where nothing is known. So the shares of each axis
// add up to 1.
//
// The leaf decides what is idle, never the task: a router does its work in interrupts of the idle
// task.
//
// An event that is a timer of the kernel cannot interrupt code that runs with interrupts off. Such
// a sample lands on the instruction that allows interrupts again. Builder moves it to the caller of
// that instruction, and counts it as moved.
//
// Time in softirqs is borrowed: it belongs to the packets, not to the program that was interrupted.
// [Process] has own and borrowed time apart.
//
// Intervals are at 95 %. Samples come in bursts, so that intervals of independent samples would be
// too narrow, up to half. The profile is therefore cut into slices of time; the variance between
// slices, relative to that of independent samples and at least 1, is the dispersion D. k of n
// samples then weigh as k/D of n/D in Wilson's score interval, and time per packet as a Poisson
// count of k/D, with the quantile of Student's t for the number of slices.
//
// # Units
//
// Shares are of the busy samples, not of all time. Seconds are of processor time, over all sampled
// CPUs. A packet is one that an interface received or sent; one that was forwarded counts once.
//
// # Sources
//
// Stages: net/ and drivers/net of Linux 5.10 to 6.18; the table says where a name was seen. Batch
// means: Law & Kelton, Simulation Modeling and Analysis, chapter 9. Score intervals: Wilson 1927;
// Brown, Cai & DasGupta 2001. The landing points of timer samples: arch/x86/include/asm/irqflags.h,
// and samples of Linux 6.18 that showed one offset each.
//
// # Limits
//
// Functions that the compiler inlined belong to their callers. Two kernels of different versions
// are compared by stage, since functions change their names. Names of programs are those of
// processes; their functions are not resolved.
package profile
