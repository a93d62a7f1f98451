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

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// mostParents bounds the walk to the session's first process.
const mostParents = 64

// Interfaces returns the interfaces that carry this process's session, and those below them; none
// if the process has no session over a network.
func Interfaces() []string {
	client, own, ok := addresses(os.DirFS("/proc"), os.Getpid())
	if !ok {
		return nil
	}
	return below(os.DirFS("/sys/class/net"), holder(own), way(client))
}

// addresses returns the client's and this host's address of the session that process pid belongs
// to.
func addresses(proc fs.FS, pid int) (client, own netip.Addr, ok bool) {
	for range mostParents {
		dir := strconv.Itoa(pid)
		environ, _ := fs.ReadFile(proc, path.Join(dir, "environ")) // not readable: the parent may be
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			value, ok := strings.CutPrefix(variable, "SSH_CONNECTION=")
			if fields := strings.Fields(value); ok && len(fields) == 4 {
				client, _ = netip.ParseAddr(fields[0]) // without it, no way
				own, err := netip.ParseAddr(fields[2])
				return client.Unmap(), own.Unmap(), err == nil
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
	return netip.Addr{}, netip.Addr{}, false
}

// way returns the interface over which this host sends to an address, or "". It is not the one with
// this host's address where that is on lo or a dummy, as on a host that announces it by BGP, or
// where packets leave another way than they come.
func way(to netip.Addr) string {
	if !to.IsValid() {
		return ""
	}
	c, err := nl.Dial()
	if err != nil {
		return ""
	}
	defer c.Close()
	r, err := route.New(c).To(to.String())
	if err != nil {
		return ""
	}
	return r.Interface
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

// below returns interfaces, less empty names, and all that they stand on.
func below(class fs.FS, names ...string) []string {
	var all []string
	for _, name := range names {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
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
