//go:build unix

package alert

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program into a process group of its own, which ends as a whole when its time is
// over. The group cannot be another one by then: its leader has not been waited for.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
