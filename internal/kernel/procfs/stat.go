package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// CPUTimes is the time that one CPU spent in each class since boot, in seconds. The classes except
// Nice do not overlap, and their sum is the whole time.
type CPUTimes struct {
	CPU     int // -1: all together
	User    float64
	Nice    float64 // part of User: programs of a lower priority, which delay no other program
	System  float64
	IRQ     float64
	SoftIRQ float64
	Steal   float64 // the hypervisor ran another guest; since 2.6.11
	Idle    float64 // idle and iowait
}

// userTick is the unit of /proc/stat in seconds: USER_HZ is 100 on every architecture that Go
// supports, independent of the kernel's HZ. (alpha and ia64 had 1024.)
const userTick = 0.01

// softirqNames are the columns of the softirq line after its total, in the order of the kernel's
// enum since 2.6.32. Before 4.5, IRQ_POLL was named BLOCK_IOPOLL, in the same place.
var softirqNames = [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED",
	"HRTIMER", "RCU"}

// ParseStat reads /proc/stat (show_stat in fs/proc/stat.c): time per CPU, and the sums over all
// CPUs of every numbered interrupt and softirq. These equal the sums of /proc/interrupts and
// /proc/softirqs at a hundredth of the text: on a host with 128 CPUs /proc/interrupts can be a
// megabyte, which takes the kernel milliseconds to print, in the middle of a measurement.
func ParseStat(b []byte, into *Counts) ([]CPUTimes, error) {
	var cpus []CPUTimes
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, rest := word(line)
		switch {
		case bytes.HasPrefix(key, []byte("cpu")):
			t, err := parseCPUTimes(string(key[3:]), rest)
			if err != nil {
				return cpus, err
			}
			cpus = append(cpus, t)
		case string(key) == "intr":
			// Numbers that never fired are omitted, because there are hundreds. A counter that is
			// absent in the first reading and present in the second began at zero, so no
			// information is lost.
			if err := eachInterrupt(rest, func(irq int, n uint64) {
				if n > 0 {
					into.Put(n, "irq.", strconv.Itoa(irq))
				}
			}); err != nil {
				return cpus, err
			}
		case string(key) == "softirq":
			_, rest = word(rest) // the total
			for _, name := range softirqNames {
				var number []byte
				number, rest = word(rest)
				n, ok := ParseUint(number)
				if !ok {
					break // older kernels have fewer kinds
				}
				into.Put(n, "softirq.", name)
			}
		// Context switches of the whole machine: many per packet mean that readers sleep and wake
		// for each.
		case string(key) == "ctxt":
			number, _ := word(rest)
			if n, ok := ParseUint(number); ok {
				into.Put(n, "ctxt")
			}
		}
	}
	return cpus, nil
}

// parseCPUTimes reads "user nice system idle iowait irq softirq steal guest guest_nice" in ticks
// (proc_stat(5)). guest time is included in user and guest_nice in nice, so adding the last two
// columns would count them twice.
//
// iowait is idle time during which a task waited for a disk; the processor was free nevertheless.
func parseCPUTimes(id string, rest []byte) (CPUTimes, error) {
	t := CPUTimes{CPU: -1}
	if id != "" {
		n, ok := ParseUint([]byte(id))
		if !ok || n > 1<<20 {
			return t, fmt.Errorf("cpu%.20q: %w", id, ErrFormat)
		}
		t.CPU = int(n)
	}
	var ticks [StatModes]uint64
	if err := readTicks([]byte("cpu"+id), rest, &ticks); err != nil {
		return t, err
	}
	seconds := func(mode int) float64 { return float64(ticks[mode]) * userTick }
	t.User, t.Nice, t.System = seconds(TicksUser)+seconds(TicksNice), seconds(TicksNice), seconds(TicksSystem)
	t.Idle = seconds(TicksIdle) + seconds(TicksIOWait)
	t.IRQ, t.SoftIRQ, t.Steal = seconds(TicksIRQ), seconds(TicksSoftIRQ), seconds(TicksSteal)
	return t, nil
}

// ParseBootTime reads the time of the last boot from /proc/stat ("btime", whole seconds). It
// follows the clock: if the clock was set after the boot, btime moved with it, so the time from
// btime until now is the uptime. The result is false if btime is missing or before 1970.
func ParseBootTime(b []byte) (time.Time, bool) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, rest := word(line)
		if string(key) != "btime" {
			continue
		}
		number, _ := word(rest)
		seconds, ok := ParseUint(number)
		// RFC 3339 cannot express a time beyond any real clock.
		if !ok || seconds == 0 || seconds > 1<<36 {
			return time.Time{}, false
		}
		return time.Unix(int64(seconds), 0).UTC(), true
	}
	return time.Time{}, false
}
