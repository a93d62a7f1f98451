package guest

// hasTicks: the counter of this machine is the one that guests see.
const hasTicks = true

// ticks reads the time-stamp counter of the processor (RDTSC). QEMU hands it to guests, and changes
// only where it begins (cpu_get_ticks in softmmu/cpu-timers.c).
func ticks() int64
