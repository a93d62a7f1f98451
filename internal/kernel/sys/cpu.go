package sys

import (
	"fmt"
	"strconv"
	"strings"
)

// maxCPUs limits the numbers in a CPU list; Linux itself supports at most 8192 CPUs.
const maxCPUs = 1 << 16

// ParseCPUList reads a list as the kernel prints it, "0-3,8,10-11", and keeps its order. An empty
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
		// Limit the sum too: "0-65535,0-65535,…" would otherwise take unlimited memory.
		if a < 0 || b < a || b >= maxCPUs || len(cpus)+b-a >= maxCPUs {
			return nil, fmt.Errorf("parse cpu list %q: %q is not a range of cpus", s, part)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
