package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxGroups is NGROUPS_MAX of the kernel.
const maxGroups = 65536

// PeerGroups returns the supplementary groups that the peer of a Unix socket had when it connected
// (SO_PEERGROUPS, Linux 4.13). SO_PEERCRED has the primary group.
func PeerGroups(fd int) ([]uint32, error) {
	for room := 32; ; room = maxGroups {
		groups := make([]uint32, room)
		n := uint32(4 * room)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&n)), 0)
		switch {
		case errno == 0:
			return groups[:min(int(n)/4, room)], nil
		case errno == unix.ENODATA:
			return nil, nil // a socket without a peer's credentials has no groups
		case errno != unix.ERANGE || room == maxGroups:
			return nil, fmt.Errorf("read groups of a peer: %w", errno)
		}
	}
}
