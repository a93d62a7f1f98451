package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/wire"
)

// Errors of a test that have to do with the other side.
var (
	// ErrRefused is a Spec that the far side does not want to run; the text is its reason.
	ErrRefused = errors.New("refused by the far end")
	// ErrPeerGone is a far or near side that went away in the middle of a test; the same value as
	// the channel's own.
	ErrPeerGone = wire.ErrPeerGone
	// ErrFar is a test that broke on the far side; the text is its reason.
	ErrFar = errors.New("far end")
	// ErrProtocol is a message that has no place in a test.
	ErrProtocol = errors.New("control protocol broken")
	// ErrStalled is a test that is long past its end and still not over.
	ErrStalled = errors.New("test did not end in time")
	// ErrStopped is a near side that ended the test early, most often because somebody pressed
	// Ctrl-C there.
	ErrStopped = errors.New("stopped by the near end")
)

// Gone marks an error as the disappearance of the other side when it is one.
func Gone(err error) error {
	if err == nil || errors.Is(err, ErrPeerGone) {
		return err
	}
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded, sys.ErrTimeout,
		syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, syscall.ETIMEDOUT, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH,
	} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w: %w", ErrPeerGone, err)
		}
	}
	return err
}
