package server

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecorded reads what real servers printed. Each number was read off the file by eye.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		file    string
		kind    Kind
		version string
		want    map[Name]float64
		absent  []Name
	}{
		{"bind-9.18.json", BIND, "9.18.49-1~deb12u3-Debian", map[Name]float64{Queries: 1689, Hits: 381, Misses: 1308,
			Evictions: 0, Recursions: 1308, Upstream: 1304, Entries: 1305, CacheBytes: 386766 + 140352, Dropped: 0,
			UpstreamLame: 0, UpstreamKeys: 0, Uptime: 2.608}, []Name{Workers, QueryLog, RecursingLimit}},
		{"bind-9.18.xml", BIND, "9.18.49-1~deb12u3-Debian", map[Name]float64{Queries: 1689, Hits: 381, Misses: 1308,
			Evictions: 0, Recursions: 1308, Upstream: 1304, Entries: 1305}, nil},
		{"bind-9.18.stats", BIND, "", map[Name]float64{Queries: 1689, Hits: 381, Misses: 1308, Evictions: 0,
			Recursions: 1308, Upstream: 1304, Entries: 1305, CacheBytes: 386766 + 140352}, []Name{Uptime}},
		{"rndc-9.18", BIND, "9.18.49-1~deb12u3-Debian", map[Name]float64{CPUs: 2, Workers: 2, QueryLog: 0,
			Recursing: 0, RecursingLimit: 900, RecursingMost: 1000, TCPClients: 0, TCPLimit: 150, TCPClientsMost: 0},
			[]Name{Queries}},
		{"rndc-insights", BIND, "9.11.4-P2-RedHat-9.11.4-9.P2.el7", map[Name]float64{CPUs: 4, Workers: 4,
			QueryLog: 0, RecursingLimit: 900, TCPClients: 1, TCPLimit: 150}, []Name{TCPClientsMost}},
		{"rndc-9.20", BIND, "9.20.15-2-Debian", map[Name]float64{CPUs: 16, Workers: 16, QueryLog: 0,
			RecursingLimit: 900, TCPLimit: 150, TCPClientsMost: 0}, nil},
		{"bind-exporter.json", BIND, "9.18.12-1-Debian", map[Name]float64{Recursions: 60946, Recursing: 76,
			UpstreamLame: 9108 + 5798, UpstreamErrors: 7596 + 42906 + 20660}, []Name{Hits, Evictions, UpstreamKeys}},
		{"unbound-1.17", Unbound, "", map[Name]float64{Queries: 4486, Hits: 1282, Misses: 3204, Recursions: 3204,
			RecursionMean: 0.00284, Upstream: 3202, Entries: 3202, Workers: 2, Dropped: 0, Uptime: 2.300788,
			Validations: 0}, []Name{CacheFill, KnownServers, QueryLog}},
		{"unbound-observium", Unbound, "", map[Name]float64{Queries: 2231, Hits: 2098, Misses: 133, Recursions: 133,
			Workers: 1, Validations: 2}, []Name{Upstream, Entries}},
		{"knot-5.6.lua", Knot, "", map[Name]float64{Queries: 1414, Hits: 319, Misses: 1416 - 319, Upstream: 1093,
			Entries: 1095, CacheFill: 0.008984375, CacheClears: 1, UpstreamTimeouts: 0, Dropped: 0}, []Name{CacheLimit}},
		{"knot-5.6.json", Knot, "", map[Name]float64{Queries: 1414, Entries: 1095, CacheFill: 0.00898437499,
			CacheClears: 1, QueriesTCP: 0}, nil},
		{"knot-5.6.metrics", Knot, "", map[Name]float64{Queries: 1414, Hits: 319, Misses: 1416 - 319, Entries: 1095,
			Upstream: 1093}, nil},
		{"powerdns-4.8", PowerDNS, "", map[Name]float64{Queries: 302, Hits: 47, Misses: 255, Upstream: 257,
			Entries: 281, EntriesLimit: 1e6, CacheFill: 281e-6, Dropped: 0, TCPRefused: 0, UpstreamTimeouts: 0,
			Uptime: 3}, []Name{QueryLog, Workers}},
		{"powerdns-4.8.json", PowerDNS, "", map[Name]float64{Queries: 302, Hits: 47, Misses: 255, Workers: 2,
			RecursingMost: 2048, TCPLimit: 128, Minimisation: 1, Validation: 0, Prefetch: 0}, nil},
		{"dnsmasq-2.90", Dnsmasq, "2.90", map[Name]float64{Queries: 334, Hits: 54, Misses: 280, Evictions: 130,
			Insertions: 280, EntriesLimit: 150, Upstream: 280, UpstreamErrors: 0}, nil},
		{"resolved-aks", Resolved, "", map[Name]float64{Queries: 116, Hits: 33, Misses: 83, Entries: 3, Upstream: 112,
			Recursing: 0, Bogus: 0}, []Name{UpstreamTimeouts}},
		{"resolved-indented", Resolved, "", map[Name]float64{Hits: 1023, Misses: 1329, Entries: 285, Upstream: 69417}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			s, err := Parse(recorded(t, c.file))
			if err != nil || s.Kind != c.kind || s.Version != c.version {
				t.Fatalf("got %s %q, %v", s.Kind, s.Version, err)
			}
			for name, want := range c.want {
				if got, ok := s.Get(name); !ok || math.Abs(got-want) > 1e-6*max(1, want) {
					t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
				}
				if s.Source(name) == "" {
					t.Errorf("%s has no source", name)
				}
			}
			for _, name := range c.absent {
				if v, ok := s.Values[name]; ok {
					t.Errorf("%s is %v: the output does not say it", name, v)
				}
			}
		})
	}
}

