package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// foreignRunner returns what runs tests against the server of another program.
func foreignRunner(scheme, address string) traffic.Runner {
	speak := reach.Speak(scheme, address)
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		r, err := speak(ctx, spec, progress)
		return r, foreignError(ctx, scheme, address, err)
	}
}

// foreignError turns the error of a foreign server that does not answer into that of an unreachable
// peer, with one status for all dialects. Whether such a server refuses the connection, is silent
// or hangs up depends on its protocol.
func foreignError(ctx context.Context, scheme, address string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	var dial *net.OpError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dial) && dial.Op == "dial" {
		return &wire.Error{
			Op: "connect to " + scheme + " at", Peer: address, Kind: wire.ErrUnreachable, Err: innermost(err),
			Advice: cmp.Or(wire.ZoneAdvice(address),
				fmt.Sprintf("does a server of %s run there, and is its port open?", scheme)),
		}
	}
	if errors.Is(err, traffic.ErrNoAnswer) || errors.Is(err, traffic.ErrPeerGone) {
		return statusError{status: exitUnreachable, message: err.Error(),
			hint: fmt.Sprintf("does a server of %s listen at %s, and is it free?", scheme, address)}
	}
	return err
}

// innermost returns the error of the network in the chain, without the text around it.
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
