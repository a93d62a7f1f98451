package resolvers

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/resolver/server"
)

// Codes returns the codes that this package gives, in the order of its findings.
func Codes() []evidence.Code {
	return []evidence.Code{evidence.ResolverSingleWorker, evidence.ResolverUDPDrops, evidence.ResolverTCPBound,
		evidence.ResolverRecursiveClients, evidence.ResolverCacheTooSmall, evidence.ResolverLameUpstream,
		evidence.ResolverUpstreamSlow, evidence.ResolverLogCost, evidence.ResolverDNSSECCost,
		evidence.ResolverNothingToTune}
}

// failedShare of the answers is far above that of ordinary names, of which a few in a hundred fail.
const failedShare = 0.1

// fewQueries is how many an observation needs before shares of them mean something.
const fewQueries = 100

// seen is what the rules look at.
type seen struct {
	server.Observation
	queries, misses float64
}

// rule finds one code; muted names the codes that it explains.
type rule struct {
	find     func(seen) *evidence.Finding
	explains []evidence.Code
}

// Findings returns what an observation shows, the most important first. There is always one.
func Findings(o server.Observation) []evidence.Finding {
	s := seen{Observation: o, queries: o.Statistics.Of(server.Queries), misses: o.Statistics.Of(server.Misses)}
	var all []evidence.Finding
	muted := map[evidence.Code]evidence.Code{}
	for _, r := range []rule{
		{singleWorker, []evidence.Code{evidence.ResolverUDPDrops, evidence.ResolverRecursiveClients}},
		{udpDrops, nil}, {tcpBound, nil},
		{upstreamFillsPlaces, []evidence.Code{evidence.ResolverRecursiveClients}},
		{recursiveClients, []evidence.Code{evidence.ResolverUpstreamSlow}},
		{cacheRemoves, nil},
		{lameUpstream, []evidence.Code{evidence.ResolverUpstreamSlow}},
		// A cache in use for long is full, so that alone says less than slow answers.
		{upstreamSlow, []evidence.Code{evidence.ResolverCacheTooSmall}},
		{cacheFull, nil}, {logCost, nil}, {dnssecCost, nil},
	} {
		f := r.find(s)
		if f == nil {
			continue
		}
		if cause, ok := muted[f.Code]; ok {
			for i := range all {
				if all[i].Code == cause {
					all[i].Causes = append(all[i].Causes, f.Code)
				}
			}
			continue
		}
		for _, code := range r.explains {
			muted[code] = f.Code
		}
		muted[f.Code] = f.Code // a second rule for the same code adds nothing
		all = append(all, *f)
	}
	if len(all) == 0 {
		all = append(all, nothingToTune(s))
	}
	for i := range all {
		all[i].Where = "near"
		if o.Host == nil {
			all[i].Where = "far"
		}
		all[i].Causes = withoutItself(all[i])
		if e, known := evidence.Explain(all[i].Code); known && all[i].Remedy.Text == "" {
			all[i].Remedy.Text = e.Remedy
		}
		if e, known := evidence.Explain(all[i].Code); known && all[i].Remedy.Proof == "" {
			all[i].Remedy.Proof = e.Proof
		}
	}
	return all
}

func withoutItself(f evidence.Finding) []evidence.Code {
	var causes []evidence.Code
	for _, c := range f.Causes {
		if c != f.Code {
			causes = append(causes, c)
		}
	}
	return causes
}

// row is one value of the server as evidence, with the server's own name for it.
//
//go:noinline // 21 copies took 7 kB
func (s seen) row(name string, value server.Name, unit string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: s.Statistics.Of(value), Unit: unit,
		Source: s.Statistics.Source(value)}
}

func number(name string, x float64, unit, source string) evidence.Evidence {
	return evidence.Evidence{Name: name, Value: x, Unit: unit, Source: source}
}

func part(x, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return x / of
}

// perSecond returns a rate, or 0 if the time is not known.
func (s seen) perSecond(n float64) float64 { return part(n, s.Seconds) }

// load is the evidence with which every finding begins.
func (s seen) load() []evidence.Evidence {
	all := []evidence.Evidence{s.row("queries", server.Queries, "queries")}
	if s.Seconds > 0 {
		all = append(all, number("rate", s.perSecond(s.queries), "queries/s", "queries / time"))
	}
	return all
}

// missRatio is the share of the queries that the cache did not answer; false: not known.
func (s seen) missRatio() (float64, bool) {
	hits, ok := s.Statistics.Get(server.Hits)
	_, okMisses := s.Statistics.Get(server.Misses)
	return part(s.misses, s.misses+hits), ok && okMisses && s.misses+hits > 0
}

// drops are the queries that the sockets of the port lost.
func (s seen) drops() float64 {
	n := uint64(0)
	if s.Host != nil {
		for _, k := range s.Host.Sockets {
			n += k.Drops
		}
	}
	return float64(n)
}