// TestThreeOutputsOfNamed compares what named says of itself in three forms within a second.
func TestThreeOutputsOfNamed(t *testing.T) {
	var all []Statistics
	for _, file := range []string{"bind-9.18.json", "bind-9.18.xml", "bind-9.18.stats"} {
		s, err := Parse(recorded(t, file))
		if err != nil {
			t.Fatal(err)
		}
		delete(s.Values, Uptime)
		s.Version = ""
		all = append(all, s)
	}
	for _, s := range all[1:] {
		if !maps.Equal(s.Values, all[0].Values) || !slices.Equal(s.Waits, all[0].Waits) {
			t.Errorf("got  %v %v\nwant %v %v", s.Values, s.Waits, all[0].Values, all[0].Waits)
		}
	}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		file    string
		seconds float64
		want    float64
	}{
		{"bind-9.18.json", 0.1, 5.0 / 1304},
		{"bind-exporter.json", 0.5, (4717.0 + 1034 + 39346) / (38334 + 74788 + 69536 + 4717 + 1034 + 39346)},
		{"unbound-observium", 0.524288, 14.0 / 152},
		{"powerdns-4.8", 0.1, 8.0 / 257},
		{"knot-5.6.lua", 0.01, 119.0 / 1416},
	} {
		s, err := Parse(recorded(t, c.file))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Slower(c.seconds); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v (%v) are slower than %v s, want %v", c.file, got, ok, c.seconds, c.want)
		}
	}
}

// TestNoNumber: JSON cannot carry what PowerDNS would have to say here.
func TestNoNumber(t *testing.T) {
	s, err := Parse([]byte(`[{"name":"questions","type":"StatisticItem","value":"5"},` +
		`{"name":"uptime","type":"StatisticItem","value":"NaN"}]`))
	if _, known := s.Get(Uptime); err != nil || known || s.Of(Queries) != 5 {
		t.Errorf("%v, %v", s.Values, err)
	}
}

