package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

// jiffiesPerSecond is the unit of /proc/stat, USER_HZ, which is 100 on every Linux architecture
// that Go runs on.
const jiffiesPerSecond = 100

// busySeconds returns the CPU time that all CPUs have spent since boot, without idle, I/O wait and
// steal time: user, nice, system, irq and softirq of the first line of /proc/stat.
func busySeconds() (float64, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(b)
}

func parseBusy(b []byte) (float64, error) {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 8 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("read /proc/stat: unknown first line %q", line)
	}
	var sum float64
	for _, i := range []int{1, 2, 3, 6, 7} {
		v, err := strconv.ParseFloat(string(fields[i]), 64)
		if err != nil {
			return 0, fmt.Errorf("read /proc/stat: %w", err)
		}
		sum += v
	}
	return sum / jiffiesPerSecond, nil
}

// usage is CPU time, in seconds, until a moment.
type usage struct {
	at   time.Time
	busy float64 // of all CPUs, whatever ran there
	own  float64 // of the programs that the bench started, with the softirqs that ran in their threads
}

// usage reads what all programs have used so far.
func (w *world) usage() (usage, error) {
	busy, err := busySeconds()
	if err != nil {
		return usage{}, err
	}
	u := usage{at: time.Now(), busy: busy, own: w.spent.Seconds()}
	for _, s := range w.servers {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Pid))
		if err != nil {
			return usage{}, err
		}
		own, err := parseOwn(b)
		if err != nil {
			return usage{}, err
		}
		u.own += own
	}
	return u, nil
}

// less returns what was used since before.
func (u usage) less(before usage) usage {
	return usage{time.Time{}.Add(u.at.Sub(before.at)), u.busy - before.busy, u.own - before.own}
}

// others returns the share of all CPUs that programs of others used, of a difference.
func (u usage) others() float64 {
	wall := u.at.Sub(time.Time{}).Seconds() * float64(runtime.NumCPU())
	if wall <= 0 {
		return 0
	}
	return min(max((u.busy-u.own)/wall, 0), 1)
}

// parseOwn returns the CPU seconds of a process and of its ended children, from /proc/PID/stat:
// fields 14 to 17 of proc(5), utime, stime, cutime and cstime. The name before them may hold
// spaces.
func parseOwn(b []byte) (float64, error) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("read /proc/PID/stat: %d fields in %q", len(fields), b)
	}
	var sum float64
	for _, f := range fields[11:15] {
		v, err := strconv.ParseFloat(string(f), 64)
		if err != nil {
			return 0, fmt.Errorf("read /proc/PID/stat: %w", err)
		}
		sum += v
	}
	return sum / jiffiesPerSecond, nil
}

// settleLook is how long one look at the machine takes.
const settleLook = 200 * time.Millisecond

// settle waits until other programs leave the machine alone, for w.patience at most.
func (w *world) settle(ctx context.Context) error {
	for end := time.Now().Add(w.patience); time.Now().Before(end); {
		before, err := w.usage()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleLook):
		}
		after, err := w.usage()
		if err != nil {
			return err
		}
		if after.less(before).others() <= mostOthers {
			return nil
		}
	}
	return nil
}
