package sys

import (
	"fmt"
	"strconv"
	"strings"
)

// maxCPUs bounds what a CPU list may name; Linux itself is built for at most 8192.
const maxCPUs = 1 << 16

// ParseCPUList reads a list as the kernel prints it, "0-3,8,10-11", in the order given. An empty
// list has no CPUs.
func ParseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			return nil, fmt.Errorf("parse cpu list %q: %w", s, err)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(last); err != nil {
				return nil, fmt.Errorf("parse cpu list %q: %w", s, err)
			}
		}
		// The sum as well: "0-65535,0-65535,…" would otherwise take memory without end.
		if a < 0 || b < a || b >= maxCPUs || len(cpus)+b-a >= maxCPUs {
			return nil, fmt.Errorf("parse cpu list %q: %q is no range of cpus", s, part)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
