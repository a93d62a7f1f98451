package desk

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a program when this process ends, however it ends.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
