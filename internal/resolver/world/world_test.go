package world

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/server"
)

// ask returns the reply of a server, as another library reads it.
func ask(t *testing.T, a authority, name string, kind message.Type) dnsmessage.Message {
	t.Helper()
	wire, err := message.AppendName(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	packed := message.AppendQuery(nil, wire, kind, message.QueryOptions{UDPBytes: 1232})
	q, err := message.ParseQuery(packed)
	if err != nil {
		t.Fatal(err)
	}
	reply := a.reply(q)
	var checked message.Answer
	if k := message.Check(reply, q.Question, &checked); k != message.Sound {
		t.Fatalf("the reply about %s is %v", name, k)
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAuthorities(t *testing.T) {
	_, servers := zones(300, 10)
	root, top, leaf, lame := servers[0], servers[1], servers[2], servers[4]
	for _, c := range []struct {
		name              string
		at                authority
		ask               string
		kind              message.Type
		code              dnsmessage.RCode
		authoritative     bool
		answer, authority int
	}{
		{"the root knows its servers", root, ".", message.TypeNS, 0, true, 1, 0},
		{"the root refers", root, "h1.live.bench.test", message.TypeA, 0, false, 0, 1},
		{"the top refers to three", top, "h1.live.bench.test", message.TypeA, 0, false, 0, 3},
		{"the root has no other top", root, "example.org", message.TypeA, dnsmessage.RCodeNameError, true, 0, 1},
		{"a name", leaf, "h1.LIVE.bench.test", message.TypeA, 0, true, 1, 0},
		{"a name without this type", leaf, "h1.live.bench.test", message.TypeTXT, 0, true, 0, 1},
		{"a name above names", leaf, "live.bench.test", message.TypeA, 0, true, 0, 1},
		{"no name", leaf, "h1.gone.bench.test", message.TypeA, dnsmessage.RCodeNameError, true, 0, 1},
		{"a server's address", leaf, "ns2.bench.test", message.TypeA, 0, true, 1, 0},
		{"the changing record", leaf, "fresh.bench.test", message.TypeA, 0, true, 1, 0},
		{"a zone that is not served", leaf, "example.org", message.TypeA, dnsmessage.RCodeRefused, false, 0, 0},
		{"a lame server", lame, "h1.live.bench.test", message.TypeA, dnsmessage.RCodeRefused, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ask(t, c.at, c.ask, c.kind)
			if m.RCode != c.code || m.Authoritative != c.authoritative || len(m.Answers) != c.answer ||
				len(m.Authorities) != c.authority {
				t.Errorf("got %v", m.GoString())
			}
		})
	}
	fresh := func() netip.Addr {
		m := ask(t, leaf, "fresh.bench.test", message.TypeA)
		return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
	}
	before := fresh()
	leaf.zone.fresh.Store(secondData)
	if after := fresh(); before.String() != "198.51.100.1" || after.String() != "198.51.100.2" {
		t.Errorf("the record changes from %v to %v", before, after)
	}
}

// TestCounters reads what the room of package server parses.
func TestCounters(t *testing.T) {
	seven := uint64(7)
	for text, want := range map[string]Counters{
		`{"json-stats-version":"1.7","views":{"_default":{"resolver":{"stats":{"Queryv4":5},"cachestats":` +
			`{"CacheHits":9,"QueryHits":30,"QueryMisses":10,"DeleteLRU":7}}},"_bind":{"resolver":{"cachestats":` +
			`{"QueryHits":5}}}}}`: {30, 10, &seven},
		"total.num.queries=4\ntotal.num.cachehits=3\ntotal.num.cachemiss=1\n": {3, 1, nil},
		"{\n    ['answer.cached'] = 3,\n    ['answer.total'] = 4,\n}":         {3, 1, nil},
	} {
		s, err := server.Parse([]byte(text))
		c := countersOf(s)
		if err != nil || c.Hits != want.Hits || c.Misses != want.Misses || (c.Evictions == nil) != (want.Evictions == nil) ||
			c.Evictions != nil && *c.Evictions != *want.Evictions {
			t.Errorf("%+v, %v, want %+v", c, err, want)
		}
	}
	for _, r := range Recursors() {
		if !slices.Contains([]server.Kind{server.BIND, server.Unbound, server.Knot}, server.Kind(r)) {
			t.Errorf("package server does not know %s", r)
		}
	}
}

func TestVariants(t *testing.T) {
	all := Variants(BIND)
	if len(all) != 9 || all[0].Options != nil || len(all[8].Options) != 6 || len(all[8].Scaled) != 6 {
		t.Fatalf("got %+v", all)
	}
	for _, r := range Recursors() {
		seen := map[string]bool{}
		for _, v := range Variants(r) {
			if seen[v.Name] || v.Scaled != nil && len(v.Scaled) != len(v.Options) {
				t.Errorf("%s: %+v", r, v)
			}
			seen[v.Name] = true
		}
	}
}

func TestScaled(t *testing.T) {
	got := scaled([]string{"max-cache-ttl 60;", "prefetch 2 9;", "max-cache-size 100K;", "cache-max-ttl: 300",
		"cache.max_ttl(60)", "max-ncache-ttl 1;"})
	want := []string{"max-cache-ttl 2;", "max-cache-size 100K;", "cache-max-ttl: 10", "cache.max_ttl(2)",
		"max-ncache-ttl 1;"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRemarks(t *testing.T) {
	got := remarks([]string{
		"24-Nov-2026 03:37:18.000 /tmp/x/named.conf:12: disabling lame cache despite lame-ttl > 0",
		"24-Nov-2026 03:37:18.001 /tmp/x/named.conf:12: disabling lame cache despite lame-ttl > 0",
		"24-Nov-2026 03:37:18.002 compiled with a lame-ttl library",
	}, []string{"lame-ttl 900;"})
	if len(got) != 1 || got[0] != "named.conf:12: disabling lame cache despite lame-ttl > 0" {
		t.Errorf("got %q", got)
	}
}

// TestReasonOf finds the line that says why a program ended, in what real ones wrote.
func TestReasonOf(t *testing.T) {
	for want, lines := range map[string][]string{
		"named.conf:1: expected integer and optional unit or percent near 'many'": {
			"26-Nov-2026 15:32:45.908 loading configuration from '/tmp/n/named.conf'",
			"26-Nov-2026 15:32:45.908 the working directory is now '/tmp/n'",
			"26-Nov-2026 15:32:45.908 /tmp/n/named.conf:1: expected integer and optional unit or percent near 'many'",
			"26-Nov-2026 15:32:45.908 loading configuration: failure",
			"26-Nov-2026 15:32:45.908 exiting (due to fatal error)"},
		"unbound.conf:14: error: unknown keyword 'nonsense'": {
			"/tmp/n/unbound.conf:14: error: unknown keyword 'nonsense'", "read /tmp/n/unbound.conf failed: 1 errors"},
		"Killed": {"Killed"},
	} {
		if got := reasonOf(lines); got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
	}
}
