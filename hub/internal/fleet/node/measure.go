package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/policy"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/lease"
	"github.com/linerate/linerate/internal/wire"
)

// Bounds of what a node measures.
const (
	mostPings      = 4  // at once
	mostCount      = 50 // pings of a test
	pingGap        = 20 * time.Millisecond
	longestLoad    = 30 * time.Second
	connectWithin  = 5 * time.Second
	measureWithin  = 15 * time.Second      // more than the test itself
	lateLook       = 20 * time.Millisecond // of the watch for a starved host
	unknownAddress = "an address that is not known"
)

// Prober measures other hosts of the fleet from this one, within the policy of this host. Its zero
// value measures nothing.
type Prober struct {
	KeyFile string // of the key that all `linerate serve` of the fleet let in
	Policy  string // path of the policy; empty: policy.DefaultPath
	Version string
	Lease   *lease.Lease
	// Speed is that of the interface to the others, in bits per second, 0: not known.
	Speed func() float64
	// Now replaces time.Now in tests.
	Now func() time.Time

	mu    sync.Mutex
	loads []load
	pings int
}

// load is a load test that this host began.
type load struct {
	at     time.Time
	length time.Duration
}

// Measure measures. Its answer says whether the path, this host or the other one was the reason
// for no result.
func (p *Prober) Measure(ctx context.Context, q message.Measure) message.Measured {
	stop := lateness()
	m := p.measure(ctx, q)
	m.LateSeconds = stop().Seconds()
	return m
}

