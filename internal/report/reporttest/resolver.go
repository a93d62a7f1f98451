package reporttest

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/server"
	"github.com/linerate/linerate/internal/resolver/world"
)

// resolverDocuments are loads on name servers: one without and one with faults, and a ramp.
func resolverDocuments() []Document {
	latency := func(scale float64) *stats.Latencies {
		return &stats.Latencies{Count: 99_990, Min: 21e-6 * scale, Mean: 70e-6 * scale, P50: 58e-6 * scale,
			P90: 103e-6 * scale, P99: 412e-6 * scale, P999: 1.8e-3 * scale, Max: 4.1e-3 * scale}
	}
	sound := load.Result{
		Server: "127.0.0.1:53", Transport: load.UDP, Mode: load.Open,
		StartTime: time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC), DurationSeconds: 10, Method: "sendmmsg, recvmmsg",
		Sockets: 16, Workers: 1, Target: 10_000, Burst: 1,
		QueriesPerSecond: 10_000, AnswersPerSecond: 9999, LossRatio: 0.0001,
		Counts:  load.Counts{Queries: 100_000, Answers: 99_990, Lost: 10, Truncated: 7, Authentic: 12},
		Codes:   []load.CodeCount{{Code: "NOERROR", Total: 89_990}, {Code: "NXDOMAIN", Total: 10_000}},
		Latency: latency(1), ServiceLatency: latency(0.9), SendDelay: latency(0.1),
		CPUSeconds: 0.31, CPUSecondsPerAnswer: 3.1e-6,
		Intervals: []load.Interval{{AtSeconds: 5, QueriesPerSecond: 10_000, AnswersPerSecond: 9999, Lost: 3, P50: 58e-6,
			P99: 412e-6, Max: 4.1e-3}},
	}
	faulty := sound
	faulty.Mode, faulty.Target, faulty.Outstanding = load.Closed, 0, 100
	faulty.Transport, faulty.Method, faulty.Connections = load.TLS, "tls over tcp", 20
	faulty.Late, faulty.Duplicates, faulty.WrongTotal, faulty.NoEDNS = 4, 5, 30, 8
	faulty.Wrong = []load.KindCount{{Kind: "compression-loop", Total: 10}, {Kind: "unknown-id", Total: 20}}
	faulty.SocketDrops, faulty.Refused = 3, 2
	faulty.Warnings = []string{"the sockets of this host dropped 3 answers: they count as lost"}
	ramp := sound
	ramp.Mode, ramp.Knee = load.Ramp, 8000
	ramp.Steps = []load.Step{
		{Target: 8000, QueriesPerSecond: 8000, AnswersPerSecond: 8000, P50: 60e-6, P99: 300e-6, Held: true},
		{Target: 16_000, QueriesPerSecond: 16_000, AnswersPerSecond: 9000, LossRatio: 0.44, P50: 0.8, P99: 0.99, Why: "loss"},
	}
	measured := report.NewResolver(Envelope(), &sound)
	hits, fresh := 0.83, 61.5
	measured.CacheHitRatio, measured.FreshSeconds = &hits, &fresh
	return []Document{
		{"resolver", measured},
		{"resolver-faults", report.NewResolver(Envelope(), &faulty)},
		{"resolver-ramp", report.NewResolver(Envelope(), &ramp)},
		{"resolver-diagnose", resolverDiagnose()},
		{"resolver-diagnose-recorded", resolverRecorded()},
		{"resolver-lab", resolverLab()},
		{"resolver-tune", resolverTune()},
		{"resolver-answer", report.NewResolverAnswer(Envelope(), "127.0.0.1:5353", "127.0.0.1:8530")},
	}
}

// resolverTune is an experiment that found a cache that was too small, in a closed world.
func resolverTune() *report.ResolverTuneDocument {
	const file = "/etc/bind/named.conf"
	kept := tune.Effect{Pairs: 6, Ratio: 2.61, Low: 2.4, High: 2.9, Confidence: 0.95}
	before, after, short := 283.1, 290.4, 58.2
	out := &tune.Outcome{
		Baseline: &tune.Baseline{Objective: 20_100, Segments: 12, Guards: map[string]float64{"loss_ratio": 0}},
		Trials: []tune.Trial{
			{Knob: "named:" + file + "/max-cache-size", From: "100K", To: "256M", Side: tune.Near, Effect: kept,
				Verdict: tune.Kept, Reason: "proven", Why: "a cache that holds every name"},
			{Knob: "named:" + file + "/workers", From: "2", Side: tune.Near, Verdict: tune.Refused,
				Reason: "it has that value already"},
			{Knob: "named:" + file + "/udp-receive-buffer", From: "unset", To: "1048576", Side: tune.Near,
				Effect:  tune.Effect{Pairs: 6, Ratio: 1.01, Low: 0.97, High: 1.05, Confidence: 0.95},
				Verdict: tune.RevertedUnproven, Reason: "not proven"},
		},
		Final: &kept,
		Kept: []tune.Change{{Knob: "named:" + file + "/max-cache-size", Side: tune.Near, From: "100K", To: "256M",
			ID: "0031"}},
		State: tune.StateCommitted,
		Segments: []tune.Segment{{Phase: tune.PhasePilot, Arm: "A", DurationSeconds: 1.2, Objective: 20_100,
			Label: "7100 answers/s, 100 % answered"}},
	}
	return report.NewResolverTune(Envelope(), report.ResolverTuneRun{Program: "named",
		Version: "BIND 9.18.49-1~deb12u3-Debian", Config: file, Server: "127.0.0.1:53", Outcome: out,
		Changes: []journal.Change{{ID: "0031", Time: time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC),
			Knob: "named:" + file + "/max-cache-size", Side: "near", From: "100K", To: "256M", Original: "100K",
			State: journal.Committed}},
		Fresh: []report.FreshRow{
			{Name: "before", Options: []string{"max-cache-size 100K;"}, FreshSeconds: &before, AnswersPerSecond: 20_100},
			{Name: "after", Options: []string{"max-cache-size 256M;"}, FreshSeconds: &after, AnswersPerSecond: 52_400},
			{Name: "after, and max-cache-ttl 60", Options: []string{"max-cache-size 256M;", "max-cache-ttl 60;"},
				FreshSeconds: &short},
		},
		Duration: 4 * time.Minute})
}

