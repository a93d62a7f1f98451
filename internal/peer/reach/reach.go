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

// Echo is the scheme of a target of which nothing is known but that its kernel answers echo
// requests: icmp://HOST.
const Echo = "icmp"

// Foreign takes a target of another program's dialect apart: scheme://HOST[:PORT].
func Foreign(target string) (scheme, address string, ok bool) {
	scheme, address, ok = strings.Cut(target, "://")
	return scheme, address, ok && slices.Contains(dialect.Names(), scheme)
}

// Speak runs tests against another program's server. There is nothing to open: each test is a
// conversation of its own, and the server needs no key.
func Speak(scheme, address string) traffic.Runner {
	name, _ := os.Hostname() // a host without a name goes unnamed in the result
	o := dialect.ClientOptions{Sample: host.Root{}.Counters, HostName: name}
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		return dialect.Run(ctx, scheme, address, spec, o, progress)
	}
}

// Check tells whether a target is written as one; errors are peer.ErrTarget.
func Check(target string) error {
	_, err := addressOf(target)
	return err
}

// addressOf gives what stands behind the scheme of a target of which no linerate is asked, read in
// the form of our own targets: without a host, the dialects would ask this one.
func addressOf(target string) (peer.Target, error) {
	scheme, address, foreign := Foreign(target)
	if !foreign && scheme != Echo {
		return peer.ParseTarget(target)
	}
	at, err := peer.ParseTarget(address)
	if err == nil && at.SSH != nil {
		err = fmt.Errorf("%w %q: after %s:// comes HOST", peer.ErrTarget, target, scheme)
	}
	return at, err
}

// Host gives the name or address of the host that a target names.
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
	Run   traffic.Runner // one test after the other
	Close func()         // after the last
}

// Open opens the way to a target. The options are for targets where a linerate is; another
// program's server needs none of them.
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
	return &Way{Run: client.Run, Close: func() { _ = client.Close() }}, nil // it has said all it had to say
}

// echoes runs the tests for which a kernel is enough.
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

// All measures tests one after the other. One of several that gets no answer (echoes are often
// filtered), or that the far end does not want to run, must not hide the others: it is missing. Any
// other error breaks off. Without any result there is always an error.
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
