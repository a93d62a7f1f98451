package recursor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/names"
)

// Options describe an experiment. Kind, Config, Server, Warm and Names are required.
type Options struct {
	Kind   nameserver.Kind
	Config string // path of the configuration file
	Server netip.AddrPort
	Warm   *names.Set // asked for once before each segment, in this order
	Names  *names.Set // of the measured load

	Queries  uint64        // of one segment; default 5000
	Duration time.Duration // longest of one segment; default 2 s
	P99Limit time.Duration // bound of the 99th percentile; 0: none
	CPUs     int           // that the server may use; default all of this host
	Tune     tune.Config   // budget, seed, allowed disturbance, progress
	// Only are the options to try; nil: all of [Candidates].
	Only func(knob.ID) bool

	rest time.Duration // between the warming and the measured load
}

// rested is how long records age before a segment in which times to live are tried: one of a second
// then costs every answer of the cache.
const rested = 1500 * time.Millisecond

// The load of a segment.
const (
	outstanding     = 100
	warmOutstanding = 50
	sockets         = 64
	patience        = time.Second // after which a query is lost
)

// Candidates returns what the experiment tries on one program, with values that are ample for most
// hosts. Options for freshness are not among them: they cost speed.
func Candidates(kind nameserver.Kind, config string, cpus int) []tune.Candidate {
	one := func(option, why string, levels ...knob.Value) tune.Candidate {
		return tune.Candidate{Knob: ID(kind, config, option), Side: tune.Near, Levels: levels, Why: why}
	}
	threads := knob.Value(fmt.Sprint(cpus))
	const room, worker, burst = "a cache that holds every name", "a thread for each CPU", "room for bursts of queries"
	switch kind {
	case nameserver.Unbound:
		return []tune.Candidate{one("msg-cache-size", room, "64m"), one("rrset-cache-size", room, "128m"),
			one("num-threads", worker, threads), one("so-rcvbuf", burst, "1m")}
	case nameserver.Kresd:
		return []tune.Candidate{one("cache.size", room, "100 * MB"),
			one("cache.max_ttl", "records kept for as long as they say", "86400"),
			one("log_level", "no line for each query", "'notice'")}
	}
	return []tune.Candidate{one("max-cache-size", room, "256M"), one(nameserver.Workers, worker, threads),
		one("udp-receive-buffer", burst, "1048576")}
}

// ID names an option of a configuration file.
func ID(kind nameserver.Kind, config, option string) knob.ID {
	return knob.ID(string(kind) + ":" + config + "/" + option)
}

// Run runs the experiment; see tune.Run.
func Run(ctx context.Context, o Options, host tune.Host, progress func(tune.Event)) (*tune.Outcome, error) {
	if o.Queries == 0 {
		o.Queries = 5000
	}
	if o.Duration == 0 {
		o.Duration = 2 * time.Second
	}
	if o.CPUs == 0 {
		o.CPUs = runtime.NumCPU()
	}
	o.Tune.Guards = map[string]tune.Guard{}
	if o.P99Limit > 0 {
		o.Tune.Guards[guardP99] = tune.Guard{Bound: math.Inf(1), Limit: o.P99Limit.Seconds()}
	}
	o.Tune.Lookup = knob.Catalogue().Lookup
	var chosen []tune.Candidate
	for _, c := range Candidates(o.Kind, o.Config, o.CPUs) {
		if o.Only == nil || o.Only(c.Knob) {
			chosen = append(chosen, c)
			if c.Knob.Attribute() == "cache.max_ttl" {
				o.rest = rested
			}
		}
	}
	return tune.Run(ctx, o.Tune, &prober{o}, map[tune.Side]tune.Host{tune.Near: host}, chosen, progress)
}

// guardP99 is the guard-rail of the latency.
const guardP99 = "latency_p99_seconds"

// prober measures segments.
type prober struct{ o Options }

