package nltest

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// InNetNS runs f in a new network namespace, on a thread that never returns to the scheduler: the
// goroutine ends while locked, so the runtime destroys the thread together with its namespace.
func InNetNS(t *testing.T, f func()) {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	var unshareErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unshareErr = unix.Unshare(unix.CLONE_NEWNET); unshareErr != nil {
			return
		}
		f() // may end in runtime.Goexit by t.FailNow; done is closed in any case
	}()
	<-done
	if unshareErr != nil {
		testenv.Missing(t, testenv.NetNS, unshareErr)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// Must ends the goroutine of the test body on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Second returns the error of a call that also returns a value.
func Second[T any](_ T, err error) error { return err }

// AddTap creates a tap device in the namespace of the calling thread. It disappears with its
// descriptor.
func AddTap(t *testing.T, name string) {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	req, err := unix.NewIfreq(name)
	Must(t, err)
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	Must(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, req))
}

// OtherSays runs a program of another project in the namespace of the calling thread, where a new
// process starts, and returns its output. ok is false if the program fails, as ethtool(8) does for
// a feature that the driver lacks.
func OtherSays(t *testing.T, name string, args ...string) (out string, ok bool) {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), testenv.Program(t, name), args...).Output()
	return string(b), err == nil
}

// Pairs parses lines of "name: value".
func Pairs(text string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(value) != "" {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// Number parses a number. It returns 0 for "n/a", as this project does.
func Number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// Encoded returns a message of a fixed header and attributes.
func Encoded(t testing.TB, header []byte, fill func(ae *netlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	fill(ae)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return append(header, b...)
}

// Unknown encodes an attribute that only a newer kernel sends.
func Unknown(ae *netlink.AttributeEncoder) {
	ae.Bytes(4000, []byte{1, 2, 3})
	ae.Nested(4001, func(nae *netlink.AttributeEncoder) error {
		nae.String(1, "later")
		return nil
	})
}
