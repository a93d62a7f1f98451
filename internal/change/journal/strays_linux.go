package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/base/durable"
)

// guardProcesses finds the guards of a state directory by their arguments (proc_pid_cmdline(5)). A
// process of another user is no guard of ours, whatever it calls itself.
func guardProcesses(dir string) []int {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, p := range processes {
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && isGuard(pid, dir) {
			all = append(all, pid)
		}
	}
	return all
}

func isGuard(pid int, dir string) bool {
	place := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(place + "/cmdline")
	if err != nil {
		return false
	}
	args := strings.Split(string(line), "\x00")
	i := slices.Index(args, "guard")
	if i < 0 || len(args) < i+4 || args[i+1] != "--state" || args[i+2] != dir || args[i+3] != "--mode" {
		return false
	}
	info, err := os.Stat(place)
	if err != nil {
		return false
	}
	if uid, _, known := durable.Owner(info); !known || uid != os.Geteuid() {
		return false
	}
	_, err = processStarted(pid) // not one that has ended and waits for its parent
	return err == nil
}

// askToEnd asks a guard to take its trials back and to end.
func askToEnd(pid int, dir string) {
	p, err := os.FindProcess(pid) // holds the process, not its number (pidfd_open(2))
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }() // Nothing depends on it.
	if isGuard(pid, dir) {
		_ = p.Signal(syscall.SIGTERM) // One that has just ended needs no signal.
	}
}
