package lease_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/lease"
)

// TestMain makes a process of this binary a holder of the lease: it says whether it has it, and
// keeps it until it is killed.
func TestMain(m *testing.M) {
	if os.Getenv("LINERATE_LEASE") == "" {
		os.Exit(m.Run())
	}
	var l lease.Lease
	_, err := l.Take()
	fmt.Println(err)
	time.Sleep(time.Hour)
}

// TestTake: one process has the lease, and it is free again once that process was killed. The
// holders are in a namespace of their own, so that no test of this machine is disturbed.
func TestTake(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := func(wrap ...string) (*exec.Cmd, string) {
		t.Helper()
		args := append(wrap, own)
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(os.Environ(), "LINERATE_LEASE=1")
		if len(wrap) == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		}
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return c, line
	}
	first, said := holder()
	if said != "<nil>\n" {
		t.Fatalf("the first holder: %s", said)
	}
	inside := []string{"nsenter", "-t", fmt.Sprint(first.Process.Pid), "-n"}
	if _, said := holder(inside...); said == "<nil>\n" {
		t.Error("two processes have the lease")
	}
	waiting, said := holder() // another namespace is another network
	if said != "<nil>\n" {
		t.Errorf("another namespace: %s", said)
	}
	_ = waiting
}

// TestRelease: what has the lease gives it back once, and twice does no harm.
func TestRelease(t *testing.T) {
	l := lease.Lease{Name: fmt.Sprintf("linerate/test-%d", os.Getpid())}
	release, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(); !errors.Is(err, lease.ErrBusy) {
		t.Errorf("taken twice: %v", err)
	}
	release()
	release()
	again, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	again()
}
