package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a name server's program.
type Kind string

// The programs.
const (
	BIND     Kind = "bind"
	Unbound  Kind = "unbound"
	Knot     Kind = "knot-resolver"
	PowerDNS Kind = "powerdns-recursor"
	Dnsmasq  Kind = "dnsmasq"
	Resolved Kind = "systemd-resolved"
)

// Name names a value in the same way for every server.
type Name string

// The values. Those that end in _total count since the server's start.
const (
	Uptime Name = "uptime_seconds"

	Queries    Name = "queries_total"     // from clients
	QueriesTCP Name = "queries_tcp_total" // of them over TCP
	Truncated  Name = "truncated_total"   // answers that did not fit over UDP
	ServFails  Name = "servfail_total"    // answers

	Hits         Name = "cache_hits_total"
	Misses       Name = "cache_misses_total"
	Evictions    Name = "cache_evictions_total" // for lack of room
	Expiries     Name = "cache_expiries_total"  // for age
	Insertions   Name = "cache_insertions_total"
	Entries      Name = "cache_entries"
	EntriesLimit Name = "cache_entries_limit"
	CacheBytes   Name = "cache_bytes"
	CacheLimit   Name = "cache_limit_bytes"
	CacheFill    Name = "cache_fill_ratio"
	CacheClears  Name = "cache_clears_total" // of the whole cache

	Recursions     Name = "recursions_total"       // queries that needed other servers
	Recursing      Name = "recursive_clients"      // now
	RecursingLimit Name = "recursive_clients_soft" // from here on the server drops the oldest
	RecursingMost  Name = "recursive_clients_limit"
	Dropped        Name = "recursion_dropped_total" // queries refused or dropped for want of a place
	RecursionMean  Name = "recursion_mean_seconds"
	RecursionTime  Name = "recursion_seconds_total" // of all recursions together

	Upstream          Name = "upstream_queries_total"
	UpstreamKeys      Name = "upstream_key_queries_total" // for DS and DNSKEY records
	UpstreamTimeouts  Name = "upstream_timeouts_total"
	UpstreamLame      Name = "upstream_lame_total"   // answers from servers that do not serve the zone
	UpstreamErrors    Name = "upstream_errors_total" // other answers that are none: SERVFAIL, REFUSED, FORMERR
	UpstreamTruncated Name = "upstream_tcp_total"    // answers that had to be asked for again over TCP
	UpstreamThrottled Name = "upstream_throttled_total"
	LameServers       Name = "lame_servers"  // known now
	KnownServers      Name = "known_servers" // addresses whose round trip is known now

	TCPClients     Name = "tcp_clients" // now
	TCPClientsMost Name = "tcp_clients_peak"
	TCPLimit       Name = "tcp_clients_limit"
	TCPRefused     Name = "tcp_refused_total"

	Workers Name = "workers" // threads or processes that answer
	CPUs    Name = "cpus"    // as the server sees them

	Prefetches  Name = "prefetches_total"
	Validations Name = "validations_total"
	Bogus       Name = "bogus_total"

	QueryLog     Name = "query_log"
	Minimisation Name = "qname_minimisation"
	Prefetch     Name = "prefetch"
	Validation   Name = "validation"
)

// Value is a number, and what the server calls it.
type Value struct {
	N      float64 `json:"value"`
	Source string  `json:"source"`
}

// Bucket counts the queries whose answer took at most UpToSeconds, and longer than the bucket
// before.
type Bucket struct {
	UpToSeconds float64 `json:"up_to_seconds"` // 0: any longer time
	Count       float64 `json:"count_total"`
}

// Statistics are what one server says about itself.
type Statistics struct {
	Kind    Kind           `json:"kind"`
	Version string         `json:"version,omitempty"`
	Values  map[Name]Value `json:"values"` // absent: the server does not say
	// Waits are the answers by the time that they took: those of other servers, or with Knot Resolver,
	// which does not count these, its own. WaitsSource says which.
	Waits       []Bucket `json:"waits,omitempty"`
	WaitsSource string   `json:"waits_source,omitempty"`

	started int64 // seconds since 1970 by its own clock; 0: the server does not say
}

func newStatistics(k Kind) Statistics { return Statistics{Kind: k, Values: map[Name]Value{}} }

// set keeps a value.
func (s *Statistics) set(name Name, n float64, source string) { s.Values[name] = Value{n, source} }

