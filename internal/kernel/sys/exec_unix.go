//go:build unix

package sys

import (
	"fmt"
	"syscall"
)

// Exec replaces this program by another one, which keeps the process, its streams and the exit
// status (execve(2)). It returns only after an error.
func Exec(path string, args, env []string) error {
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, args, env))
}
