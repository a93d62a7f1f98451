package desk

import (
	"os/exec"
	"syscall"
	"testing"
)

// dieWithParent ends a program when this process ends, however it ends.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// alone gives a program mounts of its own.
func alone(c *exec.Cmd) { c.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS }

// mountSmall mounts a file system of 1 MiB in memory, which no other process sees.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
}
