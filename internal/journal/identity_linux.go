package journal

import (
	"net"
	"os"
	"strconv"

	"github.com/linerate/linerate/internal/knob"
)

// identify asks the kernel. What it cannot tell stays empty: then the comparison of values has to do.
func identify(id knob.ID) Identity {
	var found Identity
	// The namespace of this thread: the writer may have moved it (setns(2)) away from that of the process.
	if link, err := os.Readlink("/proc/thread-self/ns/net"); err == nil {
		found.Namespace = link
	}
	if name := device(id); name != "" {
		// An interface that is not there leaves the index empty, which compares with everything; reading the knob then says fs.ErrNotExist.
		if link, err := net.InterfaceByName(name); err == nil {
			found.Device = strconv.Itoa(link.Index)
		}
	}
	return found
}
