package icmp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// ClientOptions say what a result contains about this host.
type ClientOptions struct {
	Sample   func() (*host.Counters, error) // of this host; nil: no counters in the result
	HostName string                         // of this host; empty: left out
}

// searchBound is the longest time that a search for the path MTU may take: four rounds of three
// tries where every large packet is lost.
const searchBound = 4 * time.Second

// Run runs the test ping or mtu against a host, given by name or address. For any other test it
// returns [traffic.ErrBadSpec]. It returns [traffic.ErrNoAnswer] if the host is silent; if this
// host cannot send echo requests, the error wraps sys.ErrNotSupported.
func Run(ctx context.Context, name string, spec traffic.Spec, o ClientOptions) (*traffic.Result, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	if spec.Test != traffic.Ping && spec.Test != traffic.MTU {
		return nil, fmt.Errorf("%w: a host that only answers ICMP echo can be tested with ping and mtu, not %s",
			traffic.ErrBadSpec, spec.Test)
	}
	to, err := resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	r := &traffic.Result{
		Test: spec.Test, Direction: traffic.Up, Streams: 1, StartTime: time.Now(), Intervals: []traffic.Interval{},
		LocalAddress: sourceTo(to), RemoteAddress: to.String(),
		Ends: traffic.Ends{Local: traffic.End{Host: o.HostName, Drops: []drops.Drop{}},
			Remote: traffic.End{Drops: []drops.Drop{}}},
	}
	test := ping
	if spec.Test == traffic.MTU {
		test = search
	}
	before := sample(o, r)
	if err := test(ctx, to, spec, r); err != nil {
		return nil, err
	}
	count(r, before, sample(o, r))
	return r, nil
}

// ping sends one packet per gap for the duration of the test.
func ping(ctx context.Context, to netip.Addr, spec traffic.Spec, r *traffic.Result) error {
	var phase engine.Phase
	worker, pinger, err := echo.NewPinger(ctx, &phase,
		echo.PingOptions{IP: to, Bytes: spec.RequestBytes, Gap: spec.Gap})
	if err != nil {
		return err
	}
	r.Method = worker.Method
	phase.Set(engine.Measured)
	began := time.Now()
	failed := make(chan error, 1)
	go func() { failed <- worker.Run(-1) }()
	window := time.NewTimer(spec.Duration)
	defer window.Stop()
	select {
	case <-ctx.Done():
		phase.Set(engine.Stopped)
		<-failed
		return context.Cause(ctx)
	case err := <-failed:
		return err
	case <-window.C:
	}
	r.DurationSeconds = time.Since(began).Seconds()
	phase.Set(engine.Tail) // the worker ends once the last answers are in, within a second
	if err := <-failed; err != nil {
		return err
	}
	sent, answered := pinger.Sent(), pinger.Answered()
	if sent > 0 {
		loss := 1 - float64(answered)/float64(sent)
		r.LossRatio, r.PacketsPerSec = &loss, float64(sent)/r.DurationSeconds
	}
	r.RTT = worker.RTT.Snapshot().OrNil()
	warn(r, pinger.Troubles())
	return nil
}

// search finds the path MTU.
func search(ctx context.Context, to netip.Addr, _ traffic.Spec, r *traffic.Result) error {
	began := time.Now()
	inner, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	found, err := echo.SearchPathMTU(inner, echo.SearchOptions{IP: to})
	if err != nil {
		return err
	}
	r.Method, r.DurationSeconds = found.Method, time.Since(began).Seconds()
	r.MTUBytes = found.Up.Bytes
	r.MTU = &traffic.PathMTU{
		UpBytes: found.Up.Bytes, BlackHoleUp: found.Up.BlackHole, LocalMTUBytes: found.Up.Interface,
		ReportedMTUBytes: found.Up.Reported,
	}
	if r.MTU.LocalMTUBytes == 0 {
		r.MTU.LocalMTUBytes = mtuOf(r.LocalAddress)
	}
	if !found.Up.Exact {
		r.Warnings = append(r.Warnings, fmt.Sprintf("path mtu: broken off after %v, the path takes at least %d bytes",
			searchBound, found.Up.Bytes))
	}
	warn(r, found.Troubles)
	return nil
}

// warn adds the errors that the network reported for single packets to the warnings.
func warn(r *traffic.Result, all []echo.Trouble) {
	for _, t := range all {
		r.Warnings = append(r.Warnings, t.String())
	}
}

// resolve returns the first address of a host, in the order of RFC 6724.
func resolve(ctx context.Context, name string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap(), nil
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("look up %s: %w", name, err)
	}
	return all[0].Unmap(), nil // an answer without addresses is an error
}

// sourceTo returns the address that this host would send from; empty if it has no route. Connecting
// a UDP socket looks up the route and sends nothing.
func sourceTo(to netip.Addr) string {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		return ""
	}
	defer c.Close()
	local, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return ""
	}
	return local.AddrPort().Addr().Unmap().WithZone("").String()
}

// mtuOf returns the MTU of the interface that has an address; 0 if it is unknown.
func mtuOf(address string) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("").String() == address {
				return i.MTU
			}
		}
	}
	return 0
}

// sample reads this host's counters. If they cannot be read, the result has a warning instead.
func sample(o ClientOptions, r *traffic.Result) *host.Counters {
	if o.Sample == nil {
		return nil
	}
	c, err := o.Sample()
	if err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no counters of this host: %v", err))
		return nil
	}
	return c
}

// count records how much this host's counters grew between two readings.
func count(r *traffic.Result, before, after *host.Counters) {
	if before == nil || after == nil {
		return
	}
	d := host.Sub(before, after)
	r.Ends.Local.CPUs, r.Ends.Local.Counters = d.CPUs, make(map[string]uint64)
	for name, n := range d.Values {
		if n != 0 {
			r.Ends.Local.Counters[name] = n
		}
	}
}