// flag keeps a setting.
func (s *Statistics) flag(name Name, on bool, source string) {
	n := 0.0
	if on {
		n = 1
	}
	s.set(name, n, source)
}

// Get returns a value; false: the server does not say.
func (s Statistics) Get(name Name) (float64, bool) {
	v, ok := s.Values[name]
	return v.N, ok
}

// Of returns a value, or 0 if the server does not say.
func (s Statistics) Of(name Name) float64 { return s.Values[name].N }

// Source returns the server's own name of a value.
func (s Statistics) Source(name Name) string { return s.Values[name].Source }

// ErrRestarted reports that a server started again between two readings.
var ErrRestarted = errors.New("the server restarted between the readings")

// Since returns the later reading with the counters of the time between the two.
func Since(before, after Statistics) (Statistics, error) {
	if before.Kind != after.Kind {
		return Statistics{}, fmt.Errorf("subtract statistics of %s from %s: two servers", before.Kind, after.Kind)
	}
	if anew(before, after) {
		return Statistics{}, fmt.Errorf("subtract statistics of %s: %w", after.Kind, ErrRestarted)
	}
	d := after
	d.Values = maps.Clone(after.Values)
	for name, v := range after.Values {
		if !strings.HasSuffix(string(name), "_total") {
			continue
		}
		was, ok := before.Values[name]
		switch {
		case !ok:
			delete(d.Values, name) // since when it counts is not known
			continue
		case v.N < was.N && name != RecursionTime: // a product of rounded numbers
			return Statistics{}, fmt.Errorf("subtract %s: %w", v.Source, ErrRestarted)
		}
		v.N -= was.N
		d.Values[name] = v
	}
	if t, ok := d.Values[RecursionTime]; ok {
		// Unbound rounds the mean since its start to a microsecond, so that after many recursions it says
		// little about the last ones.
		if n := d.Of(Recursions); n > 0 && t.N >= 10e-6*after.Of(Recursions) {
			d.set(RecursionMean, t.N/n, d.Source(RecursionMean))
		} else {
			delete(d.Values, RecursionMean)
			delete(d.Values, RecursionTime)
		}
	}
	d.Waits = slices.Clone(after.Waits)
	if len(before.Waits) != len(after.Waits) {
		d.Waits = nil
	}
	for i := range d.Waits {
		if d.Waits[i].Count < before.Waits[i].Count {
			return Statistics{}, fmt.Errorf("subtract %s: %w", d.WaitsSource, ErrRestarted)
		}
		d.Waits[i].Count -= before.Waits[i].Count
	}
	return d, nil
}

// sameStart is by how much the times of one start differ: Unbound computes it from its uptime.
const sameStart = 2 // seconds

// anew reports whether the later reading is of another start of the server. Its counters may be
// past those of the earlier one by then.
func anew(before, after Statistics) bool {
	was, ok := before.Get(Uptime)
	now, okAfter := after.Get(Uptime)
	if ok && okAfter && now < was {
		return true
	}
	moved := after.started - before.started
	return before.started != 0 && after.started != 0 && (moved > sameStart || moved < -sameStart)
}

// Merge adds what another output of the same server says. Of a value that both have, the first one
// stays.
func (s *Statistics) Merge(o Statistics) error {
	if s.Kind != o.Kind {
		return fmt.Errorf("join statistics of %s and %s: two servers", s.Kind, o.Kind)
	}
	for name, v := range o.Values {
		if _, ok := s.Values[name]; !ok {
			s.Values[name] = v
		}
	}
	if s.Version == "" {
		s.Version = o.Version
	}
	if s.started == 0 {
		s.started = o.started
	}
	if len(s.Waits) == 0 {
		s.Waits, s.WaitsSource = o.Waits, o.WaitsSource
	}
	return nil
}

// Slower returns the share of the waits that are known to be longer than a time, which should be an
// edge of the buckets; false: there are none.
func (s Statistics) Slower(seconds float64) (share float64, ok bool) {
	all, slow, edge := 0.0, 0.0, 0.0
	for _, b := range s.Waits {
		all += b.Count
		if edge >= seconds {
			slow += b.Count
		}
		edge = b.UpToSeconds
	}
	if all == 0 {
		return 0, false
	}
	return slow / all, true
}
