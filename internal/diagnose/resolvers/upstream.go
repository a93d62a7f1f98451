package resolvers

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/resolver/server"
)

const (
	// slowSeconds is an edge of the buckets of every server; a query across an ocean and back takes
	// less. slowShare of the answers may take longer before the servers upstream are slow.
	slowSeconds, slowShare = 0.1, 0.5
	// verySlowSeconds is what a client notices, and verySlowShare how often.
	verySlowSeconds, verySlowShare = 0.5, 0.1
	timeoutShare                   = 0.05
	lameShare                      = 0.02
	// fewUpstream is how many queries to other servers shares need.
	fewUpstream = 30
	// evictedShare of the misses: each tenth miss removed a record that a client may ask for again.
	evictedShare = 0.1
	// fullCache is how full a cache is that removes records; none fills to the last octet.
	fullCache = 0.9
	// missShare is the share of misses that is worth a word.
	missShare = 0.05
	// keyShare of the queries to other servers for keys: one in three asks for signatures' keys alone.
	keyShare = 0.33
)

// timeouts returns the queries upstream without an answer, and their share; of Knot Resolver, which
// repeats a query after 0.4 s, and of others.
func (s seen) timeouts() (n, share float64) {
	n = s.Statistics.Of(server.UpstreamTimeouts)
	return n, part(n, s.Statistics.Of(server.Upstream))
}

// slow reports whether the servers upstream are slow or silent, with the sentence that says it.
func (s seen) slow() (title string, confidence float64, rows []evidence.Evidence, ok bool) {
	st := s.Statistics
	n, share := s.timeouts()
	if n >= fewDrops && share >= timeoutShare {
		// Some were sent before the observation, so they may be more than were sent in it.
		return fmt.Sprintf("%s queries to other servers ended without an answer, while %s were sent.",
				evidence.Count(n), evidence.Count(s.Statistics.Of(server.Upstream))),
			evidence.Combine(0.75, evidence.When(share > 0.2, 0.4)),
			[]evidence.Evidence{s.row("queries without an answer", server.UpstreamTimeouts, "queries"),
				s.row("queries to other servers", server.Upstream, "queries")}, true
	}
	all := 0.0
	for _, b := range st.Waits {
		all += b.Count
	}
	edge := slowSeconds
	if st.Kind == server.Unbound {
		edge = 0.131072 // its buckets are powers of two of a microsecond
	}
	late, known := st.Slower(edge)
	veryLate, _ := st.Slower(verySlowSeconds)
	if st.Kind == server.Knot && known { // its answers include those from the cache
		if misses, ok := s.missRatio(); ok && misses > 0 {
			late, veryLate, all = min(late/misses, 1), min(veryLate/misses, 1), all*misses
		}
	}
	switch {
	case known && all >= fewUpstream && (late >= slowShare || veryLate >= verySlowShare):
		rows = []evidence.Evidence{
			number("answers slower than "+evidence.Seconds(edge), late, "ratio", st.WaitsSource),
			number("answers slower than "+evidence.Seconds(verySlowSeconds), veryLate, "ratio", st.WaitsSource)}
		title = fmt.Sprintf("%s of the answers of other servers took longer than %s.", evidence.Percent(late),
			evidence.Seconds(edge))
		if late < slowShare {
			title = fmt.Sprintf("%s of the answers of other servers took longer than %s.", evidence.Percent(veryLate),
				evidence.Seconds(verySlowSeconds))
		}
		confidence = evidence.Combine(0.7, evidence.When(late >= 0.8, 0.4), evidence.When(veryLate >= 0.3, 0.3))
	case !known && st.Of(server.Recursions) >= fewUpstream && st.Of(server.RecursionMean) >= slowSeconds:
		rows = []evidence.Evidence{s.row("mean time of a recursion", server.RecursionMean, "seconds")}
		title = fmt.Sprintf("A recursion takes %s on average.", evidence.Seconds(st.Of(server.RecursionMean)))
		confidence = 0.6
	default:
		return "", 0, nil, false
	}
	if n, ok := st.Get(server.UpstreamTimeouts); ok {
		rows = append(rows, number("queries without an answer", n, "queries", st.Source(server.UpstreamTimeouts)))
	}
	return title, confidence, rows, true
}

