package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/dialect"
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
		return dialect.Run(ctx, scheme, address, spec, o, progress)
	}
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
