//go:build !unix

package wire

import "os/exec"

// sshProgram returns the command for ssh.
func sshProgram(args []string) *exec.Cmd { return exec.Command("ssh", args...) }
