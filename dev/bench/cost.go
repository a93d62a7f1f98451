package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
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
