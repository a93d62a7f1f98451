//go:build unix

package wire

import "os/exec"

// sshProgram returns the command for ssh, with SIGINT ignored in it. Ctrl-C at the terminal goes to
// every process in the foreground, and ssh must outlive it, so that trials can be undone and the
// far end can report that. ssh(1) keeps an ignored SIGINT ignored, except while it asks for a
// password. A separate process group would have the same effect, but could not ask at the terminal.
func sshProgram(args []string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `trap '' INT; exec ssh "$@"`, "ssh"}, args...)...)
}
