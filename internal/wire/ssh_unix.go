//go:build unix

package wire

import "os/exec"

// sshProgram gives the command for ssh, with SIGINT ignored in it: Ctrl-C at the terminal goes to
// every process in the foreground, and ssh must outlive it, so that trials can be taken back and
// the far end can say so. ssh(1) keeps an ignored SIGINT ignored, except while it asks for a
// password. A process group of its own would do the same, but could not ask at the terminal.
func sshProgram(args []string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `trap '' INT; exec ssh "$@"`, "ssh"}, args...)...)
}
