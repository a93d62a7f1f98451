package guest

import (
	"fmt"
	"time"
)

// clockArguments gives the kernel the frequency of its time-stamp counter, which its clock counts.
//
// A kernel that has to find out counts ticks of the PIT for ten milliseconds. An emulator that gets
// no processor meanwhile loses ticks of the PIT and none of the counter. The kernel then says "PIT
// calibration deviates from HPET" and takes the PIT's word (arch/x86/kernel/tsc.c). Its clock ran
// ten times too fast: timeouts end early, timer interrupts take the emulator's time, and rates are
// a tenth of what they are. Counted guests have a counter of 1 GHz, and cannot miss ticks.
func clockArguments(o Options) string {
	if o.Counted {
		// A kernel calibrates the APIC's timer in a loop that reads the time-stamp counter, which ends
		// each block of instructions here: 5 s of the host's CPU time. The HPET ticks without that.
		return " noapictimer"
	}
	if !hasTicks {
		return ""
	}
	at, counted := moment()
	time.Sleep(20 * time.Millisecond)
	later, more := moment()
	return fmt.Sprintf(" tsc_early_khz=%d", (more-counted)*int64(time.Millisecond)/int64(later.Sub(at)))
}

// moment returns what clock and counter showed at the same time: of some looks the one with the
// shortest time around it.
func moment() (at time.Time, counted int64) {
	shortest := time.Hour
	for range 50 {
		before, count := time.Now(), ticks()
		if took := time.Since(before); took < shortest {
			shortest, at, counted = took, before, count
		}
	}
	return at, counted
}
