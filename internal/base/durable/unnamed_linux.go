package durable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file without a name (O_TMPFILE, Linux 3.11). Not every file system has them,
// FAT and NFS among those without, and only /proc can name the file later.
func openUnnamed(dir string) (*os.File, error) {
	file, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(descriptorName(file)); err != nil {
		_ = file.Close() // it is empty
		return nil, err
	}
	return file, nil
}

// nameFile gives an unnamed file a name, which no file may have. The same with AT_EMPTY_PATH would
// need CAP_DAC_READ_SEARCH.
func nameFile(file *os.File, name string) error {
	for {
		err := unix.Linkat(unix.AT_FDCWD, descriptorName(file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
		if err != unix.EINTR {
			return err
		}
	}
}

func descriptorName(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }
