//go:build unix

package durable

import (
	"os"
	"syscall"
)

// ownerOf returns the user and the group that own a directory.
func ownerOf(dir string) (uid, gid int, err error) {
	st, err := os.Stat(dir)
	if err != nil {
		return 0, 0, err
	}
	owner := st.Sys().(*syscall.Stat_t) // what package os promises of these systems
	return int(owner.Uid), int(owner.Gid), nil
}
