package resolvers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/resolvers"
	"github.com/linerate/linerate/internal/resolver/server"
)

// observation is a sound named with a thousand queries a second, changed by each case.
func observation(change func(v map[server.Name]server.Value, o *server.Observation)) server.Observation {
	of := func(n float64) server.Value { return server.Value{N: n, Source: "the server"} }
	v := map[server.Name]server.Value{server.Queries: of(5000), server.Hits: of(4000), server.Misses: of(1000),
		server.Evictions: of(0), server.Upstream: of(1100), server.UpstreamLame: of(1), server.UpstreamErrors: of(2),
		server.UpstreamTimeouts: of(3), server.UpstreamTruncated: of(1), server.Dropped: of(0),
		server.Recursing: of(3), server.RecursingLimit: of(900), server.RecursingMost: of(1000),
		server.QueriesTCP: of(20), server.TCPClientsMost: of(4), server.TCPLimit: of(150), server.Workers: of(2),
		server.QueryLog: of(0), server.Recursions: of(1000)}
	o := server.Observation{Seconds: 5, Statistics: server.Statistics{Kind: server.BIND, Values: v,
		Waits: []server.Bucket{{UpToSeconds: 0.01, Count: 500}, {UpToSeconds: 0.1, Count: 550}, {UpToSeconds: 0.5, Count: 45},
			{UpToSeconds: 0, Count: 5}}, WaitsSource: "waits"},
		Host: &server.Activity{Seconds: 5, Program: "named", CPUs: 2, Threads: []server.Thread{{Name: "isc-net-0000",
			RunSeconds: 1, WaitSeconds: 0.2}}, Sockets: []server.Socket{{LimitBytes: 212992}}}}
	change(v, &o)
	return o
}

