package record

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes returns what a program without privileges may still write to the file system of a
// directory.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// allocate reserves disk space for a file.
func allocate(f *os.File, bytes int64) error {
	return unix.Fallocate(int(f.Fd()), 0, 0, bytes)
}
