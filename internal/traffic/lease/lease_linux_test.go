package lease_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	if _, said := holder(inside...); !strings.Contains(said, fmt.Sprintf("process %d of user %d has it",
		first.Process.Pid, os.Getuid())) {
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

// TestRefusals: what the kernel refuses is no other test, and waiting does not change it.
func TestRefusals(t *testing.T) {
	l := lease.Lease{Name: strings.Repeat("x", 200)} // no socket has so long a name
	for name, take := range map[string]func() (func(), error){
		"take": l.Take, "wait": func() (func(), error) { return l.Wait(t.Context(), time.Hour) },
	} {
		if _, err := take(); err == nil || errors.Is(err, lease.ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCourtesy checks that another user cannot keep the lease for ever, and that root and the same
// user can.
func TestCourtesy(t *testing.T) {
	testenv.Need(t, testenv.NetNS) // root, who can become another user
	for _, c := range []struct {
		uid   int
		yield bool
	}{{65534, true}, {os.Geteuid(), false}} {
		name := fmt.Sprintf("linerate/test-%d-of-%d", os.Getpid(), c.uid)
		socket := make(chan net.Listener)
		go func() {
			runtime.LockOSThread() // and never unlock: the thread ends with its user
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(c.uid), ^uintptr(0)); e != 0 {
				t.Error(e)
			}
			l, err := net.Listen("unix", "@"+name)
			if err != nil {
				t.Error(err)
			}
			socket <- l
		}()
		other := <-socket
		if other == nil {
			t.FailNow()
		}
		l := lease.Lease{Name: name, Courtesy: time.Nanosecond}
		said := fmt.Sprintf("user %d has it", c.uid)
		if _, err := l.Take(); !errors.Is(err, lease.ErrBusy) || !strings.Contains(err.Error(), said) {
			t.Errorf("user %d, at once: %v", c.uid, err)
		}
		patient := lease.Lease{Name: name}
		for range 2 {
			if _, err := patient.Wait(t.Context(), 0); !errors.Is(err, lease.ErrBusy) {
				t.Errorf("user %d, within the hour: %v", c.uid, err)
			}
		}
		release, err := l.Wait(t.Context(), 0)
		if yields := err == nil; yields != c.yield {
			t.Errorf("user %d, after the time of courtesy: %v", c.uid, err)
		}
		if err == nil {
			if _, err := l.Take(); !errors.Is(err, lease.ErrBusy) {
				t.Errorf("taken twice: %v", err)
			}
			release()
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if release, err = l.Take(); err != nil {
			t.Errorf("free again: %v", err)
		} else {
			release()
		}
	}
}