// upstreamSlow finds servers upstream that answer late or not.
func upstreamSlow(s seen) *evidence.Finding {
	title, confidence, rows, ok := s.slow()
	misses, known := s.missRatio()
	if !ok || known && misses < missShare {
		return nil
	}
	f := &evidence.Finding{Code: evidence.ResolverUpstreamSlow, Severity: evidence.Warning, Title: title,
		Confidence: confidence, Evidence: append(s.load(), rows...)}
	if known {
		f.Evidence = append(f.Evidence, number("cache misses", misses, "ratio", "misses / (hits + misses)"))
	}
	for _, not := range [][]string{s.notWorker(), s.notDrops(), s.notPlaces(), s.notCache()} {
		f.Rejected = append(f.Rejected, not...)
	}
	return f
}

// upstreamFillsPlaces finds slow servers upstream behind full places: by Little's law the places
// that are in use are the misses a second times the time of each. A limit of the default or above
// would do for servers that answer in time.
func upstreamFillsPlaces(s seen) *evidence.Finding {
	limit, ok := s.Statistics.Get(server.RecursingLimit)
	if most, okMost := s.Statistics.Get(server.RecursingMost); okMost && !ok {
		limit, ok = most, true
	}
	if !ok || limit < ordinaryPlaces || s.Statistics.Of(server.Dropped) < 1 {
		return nil
	}
	return upstreamSlow(s)
}

// ordinaryPlaces is a little less than the smallest default, that of named (1000, soft 900).
const ordinaryPlaces = 500

// recursiveClients finds queries that were dropped because too many others waited.
func recursiveClients(s seen) *evidence.Finding {
	st := s.Statistics
	dropped := st.Of(server.Dropped)
	limit, okLimit := st.Get(server.RecursingLimit)
	most, okMost := st.Get(server.RecursingMost)
	now := st.Of(server.Recursing)
	full := okMost && most > 0 && now >= 0.9*most || okLimit && limit > 0 && now >= 0.9*limit &&
		st.Kind == server.BIND
	if !(dropped >= fewDrops && part(dropped, s.queries) >= lostShare) && !full {
		return nil
	}
	f := &evidence.Finding{Code: evidence.ResolverRecursiveClients, Severity: evidence.Warning, Evidence: s.load(),
		Title: fmt.Sprintf("The server dropped %s queries because too many others waited for other servers.",
			evidence.Count(dropped)),
		Confidence: evidence.Combine(evidence.When(dropped > 0, 0.8), evidence.When(full, 0.6))}
	if dropped < 1 {
		f.Title = fmt.Sprintf("%s queries wait for other servers, and %s may.", evidence.Count(now),
			evidence.Count(max(most, limit)))
	}
	f.Evidence = append(f.Evidence, s.row("queries dropped", server.Dropped, "queries"))
	for _, v := range []struct {
		name  string
		value server.Name
	}{{"waiting at the end", server.Recursing}, {"places before the oldest is dropped", server.RecursingLimit},
		{"places", server.RecursingMost}} {
		if _, ok := st.Get(v.value); ok {
			f.Evidence = append(f.Evidence, s.row(v.name, v.value, "queries"))
		}
	}
	// Little's law shows how many places the load needs.
	if mean, ok := st.Get(server.RecursionMean); ok && s.Seconds > 0 && mean > 0 {
		f.Evidence = append(f.Evidence, number("places that this load needs", s.perSecond(st.Of(server.Recursions))*mean,
			"queries", "recursions a second * mean time of a recursion"))
	}
	for _, not := range [][]string{s.notUpstream(), s.notWorker(), s.notDrops(), s.notCache()} {
		f.Rejected = append(f.Rejected, not...)
	}
	f.Remedy.Text = "Raise " + map[server.Kind]string{
		server.BIND:     "recursive-clients in named.conf, each some 20 kB of memory",
		server.Unbound:  "num-queries-per-thread, with outgoing-range at twice its value",
		server.PowerDNS: "max-mthreads",
		server.Dnsmasq:  "dns-forward-max",
		server.Knot:     "the limit of open files of its unit"}[st.Kind] +
		" in steps. A million lets anybody fill the memory; first look why the others wait."
	return f
}

