//go:build !unix

package dialect

import (
	"net"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// peek is not known here.
func peek(*net.TCPConn, []byte, int) (int, error) {
	return 0, &sys.UnsupportedError{Feature: "looking at a connection without reading it"}
}
