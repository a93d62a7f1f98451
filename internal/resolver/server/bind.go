package server

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/pattern"
)

// counters are those of a server under its own names.
type counters map[string]float64

// bind is what the outputs of named have in common.
type bind struct {
	version       string
	boot, current time.Time
	server        counters // nsstat
	resolver      counters // resstat, all views added up
	cache         counters // cachestats
	types         counters // outgoing queries by type
}

func newBIND() *bind {
	return &bind{server: counters{}, resolver: counters{}, cache: counters{}, types: counters{}}
}

// builtinView is the view in which named answers questions about itself.
const builtinView = "_bind"

func (c counters) addAll(o counters) {
	for name, n := range o {
		c[name] += n
	}
}

// roundTrips are the buckets of named: QryRTT10 counts answers within 10 ms.
var roundTrips = []struct {
	name string
	upTo float64
}{{"QryRTT10", 0.01}, {"QryRTT100", 0.1}, {"QryRTT500", 0.5}, {"QryRTT800", 0.8}, {"QryRTT1600", 1.6},
	{"QryRTT1600+", 0}}

// statistics translates the names of named. In its outputs a counter that never counted is missing,
// so a missing one is zero where its group is there.
func (b *bind) statistics() (Statistics, error) {
	s := newStatistics(BIND)
	s.Version = b.version
	if !b.boot.IsZero() {
		s.started = b.boot.Unix()
	}
	if len(b.server)+len(b.resolver)+len(b.cache) == 0 {
		return s, errors.New("parse statistics of named: neither nsstats nor resolver is there")
	}
	if !b.boot.IsZero() && b.current.After(b.boot) {
		s.set(Uptime, b.current.Sub(b.boot).Seconds(), "current-time, boot-time")
	}
	keep := func(group counters, prefix string, names map[Name]string) {
		if len(group) == 0 {
			return
		}
		for name, own := range names {
			n := 0.0
			for _, o := range strings.Split(own, " + ") {
				n += group[o]
			}
			s.set(name, n, prefix+own)
		}
	}
	keep(b.server, "nsstats.", map[Name]string{Queries: "Requestv4 + Requestv6", QueriesTCP: "ReqTCP",
		Truncated: "TruncatedResp", ServFails: "QrySERVFAIL", Recursions: "QryRecursion", Dropped: "RecLimitDropped",
		Recursing: "RecursClients", TCPClientsMost: "TCPConnHighWater", Prefetches: "Prefetch"})
	keep(b.cache, "cachestats.", map[Name]string{Hits: "QueryHits", Misses: "QueryMisses", Evictions: "DeleteLRU",
		Expiries: "DeleteTTL", Entries: "CacheNodes", CacheBytes: "TreeMemInUse + HeapMemInUse"})
	keep(b.resolver, "resstats.", map[Name]string{Upstream: "Queryv4 + Queryv6",
		UpstreamErrors: "SERVFAIL + FORMERR + OtherError", UpstreamTimeouts: "QueryTimeout",
		UpstreamLame: "Lame + REFUSED", UpstreamTruncated: "Truncated", Validations: "ValAttempt", Bogus: "ValFail"})
	keep(b.types, "resolver.qtypes.", map[Name]string{UpstreamKeys: "DS + DNSKEY"})
	for _, t := range roundTrips {
		s.Waits = append(s.Waits, Bucket{t.upTo, b.resolver[t.name]})
	}
	s.WaitsSource = "resstats.QryRTT"
	return s, nil
}

// parseBINDJSON reads /json/v1/server of the statistics channel.
func parseBINDJSON(body []byte) (Statistics, error) {
	var doc struct {
		Version string    `json:"version"`
		Boot    time.Time `json:"boot-time"`
		Current time.Time `json:"current-time"`
		Server  counters  `json:"nsstats"`
		Views   map[string]struct {
			Resolver struct {
				Stats counters `json:"stats"`
				Types counters `json:"qtypes"`
				Cache counters `json:"cachestats"`
			} `json:"resolver"`
		} `json:"views"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return Statistics{}, fmt.Errorf("parse statistics of named: %w", err)
	}
	b := newBIND()
	b.version, b.boot, b.current = doc.Version, doc.Boot, doc.Current
	b.server.addAll(doc.Server)
	for name, view := range doc.Views {
		if name == builtinView {
			continue
		}
		b.resolver.addAll(view.Resolver.Stats)
		b.types.addAll(view.Resolver.Types)
		b.cache.addAll(view.Resolver.Cache)
	}
	return b.statistics()
}

// parseBINDXML reads /xml/v3/server of the statistics channel.
func parseBINDXML(body []byte) (Statistics, error) {
	type group struct {
		Type     string `xml:"type,attr"`
		Counters []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:",chardata"`
		} `xml:"counter"`
	}
	var doc struct {
		XMLName xml.Name  `xml:"statistics"`
		Version string    `xml:"server>version"`
		Boot    time.Time `xml:"server>boot-time"`
		Current time.Time `xml:"server>current-time"`
		Server  []group   `xml:"server>counters"`
		Views   []struct {
			Name   string  `xml:"name,attr"`
			Groups []group `xml:"counters"`
		} `xml:"views>view"`
	}
	if err := xml.NewDecoder(io.LimitReader(bytes.NewReader(body), MostBytes)).Decode(&doc); err != nil {
		return Statistics{}, fmt.Errorf("parse statistics of named: %w", err)
	}
	b := newBIND()
	b.version, b.boot, b.current = doc.Version, doc.Boot, doc.Current
	keep := func(into counters, g group) {
		for _, c := range g.Counters {
			if n, err := strconv.ParseUint(strings.TrimSpace(c.Value), 10, 64); err == nil {
				into[c.Name] += float64(n)
			}
		}
	}
	for _, g := range doc.Server {
		if g.Type == "nsstat" {
			keep(b.server, g)
		}
	}
	for _, v := range doc.Views {
		if v.Name == builtinView {
			continue
		}
		for _, g := range v.Groups {
			switch g.Type {
			case "resstats":
				keep(b.resolver, g)
			case "resqtype":
				keep(b.types, g)
			case "cachestats":
				keep(b.cache, g)
			}
		}
	}
	return b.statistics()
}

