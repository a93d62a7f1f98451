package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// namespaceGone reports whether a network namespace, by its kernel name (net:[4026531840]), has
// certainly ended, and every setting in it. A namespace lives as long as a process is in it, holds
// it open, or has it mounted (namespaces(7)). A process without permission to look everywhere
// cannot know, so the result is false.
func namespaceGone(name string) bool {
	if !seesProcesses() {
		return false
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		held, err := holds(filepath.Join("/proc", p.Name()), name)
		// A process that ended during the check holds nothing.
		if held || err != nil && !ended(err) {
			return false
		}
	}
	return true
}

// holds reports whether a process, given by its directory in /proc, keeps a namespace alive.
func holds(process, name string) (bool, error) {
	mounts, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if errors.Is(err, unix.EINVAL) {
		return false, nil // A zombie has no mounts and no namespace.
	}
	if err != nil {
		return false, err
	}
	if bytes.Contains(mounts, []byte(" "+name+" ")) {
		return true, nil
	}
	tasks, err := filepath.Glob(filepath.Join(process, "task", "*", "ns", "net"))
	if err != nil {
		return false, err
	}
	open, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return false, err
	}
	for _, d := range open {
		tasks = append(tasks, filepath.Join(process, "fd", d.Name()))
	}
	for _, path := range tasks {
		link, err := os.Readlink(path)
		if link == name {
			return true, nil
		}
		if err != nil && !ended(err) {
			return false, err
		}
	}
	return false, nil
}

// ended reports whether an error of a file in /proc means that the process has ended.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }
