package journal

import (
	"os"
	"strconv"
	"strings"
)

// waitsForThaw reports whether a thread of a process waits for a file system to be thawed:
// sb_start_write sleeps in percpu_rwsem_wait since Linux 5.6, and in __percpu_down_read before
// (proc_pid_wchan(5)). Without the names of kernel functions it does not know.
func waitsForThaw(pid int) bool {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	list, err := os.ReadDir(threads)
	if err != nil {
		return false
	}
	for _, thread := range list {
		at, err := os.ReadFile(threads + thread.Name() + "/wchan")
		if err != nil {
			continue // it has just ended
		}
		switch strings.TrimSpace(string(at)) {
		case "percpu_rwsem_wait", "__percpu_down_read", "__sb_start_write":
			return true
		}
	}
	return false
}