// described are the sentences of the statistics file with the names of the channel.
var described = map[string]string{
	"IPv4 requests received": "Requestv4", "IPv6 requests received": "Requestv6", "TCP requests received": "ReqTCP",
	"truncated responses sent": "TruncatedResp", "queries resulted in SERVFAIL": "QrySERVFAIL",
	"queries caused recursion": "QryRecursion", "queries dropped due to recursive client limit": "RecLimitDropped",
	"recursing clients": "RecursClients", "TCP connection high-water": "TCPConnHighWater",
	"queries triggered prefetch": "Prefetch", "cache hits (from query)": "QueryHits",
	"cache misses (from query)": "QueryMisses", "cache records deleted due to memory exhaustion": "DeleteLRU",
	"cache records deleted due to TTL expiration": "DeleteTTL", "cache database nodes": "CacheNodes",
	"cache tree memory in use": "TreeMemInUse", "cache heap memory in use": "HeapMemInUse",
	"IPv4 queries sent": "Queryv4", "IPv6 queries sent": "Queryv6", "SERVFAIL received": "SERVFAIL",
	"FORMERR received": "FORMERR", "other errors received": "OtherError", "query timeouts": "QueryTimeout",
	"lame delegations received": "Lame", "REFUSED received": "REFUSED", "truncated responses received": "Truncated",
	"DNSSEC validation attempted": "ValAttempt", "DNSSEC validation failed": "ValFail",
	"queries with RTT < 10ms": "QryRTT10", "queries with RTT 10-100ms": "QryRTT100",
	"queries with RTT 100-500ms": "QryRTT500", "queries with RTT 500-800ms": "QryRTT800",
	"queries with RTT 800-1600ms": "QryRTT1600", "queries with RTT > 1600ms": "QryRTT1600+",
}

// parseBINDFile reads the last dump of a statistics file (`rndc stats` appends one at a time).
func parseBINDFile(body []byte) (Statistics, error) {
	if at := bytes.LastIndex(body, []byte("+++ Statistics Dump +++")); at >= 0 {
		body = body[at:]
	}
	b := newBIND()
	var into counters
	var builtin, types bool
	for line := range bytes.Lines(body) {
		text := strings.TrimSpace(string(line))
		switch {
		case strings.HasPrefix(text, "++ "):
			builtin, types = false, text == "++ Outgoing Queries ++"
			into = map[string]counters{"++ Name Server Statistics ++": b.server, "++ Outgoing Queries ++": b.types,
				"++ Resolver Statistics ++": b.resolver, "++ Cache Statistics ++": b.cache}[text]
		case strings.HasPrefix(text, "["):
			builtin = strings.HasPrefix(text, "[View: "+builtinView)
		case into != nil && !builtin:
			number, what, _ := strings.Cut(text, " ")
			name, known := described[strings.TrimSpace(what)]
			if types {
				name, known = strings.TrimSpace(what), true
			}
			if n, err := strconv.ParseUint(number, 10, 64); known && err == nil {
				into[name] += float64(n)
			}
		}
	}
	return b.statistics()
}

// slashes are a number and its limits, as in 0/900/1000.
var slashes = pattern.New(`^(\d+)/(\d+)(?:/(\d+))?$`)

// parseRNDCStatus reads the output of `rndc status`.
func parseRNDCStatus(body []byte) (Statistics, error) {
	s := newStatistics(BIND)
	number := func(name Name, text, source string) {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			s.set(name, float64(n), source)
		}
	}
	for line := range bytes.Lines(body) {
		text := strings.TrimSpace(string(line))
		key, value, _ := strings.Cut(text, ": ")
		source := "rndc status, " + key
		parts := slashes.FindStringSubmatch(value)
		switch {
		case key == "version":
			s.Version, _, _ = strings.Cut(strings.TrimPrefix(value, "BIND "), " ")
		case key == "CPUs found":
			number(CPUs, value, source)
		case key == "worker threads":
			number(Workers, value, source)
		case key == "TCP high-water":
			number(TCPClientsMost, value, source)
		case text == "query logging is ON", text == "query logging is OFF":
			s.flag(QueryLog, text == "query logging is ON", "rndc status, query logging")
		case key == "recursive clients" && parts != nil:
			number(Recursing, parts[1], source)
			number(RecursingLimit, parts[2], source)
			number(RecursingMost, parts[3], source)
		case key == "tcp clients" && parts != nil:
			number(TCPClients, parts[1], source)
			number(TCPLimit, parts[2], source)
		}
	}
	if len(s.Values) == 0 {
		return s, errors.New("parse rndc status: none of its lines are there")
	}
	return s, nil
}
