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

// InNetNS runs f in a fresh network namespace, on a thread of its own that is never given back to
// the scheduler: the goroutine ends while locked, so that the runtime throws the thread away
// together with its namespace.
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
		f() // may end in runtime.Goexit by t.FailNow; done is closed all the same
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

// Second gives the error of a call that answers with a value.
func Second[T any](_ T, err error) error { return err }

// AddTap makes a tap device in the namespace of the calling thread. It is gone with its descriptor.
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

// OtherSays runs a program of others in the namespace of the calling thread: a new process begins
// where the thread stands that starts it. ok is false when the program reports an error, as
// ethtool(8) does for what a driver has not.
func OtherSays(t *testing.T, name string, args ...string) (out string, ok bool) {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), testenv.Program(t, name), args...).Output()
	return string(b), err == nil
}

// Pairs reads lines of "name: value".
func Pairs(text string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(value) != "" {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// Number is 0 for "n/a", as ours is.
func Number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// Encoded is a message of a fixed header and attributes.
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

// Unknown is an attribute of a kernel that is newer than this program.
func Unknown(ae *netlink.AttributeEncoder) {
	ae.Bytes(4000, []byte{1, 2, 3})
	ae.Nested(4001, func(nae *netlink.AttributeEncoder) error {
		nae.String(1, "later")
		return nil
	})
}
