//go:build unix && !aix

package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Release returns the version of the running system as uname(2) has it: "6.18.44-generic" on Linux,
// "14.1-RELEASE" on FreeBSD, "5.11" on illumos and Solaris.
func Release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("read the release of this system: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}
