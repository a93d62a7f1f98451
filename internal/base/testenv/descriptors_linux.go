package testenv

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// aloneVariable names the test that a process of its own plays.
const aloneVariable = "LINERATE_TEST_ALONE"

// Alone runs the calling test in a process of its own, and reports whether this is that process.
// The other one has waited for it, and must return. It is for what a test can do only to a whole
// process.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), aloneVariable+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Starve uses up all file descriptors of this process but one, which dial needs to connect to a
// server in this process, whose attempts to accept then fail. It returns when some have failed.
// feed gives the descriptors back. The test must be [Alone].
func Starve(t *testing.T, dial func() (net.Conn, error)) (conn net.Conn, feed func()) {
	t.Helper()
	if os.Getenv(aloneVariable) != t.Name() {
		t.Fatal("this test is not alone in its process")
	}
	limit := syscall.Rlimit{Cur: 100, Max: 100}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var all []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		t.Fatal("no descriptor was free")
	}
	all[0].Close()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(os.DevNull); err == nil {
		f.Close()
		t.Fatal("a descriptor is free")
	}
	time.Sleep(200 * time.Millisecond) // some attempts
	return conn, func() {
		for _, f := range all[1:] {
			f.Close()
		}
	}
}
