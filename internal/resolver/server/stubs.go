package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// parseDnsmasq reads lines of the form `hits.bind "54"`, as dig prints the TXT records of class
// CHAOS with +noall +answer, or as [dnsmasqLive] writes them.
func parseDnsmasq(body []byte) (Statistics, error) {
	s := newStatistics(Dnsmasq)
	names := map[string]Name{"cachesize": EntriesLimit, "insertions": Insertions, "evictions": Evictions,
		"misses": Misses, "hits": Hits}
	sent, failed := 0.0, 0.0
	for line := range bytes.Lines(body) {
		text := strings.TrimSpace(string(line))
		owner, _, ok := strings.Cut(text, ".bind")
		at := strings.IndexByte(text, '"')
		if !ok || at < 0 {
			continue
		}
		quoted := strings.Split(strings.Trim(text[at:], `"`), `" "`)
		switch owner {
		case "version":
			s.Version = strings.TrimPrefix(quoted[0], "dnsmasq-")
		case "servers":
			for _, q := range quoted {
				f := strings.Fields(q)
				if len(f) < 3 {
					continue
				}
				a, err := strconv.ParseUint(f[1], 10, 64)
				b, errFailed := strconv.ParseUint(f[2], 10, 64)
				if err == nil && errFailed == nil {
					sent, failed = sent+float64(a), failed+float64(b)
					s.set(Upstream, sent, "servers.bind, sent")
					s.set(UpstreamErrors, failed, "servers.bind, failed")
				}
			}
		default:
			name, known := names[owner]
			if n, err := strconv.ParseUint(quoted[0], 10, 64); known && err == nil {
				s.set(name, float64(n), owner+".bind")
			}
		}
	}
	hits, okHits := s.Get(Hits)
	misses, okMisses := s.Get(Misses)
	if !okHits || !okMisses {
		return s, errors.New("parse statistics of dnsmasq: hits.bind or misses.bind is missing")
	}
	s.set(Queries, hits+misses, "hits.bind + misses.bind")
	s.set(Recursions, misses, "misses.bind")
	s.set(Workers, 1, "dnsmasq has one thread")
	return s, nil
}

// resolvedLine matches a line of `resolvectl statistics`.
var resolvedLine = pattern.New(`(?m)^\s*([A-Z][A-Za-z() ]+): +(\d+)\s*$`)

// parseResolved reads `resolvectl statistics`.
func parseResolved(body []byte) (Statistics, error) {
	own := counters{}
	for _, m := range resolvedLine.FindAllSubmatch(body, -1) {
		if n, err := strconv.ParseUint(string(m[2]), 10, 64); err == nil {
			own[string(m[1])] = float64(n)
		}
	}
	return resolved(own, map[Name]string{Queries: "Total Transactions", Recursing: "Current Transactions",
		Entries: "Current Cache Size", Hits: "Cache Hits", Misses: "Cache Misses",
		UpstreamTimeouts: "Total Timeouts", UpstreamErrors: "Total Failure Responses", Bogus: "Bogus"})
}

// parseResolvedJSON reads what io.systemd.Resolve.Monitor.DumpStatistics returns, with or without
// the envelope of Varlink.
func parseResolvedJSON(body []byte) (Statistics, error) {
	var doc struct {
		Error        string          `json:"error"`
		Parameters   json.RawMessage `json:"parameters"`
		Transactions counters        `json:"transactions"`
		Cache        counters        `json:"cache"`
		DNSSEC       counters        `json:"dnssec"`
	}
	if err := json.Unmarshal(bytes.TrimRight(body, "\x00"), &doc); err != nil {
		return Statistics{}, fmt.Errorf("parse statistics of systemd-resolved: %w", err)
	}
	if doc.Error != "" {
		return Statistics{}, fmt.Errorf("ask systemd-resolved for statistics: %s", doc.Error)
	}
	if doc.Transactions == nil && len(doc.Parameters) > 0 {
		return parseResolvedJSON(doc.Parameters)
	}
	own := counters{}
	own.addAll(doc.Transactions)
	own.addAll(doc.Cache)
	own.addAll(doc.DNSSEC)
	return resolved(own, map[Name]string{Queries: "totalTransactions", Recursing: "currentTransactions",
		Entries: "size", Hits: "hits", Misses: "misses", UpstreamTimeouts: "totalTimeouts",
		UpstreamErrors: "totalFailedResponses", Bogus: "bogus"})
}

// resolved translates the names of systemd-resolved. Its transactions are queries to other servers
// and those of its own on the local network; it does not count the queries of clients, of which
// each looks into the cache.
func resolved(own counters, names map[Name]string) (Statistics, error) {
	s := newStatistics(Resolved)
	for name, its := range names {
		if n, ok := own[its]; ok {
			s.set(name, n, its)
		}
	}
	hits, okHits := s.Get(Hits)
	misses, okMisses := s.Get(Misses)
	if !okHits || !okMisses {
		return s, errors.New("parse statistics of systemd-resolved: the cache's hits or misses are missing")
	}
	if n, ok := s.Get(Queries); ok {
		s.set(Upstream, n, s.Source(Queries))
	}
	s.set(Queries, hits+misses, s.Source(Hits)+" + "+s.Source(Misses))
	return s, nil
}
