package journal

import (
	"net"
	"os"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
)

// identify asks the kernel. What it cannot tell stays empty: then the comparison of values has to
// do.
func identify(id knob.ID) Identity {
	var found Identity
	if !inNamespace(id) {
		return found
	}
	// The namespace of this thread: the writer may have moved it (setns(2)) away from that of the
	// process.
	if link, err := os.Readlink("/proc/thread-self/ns/net"); err == nil {
		found.Namespace = link
	}
	if name := id.Interface(); name != "" {
		// An interface that is not there leaves the index empty, which compares with everything;
		// reading the knob then says fs.ErrNotExist.
		if link, err := net.InterfaceByName(name); err == nil {
			found.Device = strconv.Itoa(link.Index)
		}
	}
	return found
}

// locate asks the kernel for the present name of an interface; empty when there is none with that
// index here.
func locate(i Identity) string {
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
