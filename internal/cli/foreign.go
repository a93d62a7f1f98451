package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// foreignRunner runs tests against another program's server, and says what keeps it from answering.
func foreignRunner(scheme, address string) traffic.Runner {
	speak := reach.Speak(scheme, address)
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		r, err := speak(ctx, spec, progress)
		return r, foreignError(ctx, scheme, address, err)
	}
}

// foreignError says of whatever keeps a foreign server from answering what it is, with one status
// for all dialects: whether it refuses the connection, is silent or hangs up is a matter of its
// protocol.
func foreignError(ctx context.Context, scheme, address string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	var dial *net.OpError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dial) && dial.Op == "dial" {
		return &wire.Error{
			Op: "connect to " + scheme + " at", Peer: address, Kind: wire.ErrUnreachable, Err: innermost(err),
			Advice: fmt.Sprintf("does a server of %s run there, and is its port open?", scheme),
		}
	}
	if errors.Is(err, traffic.ErrNoAnswer) || errors.Is(err, traffic.ErrPeerGone) {
		return statusError{status: exitUnreachable, message: err.Error(),
			hint: fmt.Sprintf("is it a server of %s that listens at %s, and is it free?", scheme, address)}
	}
	return err
}

// innermost is the network's own error in the chain, without what was said around it.
func innermost(err error) error {
	var op *net.OpError
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return dns
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &op):
		return op
	}
	return err
}
