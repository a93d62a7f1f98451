package talkers

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// find returns the processes that hold sockets with the wanted inodes, and whether there were
// processes whose files this user may not read.
func find(wanted map[uint32]bool) (map[uint32]Process, bool, error) {
	return findBelow(os.DirFS("/proc"), wanted)
}

// findBelow reads a tree of /proc, processes with low numbers first. It ends with the last wanted
// socket. A process that ends meanwhile is no error.
func findBelow(proc fs.FS, wanted map[uint32]bool) (map[uint32]Process, bool, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, false, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	// Every process namespace has a process 1. Where /proc does not show it, it hides the processes
	// of other users (hidepid of proc(5)).
	found, hidden := map[uint32]Process{}, len(pids) > 0 && pids[0] != 1
	for _, pid := range pids {
		if len(found) == len(wanted) {
			break
		}
		dir := strconv.Itoa(pid)
		descriptors, err := fs.ReadDir(proc, path.Join(dir, "fd"))
		hidden = hidden || errors.Is(err, fs.ErrPermission)
		process := Process{}
		for _, d := range descriptors {
			inode, ok := socketOf(proc, path.Join(dir, "fd", d.Name()))
			if !ok || !wanted[inode] {
				continue
			}
			if _, known := found[inode]; known {
				continue // a process with a lower number holds it too
			}
			if process.PID == 0 {
				process = describe(proc, pid)
			}
			found[inode] = process
		}
	}
	return found, hidden && len(found) < len(wanted), nil
}

// socketOf returns the inode of the socket that a descriptor is; false: it is none.
func socketOf(proc fs.FS, name string) (uint32, bool) {
	link, err := fs.ReadLink(proc, name)
	if err != nil {
		return 0, false // closed meanwhile
	}
	text, ok := strings.CutPrefix(link, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32)
	return uint32(inode), err == nil
}

// describe returns the name and the control group of a process.
func describe(proc fs.FS, pid int) Process {
	p := Process{PID: pid}
	dir := strconv.Itoa(pid)
	if name, err := fs.ReadFile(proc, path.Join(dir, "comm")); err == nil {
		p.Name = strings.TrimSuffix(string(name), "\n")
	}
	groups, _ := fs.ReadFile(proc, path.Join(dir, "cgroup")) // a kernel without control groups has none
	for line := range strings.Lines(string(groups)) {
		// "0::/system.slice/nginx.service" of version 2, "1:name=systemd:/…" of version 1.
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 && (fields[1] == "" || fields[1] == "name=systemd") && fields[2] != "/" {
			p.Cgroup = fields[2]
		}
	}
	return p
}