// TestRoundedMean reads a server with ten million recursions twice: the microsecond to which
// it rounds their mean is ten seconds of all of them, and neither a restart nor a mean of the
// last ones.
func TestRoundedMean(t *testing.T) {
	read := func(recursions, mean string) Statistics {
		s, err := Parse([]byte("total.num.queries=90000000\ntotal.num.recursivereplies=" + recursions +
			"\ntotal.recursion.time.avg=" + mean + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, after := range []string{"0.030999", "0.031000", "0.031001"} {
		d, err := Since(read("10000000", "0.031000"), read("10000100", after))
		if err != nil {
			t.Fatal(err)
		}
		if mean, ok := d.Get(RecursionMean); ok {
			t.Errorf("%s: a mean of %v s", after, mean)
		}
	}
	d, err := Since(read("10000000", "0.031000"), read("11000000", "0.040000"))
	if mean := d.Of(RecursionMean); err != nil || math.Abs(mean-0.13) > 1e-6 {
		t.Errorf("a mean of %v s, %v", mean, err)
	}
}

func TestSince(t *testing.T) {
	first, err := Parse(recorded(t, "unbound-observium"))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.NewReplacer("total.num.queries=2231", "total.num.queries=3231", "cachehits=2098", "cachehits=2998",
		"cachemiss=133", "cachemiss=233", "recursivereplies=133", "recursivereplies=233", "time.avg=0.130315",
		"time.avg=0.5", "000001.000000.to.000002.000000=4", "000001.000000.to.000002.000000=104").Replace(
		string(recorded(t, "unbound-observium")))
	second, err := Parse([]byte(later))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Since(first, second)
	if err != nil {
		t.Fatal(err)
	}
	mean := (0.5*233 - 0.130315*133) / 100
	if d.Of(Queries) != 1000 || d.Of(Hits) != 900 || math.Abs(d.Of(RecursionMean)-mean) > 1e-9 || d.Of(Uptime) == 0 {
		t.Errorf("got %v", d.Values)
	}
	if slow, ok := d.Slower(1); !ok || slow != 1 {
		t.Errorf("of the hundred new recursions %v are slow (%v)", slow, ok)
	}
	if _, err := Since(second, first); !errors.Is(err, ErrRestarted) {
		t.Errorf("counters that fell: %v", err)
	}
	other, err := Parse(recorded(t, "dnsmasq-2.90"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Since(other, first); err == nil {
		t.Error("two servers are subtracted")
	}
	status, err := Parse(recorded(t, "rndc-9.18"))
	if err != nil {
		t.Fatal(err)
	}
	named, err := Parse(recorded(t, "bind-9.18.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := named.Merge(status); err != nil || named.Of(Workers) != 2 || named.Of(Queries) != 1689 {
		t.Errorf("joined: %v, %v", named.Values, err)
	}
	if named.Merge(other) == nil {
		t.Error("two servers are joined")
	}
}

// TestSinceOfAnotherStart subtracts readings of two starts. The later has counters at least as
// high, so they passed for those of one start.
func TestSinceOfAnotherStart(t *testing.T) {
	for name, change := range map[string]*strings.Replacer{
		"unbound-1.17":  strings.NewReplacer("time.now=1795654985.720660", "time.now=1795658585.720660"),
		"bind-9.18.xml": strings.NewReplacer("2026-11-26T01:03:", "2026-11-26T02:03:"),
		"powerdns-4.8":  strings.NewReplacer("uptime\t", "uptime\t0."),
	} {
		text := string(recorded(t, name))
		later := change.Replace(text)
		if later == text {
			t.Fatalf("%s: the later reading is the earlier one", name)
		}
		first, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Since(first, first); err != nil {
			t.Errorf("%s: one start: %v", name, err)
		}
		second, err := Parse([]byte(later))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Since(first, second); !errors.Is(err, ErrRestarted) {
			t.Errorf("%s: two starts: %v", name, err)
		}
	}
	for _, c := range []struct {
		before, after []int
		want          bool
	}{{nil, nil, false}, {[]int{1}, []int{1}, false}, {[]int{1, 2}, []int{2, 3}, false}, {[]int{1}, []int{2}, true}} {
		if got := replaced(c.before, c.after); got != c.want {
			t.Errorf("processes %v, then %v: %v", c.before, c.after, got)
		}
	}
}

// TestCancelEndsAReading asks a server that accepts and says nothing, as one that is stopped: an
// interrupt waited for each of a dozen exchanges.
func TestCancelEndsAReading(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		cancel()
		if err == nil {
			<-t.Context().Done()
			_ = conn.Close() // nothing is unwritten
		}
	}()
	defer l.Close()
	_, err = exchange(ctx, l.Addr().String(), []byte("stats\n"), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestUnboundLive reads what the control socket of Unbound 1.17.1 answered to get_option, status
// and dump_infra.
func TestUnboundLive(t *testing.T) {
	text := "option.msg-cache-size=4194304\noption.rrset-cache-size=1048576\noption.num-threads=2\n" +
		"option.num-queries-per-thread=1024\noption.log-queries=no\noption.log-replies=no\noption.verbosity=1\n" +
		"option.qname-minimisation=yes\noption.prefetch=no\noption.incoming-num-tcp=10\n" +
		"option.module-config=validator iterator\n" + string(recorded(t, "unbound-1.17")) +
		"version: 1.17.1\nverbosity: 1\nthreads: 2\nuptime: 3 seconds\n" +
		"127.0.0.9@5300 . ttl 898 ping 54 var 25 rtt 154 rto 154 tA 0 tAAAA 0 tother 0 ednsknown 1 edns 0 delay 0 " +
		"lame dnssec 0 rec 0 A 0 other 0\n" +
		"127.0.0.7 bench.test. ttl 898 ping 0 var 94 rtt 376 rto 376 tA 0 tAAAA 0 tother 0 ednsknown 1 edns 0 delay 0 " +
		"lame dnssec 0 rec 1 A 0 other 0\n"
	s, err := parseUnbound([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[Name]float64{KnownServers: 2, LameServers: 1, Workers: 2, RecursingLimit: 1024,
		TCPLimit: 10, QueryLog: 0, Minimisation: 1, Prefetch: 0, Validation: 1, CacheLimit: 1048576,
		CacheBytes: 901940, CacheFill: 901940.0 / 1048576} {
		if got, ok := s.Get(name); !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	if s.Version != "1.17.1" {
		t.Errorf("version %q", s.Version)
	}
	for name := range s.Values {
		if strings.HasPrefix(string(name), settingPrefix) {
			t.Errorf("%s is no name of a value", name)
		}
	}
}

// TestKnotProcesses adds up two processes that share a cache.
func TestKnotProcesses(t *testing.T) {
	one := `{"v":"5.6.0","size":104857600,"debug":false,"s":{"answer.total":10,"answer.cached":4,"request.total":10,` +
		`"answer.slow":1,"answer.1ms":9},"c":{"usage_percent":25,"count_entries":7,"clear":0},` +
		`"w":{"udp":6,"tcp":1,"tls":0,"timeout":2,"dropped":0,"concurrent":0}}` + "\n"
	s, err := Parse([]byte(one + one))
	if err != nil || s.Version != "5.6.0" {
		t.Fatal(s.Version, err)
	}
	for name, want := range map[Name]float64{Queries: 20, Hits: 8, Misses: 12, Upstream: 14, UpstreamTruncated: 2,
		UpstreamTimeouts: 4, CacheFill: 0.25, CacheLimit: 104857600, CacheBytes: 26214400, Entries: 7, Workers: 2,
		QueryLog: 0} {
		if got, ok := s.Get(name); !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
}

// TestResolvedVarlink reads the reply of io.systemd.Resolve.Monitor.DumpStatistics, whose fields
// systemd describes in varlink-io.systemd.Resolve.Monitor.c.
func TestResolvedVarlink(t *testing.T) {
	s, err := Parse([]byte(`{"parameters":{"transactions":{"currentTransactions":1,"totalTransactions":200,` +
		`"totalTimeouts":9,"totalTimeoutsServedStale":0,"totalFailedResponses":3,"totalFailedResponsesServedStale":0},` +
		`"cache":{"size":5,"hits":70,"misses":130},"dnssec":{"secure":0,"insecure":0,"bogus":2,"indeterminate":0}}}` +
		"\x00"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[Name]float64{Queries: 200, Hits: 70, Misses: 130, UpstreamTimeouts: 9,
		UpstreamErrors: 3, Bogus: 2, Upstream: 200, Recursing: 1} {
		if got := s.Of(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if _, err := parseResolvedJSON([]byte(`{"error":"org.varlink.service.MethodNotFound"}`)); err == nil {
		t.Error("an error is read as statistics")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{"", "{}", "hello", "<statistics/>", `{"json-stats-version":"1.7"}`,
		"+++ Statistics Dump +++ (1)\n", "recursive clients: x\nversion: \n", "total.num.queries=-1\n", "answer.total",
		`{"answer.total":"x"}`, `[{"type":"StatisticItem"}]`, "packetcache-hits 1\nquestions\n",
		"hits.bind misses.bind", `{"totalTransactions":1}`, "Cache Hits: 5\n"} {
		if s, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

// FuzzParse gives strangers' bytes to every parser: what one accepts has finite values with
// sources, and subtracts from itself to nothing.
func FuzzParse(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if !file.IsDir() {
			f.Add(recorded(f, file.Name()))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		for name, v := range s.Values {
			if math.IsNaN(v.N) || math.IsInf(v.N, 0) || v.Source == "" {
				t.Errorf("%s is %+v", name, v)
			}
		}
		d, err := Since(s, s)
		if err != nil {
			t.Fatal(err)
		}
		if d.Of(Queries) != 0 || d.Of(Misses) != 0 {
			t.Errorf("a reading less itself is %v", d.Values)
		}
	})
}
