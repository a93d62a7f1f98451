package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/dialect"
	"github.com/linerate/linerate/internal/wire"
)

// foreignTarget takes a target of another program's dialect apart: scheme://HOST[:PORT].
func foreignTarget(target string) (scheme, address string, ok bool) {
	scheme, address, ok = strings.Cut(target, "://")
	return scheme, address, ok && slices.Contains(dialect.Names(), scheme)
}

// foreignRunner runs tests against another program's server. There is nothing to open: each test is a conversation of its own, and the
// server needs no key.
func foreignRunner(scheme, address string) testRunner {
	name, _ := os.Hostname() // a host without a name goes unnamed in the result
	o := dialect.ClientOptions{Sample: host.Root{}.Counters, HostName: name}
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		r, err := dialect.Run(ctx, scheme, address, spec, o, progress)
		return r, foreignError(ctx, scheme, address, err)
	}
}

// foreignError says of whatever keeps a foreign server from answering what it is, with one status for all dialects: whether it refuses the
// connection, is silent or hangs up is a matter of its protocol.
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

// foreignSuite is what is measured of a foreign server when no test is named: what its program is for.
func foreignSuite(scheme string, l loadFlags) []traffic.Spec {
	spec := traffic.Spec{Streams: l.parallel, Duration: l.duration, Interval: l.interval, Direction: traffic.Up}
	switch scheme {
	case "sockperf", "stamp":
		spec.Test, spec.Streams = traffic.Ping, 1
		return []traffic.Spec{spec}
	case "iperf3", "nuttcp":
		up, down := spec, spec
		up.Test, down.Test, down.Direction = traffic.Stream, traffic.Stream, traffic.Down
		return []traffic.Spec{up, down}
	}
	spec.Test = traffic.Stream
	return []traffic.Spec{spec}
}
