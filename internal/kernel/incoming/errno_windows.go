package incoming

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// ofPeer are errors of one connection or of one datagram.
var ofPeer = []syscall.Errno{
	windows.WSAECONNABORTED, windows.WSAECONNRESET, windows.WSAECONNREFUSED, windows.WSAEHOSTDOWN,
	windows.WSAEHOSTUNREACH, windows.WSAENETUNREACH, windows.WSAENETRESET, windows.WSAETIMEDOUT,
	windows.WSAEMSGSIZE, windows.WSAEINTR, windows.ERROR_NETNAME_DELETED, windows.ERROR_PORT_UNREACHABLE,
	windows.ERROR_MORE_DATA,
}

// ofSocket are errors that no later call survives.
var ofSocket = []syscall.Errno{
	windows.WSAENOTSOCK, windows.WSAEINVAL, windows.WSAEFAULT, windows.WSAEBADF, windows.WSAEOPNOTSUPP,
	windows.ERROR_INVALID_HANDLE, windows.WSANOTINITIALISED,
}