// lameUpstream finds delegations to servers that do not serve the zone.
func lameUpstream(s seen) *evidence.Finding {
	st := s.Statistics
	all := st.Of(server.Upstream)
	lame, okLame := st.Get(server.UpstreamLame)
	failed := st.Of(server.UpstreamErrors)
	servers := st.Of(server.LameServers)
	f := &evidence.Finding{Code: evidence.ResolverLameUpstream, Severity: evidence.Warning, Evidence: s.load()}
	switch {
	case okLame && lame >= fewDrops && part(lame, all) >= lameShare:
		f.Title = fmt.Sprintf("%s of the answers of other servers were refusals or about another zone: a delegation "+
			"names servers that do not serve it.", evidence.Percent(part(lame, all)))
		f.Confidence = evidence.Combine(0.75, evidence.When(part(lame, all) > 0.1, 0.4))
		f.Evidence = append(f.Evidence, s.row("answers of lame servers", server.UpstreamLame, "answers"),
			s.row("queries to other servers", server.Upstream, "queries"))
	case failed >= fewDrops && part(failed, all) >= lameShare:
		f.Title = fmt.Sprintf("%s of the answers of other servers were errors.", evidence.Percent(part(failed, all)))
		f.Confidence = 0.65
		f.Evidence = append(f.Evidence, s.row("answers that are errors", server.UpstreamErrors, "answers"),
			s.row("queries to other servers", server.Upstream, "queries"))
	case servers >= 1 && part(servers, st.Of(server.KnownServers)) >= lameShare:
		f.Title = fmt.Sprintf("%s of the %s servers that it knows are lame: they do not serve the zone that was delegated "+
			"to them.", evidence.Count(servers), evidence.Count(st.Of(server.KnownServers)))
		f.Confidence = 0.7
		f.Evidence = append(f.Evidence, s.row("lame servers", server.LameServers, "servers"),
			s.row("known servers", server.KnownServers, "servers"))
	default:
		return nil
	}
	for _, not := range [][]string{s.notWorker(), s.notDrops(), s.notPlaces(), s.notCache()} {
		f.Rejected = append(f.Rejected, not...)
	}
	return f
}

// cacheRemoves finds a cache that removes records before their time, by the server's own count.
func cacheRemoves(s seen) *evidence.Finding { return s.smallCache(true) }

// cacheFull finds a cache that is full and misses, of a server that does not count removals.
func cacheFull(s seen) *evidence.Finding { return s.smallCache(false) }

