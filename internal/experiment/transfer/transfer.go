package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// Layer makes mounts and measures them. Implementations: mount.Bench, and a simulated one in tests.
type Layer interface {
	// Prepare makes ready what segments need, and returns what is known before them.
	Prepare(ctx context.Context) (mount.Facts, error)
	// Try mounts a spec and returns what it got.
	Try(ctx context.Context, s mount.Spec) (mount.Effective, error)
	// Measure measures one segment with a mount of its own.
	Measure(ctx context.Context, s mount.Spec) (mount.Sample, error)
}

// Factor is a part of a mount that a sweep varies.
type Factor string

// The factors, in the order in which they are tried.
const (
	ReadSize    Factor = "rsize"
	WriteSize   Factor = "wsize"
	ReadAhead   Factor = "read_ahead_kb"
	Connections Factor = "nconnect"
	Protocol    Factor = "proto"
)

// Factors lists all factors.
func Factors() []Factor { return []Factor{ReadSize, WriteSize, ReadAhead, Connections, Protocol} }

// Options configure a sweep.
type Options struct {
	Factors     []Factor // empty: all
	Sizes       []int64  // levels of rsize and wsize in bytes; empty: powers of two from 4 KiB to 1 MiB
	Read, Write bool
	Card        Card
	Config      tune.Config
	Progress    func(tune.Event)
}

// Card is the interface that leads to the server.
type Card struct {
	Name string `json:"interface,omitempty"`
	MTU  int    `json:"mtu_bytes,omitempty"`
	Ring int    `json:"rx_ring_frames,omitempty"` // 0: unknown
}

// ErrGone reports a server that stopped answering, or lost the export, in the middle of a sweep.
var ErrGone = errors.New("the server went away")

// Result is a sweep.
type Result struct {
	Facts      mount.Facts
	Outcome    *tune.Outcome
	Sweep      []Point
	Best       mount.Spec // the base with the kept options
	LossesFrom int64      // smallest read size with more than strays lost; 0: none, or not a matter of size
	Warm       map[mount.ServerCache]int
}