// Measure implements tune.Prober.
func (p *prober) Measure(ctx context.Context) (tune.Observation, error) {
	o := p.o
	if err := empty(ctx, o.Kind, o.Config); err != nil {
		return tune.Observation{}, err
	}
	_, err := load.Run(ctx, load.Options{Server: o.Server, Mode: load.Closed, Queries: uint64(o.Warm.Len()),
		Outstanding: warmOutstanding, Duration: time.Minute, Timeout: patience, Sockets: sockets, Names: o.Warm}, nil)
	if err != nil {
		return tune.Observation{}, fmt.Errorf("warm the cache: %w", err)
	}
	select {
	case <-time.After(o.rest):
	case <-ctx.Done():
		return tune.Observation{}, ctx.Err()
	}
	server, err := nameserver.Find(o.Kind, o.Config)
	if err != nil {
		return tune.Observation{}, err
	}
	before, err := server.CPU()
	if err != nil {
		return tune.Observation{}, err
	}
	held := watchClock()
	defer held()
	r, err := load.Run(ctx, load.Options{Server: o.Server, Mode: load.Closed, Queries: o.Queries,
		Outstanding: outstanding, Duration: o.Duration, Timeout: patience, Sockets: sockets, Names: o.Names}, nil)
	if err != nil {
		return tune.Observation{}, fmt.Errorf("load the server: %w", err)
	}
	longest := held()
	after, err := server.CPU()
	if err != nil {
		return tune.Observation{}, err
	}
	seen := observe(r, before, after, o.CPUs)
	if longest >= patience {
		seen.Discard = fmt.Sprintf("this host did nothing for %v, longer than a query may take",
			longest.Round(time.Second/10))
	}
	return seen, nil
}

// watchClock returns a function that ends it and says for how long at most this process did not run
// until its first call.
func watchClock() func() time.Duration {
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-ticker.C:
			case <-stop:
				longest <- max(most, time.Since(last))
				return
			}
			most = max(most, time.Since(last))
			last = time.Now()
		}
	}()
	return sync.OnceValue(func() time.Duration { close(stop); return <-longest })
}

// empty restarts a server with an empty cache.
func empty(ctx context.Context, kind nameserver.Kind, config string) error {
	if err := nameserver.Restart(ctx, kind, config); err != nil {
		return err
	}
	if kind != nameserver.Kresd {
		return nil
	}
	server, err := nameserver.Find(kind, config)
	if err != nil {
		return err
	}
	// Its cache is in files. A new process opens its control socket after its other sockets.
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err = nameserver.AskKresd(ctx, runDirectory(server, config), "cache.clear()")
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// observe makes an observation of a load and the CPU time of the server's threads around it.
func observe(r *load.Result, before, after map[int]time.Duration, cpus int) tune.Observation {
	var all, busiest time.Duration
	for thread, t := range after {
		spent := t - before[thread] // a new thread had none
		all += spent
		busiest = max(busiest, spent)
	}
	needed := max(busiest, all/time.Duration(cpus))
	if r.Answers+r.Late == 0 || needed <= 0 {
		return tune.Observation{Discard: "the server answered nothing"}
	}
	// A late answer is one: only the server's own loss counts, not that this host was slow.
	answered := min(1, float64(r.Answers+r.Late)/float64(max(r.Queries, r.Answers)))
	seen := tune.Observation{
		Objective: answered * float64(r.Answers+r.Late) / needed.Seconds(),
		Guards:    map[string]float64{"loss_ratio": r.LossRatio},
		Label: fmt.Sprintf("%s answers/s, %s answered", unit.FormatCount(r.AnswersPerSecond),
			unit.FormatPercent(answered)),
	}
	if r.Latency != nil {
		seen.Guards[guardP99] = r.Latency.P99
	}
	return seen
}

// runDirectory is where a process of Knot Resolver has its control socket.
func runDirectory(s nameserver.Server, config string) string {
	if dir := s.Dir; dir != "" {
		return dir
	}
	return filepath.Dir(config)
}

// ErrNoServer is wrapped by the error of [Present].
var ErrNoServer = errors.New("no server to tune")

// Present returns the program of a configuration file, by the server that runs with it.
func Present(config string) (nameserver.Kind, error) {
	for _, kind := range []nameserver.Kind{nameserver.Named, nameserver.Unbound, nameserver.Kresd} {
		if _, err := nameserver.Find(kind, config); err == nil {
			return kind, nil
		} else if errors.Is(err, knob.ErrNotSupported) {
			return "", err
		}
	}
	return "", fmt.Errorf("%w: no running named, unbound or kresd uses %s", ErrNoServer, config)
}