func (s seen) smallCache(counted bool) *evidence.Finding {
	st := s.Statistics
	misses, known := s.missRatio()
	evicted, okEvicted := st.Get(server.Evictions)
	fill, okFill := st.Get(server.CacheFill)
	clears := st.Of(server.CacheClears)
	removes := okEvicted && evicted >= fewDrops && part(evicted, s.misses) >= evictedShare
	full := okFill && fill >= fullCache && s.misses >= fewDrops
	// kresd empties a full cache without counting it. Each miss leaves an entry, so fewer entries than
	// misses show it.
	entries, okEntries := st.Get(server.Entries)
	emptied := st.Kind == server.Knot && okEntries && !s.SinceStart && s.misses >= fewQueries && entries < s.misses/2
	cleared := emptied || st.Kind == server.Knot && clears >= 1 && !s.SinceStart
	if known && misses < missShare || s.queries < fewQueries || (removes || cleared) != counted || !counted && !full {
		return nil
	}
	f := &evidence.Finding{Code: evidence.ResolverCacheTooSmall, Severity: evidence.Warning, Evidence: s.load(),
		Confidence: evidence.Combine(0.6, evidence.When(removes || cleared, 0.5), evidence.When(full, 0.3))}
	switch {
	case removes:
		f.Title = fmt.Sprintf("The cache removed %s records for lack of room, for %s misses.", evidence.Count(evicted),
			evidence.Count(s.misses))
	case emptied:
		f.Title = fmt.Sprintf("The cache holds %s entries after %s misses: it was full, and emptied itself.",
			evidence.Count(entries), evidence.Count(s.misses))
	case cleared:
		f.Title = fmt.Sprintf("The cache was full, and cleared itself %s times.", evidence.Count(clears))
	default:
		f.Title = fmt.Sprintf("The cache is %s full, and %s of the queries missed it.", evidence.Percent(fill),
			evidence.Percent(misses))
	}
	for _, v := range []struct {
		name, unit string
		value      server.Name
	}{{"records removed for lack of room", "records", server.Evictions},
		{"how full the cache is", "ratio", server.CacheFill},
		{"times it cleared itself", "", server.CacheClears}, {"entries", "entries", server.Entries},
		{"most entries", "entries", server.EntriesLimit}, {"memory", "bytes", server.CacheBytes},
		{"most memory", "bytes", server.CacheLimit}, {"records removed for age", "records", server.Expiries}} {
		if _, ok := st.Get(v.value); ok {
			f.Evidence = append(f.Evidence, s.row(v.name, v.value, v.unit))
		}
	}
	if known {
		f.Evidence = append(f.Evidence, number("cache misses", misses, "ratio", "misses / (hits + misses)"))
	}
	if aged, ok := st.Get(server.Expiries); ok && removes && aged < evicted {
		f.Rejected = append(f.Rejected, fmt.Sprintf("Not short times to live: %s records ended by age.",
			evidence.Count(aged)))
	}
	for _, not := range [][]string{s.notUpstream(), s.notWorker(), s.notDrops()} {
		f.Rejected = append(f.Rejected, not...)
	}
	f.Rejected = append(f.Rejected,
		"Not known: how many of these names are asked for only once. For those no cache helps.")
	f.Remedy.Text = "Give the cache more room: " + map[server.Kind]string{
		server.BIND:     "max-cache-size in named.conf (default 90 % of the memory; named raises less than 2 MB to that)",
		server.Unbound:  "rrset-cache-size, and half of it for msg-cache-size",
		server.Knot:     "cache.size, which needs a restart",
		server.PowerDNS: "max-cache-entries and max-packetcache-entries",
		server.Dnsmasq:  "cache-size (default 150 names)"}[st.Kind] + "."
	return f
}

// dnssecCost finds validation that fails or that asks for many keys.
func dnssecCost(s seen) *evidence.Finding {
	st := s.Statistics
	bogus, checked := st.Of(server.Bogus), st.Of(server.Validations)
	keys, all := st.Of(server.UpstreamKeys), st.Of(server.Upstream)
	switch {
	case bogus >= fewDrops && part(bogus, checked) >= lameShare:
		return &evidence.Finding{Code: evidence.ResolverDNSSECCost, Severity: evidence.Warning, Confidence: 0.8,
			Title: fmt.Sprintf("%s of the validated answers failed: clients get an error for them.",
				evidence.Percent(part(bogus, checked))),
			Evidence: append(s.load(), s.row("failed validations", server.Bogus, "answers"),
				s.row("validations", server.Validations, "answers")),
			Rejected: s.notWorker()}
	case keys >= fewUpstream && part(keys, all) >= keyShare:
		return &evidence.Finding{Code: evidence.ResolverDNSSECCost, Severity: evidence.Info, Confidence: 0.6,
			Title: fmt.Sprintf("%s of the queries to other servers ask for keys.", evidence.Percent(part(keys, all))),
			Evidence: append(s.load(), s.row("queries for DS and DNSKEY records", server.UpstreamKeys, "queries"),
				s.row("queries to other servers", server.Upstream, "queries")),
			Rejected: s.notWorker()}
	}
	return nil
}
