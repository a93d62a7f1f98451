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

// knotLua matches one value of a table as kresd prints it: ['answer.total'] = 6209,
var knotLua = pattern.New(`\['([a-z0-9_.]+)'\] = (-?[0-9.e+]+),`)

// knotPrometheus matches one value as the http module prints it.
var knotPrometheus = pattern.New(`(?m)^([a-z_0-9]+) ([0-9.e+]+)$`)

// plainNames removes the group that the http module writes before the names of two modules.
func plainNames(own counters) {
	for name, n := range own {
		for _, group := range []string{"cache.", "worker."} {
			if plain, ok := strings.CutPrefix(name, group); ok {
				delete(own, name)
				own[plain] = n
			}
		}
	}
}

// knotWaits are the counters of answers by their time; each counts the answers that the ones before
// do not.
var knotWaits = []struct {
	name string
	upTo float64
}{{"answer.1ms", 0.001}, {"answer.10ms", 0.01}, {"answer.50ms", 0.05}, {"answer.100ms", 0.1},
	{"answer.250ms", 0.25}, {"answer.500ms", 0.5}, {"answer.1000ms", 1}, {"answer.1500ms", 1.5}, {"answer.slow", 0}}

// parseKnot reads what stats.list(), cache.stats() and worker.stats() print on a control socket,
// one after the other; or the JSON of a query that joins them; or the page /stats or /metrics of
// the http module. Several processes of one host add up.
func parseKnot(body []byte) (Statistics, error) {
	own := counters{}
	s := newStatistics(Knot)
	for _, m := range knotLua.FindAllSubmatch(body, -1) {
		if n, err := strconv.ParseFloat(string(m[2]), 64); err == nil {
			own[string(m[1])] += n
		}
	}
	if len(own) == 0 {
		for _, m := range knotPrometheus.FindAllSubmatch(body, -1) {
			name := strings.TrimPrefix(string(m[1]), "resolver_")
			if n, err := strconv.ParseFloat(string(m[2]), 64); err == nil {
				own[strings.Replace(name, "_", ".", 1)] += n
			}
		}
		plainNames(own)
	}
	if len(own) == 0 {
		processes := 0.0
		for line := range bytes.Lines(body) {
			if err := knotJSON(bytes.TrimSpace(line), own, &s); err == nil {
				processes++
			} else if len(bytes.TrimSpace(line)) > 0 {
				return s, err
			}
		}
		s.set(Workers, processes, "processes of kresd")
	}
	return s, knotStatistics(&s, own)
}

// knotJSON reads the answer to [knotQuestion], or the flat object of /stats.
func knotJSON(line []byte, own counters, s *Statistics) error {
	var doc struct {
		Version string   `json:"v"`
		Size    *float64 `json:"size"`
		Debug   *bool    `json:"debug"`
		Stats   counters `json:"s"`
		Cache   counters `json:"c"`
		Worker  counters `json:"w"`
	}
	if err := json.Unmarshal(line, &doc); err != nil {
		return fmt.Errorf("parse statistics of kresd: %w", err)
	}
	if doc.Stats == nil && doc.Cache == nil && doc.Worker == nil {
		var flat counters
		if err := json.Unmarshal(line, &flat); err != nil {
			return fmt.Errorf("parse statistics of kresd: %w", err)
		}
		own.addAll(flat)
		plainNames(own)
		return nil
	}
	s.Version = doc.Version
	own.addAll(doc.Stats)
	own.addAll(doc.Worker)
	// The processes of one host share a cache: its size and its filling are those of one of them.
	shared := map[string]bool{"count_entries": true, "usage_percent": true}
	for name, n := range doc.Cache {
		if shared[name] {
			own[name] = max(own[name], n)
		} else {
			own[name] += n
		}
	}
	if doc.Size != nil {
		s.set(CacheLimit, *doc.Size, "cache.current_size")
	}
	if doc.Debug != nil {
		s.flag(QueryLog, *doc.Debug || s.Of(QueryLog) > 0, "log_level")
	}
	return nil
}

// knotStatistics translates the names of kresd.
func knotStatistics(s *Statistics, own counters) error {
	if _, ok := own["answer.total"]; !ok {
		return errors.New("parse statistics of kresd: answer.total is missing; the module stats counts it")
	}
	for name, its := range map[Name]string{Queries: "request.total", QueriesTCP: "request.tcp",
		Truncated: "answer.tc", ServFails: "answer.servfail", Hits: "answer.cached", Entries: "count_entries",
		CacheClears: "clear", Recursing: "concurrent", Dropped: "dropped", UpstreamTimeouts: "timeout"} {
		if n, ok := own[its]; ok {
			s.set(name, n, its)
		}
	}
	internal := own["request.internal"]
	if all, ok := s.Get(Queries); ok {
		s.set(Queries, max(all-internal, 0), "request.total - request.internal")
	} else {
		s.set(Queries, own["answer.total"], "answer.total")
	}
	s.set(Misses, max(own["answer.total"]-own["answer.cached"], 0), "answer.total - answer.cached")
	if udp, ok := own["udp"]; ok {
		s.set(Upstream, udp+own["tcp"]+own["tls"], "udp + tcp + tls of worker.stats()")
		s.set(UpstreamTruncated, own["tcp"], "tcp of worker.stats()")
	}
	if percent, ok := own["usage_percent"]; ok {
		s.set(CacheFill, percent/100, "usage_percent")
		if limit, ok := s.Get(CacheLimit); ok {
			s.set(CacheBytes, limit*percent/100, "usage_percent * cache.current_size")
		}
	}
	if _, ok := own["answer.slow"]; !ok {
		return nil // the http module leaves these out
	}
	for _, w := range knotWaits {
		s.Waits = append(s.Waits, Bucket{w.upTo, own[w.name]})
	}
	s.WaitsSource = "answer.1ms to answer.slow (all answers, cached ones too)"
	return nil
}