// TestRules moves one number after the other across its bound.
func TestRules(t *testing.T) {
	type values = map[server.Name]server.Value
	set := func(v values, name server.Name, n float64) { v[name] = server.Value{N: n, Source: "the server"} }
	for _, c := range []struct {
		name   string
		change func(v values, o *server.Observation)
		want   evidence.Code
		causes []evidence.Code
	}{
		{"sound", func(values, *server.Observation) {}, evidence.ResolverNothingToTune, nil},
		{"few queries", func(v values, _ *server.Observation) { set(v, server.Queries, 5) },
			evidence.ResolverNothingToTune, nil},
		{"a cache that evicts", func(v values, _ *server.Observation) { set(v, server.Evictions, 100) },
			evidence.ResolverCacheTooSmall, nil},
		{"a cache that evicts a little", func(v values, _ *server.Observation) { set(v, server.Evictions, 99) },
			evidence.ResolverNothingToTune, nil},
		{"a cache that evicts, with hits alone", func(v values, _ *server.Observation) {
			set(v, server.Evictions, 40)
			set(v, server.Misses, 40)
		}, evidence.ResolverNothingToTune, nil},
		{"a full cache", func(v values, _ *server.Observation) {
			delete(v, server.Evictions)
			set(v, server.CacheFill, 0.95)
		}, evidence.ResolverCacheTooSmall, nil},
		{"a full cache before slow servers", func(v values, o *server.Observation) {
			delete(v, server.Evictions)
			set(v, server.CacheFill, 0.95)
			o.Statistics.Waits = []server.Bucket{{UpToSeconds: 0.1, Count: 100}, {Count: 900}}
		}, evidence.ResolverUpstreamSlow, []evidence.Code{evidence.ResolverCacheTooSmall}},
		{"drops", func(_ values, o *server.Observation) { o.Host.Sockets[0].Drops = 10 }, evidence.ResolverUDPDrops, nil},
		{"nine drops", func(_ values, o *server.Observation) { o.Host.Sockets[0].Drops = 9 },
			evidence.ResolverNothingToTune, nil},
		{"one worker and its drops", func(v values, o *server.Observation) {
			set(v, server.Workers, 1)
			o.Host.Threads[0].RunSeconds, o.Host.Threads[0].WaitSeconds = 3, 1.5
			o.Host.Sockets[0].Drops = 1000
		}, evidence.ResolverSingleWorker, []evidence.Code{evidence.ResolverUDPDrops}},
		{"one worker of a server that shows its statistics slowly", func(v values, o *server.Observation) {
			set(v, server.Workers, 1)
			o.Seconds = 10
			o.Host.Threads[0].RunSeconds, o.Host.Threads[0].WaitSeconds = 3, 1.5
		}, evidence.ResolverSingleWorker, nil},
		{"a worker that others keep from its CPU", func(v values, o *server.Observation) {
			set(v, server.Workers, 1)
			o.Host.Threads[0].RunSeconds, o.Host.Threads[0].WaitSeconds = 1, 3.9
		}, evidence.ResolverNothingToTune, nil},
		{"as many workers as CPUs", func(_ values, o *server.Observation) {
			o.Host.Threads[0].RunSeconds = 4.9
		}, evidence.ResolverNothingToTune, nil},
		{"dropped clients", func(v values, _ *server.Observation) { set(v, server.Dropped, 50) },
			evidence.ResolverRecursiveClients, nil},
		{"dropped clients behind slow servers", func(v values, o *server.Observation) {
			set(v, server.Dropped, 50)
			o.Statistics.Waits = []server.Bucket{{UpToSeconds: 0.1, Count: 100}, {Count: 900}}
		}, evidence.ResolverUpstreamSlow, []evidence.Code{evidence.ResolverRecursiveClients}},
		{"dropped clients of a small limit behind slow servers", func(v values, o *server.Observation) {
			set(v, server.Dropped, 50)
			set(v, server.RecursingLimit, 50)
			o.Statistics.Waits = []server.Bucket{{UpToSeconds: 0.1, Count: 100}, {Count: 900}}
		}, evidence.ResolverRecursiveClients, []evidence.Code{evidence.ResolverUpstreamSlow}},
		{"full places", func(v values, _ *server.Observation) { set(v, server.Recursing, 901) },
			evidence.ResolverRecursiveClients, nil},
		{"slow servers", func(_ values, o *server.Observation) {
			o.Statistics.Waits = []server.Bucket{{UpToSeconds: 0.1, Count: 500}, {UpToSeconds: 0.5, Count: 500}}
		}, evidence.ResolverUpstreamSlow, nil},
		{"slow servers that hardly matter", func(v values, o *server.Observation) {
			set(v, server.Misses, 200)
			o.Statistics.Waits = []server.Bucket{{UpToSeconds: 0.1, Count: 50}, {UpToSeconds: 0.5, Count: 150}}
		}, evidence.ResolverNothingToTune, nil},
		{"silent servers", func(v values, _ *server.Observation) { set(v, server.UpstreamTimeouts, 100) },
			evidence.ResolverUpstreamSlow, nil},
		{"lame servers", func(v values, _ *server.Observation) { set(v, server.UpstreamLame, 30) },
			evidence.ResolverLameUpstream, nil},
		{"servers with errors", func(v values, _ *server.Observation) { set(v, server.UpstreamErrors, 30) },
			evidence.ResolverLameUpstream, nil},
		{"known lame servers", func(v values, _ *server.Observation) {
			set(v, server.KnownServers, 20)
			set(v, server.LameServers, 1)
		}, evidence.ResolverLameUpstream, nil},
		{"truncated answers", func(v values, _ *server.Observation) { set(v, server.UpstreamTruncated, 300) },
			evidence.ResolverTCPBound, nil},
		{"full places for TCP", func(_ values, o *server.Observation) {
			o.Host.Connections, o.Host.Waiting = 150, 3
		}, evidence.ResolverTCPBound, nil},
		{"a full accept queue", func(_ values, o *server.Observation) {
			o.Host.AcceptDrops, o.Host.Waiting = 10, 1
		}, evidence.ResolverTCPBound, nil},
		{"the full accept queue of another listener", func(_ values, o *server.Observation) { o.Host.AcceptDrops = 1000 },
			evidence.ResolverNothingToTune, nil},
		{"few refused connections", func(_ values, o *server.Observation) {
			o.Host.AcceptDrops, o.Host.Waiting = 9, 1
		}, evidence.ResolverNothingToTune, nil},
		{"clients over TCP", func(v values, _ *server.Observation) { set(v, server.QueriesTCP, 2000) },
			evidence.ResolverTCPBound, nil},
		{"a query log", func(v values, _ *server.Observation) { set(v, server.QueryLog, 1) }, evidence.ResolverLogCost, nil},
		{"a query log of which only the writes are seen", func(v values, o *server.Observation) {
			delete(v, server.QueryLog)
			writes, bytes := uint64(5000), uint64(500_000)
			o.Host.Writes, o.Host.WrittenBytes = &writes, &bytes
		}, evidence.ResolverLogCost, nil},
		{"failed validation", func(v values, _ *server.Observation) {
			set(v, server.Validations, 500)
			set(v, server.Bogus, 20)
		}, evidence.ResolverDNSSECCost, nil},
		{"keys", func(v values, _ *server.Observation) { set(v, server.UpstreamKeys, 600) },
			evidence.ResolverDNSSECCost, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := resolvers.Findings(observation(c.change))
			f := all[0]
			if f.Code != c.want || !slices.Equal(f.Causes, c.causes) {
				t.Errorf("got %s with %v: %s", f.Code, f.Causes, f.Title)
			}
			if len(f.Evidence) < 2 || f.Confidence <= 0 || f.Confidence > 0.98 || f.Remedy.Text == "" {
				t.Errorf("incomplete: %+v", f)
			}
			for _, e := range f.Evidence {
				if e.Source == "" || e.Name == "" {
					t.Errorf("evidence without a source: %+v", e)
				}
			}
			for _, other := range all[1:] {
				if slices.Contains(f.Causes, other.Code) || other.Code == evidence.ResolverNothingToTune {
					t.Errorf("%s beside %s", other.Code, f.Code)
				}
			}
		})
	}
}

