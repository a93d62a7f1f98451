//go:build !linux

package desk

import (
	"os/exec"
	"testing"
)

func dieWithParent(*exec.Cmd) {}

func alone(*exec.Cmd) {}

func mountSmall(t *testing.T, _ string) { t.Skip("mounts of one process need Linux") }
