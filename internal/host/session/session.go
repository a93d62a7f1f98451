package session

import (
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// mostParents bounds the walk to the session's first process.
const mostParents = 64

// Interfaces returns the interface that carries this process's session, and those below it; none if
// the process has no session over a network.
func Interfaces() []string {
	addr, ok := address(os.DirFS("/proc"), os.Getpid())
	if !ok {
		return nil
	}
	return below(os.DirFS("/sys/class/net"), holder(addr))
}

// address returns this host's address of the session that process pid belongs to.
func address(proc fs.FS, pid int) (netip.Addr, bool) {
	for range mostParents {
		dir := strconv.Itoa(pid)
		environ, _ := fs.ReadFile(proc, path.Join(dir, "environ")) // not readable: the parent may be
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			value, ok := strings.CutPrefix(variable, "SSH_CONNECTION=")
			if fields := strings.Fields(value); ok && len(fields) == 4 {
				addr, err := netip.ParseAddr(fields[2])
				return addr.Unmap(), err == nil
			}
		}
		stat, err := fs.ReadFile(proc, path.Join(dir, "stat"))
		if err != nil {
			break
		}
		// The name in parentheses may hold anything; state and parent follow the last one.
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 {
			break
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid < 1 {
			break
		}
	}
	return netip.Addr{}, false
}

// holder returns the interface of this network namespace that has an address, or "".
func holder(addr netip.Addr) string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == addr.WithZone("") {
				return i.Name
			}
		}
	}
	return ""
}

// below returns an interface and all that it stands on.
func below(class fs.FS, name string) []string {
	if name == "" {
		return nil
	}
	all := []string{name}
	for i := 0; i < len(all); i++ {
		entries, _ := fs.ReadDir(class, all[i]) // none where sysfs does not show it
		for _, e := range entries {
			if lower, ok := strings.CutPrefix(e.Name(), "lower_"); ok && !slices.Contains(all, lower) {
				all = append(all, lower)
			}
		}
	}
	return all
}
