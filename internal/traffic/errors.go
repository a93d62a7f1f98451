package traffic

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/wire"
)

// Errors of a test. All errors of this package wrap one of them, or the context's.
var (
	// ErrBadSpec reports a Spec that makes no sense on any host.
	ErrBadSpec = errors.New("bad test specification")
	// ErrRefused reports a Spec that the far end does not want to run; the text is its reason.
	ErrRefused = errors.New("refused by the far end")
	// ErrPeerGone reports that the other end went away in the middle of a test; it is the same
	// value as the channel's own.
	ErrPeerGone = wire.ErrPeerGone
	// ErrFar reports that the test failed at the far end; the text is the reason that end gave.
	ErrFar = errors.New("far end")
	// ErrProtocol reports a message that has no place in a test.
	ErrProtocol = errors.New("control protocol broken")
	// ErrStalled reports a test that is long past its end and still not over.
	ErrStalled = errors.New("test did not end in time")
	// ErrNoAnswer reports pings, or hellos over UDP, that the far end does not answer.
	ErrNoAnswer = echo.ErrNoAnswer

	// errStopped reports that the near end ended the test early, most often because the user
	// pressed Ctrl-C there.
	errStopped = errors.New("stopped by the near end")
)

// asGone returns err, wrapped in ErrPeerGone where it shows that the other end has disappeared.
func asGone(err error) error {
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
