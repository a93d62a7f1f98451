package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parsePowerDNS reads `rec_control get-all`: a name and a number a line, with a tab between them,
// and behind them settings as `rec_control get-parameter` prints them.
func parsePowerDNS(body []byte) (Statistics, error) {
	own := counters{}
	settings := map[string]string{}
	for line := range bytes.Lines(body) {
		text := strings.TrimSpace(string(line))
		if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(value, `"`) {
			settings[name] = strings.Trim(value, `"`)
			continue
		}
		f := strings.Fields(text)
		if len(f) != 2 {
			continue
		}
		if n, err := strconv.ParseFloat(f[1], 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			own[f[0]] = n
		}
	}
	return powerDNS(own, settings)
}

// parsePowerDNSAPI reads /api/v1/servers/localhost/statistics, or …/config, or both in a row.
func parsePowerDNSAPI(body []byte) (Statistics, error) {
	own := counters{}
	settings := map[string]string{}
	dec := json.NewDecoder(bytes.NewReader(body))
	for dec.More() {
		var items []struct {
			Name  string          `json:"name"`
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		}
		if err := dec.Decode(&items); err != nil {
			return Statistics{}, fmt.Errorf("parse statistics of PowerDNS Recursor: %w", err)
		}
		for _, i := range items {
			var text string
			if json.Unmarshal(i.Value, &text) != nil {
				continue // a map or a ring
			}
			if i.Type == "ConfigSetting" {
				settings[i.Name] = text
			} else if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
				own[i.Name] = n
			}
		}
	}
	return powerDNS(own, settings)
}

// powerDNSWaits are the answers of other servers by their time, over IPv4 and IPv6.
var powerDNSWaits = []struct {
	name string
	upTo float64
}{{"answers0-1", 0.001}, {"answers1-10", 0.01}, {"answers10-100", 0.1}, {"answers100-1000", 1},
	{"answers-slow", 0}}

// powerDNS translates the names of pdns_recursor. Queries that its packet cache answers never reach
// its record cache.
func powerDNS(own counters, settings map[string]string) (Statistics, error) {
	s := newStatistics(PowerDNS)
	if _, ok := own["questions"]; !ok && len(settings) == 0 {
		return s, errors.New("parse statistics of PowerDNS Recursor: questions is missing")
	}
	for name, its := range map[Name]string{Uptime: "uptime", Queries: "questions", QueriesTCP: "tcp-questions",
		ServFails: "servfail-answers", Misses: "cache-misses", Entries: "cache-entries",
		EntriesLimit: "max-cache-entries", Recursions: "cache-misses", Recursing: "concurrent-queries",
		Dropped: "over-capacity-drops", UpstreamTimeouts: "outgoing-timeouts", Upstream: "all-outqueries",
		UpstreamTruncated: "tcp-outqueries", UpstreamThrottled: "throttled-out", TCPClients: "tcp-clients",
		TCPRefused: "tcp-client-overflow", Validations: "dnssec-validations", Bogus: "dnssec-result-bogus",
		Prefetches: "almost-expired-run", UpstreamLame: "auth-refused-answers"} {
		if n, ok := own[its]; ok {
			s.set(name, n, its)
		}
	}
	if n, ok := own["cache-hits"]; ok {
		s.set(Hits, n+own["packetcache-hits"], "cache-hits + packetcache-hits")
	}
	if n, ok := own["auth-servfail-answers"]; ok {
		s.set(UpstreamErrors, n+own["auth-formerr-answers"]+own["auth-notimp-answers"],
			"auth-servfail-answers + auth-formerr-answers + auth-notimp-answers")
	}
	if limit := own["max-cache-entries"]; limit > 0 {
		s.set(CacheFill, own["cache-entries"]/limit, "cache-entries / max-cache-entries")
	}
	for _, w := range powerDNSWaits {
		if n, ok := own["auth4-"+w.name]; ok {
			s.Waits = append(s.Waits, Bucket{w.upTo, n + own["auth6-"+w.name]})
			s.WaitsSource = "auth4-answers, auth6-answers"
		}
	}
	powerDNSSettings(&s, settings)
	return s, nil
}

func powerDNSSettings(s *Statistics, settings map[string]string) {
	for name, its := range map[Name]string{RecursingMost: "max-mthreads", TCPLimit: "max-tcp-clients",
		Workers: "threads", EntriesLimit: "max-cache-entries"} {
		n, err := strconv.ParseFloat(settings[its], 64)
		if _, known := s.Values[name]; err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) && !known {
			s.set(name, n, "setting "+its)
		}
	}
	if v, ok := settings["quiet"]; ok {
		s.flag(QueryLog, v == "no", "setting quiet")
	}
	if v, ok := settings["trace"]; ok && v != "no" && v != "off" && v != "" {
		s.flag(QueryLog, true, "setting trace")
	}
	if v, ok := settings["qname-minimization"]; ok {
		s.flag(Minimisation, v != "no", "setting qname-minimization")
	}
	if v, ok := settings["dnssec"]; ok {
		s.flag(Validation, v != "off" && v != "process-no-validate", "setting dnssec")
	}
	if v, ok := settings["refresh-on-ttl-perc"]; ok {
		s.flag(Prefetch, v != "0", "setting refresh-on-ttl-perc")
	}
}
