package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/dialect"
	"github.com/linerate/linerate/internal/dialect/icmp"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
)

// Echo is the scheme of a target that is only known to answer echo requests: icmp://HOST.
const Echo = "icmp"

// Foreign splits a target in another program's dialect, scheme://HOST[:PORT]. ok reports whether
// the target is one.
func Foreign(target string) (scheme, address string, ok bool) {
	scheme, address, ok = strings.Cut(target, "://")
	return scheme, address, ok && slices.Contains(dialect.Names(), scheme)
}

// Speak returns a Runner for another program's server. No connection is open between tests, and the
// server needs no key.
func Speak(scheme, address string) traffic.Runner {
	name, _ := os.Hostname() // the result of a host without a name has no name
	o := dialect.ClientOptions{Sample: host.Root{}.Counters, HostName: name}
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		return dialect.Run(ctx, scheme, address, spec, o, progress)
	}
}

// Check returns an error that wraps peer.ErrTarget if a target is malformed.
func Check(target string) error {
	_, err := addressOf(target)
	return err
}

// addressOf parses what follows the scheme of a target that is no linerate, by the rules for
// linerate's own targets. It refuses an address without a host, which the dialects would take for
// this host.
func addressOf(target string) (peer.Target, error) {
	scheme, address, foreign := Foreign(target)
	if !foreign && scheme != Echo {
		return peer.ParseTarget(target)
	}
	at, err := peer.ParseTarget(address)
	if err == nil && at.SSH != nil || address == "" || address[0] == ':' && err != nil {
		err = fmt.Errorf("%w %q: after %s:// comes HOST", peer.ErrTarget, target, scheme)
	}
	return at, err
}

// Host returns the name or address of the host in a target.
func Host(target string) (string, error) {
	at, err := addressOf(target)
	if err != nil {
		return "", err
	}
	if at.SSH != nil {
		return at.SSH.Host, nil
	}
	name, _, err := net.SplitHostPort(at.Addr)
	return name, err
}

// Way is an open way to a target.
type Way struct {
	Run   traffic.Runner // runs one test at a time
	Close func()         // to be called after the last test
}

// Open opens the way to a target. Only targets that run linerate use the options.
func Open(ctx context.Context, target string, o peer.ConnectOptions) (*Way, error) {
	if err := Check(target); err != nil {
		return nil, err
	}
	if scheme, address, ok := Foreign(target); ok {
		return &Way{Run: Speak(scheme, address), Close: func() {}}, nil
	} else if scheme == Echo {
		name, err := Host(target)
		if err != nil {
			return nil, err
		}
		return &Way{Run: echoes(name, o.HostName), Close: func() {}}, nil
	}
	client, err := peer.Connect(ctx, target, o)
	if err != nil {
		return nil, err
	}
	return &Way{Run: client.Run, Close: func() { _ = client.Close() }}, nil // no call is under way
}

// echoes returns a Runner for the tests that need only a kernel at the far end.
func echoes(name, own string) traffic.Runner {
	o := icmp.ClientOptions{Sample: host.Root{}.Counters, HostName: own}
	return func(ctx context.Context, spec traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
		if spec.Test != traffic.Ping && spec.Test != traffic.MTU {
			return nil, fmt.Errorf("%w: icmp://%s answers echo requests and nothing else: ping and mtu can be measured",
				traffic.ErrBadSpec, name)
		}
		return icmp.Run(ctx, name, spec, o)
	}
}

// Suite returns the tests to run against another program's server when the user names none: those
// that the program is made for.
func Suite(scheme string, streams int, duration, interval time.Duration) (specs []traffic.Spec) {
	suite := dialect.Suite(scheme)
	if scheme == Echo {
		suite = []dialect.Measurement{{Test: traffic.Ping, Direction: traffic.Up}}
	}
	for _, m := range suite {
		spec := traffic.Spec{Test: m.Test, Direction: m.Direction, Streams: streams, Duration: duration,
			Interval: interval}
		if m.Test == traffic.Ping {
			spec.Streams = 1
		}
		specs = append(specs, spec)
	}
	return specs
}

// All runs tests one after another. If one of several tests gets no answer (echo requests are often
// filtered) or the far end refuses it, All lists it in missing and continues. Any other error ends
// the run. If no test has a result, All returns an error.
func All(specs []traffic.Spec, measure func(traffic.Spec) (*traffic.Result, error)) (results []traffic.Result,
	missing []string, broken error) {
	var first error
	for _, spec := range specs {
		r, err := measure(spec)
		switch {
		case err == nil:
			results = append(results, *r)
		case len(specs) > 1 && (errors.Is(err, traffic.ErrNoAnswer) || errors.Is(err, traffic.ErrRefused)):
			if first == nil {
				first = err
			}
			missing = append(missing, fmt.Sprintf("%s %s: %v", spec.Test, spec.Direction, err))
		default:
			return results, missing, err
		}
	}
	if len(results) == 0 {
		return nil, missing, first
	}
	return results, missing, nil
}
