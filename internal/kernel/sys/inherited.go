package sys

import (
	"fmt"
	"os"
	"strconv"
)

// firstInherited is SD_LISTEN_FDS_START of sd_listen_fds(3).
const firstInherited = 3

// InheritedSocket returns the one socket that systemd, or another program with its protocol, has
// opened for this process (LISTEN_PID, LISTEN_FDS); nil without an error if there is none. The
// caller closes the file once it has made a listener of it. More than one socket is an error.
func InheritedSocket() (*os.File, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if n := os.Getenv("LISTEN_FDS"); n != "1" {
		return nil, fmt.Errorf("take over the socket of systemd: %q sockets, want 1", n)
	}
	return os.NewFile(firstInherited, "systemd socket"), nil
}