// TestFailures does not call a server sound that fails: "100 % of its queries came from its cache"
// was the verdict on one of which each answer was SERVFAIL.
func TestFailures(t *testing.T) {
	for failed, named := range map[float64]bool{499: false, 9000: true} {
		o := observation(func(v map[server.Name]server.Value, o *server.Observation) {
			v[server.Queries] = server.Value{N: 10_000, Source: "the server"}
			v[server.ServFails] = server.Value{N: failed, Source: "the server"}
		})
		f := resolvers.Findings(o)[0]
		if f.Code != evidence.ResolverNothingToTune || strings.Contains(f.Title, "SERVFAIL") != named ||
			(f.Severity == evidence.Notice) != named {
			t.Errorf("%v failures: %s, %s", failed, f.Severity, f.Title)
		}
	}
}

// TestRecordedServers judges outputs of others, with their counters since the start.
func TestRecordedServers(t *testing.T) {
	for file, want := range map[string]evidence.Code{
		"bind-exporter.json": evidence.ResolverUpstreamSlow,  // half of the answers took longer than 0.1 s
		"unbound-observium":  evidence.ResolverNothingToTune, // 14 of 152 recursions took longer than 0.5 s
		"dnsmasq-2.90":       evidence.ResolverCacheTooSmall,
		"resolved-aks":       evidence.ResolverNothingToTune,
		"powerdns-4.8":       evidence.ResolverNothingToTune,
	} {
		b, err := os.ReadFile(filepath.Join("../../resolver/server/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		o, err := server.Recorded(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := resolvers.Findings(o)[0]
		if f.Code != want || f.Where != "far" || strings.Contains(f.Title, "NaN") {
			t.Errorf("%s: got %s (%s), want %s", file, f.Code, f.Title, want)
		}
	}
}