// Run prepares the layer and runs the experiment. The result is never nil; beside an error it has
// what was measured before.
func Run(ctx context.Context, layer Layer, base mount.Spec, o Options) (*Result, error) {
	r := &Result{Best: base, Outcome: &tune.Outcome{State: tune.StateUndone}, Warm: map[mount.ServerCache]int{}}
	facts, err := layer.Prepare(ctx)
	r.Facts = facts
	if err != nil {
		return r, gone(err)
	}
	h := &asked{layer: layer, base: base, granted: facts.Default, tried: map[string]error{}}
	p := &prober{layer: layer, host: h, read: o.Read, write: o.Write, warm: r.Warm}
	all := o.candidates(base, facts.Default)
	cfg := o.Config
	cfg.Guards = map[string]tune.Guard{resentGuard: {Bound: 1, Floor: 0.01}}
	cfg.Refill = func(context.Context, []tune.Change) ([]tune.Candidate, bool, error) { return all, false, nil }
	r.Outcome, err = tune.Run(ctx, cfg, p, map[tune.Side]tune.Host{tune.Near: h}, all, o.Progress)
	r.Sweep = points(p.samples, o.Card)
	r.LossesFrom = lossesFrom(r.Sweep)
	for _, c := range r.Outcome.Kept {
		f := factorOf(c.Knob)
		if set := with(r.Best, f, c.To); set != nil {
			r.Best = *set
		}
	}
	if errors.Is(err, syscall.ENOENT) { // what Prepare mounted is not exported any more
		return r, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return r, gone(err)
}

// signs are the errors of a server that goes away, hangs, or loses the export.
var signs = []error{mount.ErrSilent, syscall.ESTALE, syscall.EIO, syscall.ECONNREFUSED, syscall.ETIMEDOUT,
	syscall.ECONNRESET}

// refusals are the errors with which kernel or server refuse an option.
var refusals = []error{syscall.EINVAL, syscall.EPROTONOSUPPORT}

// gone adds ErrGone to what a server that went away looks like.
func gone(err error) error {
	for _, sign := range signs {
		if errors.Is(err, sign) {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	return err
}

// knobOf names a factor of a source as a knob.
func knobOf(source string, f Factor) knob.ID { return knob.ID("nfs:" + source + "/" + string(f)) }

func factorOf(id knob.ID) Factor {
	for _, f := range Factors() {
		if n := len(id) - len(f); n > 0 && string(id[n:]) == string(f) && id[n-1] == '/' {
			return f
		}
	}
	return ""
}

// with returns a spec with one factor set, or nil for a value that is not of the factor.
func with(s mount.Spec, f Factor, v knob.Value) *mount.Spec {
	if f == Protocol {
		s.Protocol = string(v)
		return &s
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n <= 0 {
		return nil
	}
	switch f {
	case ReadSize:
		s.ReadSize = n
	case WriteSize:
		s.WriteSize = n
	case ReadAhead:
		s.ReadAhead = n << 10
	case Connections:
		s.Connections = int(n)
	default:
		return nil
	}
	return &s
}

// value returns what a mount has of a factor.
func value(e mount.Effective, f Factor) knob.Value {
	n := int64(0)
	switch f {
	case ReadSize:
		n = e.ReadSize
	case WriteSize:
		n = e.WriteSize
	case ReadAhead:
		n = e.ReadAhead >> 10
	case Connections:
		n = int64(e.Connections)
	case Protocol:
		return knob.Value(e.Protocol)
	}
	return knob.Value(strconv.FormatInt(n, 10))
}

// Bounds of the levels: nfs(5).
const (
	leastSize = 4 << 10
	mostSize  = 1 << 20
)

// Pointless says why a sweep of these factors would have nothing to try; empty: it has.
func (o Options) Pointless(base mount.Spec) string {
	for _, f := range o.Factors {
		switch {
		case (f == ReadSize || f == ReadAhead) && !o.Read:
			return string(f) + " is of reads, and the run only writes"
		case f == WriteSize && !o.Write:
			return string(f) + " is of writes, and the run only reads"
		case f == Protocol && base.Version != "" && base.Version != "3":
			return "NFS " + base.Version + " requires tcp (RFC 8881, 2.9.1)"
		}
	}
	return ""
}

// candidates lists what to try, from small to large. Sizes above what the server grants a mount
// without a size are left out: it would cut them.
func (o Options) candidates(base mount.Spec, d mount.Effective) []tune.Candidate {
	var all []tune.Candidate
	for _, f := range Factors() {
		if len(o.Factors) > 0 && !slices.Contains(o.Factors, f) ||
			(f == ReadSize || f == ReadAhead) && !o.Read || f == WriteSize && !o.Write {
			continue
		}
		c := tune.Candidate{Knob: knobOf(base.Source, f), Side: tune.Near}
		switch f {
		case ReadSize:
			c.Levels, c.Why = o.sizes(base.ReadSize, d.ReadSize), "bytes of one read call"
		case WriteSize:
			c.Levels, c.Why = o.sizes(base.WriteSize, d.WriteSize), "bytes of one write call"
		case ReadAhead:
			c.Levels, c.Why = numbers(128, 512, 2048, 8192, 16384), "what is read before the program asks"
		case Connections:
			c.Levels, c.Why = numbers(2, 4, 8, 16), "connections that share the calls"
		case Protocol:
			if base.Version != "3" || d.Protocol != "tcp" {
				continue // NFS 4 requires a transport with congestion control (RFC 8881, 2.9.1)
			}
			c.Levels, c.Why = []knob.Value{"udp"}, "datagrams in place of a connection"
		}
		all = append(all, c)
	}
	return all
}

func numbers(all ...int64) (out []knob.Value) {
	for _, n := range all {
		out = append(out, knob.Value(strconv.FormatInt(n, 10)))
	}
	return out
}

func (o Options) sizes(asked, granted int64) (out []knob.Value) {
	sizes := slices.Sorted(slices.Values(o.Sizes))
	if len(sizes) == 0 {
		for n := int64(leastSize); n <= mostSize; n *= 2 {
			sizes = append(sizes, n)
		}
	}
	for _, n := range sizes {
		if asked > 0 || n <= granted {
			out = append(out, numbers(n)...)
		}
	}
	return out
}

// asked is the host of the experiment: what the next mount asks for.
type asked struct {
	layer   Layer
	base    mount.Spec
	granted mount.Effective  // to the base
	tried   map[string]error // by options: what trying them gave
	turned  []turned
	next    int
}

type turned struct {
	id  string
	set knob.Setting
}

// spec returns what the next mount asks for.
func (a *asked) spec() mount.Spec {
	s := a.base
	for _, t := range a.turned {
		if set := with(s, factorOf(t.set.Knob), t.set.Value); set != nil {
			s = *set
		}
	}
	return s
}

// Read returns what the next mount has of a knob.
func (a *asked) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	f := factorOf(id)
	for _, t := range slices.Backward(a.turned) {
		if t.set.Knob == id {
			return t.set.Value, nil
		}
	}
	return value(a.granted, f), nil
}

// Apply makes the next mounts ask for settings, after one mount that shows whether they are
// granted.
func (a *asked) Apply(ctx context.Context, _ string, settings ...knob.Setting) (ids []string, err error) {
	for _, set := range settings {
		f := factorOf(set.Knob)
		s := with(a.spec(), f, set.Value)
		if s == nil {
			return ids, fmt.Errorf("%s=%s: %w", set.Knob, set.Value, knob.ErrInvalid)
		}
		key := s.Options() + " " + strconv.FormatInt(s.ReadAhead, 10)
		verdict, known := a.tried[key]
		if !known {
			verdict = a.try(ctx, *s, f, set.Value)
			if _, refused := refusal(verdict); refused || verdict == nil {
				a.tried[key] = verdict
			}
		}
		if verdict != nil {
			return ids, verdict
		}
		a.next++
		t := turned{strconv.Itoa(a.next), set}
		a.turned = append(a.turned, t)
		ids = append(ids, t.id)
	}
	return ids, nil
}

// refusal reports whether an error is an answer about a setting.
func refusal(err error) (error, bool) {
	for _, answer := range []error{knob.ErrInvalid, knob.ErrNotSupported, fs.ErrPermission} {
		if errors.Is(err, answer) {
			return answer, true
		}
	}
	return nil, false
}

// try mounts once and compares what was asked with what was granted.
func (a *asked) try(ctx context.Context, s mount.Spec, f Factor, v knob.Value) error {
	e, err := a.layer.Try(ctx, s)
	if err != nil {
		for _, sign := range refusals {
			if errors.Is(err, sign) {
				return fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
			}
		}
		return err
	}
	got := value(e, f)
	switch {
	case got == v:
		return nil
	case f == Connections:
		return fmt.Errorf("%w: %s connections are in use: an earlier mount of this server decides", knob.ErrInvalid, got)
	}
	return fmt.Errorf("%w: %s is granted", knob.ErrInvalid, got)
}

// Undo takes settings back.
func (a *asked) Undo(_ context.Context, ids ...string) error {
	a.turned = slices.DeleteFunc(a.turned, func(t turned) bool { return slices.Contains(ids, t.id) })
	return nil
}

// Commit does nothing: the result of a sweep is a recommendation.
func (*asked) Commit(context.Context, ...string) error { return nil }

// resentGuard is the share of calls that were sent again.
const resentGuard = "retransmit_ratio"

// prober measures segments for the experiment, and keeps all of them.
type prober struct {
	layer       Layer
	host        *asked
	read, write bool
	samples     []mount.Sample
	warm        map[mount.ServerCache]int
}

// Measure measures one segment.
func (p *prober) Measure(ctx context.Context) (tune.Observation, error) {
	s, err := p.layer.Measure(ctx, p.host.spec())
	if err != nil {
		return tune.Observation{}, err
	}
	o := tune.Observation{Objective: objective(s, p.read, p.write), Guards: map[string]float64{}, Label: s.Spec.Options()}
	if s.Requests > 0 {
		o.Guards[resentGuard] = float64(s.Resent) / float64(s.Requests)
	}
	if p.read && float64(s.WireRead) < 0.95*float64(s.Read.Bytes) {
		o.Discard = fmt.Sprintf("%d of %d bytes came from the client's cache", s.Read.Bytes-int64(s.WireRead), s.Read.Bytes)
		return o, nil
	}
	if p.read {
		p.warm[s.ServerCache]++
	}
	p.samples = append(p.samples, s)
	return o, nil
}

// objective returns the geometric mean of what was measured, in bytes per second.
func objective(s mount.Sample, read, write bool) float64 {
	switch {
	case read && write:
		return math.Sqrt(s.Read.Rate() * s.Write.Rate())
	case write:
		return s.Write.Rate()
	}
	return s.Read.Rate()
}

// SegmentFor returns the measured part of a segment and what is left out before it, for the round
// trip of an empty call: connections need tens of round trips to reach their rate.
func SegmentFor(roundTrip time.Duration) (segment, warmUp time.Duration) {
	return min(max(20*roundTrip, time.Second), 8*time.Second), min(10*roundTrip, 3*time.Second)
}