// busy is the busiest thread: the share of the time that it ran, and that it ran or waited for a
// CPU. A thread that is never idle limits the server, also where other programs take a part of its
// CPU.
func (s seen) busy() (t server.Thread, ran, wanted float64, ok bool) {
	if s.Host == nil || len(s.Host.Threads) == 0 || s.Host.Seconds <= 0 {
		return t, 0, 0, false
	}
	t = s.Host.Threads[0]
	return t, t.RunSeconds / s.Host.Seconds, (t.RunSeconds + t.WaitSeconds) / s.Host.Seconds, true
}

// The Not methods reject alternatives, each with its number.

func (s seen) notWorker() []string {
	_, ran, wanted, ok := s.busy()
	if !ok || wanted >= evidence.FullProcessor {
		return nil
	}
	return []string{fmt.Sprintf("Not a worker without time: the busiest thread ran for %s of the time, and was ready "+
		"for %s.", evidence.Percent(ran), evidence.Percent(wanted))}
}

func (s seen) notDrops() []string {
	if s.Host == nil || len(s.Host.Sockets) == 0 || s.drops() > 0 {
		return nil
	}
	return []string{"Not the UDP sockets: their buffers dropped no query."}
}

func (s seen) notCache() []string {
	evicted, ok := s.Statistics.Get(server.Evictions)
	fill, okFill := s.Statistics.Get(server.CacheFill)
	switch {
	case ok && part(evicted, s.misses) < evictedShare:
		return []string{fmt.Sprintf("Not a small cache: it removed %s records for lack of room, for %s misses.",
			evidence.Count(evicted), evidence.Count(s.misses))}
	case okFill && fill < fullCache:
		return []string{fmt.Sprintf("Not a small cache: it is %s full.", evidence.Percent(fill))}
	}
	return nil
}

func (s seen) notUpstream() []string {
	slow, ok := s.Statistics.Slower(slowSeconds)
	if !ok || slow >= slowShare {
		return nil
	}
	return []string{fmt.Sprintf("Not slow servers upstream: %s of the answers took longer than %s.",
		evidence.Percent(slow), evidence.Seconds(slowSeconds))}
}

func (s seen) notPlaces() []string {
	dropped, ok := s.Statistics.Get(server.Dropped)
	if !ok || dropped > 0 {
		return nil
	}
	return []string{"Not the number of recursive clients: the server dropped no query for it."}
}

// nothingToTune says why, with the numbers.
func nothingToTune(s seen) evidence.Finding {
	f := evidence.Finding{Code: evidence.ResolverNothingToTune, Severity: evidence.Info, Confidence: 0.8,
		Title: "Nothing of this server or its host holds it.", Evidence: s.load()}
	for _, not := range [][]string{s.notWorker(), s.notDrops(), s.notPlaces(), s.notUpstream(), s.notCache()} {
		f.Rejected = append(f.Rejected, not...)
	}
	if ratio, ok := s.missRatio(); ok {
		f.Evidence = append(f.Evidence, number("cache hits", 1-ratio, "ratio", "hits / (hits + misses)"))
		f.Title = fmt.Sprintf("Nothing of this server or its host holds it: %s of its queries came from its cache.",
			evidence.Percent(1-ratio))
	}
	if s.Host == nil {
		f.Title = "Nothing in these counters holds the server; those of its host are not known."
	}
	t, ran, _, ok := s.busy()
	if ok {
		f.Evidence = append(f.Evidence, number("busiest thread, "+t.Name, ran, "ratio", "/proc/PID/task/TID/schedstat"))
	} else {
		f.Confidence = 0.5
	}
	if _, ran, wanted, ok := s.busy(); ok && wanted >= evidence.FullProcessor {
		f.Severity, f.Confidence = evidence.Notice, 0.4
		f.Title = fmt.Sprintf("Other programs hold the CPUs: the busiest thread (%s) waited for one for %s of the time, and "+
			"ran for %s.", t.Name, evidence.Percent(wanted-ran), evidence.Percent(ran))
		if ran >= evidence.FullProcessor {
			f.Title = fmt.Sprintf("The CPUs hold it: the busiest thread (%s) ran for %s of the time, and no CPU is without a "+
				"worker.", t.Name, evidence.Percent(ran))
		}
		f.Remedy.Text = "Give the server CPUs of its own (CPUAffinity, cpusets), or move other work away."
	}
	// A failure that no counter explains must not be called health, however fast it came.
	if failed := part(s.Statistics.Of(server.ServFails), s.queries); failed >= failedShare {
		f.Severity, f.Confidence = evidence.Notice, 0.4
		f.Evidence = append(f.Evidence, s.row("answers SERVFAIL", server.ServFails, "answers"))
		f.Title = fmt.Sprintf("%s of its answers were SERVFAIL, and no counter of the server or its host says why.",
			evidence.Percent(failed))
		f.Remedy.Text = "Ask it for a name that fails, and read its log: servers that are not reached, a loop of " +
			"forwarders, and zones that it cannot load end in SERVFAIL."
	}
	if s.queries < fewQueries {
		f.Confidence = 0.2
		f.Title = fmt.Sprintf("No verdict: %s queries are too few.", evidence.Count(s.queries))
		f.Remedy.Text = "Observe the server while it is in use: give a longer --duration, or load it with " +
			"`linerate resolver measure`."
		f.Rejected = nil
	}
	return f
}
