//go:build !unix

package alert

import "os/exec"

// ownGroup does nothing: the hub can kill only the program itself.
func ownGroup(*exec.Cmd) {}
