package traffic

import (
	"github.com/linerate/linerate/internal/traffic/channel"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/plan"
)

// Errors of a test. All errors of this package wrap one of them, or the context's.
var (
	// ErrBadSpec is a Spec that makes no sense on any host.
	ErrBadSpec = plan.ErrBadSpec
	// ErrRefused is a Spec that the far side does not want to run; the text is its reason.
	ErrRefused = channel.ErrRefused
	// ErrPeerGone is a far or near side that went away in the middle of a test; the same value as
	// the channel's own.
	ErrPeerGone = channel.ErrPeerGone
	// ErrFar is a test that broke on the far side; the text is its reason.
	ErrFar = channel.ErrFar
	// ErrProtocol is a message that has no place in a test.
	ErrProtocol = channel.ErrProtocol
	// ErrStalled is a test that is long past its end and still not over.
	ErrStalled = channel.ErrStalled
	// ErrNoAnswer is a ping, or a hello over UDP, that nothing on the far side answers.
	ErrNoAnswer = echo.ErrNoAnswer
)
