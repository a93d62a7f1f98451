package host_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host"
)

// quietMark in the environment makes TestQuietChild do its work.
const quietMark = "LINERATE_TEST_QUIET"

// TestReadingNeverWrites runs everything that this package reads as an ordinary user, under a
// filter with which the kernel kills a process that opens a file for writing, makes, moves or
// removes one, or changes its mode. What is left that could change a host is netlink, where writing
// needs a capability that an ordinary user has not.
func TestReadingNeverWrites(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(what string) (string, error) {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestQuietChild$", "-test.v")
		cmd.Env = append(os.Environ(), quietMark+"="+what)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("read"); err != nil || !strings.Contains(out, "read in silence") {
		t.Errorf("%v\n%s", err, out)
	}
	// The filter bites: a file that is opened for writing ends the process.
	if out, err := run("write"); err == nil || !strings.Contains(err.Error(), "bad system call") {
		t.Errorf("writing was let through: %v\n%s", err, out)
	}
}

// TestQuietChild is the process that TestReadingNeverWrites starts; run directly it tests nothing.
func TestQuietChild(t *testing.T) {
	what := os.Getenv(quietMark)
	if what == "" {
		return
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			t.Fatalf("become an ordinary user: %v", err)
		}
	}
	if err := forbidWriting(); err != nil {
		t.Fatal(err)
	}
	if what == "write" {
		_, _ = os.OpenFile("/dev/null", os.O_WRONLY, 0) // The kernel ends the process here.
		return
	}
	s, err := host.Root{}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (host.Root{}).Counters(); err != nil {
		t.Error(err)
	}
	if _, err := (host.Root{}).CardInterrupts(); err != nil {
		t.Error(err)
	}
	entries, err := host.Root{}.Copy(t.Context())
	if err != nil {
		t.Error(err)
	}
	lo, ok := s.Interface("lo")
	if !ok || len(s.CPUs) == 0 || len(s.Settings) == 0 || lo.MTUBytes == 0 {
		t.Errorf("an ordinary user sees little: %+v", s)
	}
	for _, sentence := range s.Warnings {
		t.Log(sentence)
	}
	fmt.Printf("read in silence: %d interfaces, %d settings, %d entries\n", len(s.Interfaces), len(s.Settings),
		len(entries))
}

// forbidWriting puts a filter before the system calls of all threads of this process.
func forbidWriting() error {
	const (
		number = 0        // of the call, in struct seccomp_data
		flags  = 16 + 2*8 // its third argument, of which a little-endian machine has the low half first
		writes = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	is := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	program := []unix.SockFilter{load(number)}
	for _, call := range []uint32{
		unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_MKNODAT,
		unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT,
		unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_MOUNT, unix.SYS_SETXATTR, unix.SYS_OPENAT2,
	} {
		program = append(program, is(call, 0, 1), answer(unix.SECCOMP_RET_KILL_PROCESS))
	}
	program = append(program, is(unix.SYS_OPENAT, 1, 0), answer(unix.SECCOMP_RET_ALLOW), load(flags),
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: writes}, is(0, 1, 0),
		answer(unix.SECCOMP_RET_KILL_PROCESS), answer(unix.SECCOMP_RET_ALLOW))
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread() // both calls are this thread's
	defer runtime.UnlockOSThread()
	// The first thread's promise to gain no rights is spread to the others with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("promise to gain no rights: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&filter))); errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
