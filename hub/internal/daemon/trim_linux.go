package daemon

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// trim takes the pages of the program file that are only read out of this process. Those that it
// still uses come back from the page cache at the next touch; those of its start, and those that
// the kernel mapped around each of them (64 KiB), stay away. It frees no memory that others could
// not have had: it makes the resident size that of what the node uses.
func trim() error { return advise(syscall.MADV_DONTNEED) }

// advise gives the kernel advice about the pages of the program file that are only read.
func advise(advice uintptr) error {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		// proc_pid_maps(5): address perms offset dev inode pathname
		f := strings.Fields(lines.Text())
		if len(f) < 6 || strings.Join(f[5:], " ") != own || f[1] != "r--p" && f[1] != "r-xp" {
			continue // what was written to must stay
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return err
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return err
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), advice); errno != 0 {
			return errno
		}
	}
	return lines.Err()
}
