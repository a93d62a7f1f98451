package journal

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// elsewhere looks for an interface in all network namespaces but that of this thread. known is
// false when the kernel did not let this process look into one of them, or hides processes.
func elsewhere(i Identity, name string) (there Identity, known bool) {
	here, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return Identity{}, false
	}
	handles, known := namespaces()
	delete(handles, here)
	type result struct {
		there Identity
		known bool
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends in another namespace.
		r := result{known: known}
		for namespace, path := range handles {
			links, err := linksIn(namespace, path)
			if err != nil {
				r.known = r.known && ended(err) // a namespace whose last handle has gone is not one
				continue
			}
			if link := i.among(links, name); link != nil {
				r = result{Identity{namespace, strconv.Itoa(link.Index), link.HardwareAddr.String()}, true}
				break
			}
		}
		got <- r
	}()
	r := <-got
	return r.there, r.known
}

// linksIn moves this thread to a network namespace and returns the interfaces there. The path may
// lead through the mounts of any user, who can hide the namespace there behind a link to a device
// or behind a pipe. So it is opened only when it is known to be that namespace.
func linksIn(namespace, path string) ([]net.Interface, error) {
	place, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd := -1
	var kind unix.Statfs_t
	var st unix.Stat_t
	// The name of a namespace is its inode number (namespaces(7)).
	if unix.Fstatfs(place, &kind) == nil && kind.Type == unix.NSFS_MAGIC && unix.Fstat(place, &st) == nil &&
		namespace == "net:["+strconv.FormatUint(st.Ino, 10)+"]" {
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(place), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	_ = unix.Close(place)
	if err == nil {
		err = unix.Setns(fd, unix.CLONE_NEWNET) // EBADF where it was not opened
		_ = unix.Close(fd)
	}
	if err != nil {
		return nil, err
	}
	return net.Interfaces()
}

// among returns the interface that was moved, of those of another namespace. Indexes are counted in
// each namespace, so an index alone names no interface of another one; a moved interface keeps it
// unless it is taken there. One without a hardware address must have its index and its name.
func (i Identity) among(links []net.Interface, name string) *net.Interface {
	var same []*net.Interface
	for at := range links {
		link := &links[at]
		index := strconv.Itoa(link.Index) == i.Device
		switch address := link.HardwareAddr.String(); {
		case address != i.Address:
		case index && (address != "" || link.Name == name):
			return link
		case address != "":
			same = append(same, link)
		}
	}
	for _, link := range same {
		if len(same) == 1 || link.Name == name {
			return link
		}
	}
	return nil
}

// namespaces returns a path to each network namespace that a process is in or has mounted, by the
// kernel's name. all is false when this process may not look at every other one. A namespace that
// lives only by a thread or a descriptor is not looked for: that would take seconds on a host with
// many.
func namespaces() (paths map[string]string, all bool) {
	paths, all = map[string]string{}, seesProcesses()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return paths, false
	}
	var names []string
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err == nil {
			names = append(names, p.Name())
		}
	}
	// This thread may have mounts that its process does not have.
	if thread, err := os.Readlink("/proc/thread-self"); err == nil {
		names = append(names, thread)
	}
	tables := map[string]bool{}
	for _, name := range names {
		process := filepath.Join("/proc", name)
		err := inside(process, paths)
		if table, tableErr := os.Readlink(filepath.Join(process, "ns", "mnt")); tableErr != nil {
			err = errors.Join(err, tableErr)
		} else if !tables[table] {
			tables[table] = true
			err = errors.Join(err, mounted(process, paths))
		}
		// A process that ended during the look holds nothing.
		all = all && (err == nil || ended(err))
	}
	return paths, all
}

// inside adds the network namespace that a process is in.
func inside(process string, paths map[string]string) error {
	path := filepath.Join(process, "ns", "net")
	namespace, err := os.Readlink(path)
	if err == nil && paths[namespace] == "" {
		paths[namespace] = path
	}
	return err
}

// mounted adds the network namespaces that are mounted where a process is, as ip-netns(8) does.
func mounted(process string, paths map[string]string) error {
	mounts, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if errors.Is(err, unix.EINVAL) {
		return nil // A zombie has no mounts.
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(mounts) {
		// proc_pid_mountinfo(5): the root and the place of the mount are the fourth and fifth field.
		const root, place = 3, 4
		fields := strings.Fields(string(line))
		if len(fields) > place && strings.HasPrefix(fields[root], "net:[") && paths[fields[root]] == "" {
			paths[fields[root]] = filepath.Join(process, "root", fields[place])
		}
	}
	return nil
}

// seesProcesses reports whether this process sees all others: inside a PID namespace they are
// invisible, and only the one that holds the kernel's threads shows all of them.
func seesProcesses() bool {
	threads, err := os.ReadFile("/proc/2/comm")
	return err == nil && string(threads) == "kthreadd\n"
}
