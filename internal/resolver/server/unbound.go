package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// parseUnbound reads `unbound-control stats_noreset`, lines of the form name=value, and behind it
// the lines that [unboundLive] appends: settings, and servers of the infrastructure cache.
func parseUnbound(body []byte) (Statistics, error) {
	s := newStatistics(Unbound)
	own := counters{}
	threads := map[string]bool{}
	waits := map[float64]float64{}
	lame, servers := 0.0, 0.0
	for line := range bytes.Lines(body) {
		text := strings.TrimSpace(string(line))
		if isInfra(text) {
			servers++
			if lameInfra(text) {
				lame++
			}
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			if v, found := strings.CutPrefix(text, "version: "); found {
				s.Version = v
			}
			continue
		}
		if setting, found := strings.CutPrefix(name, settingPrefix); found {
			unboundSetting(&s, setting, value)
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
			continue
		}
		if thread, _, ok := strings.Cut(name, "."); ok && strings.HasPrefix(thread, "thread") {
			threads[thread] = true
		}
		if edge, ok := histogramEdge(name); ok {
			waits[edge] += n
			continue
		}
		own[name] = n
	}
	if _, ok := own["total.num.queries"]; !ok {
		return s, errors.New("parse statistics of unbound: total.num.queries is missing")
	}
	for name, its := range map[Name]string{Uptime: "time.up", Queries: "total.num.queries",
		Hits: "total.num.cachehits", Misses: "total.num.cachemiss", Recursions: "total.num.recursivereplies",
		Prefetches: "total.num.prefetch", Recursing: "total.requestlist.current.user",
		RecursionMean: "total.recursion.time.avg", TCPClients: "total.tcpusage", QueriesTCP: "num.query.tcp",
		Upstream: "num.query.udpout", UpstreamTruncated: "num.query.tcpout", ServFails: "num.answer.rcode.SERVFAIL",
		Bogus: "num.answer.bogus"} {
		if n, ok := own[its]; ok {
			s.set(name, n, its)
		}
	}
	if now, up := own["time.now"], own["time.up"]; now > 0 && up > 0 {
		s.started = int64(now - up)
	}
	exceeded, overwritten := own["total.requestlist.exceeded"], own["total.requestlist.overwritten"]
	s.set(Dropped, exceeded+overwritten, "total.requestlist.exceeded + overwritten")
	s.set(RecursionTime, own["total.recursion.time.avg"]*own["total.num.recursivereplies"],
		"total.recursion.time.avg * total.num.recursivereplies")
	if tcp, ok := own["num.query.tcpout"]; ok {
		s.set(Upstream, own["num.query.udpout"]+tcp, "num.query.udpout + num.query.tcpout")
	}
	if secure, ok := own["num.answer.secure"]; ok {
		s.set(Validations, secure+own["num.answer.bogus"], "num.answer.secure + num.answer.bogus")
	}
	unboundCache(&s, own)
	if len(threads) > 0 {
		s.set(Workers, float64(len(threads)), "threads of the statistics")
	}
	if servers > 0 {
		s.set(KnownServers, servers, "dump_infra")
		s.set(LameServers, lame, "dump_infra, lame")
	}
	edges := make([]float64, 0, len(waits))
	for e := range waits {
		edges = append(edges, e)
	}
	slices.Sort(edges)
	for _, e := range edges {
		s.Waits = append(s.Waits, Bucket{e, waits[e]})
	}
	if len(edges) > 0 {
		s.WaitsSource = "histogram (time until a recursion ends)"
	}
	return s, nil
}

// settingPrefix marks a setting that was asked for with get_option.
const settingPrefix = "option."

// unboundCache keeps how full the fuller of the two caches is: one alone holds the other back.
func unboundCache(s *Statistics, own counters) {
	if entries, ok := own["msg.cache.count"]; ok {
		s.set(Entries, entries, "msg.cache.count")
	}
	fullest := 0.0
	for _, c := range []struct{ used, setting string }{{"mem.cache.message", "msg-cache-size"},
		{"mem.cache.rrset", "rrset-cache-size"}} {
		used, ok := own[c.used]
		limit := s.Of(Name(settingPrefix + c.setting))
		delete(s.Values, Name(settingPrefix+c.setting))
		if !ok || limit <= 0 || used/limit < fullest {
			continue
		}
		fullest = used / limit
		s.set(CacheBytes, used, c.used)
		s.set(CacheLimit, limit, c.setting)
		s.set(CacheFill, fullest, c.used+" / "+c.setting)
	}
}

// unboundSetting keeps what get_option answered.
func unboundSetting(s *Statistics, name, value string) {
	source := "get_option " + name
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case name == "log-queries" && value == "yes", name == "log-replies" && value == "yes",
		name == "verbosity" && err == nil && n >= 3:
		s.flag(QueryLog, true, source)
	case name == "log-queries" && s.Of(QueryLog) == 0:
		s.flag(QueryLog, false, source)
	case name == "qname-minimisation":
		s.flag(Minimisation, value == "yes", source)
	case name == "prefetch":
		s.flag(Prefetch, value == "yes", source)
	case name == "module-config":
		s.flag(Validation, strings.Contains(value, "validator"), source)
	case err != nil || math.IsNaN(n) || n < 0:
	case name == "num-threads":
		s.set(Workers, n, source)
	case name == "num-queries-per-thread":
		s.set(RecursingLimit, n, source+", each thread")
	case name == "incoming-num-tcp":
		s.set(TCPLimit, n, source+", each thread")
	case name == "msg-cache-size", name == "rrset-cache-size":
		s.set(Name(settingPrefix+name), n, source)
	}
}

// histogramEdge reads histogram.000000.000064.to.000000.000128: seconds and microseconds.
func histogramEdge(name string) (float64, bool) {
	var a, b, c, d uint32
	if n, err := fmt.Sscanf(name, "histogram.%06d.%06d.to.%06d.%06d", &a, &b, &c, &d); err != nil || n != 4 {
		return 0, false
	}
	return float64(c) + float64(d)/1e6, true
}

// isInfra reports whether a line is of dump_infra.
func isInfra(line string) bool {
	f := strings.Fields(line)
	return len(f) > 4 && (f[2] == "ttl" || f[2] == "expired,")
}

// lameInfra reports whether a line of dump_infra marks a server as lame. The four words behind
// lame are flags with 0 or 1.
func lameInfra(line string) bool {
	f := strings.Fields(line)
	at := slices.Index(f, "lame")
	if at < 0 {
		return false
	}
	for i := at + 1; i+1 < len(f); i += 2 {
		switch f[i] {
		case "dnssec", "rec", "A", "other":
			if f[i+1] == "1" {
				return true
			}
		}
	}
	return false
}
