package sys

import (
	"fmt"
	"os"
)

// BootID returns an identifier of this boot: when process 1 started, as the kernel has recorded it
// (struct psinfo of proc(5), pr_start). It does not move when the clock is set. In a zone it is the
// start of the zone.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/1/psinfo")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return bootFromPsinfo(b)
}
