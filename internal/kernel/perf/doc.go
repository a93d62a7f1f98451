// Package perf samples what each CPU runs, with perf_event_open(2).
//
// # Model
//
// [Probe] asks the kernel about an [Event] and returns one of three answers: it works, this machine
// does not have it, or this process may not use it. [Open] makes one event and one ring of memory
// for each CPU; after [Sampler.Enable] the kernel writes a record for every period of the event:
// the interrupted instruction and the calls that led to it. [Sampler.Drain] hands the records on,
// decoded by [Decode], which reads recorded rings on every system. [Sampler.Counts] reads what the
// records cannot show: how many the kernel had no room for, and for how long the event really
// counted.
//
// The period is fixed. In frequency mode the kernel shortens the period of an idle CPU, which then
// floods the ring when work begins. An event is never re-armed by its own handler
// (PERF_EVENT_IOC_REFRESH): with cpu-clock that hangs Linux 6.16 and 6.17.
//
// cpu-clock is a timer of the kernel and no counter of the processor ([Event.Timer]): its interrupt
// waits while interrupts are off, and then reports the instruction that allowed them again.
// Handlers of interrupts never appear in it.
//
// # Units
//
// Periods are nanoseconds for a timer, otherwise counts of the event. Times are nanoseconds of
// CLOCK_MONOTONIC. Addresses are the kernel's, as /proc/kallsyms has them.
//
// # Sources
//
// perf_event_open(2); include/uapi/linux/perf_event.h of Linux 6.18; perf_swevent_init_hrtimer in
// kernel/events/core.c for timers. PERF_FORMAT_LOST came with Linux 6.0. The hang: commit
// eb3182ef0405.
//
// # Limits
//
// Linux only; elsewhere [Open] and [Probe] report that the system has no such call. Chains are
// those of the kernel; of programs only the instruction is known.
package perf
