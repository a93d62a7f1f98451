package hostfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// LiveSupported reports that the running system can be read.
const LiveSupported = true

// accessible reports whether a name exists, without the cost of describing the file: it is called
// once per interface in every reading.
func accessible(name string) bool { return unix.Access(name, unix.F_OK) == nil }

// firstRead is the size of the first read in bytes. A read of /proc/sys makes the kernel allocate
// the requested size, so it is not larger.
const firstRead = 8 << 10

// readWhole reads a pseudo file with plain system calls into buf, and grows it if necessary.
// os.File would add sysfs files to the poller, and would then wait forever for a driver that
// returns EAGAIN.
//
// A file below /proc/sys returns its value to the first read only; at any later offset it reports
// end of file. If a value fills the buffer, readWhole therefore reads it again from the start into
// a larger one; otherwise it would be silently truncated.
func readWhole(name string, buf []byte) ([]byte, error) {
	var fd int
	var err error
	for {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return buf, err
	}
	defer unix.Close(fd)
	if cap(buf) < firstRead {
		buf = make([]byte, 0, firstRead)
	}
	// Elsewhere in /proc, continuing from an offset is right, and for large tables the only way:
	// seq_file prints a part for each read.
	restart := strings.HasPrefix(name, "/proc/sys/")
	for {
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return buf[:0], err
		}
		if n == 0 {
			return buf, nil
		}
		full := len(buf)+n == cap(buf)
		buf = buf[:len(buf)+n]
		if !full {
			continue
		}
		grown := make([]byte, len(buf), 2*cap(buf))
		copy(grown, buf)
		buf = grown
		if restart {
			buf = buf[:0]
			if _, err := unix.Seek(fd, 0, 0); err != nil {
				return buf, err
			}
		}
	}
}
