package nameserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// waitForTurn is how long a write or a look waits for another one. The shell of a restart waits for
// the server that it ends, up to 300 times 20 ms, and several times as long on a busy machine.
const waitForTurn = waitForServer

// turn waits until nothing else of linerate works at the server of a configuration file, and holds
// others off until the file that it returns is closed (flock(2) of the directory). A restart passes
// it on to its shell, which keeps it until the new server is there: when a killed writer has left a
// restart behind, the next look finds the server as it will be, and not the one that is about to
// end.
func turn(ctx context.Context, path string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(real))
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(waitForTurn); ; {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(end) {
			_ = dir.Close() // it was opened for reading
			return nil, fmt.Errorf("wait for another change of %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = dir.Close() // as above
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
