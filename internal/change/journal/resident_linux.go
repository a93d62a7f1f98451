package journal

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stayResident keeps the program of this process in memory. The kernel reads a program page by page
// when it needs one, and drops pages when memory is short; where the root file system is an NFS or
// iSCSI mount that a trial has cut off, the page that takes the trial back could not be read any
// more. It returns a sentence for the log of the guard.
func stayResident() string {
	program, err := programPages()
	if err != nil {
		return fmt.Sprintf("its program may have to be read again: %v", err)
	}
	locked := true
	for _, p := range program {
		// mlock(2) reads the pages and keeps them. It needs CAP_IPC_LOCK or room in RLIMIT_MEMLOCK;
		// reading them now is the best that is left without (madvise(2), Linux 5.14).
		if _, _, errno := unix.Syscall(unix.SYS_MLOCK, p.start, p.size, 0); errno == 0 {
			continue
		}
		locked = false
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, p.start, p.size, unix.MADV_POPULATE_READ); errno != 0 {
			return fmt.Sprintf("its program may have to be read again: %v", errno)
		}
	}
	if !locked {
		return "its program is in memory, and the kernel may drop it when memory is short"
	}
	return ""
}

// pages is a part of the memory of this process.
type pages struct{ start, size uintptr }

// programPages returns where the file of this program is mapped.
func programPages() ([]pages, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	var all []pages
	for line := range strings.Lines(string(maps)) {
		// proc_pid_maps(5): addresses, permissions, offset, device, inode, name.
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(f) < 6 || strings.TrimLeft(f[5], " ") != program {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return nil, err
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, pages{uintptr(start), uintptr(end - start)})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is not in /proc/self/maps", program)
	}
	return all, nil
}
