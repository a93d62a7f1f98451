//go:build unix

package alert

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program into its own process group, which the hub kills as a whole. The id cannot
// belong to another group by then: the leader has not been waited for.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