// lateness watches until it is stopped, and returns the longest that this process was late.
func lateness() (stop func() time.Duration) {
	end, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		ticker := time.NewTicker(lateLook)
		defer ticker.Stop()
		for before := time.Now(); ; before = time.Now() {
			select {
			case <-ticker.C:
				late = max(late, time.Since(before)-lateLook)
			case <-end:
				most <- max(late, time.Since(before)-lateLook, 0)
				return
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-most
	}
}

func (p *Prober) measure(ctx context.Context, q message.Measure) message.Measured {
	spec, err := p.spec(q)
	if err != nil {
		return message.Measured{Refused: err.Error()}
	}
	done, m := p.admit(q, &spec)
	if done == nil {
		return m
	}
	defer done()
	ctx, stop := context.WithTimeout(ctx, spec.Duration+measureWithin)
	defer stop()
	key, err := credential.Secret(p.KeyFile)
	if err != nil {
		return message.Measured{Refused: "read the key of the mesh: " + err.Error()}
	}
	name, _ := os.Hostname() // the far end then shows the address
	way, err := reach.Open(ctx, q.Target, peer.ConnectOptions{Key: key, Timeout: connectWithin, Version: p.Version,
		HostName: name})
	if err != nil {
		return failed(err)
	}
	defer way.Close()
	r, err := loop.Measure(ctx, way.Run, spec, nil)
	if err != nil {
		return failed(err)
	}
	if r.RTT != nil && r.RTT.Count > 0 {
		m.RTTSeconds = &r.RTT.P50
	}
	m.LossRatio = r.LossRatio
	if spec.Test != traffic.Ping {
		m.BitsPerSec, m.MostBitsPerSec = &r.ThroughputBitsPerSec, spec.RateBitsPerSec
	}
	return m
}

// failed says whose fault it is that there is no result.
func failed(err error) message.Measured {
	switch text := fmt.Sprintf("%.300s", oneLine(err)); {
	case errors.Is(err, peer.ErrBusy), errors.Is(err, lease.ErrBusy):
		return message.Measured{Busy: text}
	case errors.Is(err, traffic.ErrNoAnswer):
		all := 1.0
		return message.Measured{LossRatio: &all, Failed: text}
	case errors.Is(err, traffic.ErrRefused), errors.Is(err, traffic.ErrBadSpec), errors.Is(err, wire.ErrWrongKey),
		errors.Is(err, peer.ErrTarget):
		return message.Measured{Refused: text}
	default:
		return message.Measured{Failed: text}
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// spec makes a test of what was asked for. Only pings and streams are asked for.
func (p *Prober) spec(q message.Measure) (traffic.Spec, error) {
	if host, _, err := net.SplitHostPort(q.Target); err != nil || host == "" || strings.Contains(q.Target, "/") {
		return traffic.Spec{}, fmt.Errorf("target %.100q is not HOST:PORT", q.Target)
	}
	spec := traffic.Spec{Test: traffic.Test(q.Test), Direction: traffic.Up, Streams: 1}
	switch spec.Test {
	case traffic.Ping:
		spec.Gap = pingGap
		spec.Duration = time.Duration(min(max(q.Count, 5), mostCount)) * pingGap
	case traffic.Stream:
		spec.Duration = min(max(time.Duration(q.DurationMS)*time.Millisecond, 200*time.Millisecond), longestLoad)
		spec.WarmUp = spec.Duration / 4
	default:
		return spec, fmt.Errorf("test %.40q is not one of a mesh: ping and stream are", q.Test)
	}
	return spec, nil
}

// now is the time. Measurements are made side by side, so none of them fills in a field.
func (p *Prober) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// admit asks the policy and takes the lease. done is nil if the test must not run, and the answer
// says why.
func (p *Prober) admit(q message.Measure, spec *traffic.Spec) (done func(), m message.Measured) {
	path := p.Policy
	if path == "" {
		path = policy.DefaultPath
	}
	refuse := func(format string, a ...any) (func(), message.Measured) {
		return nil, message.Measured{Refused: fmt.Sprintf(format, a...)}
	}
	rules, err := policy.Read(durable.OS(), path)
	if err != nil {
		return refuse("the policy of this host is not readable: %s", oneLine(err))
	}
	now := p.now()
	if rules.KillSwitch {
		return refuse("%s", policy.ErrSwitchedOff)
	}
	host, _, _ := net.SplitHostPort(q.Target) // spec has checked it
	address, err := netip.ParseAddr(host)
	if err != nil && len(rules.Tests.Peers) > 0 && len(q.Groups) == 0 {
		return refuse("the policy of this host names peers, and %.100q is %s", host, unknownAddress)
	}
	if !rules.Tests.Peer(address, q.Groups) {
		return refuse("the policy of this host does not allow tests with %.100q", host)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if spec.Test == traffic.Ping {
		if p.pings >= mostPings {
			return nil, message.Measured{Busy: "this host has other pings to do"}
		}
		p.pings++
		return func() { p.mu.Lock(); p.pings--; p.mu.Unlock() }, m
	}
	if !rules.Tests.Hours.Contains(now) {
		return refuse("%s", policy.ErrHours)
	}
	if rules.Tests.MaxShareRatio == 0 {
		return refuse("the policy of this host allows no load tests")
	}
	speed := 0.0
	if p.Speed != nil {
		speed = p.Speed()
	}
	spec.RateBitsPerSec = rules.Tests.MostRate(speed)
	used := time.Duration(0)
	kept := p.loads[:0]
	for _, l := range p.loads {
		if now.Sub(l.at) < time.Hour {
			kept, used = append(kept, l), used+l.length
		}
	}
	p.loads = kept
	whole := spec.Duration + spec.WarmUp
	if most := time.Duration(rules.Tests.MaxSecondsPerHour) * time.Second; used+whole > most {
		return refuse("the policy of this host allows %v of load tests an hour, and %v are used", most, used)
	}
	if p.Lease == nil {
		return refuse("this host has no lease for load tests")
	}
	release, err := p.Lease.Take()
	if err != nil {
		return nil, message.Measured{Busy: oneLine(err)}
	}
	p.loads = append(p.loads, load{now, whole})
	return release, m
}

// answerMeasure measures beside the questions, and answers when it is done.
func (n *Node) answerMeasure(ctx context.Context, b []byte) {
	var q message.Measure
	if json.Unmarshal(b, &q) != nil {
		return
	}
	a := message.Answer{}
	if n.o.Prober == nil {
		a.Error = message.ErrUnknown
	} else if data, err := json.Marshal(n.o.Prober.Measure(ctx, q)); err != nil {
		a.Error = err.Error()
	} else {
		a.Data = data
	}
	if out, err := json.Marshal(a); err == nil && ctx.Err() == nil {
		_ = n.conn.Send(bus.FromHost(n.id, message.Reply(q.Token)), "", out) // the hub asks again, or not
	}
}
