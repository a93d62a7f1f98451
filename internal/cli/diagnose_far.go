package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/record"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// diagnoseProfile is how long diagnose samples the CPUs where one of them is the limit.
const diagnoseProfile = 2 * time.Second

// diagnosed returns the verdict; without a target it is on this host alone, or on files from
// another host. Short is the reason why a verdict rests on echoes alone although a connection was
// wanted; the command ends with it once the verdict is printed.
func (a *app) diagnosed(ctx context.Context, target string, f diagnoseFlags, p *progress.Line) (v *loop.Verdict, short,
	err error) {
	status := func(step string) { p.Status("%s", step) }
	if p.Mode() == progress.Lines {
		status = func(step string) { p.Step("%s", step) } // a log shows which runs a verdict took
	}
	if len(f.sent.from) > 0 {
		v, err = f.sent.judge(ctx, a)
		return v, nil, err
	}
	if target == "" {
		v, err = loop.Watch(ctx, loop.WatchOptions{Duration: f.load.duration, Progress: status,
			Profile: diagnoseProfile})
		return v, nil, err
	}
	judge := func(far loop.Far) (*loop.Verdict, error) {
		return loop.Diagnose(ctx, far, loop.DiagnoseOptions{
			Direction: f.load.direction(), Streams: f.load.parallel, Duration: f.load.duration, Progress: status,
			Samplers: diagnoseSamplers(far),
		})
	}
	if far, ok, err := stranger(target); err != nil || ok {
		if err != nil {
			return nil, nil, err
		}
		v, err = judge(far)
		return v, nil, silent(ctx, far, err)
	}
	client, err := a.connect(ctx, target, f.target, p)
	if err == nil {
		defer client.Close()
		release, err := a.loads("diagnose")
		if err != nil {
			return nil, nil, err
		}
		defer release()
		v, err = judge(client)
		return v, nil, err
	}
	// A host that is up and runs no serve still answers echoes. Echoes cannot answer a user who
	// asked for another direction or for several streams.
	name, resolved := reachable(target, err)
	if !resolved || f.load.reverse || f.load.parallel > 1 {
		return nil, nil, err
	}
	p.Status("no server accepts the connection; using echoes alone")
	v, echoErr := judge(echoes(name))
	if echoErr != nil {
		return nil, nil, err // the user needs the reason why the connection failed
	}
	return v, err, nil
}

// exactShare is the part of a sampled load in which waits for locks are counted instead.
const exactShare = 0.4

// diagnoseSamplers sample this host, and the far one where linerate runs.
func diagnoseSamplers(far loop.Far) map[tune.Side]loop.Sampler {
	samplers := map[tune.Side]loop.Sampler{
		tune.Near: func(ctx context.Context, d time.Duration) (*profile.Profile, error) {
			counted := time.Duration(exactShare * float64(d))
			p, err := record.Run(ctx, record.Options{Duration: d - counted})
			if err == nil && ctx.Err() == nil {
				record.Exact(ctx, p, counted, true)
			}
			return p, err
		},
	}
	if client, ok := far.(*peer.Client); ok {
		samplers[tune.Far] = func(ctx context.Context, d time.Duration) (*profile.Profile, error) {
			return client.Profile(ctx, d-time.Duration(exactShare*float64(d)), true)
		}
	}
	return samplers
}

// stranger returns the far end of a target that runs no linerate: icmp://HOST, or the server of
// another program. Ok reports whether the target is one.
func stranger(target string) (far reach.Stranger, ok bool, err error) {
	scheme, address, foreign := reach.Foreign(target)
	if scheme != reach.Echo && !foreign {
		return far, false, nil
	}
	name, err := reach.Host(target)
	if err != nil {
		return far, false, err
	}
	far = echoes(name)
	if foreign {
		far.Speak = foreignRunner(scheme, address)
	}
	return far, true, nil
}

// silent turns the error for a host that answers no echo into that of an unreachable peer. The
// servers of other programs have foreignError.
func silent(ctx context.Context, far reach.Stranger, err error) error {
	if err == nil || ctx.Err() != nil || far.Speak != nil || !errors.Is(err, traffic.ErrNoAnswer) {
		return err
	}
	return statusError{status: exitUnreachable, message: err.Error(),
		hint: "is " + far.Host + " up, and does every firewall on the way let ICMP echo requests pass?"}
}

// echoes returns a far end of which only the kernel answers, to echo requests.
func echoes(name string) reach.Stranger {
	own, _ := os.Hostname() // without a name the result does not name this host
	return reach.Stranger{Host: name, Sample: host.Root{}.Counters, Name: own}
}

// reachable returns the host of a target whose name resolves but whose port refused the connection.
// A wrong key, another program and a failed login are for the user to correct.
func reachable(target string, err error) (name string, ok bool) {
	var dns *net.DNSError
	if !errors.Is(err, wire.ErrUnreachable) || errors.As(err, &dns) || strings.Contains(target, "://") {
		return "", false
	}
	at, err := peer.ParseTarget(target)
	if err != nil || at.SSH != nil {
		return "", false
	}
	name, _, err = net.SplitHostPort(at.Addr)
	return name, err == nil
}
