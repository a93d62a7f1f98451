package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
)

// Target is a server to observe.
type Target struct {
	Address netip.AddrPort // where it answers
	Kind    Kind           // empty: by the name of its process
	// Endpoint is where it exposes its statistics: a URL, the path of a socket, or HOST:PORT of a
	// control port. Empty: where its processes listen.
	Endpoint string
	APIKey   string // of PowerDNS Recursor
	// RNDCConfig is the configuration file for `rndc status`; empty: rndc's own.
	RNDCConfig string
}

// Observation is what a server did in a time, or since its start.
type Observation struct {
	Address    string     `json:"address,omitempty"`
	Seconds    float64    `json:"duration_seconds"` // of SinceStart the uptime; 0: not known
	SinceStart bool       `json:"since_start,omitempty"`
	Statistics Statistics `json:"statistics"`
	Host       *Activity  `json:"host,omitempty"` // absent: a server elsewhere, or recorded
	// Unseen says what could not be read, a sentence each.
	Unseen []string `json:"unseen"`
}

// Recorded makes an observation of parsed outputs: one shows the time since the server's start, a
// later one of the same server the time between both.
func Recorded(first Statistics, second *Statistics) (Observation, error) {
	o := Observation{Statistics: first, SinceStart: true, Unseen: []string{
		"The host's own counters: the outputs are recorded."}}
	if second != nil {
		d, err := Since(first, *second)
		if err != nil {
			return o, err
		}
		o.SinceStart, o.Statistics = false, d
		o.Seconds = second.Of(Uptime) - first.Of(Uptime)
		return o, nil
	}
	o.Seconds = first.Of(Uptime)
	return o, nil
}

// ErrNoServer reports that nothing has a UDP socket at an address, and ErrOtherProgram that the
// program there is none that this package knows.
var (
	ErrNoServer     = errors.New("no name server has a UDP socket there")
	ErrOtherProgram = errors.New("not a name server that linerate knows")
)

// Observe reads a server twice with the given time between, which the context may cut short. A
// server on this host shows its host's side too. The error is ErrNoServer, ErrOtherProgram, or
// fs.ErrPermission for a process of another user, if the server's kind is neither given nor
// visible; and ErrNotExposed if it shows no statistics.
func Observe(ctx context.Context, target Target, duration time.Duration) (Observation, error) {
	o := Observation{Address: target.Address.String(), Unseen: []string{}}
	ctx, cancel := context.WithTimeout(ctx, duration+2*readingTime)
	defer cancel()
	tree := hostfs.Running()
	before, errHost := look(tree, target.Address)
	local := errHost == nil && before.a.Processes > 0
	if target.Kind == "" {
		target.Kind, _ = kindOf(before.a.Program)
	}
	if target.Kind == "" && target.Endpoint == "" {
		switch {
		case before.a.Program != "":
			return o, fmt.Errorf("observe %s: %s: %w", target.Address, before.a.Program, ErrOtherProgram)
		case len(before.a.Sockets) > 0:
			return o, fmt.Errorf("observe %s: see the process behind its socket: %w", target.Address, fs.ErrPermission)
		}
		return o, fmt.Errorf("observe %s: %w", target.Address, ErrNoServer)
	}
	read, err := reader(ctx, target, before)
	if err != nil {
		return o, err
	}
	first, _, err := read(ctx)
	if err != nil {
		return o, fmt.Errorf("read statistics of %s: %w", target.Address, err)
	}
	began := time.Now()
	if local {
		before, _ = look(tree, target.Address) // it was readable a moment ago
	}
	select {
	case <-ctx.Done():
		return o, ctx.Err()
	case <-time.After(duration):
	}
	var after snapshot
	if local {
		after, _ = look(tree, target.Address) // likewise
	}
	passed := time.Since(began)
	second, unseen, err := read(ctx)
	if err != nil {
		return o, fmt.Errorf("read statistics of %s: %w", target.Address, err)
	}
	o.Seconds = time.Since(began).Seconds()
	up, ok := second.Get(Uptime)
	if ok && up < passed.Seconds()-sameStart || local && replaced(before.pids, after.pids) {
		return o, fmt.Errorf("observe %s: %w", target.Address, ErrRestarted)
	}
	if o.Statistics, err = Since(first, second); err != nil {
		return o, err
	}
	o.Unseen = append(o.Unseen, unseen...)
	if !local {
		o.Unseen = append(o.Unseen, fmt.Sprintf("The host's sockets and threads: no process that this user may see "+
			"has a socket at %s.", target.Address))
		return o, nil
	}
	a := since(before, after)
	limits(&a, target.Address)
	if a.Writes == nil {
		o.Unseen = append(o.Unseen, "The writes of the server's processes (/proc/PID/io): only root may read them.")
	}
	o.Host = &a
	return o, nil
}

// readingTime bounds one reading, of which some are a dozen exchanges: a server that stops in the
// middle would let each wait for [answerTime].
const readingTime = 3 * answerTime

// replaced reports whether none of a server's processes is there any more. Some of several may come
// and go: dnsmasq has one for each connection.
func replaced(before, after []int) bool {
	return len(before) > 0 && !slices.ContainsFunc(before, func(pid int) bool { return slices.Contains(after, pid) })
}

// limits adds the receive buffers, which only the kernel's socket monitor shows.
func limits(a *Activity, at netip.AddrPort) {
	known := map[netip.AddrPort]uint64{}
	err := sockdiag.Each(sockdiag.Query{Protocol: sockdiag.UDP, States: []sockdiag.State{sockdiag.Closed},
		Limit: time.Second}, func(s *sockdiag.Socket) bool {
		if s.Local.Port() == at.Port() {
			known[s.Local] = uint64(s.Memory.ReceiveLimit)
		}
		return true
	})
	if err != nil && len(known) == 0 {
		return // a kernel without udp_diag: the limits stay unknown
	}
	for i := range a.Sockets {
		a.Sockets[i].LimitBytes = known[a.Sockets[i].Local]
	}
}
