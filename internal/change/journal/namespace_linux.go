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

// namespaceGone tells whether a network namespace, named as the kernel does (net:[4026531840]), is
// over for sure, and every setting in it with it. A namespace lives as long as a process is in it,
// or holds it open, or has it mounted (namespaces(7)); who may not look everywhere does not know.
func namespaceGone(name string) bool {
	// In a process namespace of our own the others do not show: only the one that holds the
	// kernel's own threads has all of them.
	if threads, err := os.ReadFile("/proc/2/comm"); err != nil || string(threads) != "kthreadd\n" {
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
		// A process that ended while it was looked at holds nothing.
		if held || err != nil && !ended(err) {
			return false
		}
	}
	return true
}

// holds tells whether a process, given by its directory in /proc, keeps a namespace alive.
func holds(process, name string) (bool, error) {
	mounts, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if errors.Is(err, unix.EINVAL) {
		return false, nil // It is dead and not collected yet: it has no mounts any more, and no namespace.
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

// ended tells whether an error of a file in /proc means that the process is no more.
func ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }
