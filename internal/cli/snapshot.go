package cli

import (
	"context"
	"errors"

	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/sosreport"
)

// fromUsage explains --from, which is the same in every command that has it.
const fromUsage = "read `FILE` instead of this host: a capture, a sosreport (directory, tar, tar.gz or tar.bz2), " +
	"a copy of /proc and /sys; - is standard input"

// openSnapshot reads the file of another host.
func (a *app) openSnapshot(ctx context.Context, name string) (*snapshot.File, error) {
	var f *snapshot.File
	var err error
	if name == "-" || waits(name) {
		var in *input
		if in, err = a.openInput(name); err == nil {
			defer in.Close() // opened for reading
			f, err = snapshot.Read(ctx, name, in)
		}
	} else {
		f, err = snapshot.Open(ctx, name)
	}
	var hinted interface{ Hint() string }
	switch {
	case errors.As(err, &hinted): // it says what to do about a compression that is not supported
	case errors.Is(err, capture.ErrFormat), errors.Is(err, sosreport.ErrFormat):
		err = flagError{err,
			"linerate inspect --capture FILE makes a capture; a sosreport and an unpacked copy of /proc and " +
				"/sys also work"}
	}
	return f, err
}
