package journal

import (
	"net"
	"os"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
)

// identify asks the kernel. Unknown fields stay empty; then the comparison of values must suffice.
func identify(id knob.ID) Identity {
	var found Identity
	if !inNamespace(id) {
		return found
	}
	// The namespace of this thread: the writer may have moved the thread (setns(2)) out of the
	// namespace of the process.
	if link, err := os.Readlink("/proc/thread-self/ns/net"); err == nil {
		found.Namespace = link
	}
	if name := id.Interface(); name != "" {
		// A missing interface leaves the index empty, which equals every index; reading the knob
		// then returns fs.ErrNotExist.
		if link, err := net.InterfaceByName(name); err == nil {
			found.Device, found.Address = strconv.Itoa(link.Index), link.HardwareAddr.String()
		}
	}
	return found
}

// locate returns the present name of an interface, or "" when this namespace does not have it. One
// that was seen in another namespace is found by its address too: it has a new index where its old
// one was taken.
func locate(i Identity) string {
	if here, err := os.Readlink("/proc/thread-self/ns/net"); err == nil && i.elsewhere(Identity{Namespace: here}) {
		links, err := net.Interfaces()
		if link := i.among(links, ""); err == nil && link != nil {
			return link.Name
		}
		return ""
	}
	index, err := strconv.Atoi(i.Device)
	if err != nil {
		return ""
	}
	link, err := net.InterfaceByIndex(index)
	if err != nil {
		return ""
	}
	return link.Name
}
