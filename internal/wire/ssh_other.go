//go:build !unix

package wire

import "os/exec"

// sshProgram gives the command for ssh.
func sshProgram(args []string) *exec.Cmd { return exec.Command("ssh", args...) }
