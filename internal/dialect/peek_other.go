//go:build !unix

package dialect

import (
	"net"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// peek is not supported on this system.
func peek(*net.TCPConn, []byte, int) (int, error) {
	return 0, &sys.UnsupportedError{Feature: "looking at a connection without reading it"}
}