// resolverLab is a comparison with a row that did not start.
func resolverLab() *report.ResolverLabDocument {
	hits, poor, none, many, fresh := 0.99, 0.0002, uint64(0), uint64(33_800), 300.1
	measured := fresh / 30
	return report.NewResolverLab(Envelope(), world.BIND, "BIND 9.18.49-1~deb12u3-Debian", 20_000, []world.Row{
		{Name: "default", Options: []string{}, Started: true, QueriesPerSecond: 53_000, AnswersPerSecond: 52_969,
			P50Seconds: 0.0018, P99Seconds: 0.004, CacheHitRatio: &hits, Evictions: &none, FreshSeconds: &fresh,
			FreshMeasuredSeconds: &measured},
		{Name: "max-cache-size 100K", Options: []string{"max-cache-size 100K;"}, Started: true, QueriesPerSecond: 7300,
			AnswersPerSecond: 7256, LossRatio: 0.006, P50Seconds: 0.012, P99Seconds: 0.8, CacheHitRatio: &poor,
			Evictions: &many, Upstream: 33_786, Remarks: []string{"general: info: max-cache-size is raised"}},
		{Name: "cleaning-interval 1", Options: []string{"cleaning-interval 1;"},
			Why: "named.conf:12: option 'cleaning-interval' no longer exists"},
	})
}

// resolverDiagnose is a named with a small cache and a query log.
func resolverDiagnose() *report.ResolverDiagnoseDocument {
	writes, written := uint64(52_011), uint64(7_100_000)
	of := func(n float64, source string) server.Value { return server.Value{N: n, Source: source} }
	return report.NewResolverDiagnose(Envelope(), server.Observation{Address: "127.0.0.1:53", Seconds: 5,
		Statistics: server.Statistics{Kind: server.BIND, Version: "9.18.49-1~deb12u3-Debian",
			Values: map[server.Name]server.Value{
				server.Queries:   of(51_200, "nsstats.Requestv4 + Requestv6"),
				server.Hits:      of(15_300, "cachestats.QueryHits"),
				server.Misses:    of(35_900, "cachestats.QueryMisses"),
				server.Evictions: of(34_100, "cachestats.DeleteLRU"),
				server.Expiries:  of(12, "cachestats.DeleteTTL"),
				server.Entries:   of(5836, "cachestats.CacheNodes"),
				server.Upstream:  of(35_950, "resstats.Queryv4 + Queryv6"),
				server.Dropped:   of(0, "nsstats.RecLimitDropped"),
				server.Workers:   of(2, "rndc status, worker threads"),
				server.QueryLog:  of(1, "rndc status, query logging"),
			},
			Waits:       []server.Bucket{{UpToSeconds: 0.01, Count: 35_000}, {UpToSeconds: 0.1, Count: 900}, {Count: 50}},
			WaitsSource: "resstats.QryRTT"},
		Host: &server.Activity{Seconds: 5, Program: "named", Processes: 1, CPUs: 2,
			Threads: []server.Thread{{Name: "isc-net-0000", PID: 4711, RunSeconds: 2.1, WaitSeconds: 0.3}},
			Sockets: []server.Socket{{Local: netip.MustParseAddrPort("127.0.0.1:53"), LimitBytes: 212_992}},
			Writes:  &writes, WrittenBytes: &written, Outgoing: 3},
		Unseen: []string{"`rndc status`: named has no control channel."}})
}

// resolverRecorded is a systemd-resolved that says little.
func resolverRecorded() *report.ResolverDiagnoseDocument {
	s, err := server.Parse([]byte("Current Transactions: 0\n  Total Transactions: 112\n  Current Cache Size: 3\n" +
		"          Cache Hits: 33\n        Cache Misses: 83\n"))
	if err != nil {
		panic(err)
	}
	o, err := server.Recorded(s, nil)
	if err != nil {
		panic(err)
	}
	return report.NewResolverDiagnose(Envelope(), o)
}
