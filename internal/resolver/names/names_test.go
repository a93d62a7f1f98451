package names_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// ask composes the query with an index and returns what a server reads of it.
func ask(t *testing.T, s *names.Set, index uint32, serial uint64) message.Query {
	t.Helper()
	b := make([]byte, s.Longest())
	n := s.Compose(b, index, serial, 4711)
	q, err := message.ParseQuery(b[:n])
	if err != nil {
		t.Fatal(err)
	}
	if q.ID != 4711 {
		t.Errorf("id is %d", q.ID)
	}
	if got := s.Question(make([]byte, s.Longest()), index, serial); string(got) != string(q.Question) {
		t.Errorf("question is %x, and %x in the query", got, q.Question)
	}
	return q
}

func TestReadList(t *testing.T) {
	s, err := names.Read(strings.NewReader(`
# of dnsperf
www.example.org A
example.org. MX NOERROR
; and with an expectation
host.example.org aaaa 2001:db8::1
gone.example.org TYPE65 nxdomain
`), message.QueryOptions{UDPBytes: 1232, DNSSECOK: true, Recursion: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 4 {
		t.Fatalf("%d questions", s.Len())
	}
	if q := ask(t, s, 1, 0); message.NameText(q.Name) != "example.org." || q.Type != message.TypeMX || !q.DNSSECOK ||
		q.UDPBytes != 1232 || !q.Recursion {
		t.Errorf("second question is %+v", q)
	}
	if e, ok := s.Expected(2); !ok || len(e.Address) != 16 || e.Code != message.NoError {
		t.Errorf("third expectation is %+v", e)
	}
	if e, ok := s.Expected(3); !ok || e.Code != message.NameError {
		t.Errorf("fourth expectation is %+v", e)
	}
	if _, ok := s.Expected(0); ok {
		t.Error("the first question has no expectation")
	}
	// Two workers ask every question once before any a second time.
	one, two := s.Drawer(0, 2, 1, 0), s.Drawer(1, 2, 1, 0)
	var order []uint32
	for range 4 {
		a, _ := one.Next()
		b, _ := two.Next()
		order = append(order, a, b)
	}
	for i, index := range order {
		if index != uint32(i%4) {
			t.Fatalf("order is %v", order)
		}
	}
}

func TestReadLogs(t *testing.T) {
	for name, log := range map[string]string{
		"bind": `24-Nov-2026 02:00:00.000 general: info: running
24-Nov-2026 02:00:00.001 queries: info: client @0x7f2f5c0 192.0.2.1#4711 (www.example.org): query: www.example.org IN AAAA +E(0)K (192.0.2.53)
24-Nov-2026 02:00:00.002 general: info: zone loaded
24-Nov-2026 02:00:00.003 queries: info: client @0x7f2f5c0 192.0.2.1#4711 (mail.example.org): query: mail.example.org IN A + (192.0.2.53)`,
		// Lines in these forms are in public repositories; the names are ours.
		"bind with views": `20-Jan-2021 10:10:10.536 client 10.0.0.30#7216 (www.example.org): view internal: query: www.example.org IN AAAA + (10.0.0.12)
<30> 2019-01-07 16:18:01 dev named[15850]: 07-Jan-2019 16:18:01.488 client 127.0.0.1#53260 (mail.example.org): view internal: query: mail.example.org IN A + (127.0.0.1)`,
		"bind 9.4": `05-Mar-2009 11:00:00.000 client 192.0.2.1#32770: query: www.example.org IN AAAA +
05-Mar-2009 11:00:00.001 client 192.0.2.1#32770: view internal: query: mail.example.org IN A`,
		"bind on windows": "\ufeff24-Nov-2026 02:00:00.001 client 192.0.2.1#4711 (www.example.org): query: " +
			"www.example.org IN AAAA +E(0)K (192.0.2.53)\r\n24-Nov-2026 02:00:00.003 client 192.0.2.1#4711 " +
			"(mail.example.org): query: mail.example.org IN A + (192.0.2.53)\r\n",
		"unbound in the journal": `Dec 23 18:30:10 chaos unbound[1189013]: [1189013:0] info: start of service (unbound 1.17.1).
Dec 23 18:30:11 chaos unbound[1189013]: [1189013:0] info: 127.0.0.1 www.example.org. AAAA IN
Dec 23 18:30:11 chaos unbound[1189013]: [1189013:0] info: 127.0.0.1 www.example.org. AAAA IN NOERROR 0.001234 0 31
<30>1 2021-01-13T14:52:06.934860+01:00 ote unbound - LOG [x]  [596451:0] info: 127.0.0.1 mail.example.org. A IN`,
		"unbound": `[1700000000] unbound[1:0] notice: init module 0: iterator
[1700000000] unbound[1:0] info: 192.0.2.1 www.example.org. AAAA IN
[1700000001] unbound[1:0] info: 2001:db8::1 mail.example.org. A IN`,
		"dnsmasq": `Nov 24 02:00:00 dnsmasq[1]: started, version 2.90 cachesize 150
Nov 24 02:00:00 dnsmasq[1]: query[AAAA] www.example.org from 192.0.2.1
Nov 24 02:00:00 dnsmasq[1]: forwarded www.example.org to 192.0.2.53
Nov 24 02:00:01 dnsmasq[1]: query[A] mail.example.org from 192.0.2.1`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := names.Read(strings.NewReader(log), message.QueryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Len() != 2 {
				t.Fatalf("%d questions", s.Len())
			}
			if q := ask(t, s, 0, 0); message.NameText(q.Name) != "www.example.org." || q.Type != message.TypeAAAA {
				t.Errorf("first question is %s %s", message.NameText(q.Name), q.Type)
			}
			if q := ask(t, s, 1, 0); message.NameText(q.Name) != "mail.example.org." || q.Type != message.TypeA {
				t.Errorf("second question is %s %s", message.NameText(q.Name), q.Type)
			}
		})
	}
}

// TestReadForeignText reads a list as programs of other systems write it.
func TestReadForeignText(t *testing.T) {
	s, err := names.Read(strings.NewReader("\ufeff; a list\r\nwww.example.org A ; web\r\n\r\n\tmail.example.org\t15 \r"),
		message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if q := ask(t, s, 1, 0); s.Len() != 2 || message.NameText(q.Name) != "mail.example.org." || q.Type != message.TypeMX {
		t.Errorf("%d questions, the second is %s %s", s.Len(), message.NameText(q.Name), q.Type)
	}
	if s, err = names.Read(strings.NewReader("\ufeffwww.example.org A"), message.QueryOptions{}); err != nil {
		t.Fatal(err)
	}
	if q := ask(t, s, 0, 0); message.NameText(q.Name) != "www.example.org." {
		t.Errorf("the first name is %q", message.NameText(q.Name))
	}
	for text, want := range map[string]string{
		"\xff\xfew\x00w\x00w\x00 \x00A\x00":                   "UTF-16",
		"\x1f\x8b\x08\x00":                                    "compressed: .*gzip",
		"a.example " + strings.Repeat("T", 5000):              "line 1: .{1,300}neither a mnemonic",
		"www.example.org A\nwww.example.net":                  "line 2: .*www.example.net. is not a name, a type",
		strings.Repeat("x", 300) + ".example A":               "line 1: .*63",
		strings.Repeat(strings.Repeat("x", 60)+".", 5) + " A": "line 1: .*255",
		"\x00\x01" + strings.Repeat("z", 5000):                `line 1: .{1,700} is not a name`,
	} {
		_, err := names.Read(strings.NewReader(text), message.QueryOptions{})
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || len(err.Error()) > 500 {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "www.example.org", "www.example.org NOTYPE", "a..b A",
		"www.example.org A maybe"} {
		if _, err := names.Read(strings.NewReader(text), message.QueryOptions{}); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestModel(t *testing.T) {
	const draws = 100_000
	shares, err := names.ParseShares("A=3,AAAA=1")
	if err != nil {
		t.Fatal(err)
	}
	m := names.Model{Domain: "bench.test", Population: 1000, Exponent: 1.1, HitRatio: 0.8, NXRatio: 0.25, Types: shares,
		Seed: 5}
	s, err := m.New(message.QueryOptions{UDPBytes: 1232})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Drawer(0, 1, 5, 0)
	seen := map[string]int{}
	var fresh, missing, quad float64
	for range draws {
		index, serial := d.Next()
		e, _ := s.Expected(index)
		q := ask(t, s, index, serial)
		name := message.NameText(q.Name)
		seen[name]++
		if name[0] == 'u' {
			if fresh++; seen[name] > 1 {
				t.Fatalf("%s is asked for a second time", name)
			}
		}
		if gone := strings.HasSuffix(name, ".gone.bench.test."); gone != (e.Code == message.NameError) {
			t.Fatalf("%s is expected to say %v", name, e.Code)
		} else if gone {
			missing++
		}
		if q.Type == message.TypeAAAA {
			quad++
		}
	}
	// Five standard deviations of a share of 100 000 draws are below 0.008.
	if got := fresh / draws; math.Abs(got-0.2) > 0.008 {
		t.Errorf("%g of the queries are fresh, want 0.2", got)
	}
	if missing == 0 || quad == 0 {
		t.Errorf("%g missing names, %g queries for AAAA", missing, quad)
	}
	if first, tenth := seen["h0.live.bench.test."], seen["h9.live.bench.test."]; first < 5*tenth {
		t.Errorf("the first name was asked for %d times, the tenth %d times", first, tenth)
	}
	for _, bad := range []names.Model{{Population: 0}, {Population: 1, HitRatio: 2}, {Population: 1, NXRatio: -1},
		{Population: 1, Exponent: math.NaN()}, {Population: 1, Domain: "a..b"}} {
		if _, err := bad.New(message.QueryOptions{}); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("www.example.org A\n")
	f.Add("client @0x1 192.0.2.1#1 (a): query: a IN A + (192.0.2.53)\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := names.Read(strings.NewReader(text), message.QueryOptions{UDPBytes: 1232})
		if err != nil {
			return
		}
		for i := range uint32(s.Len()) {
			ask(t, s, i, 0)
		}
	})
}

// TestFreshNames draws fresh names for several workers, seeds and loads in a row. The names of a
// second load were those of the first, which a cache had. After a million those of one seed were
// those of the next.
func TestFreshNames(t *testing.T) {
	s, err := names.Model{Domain: "bench.test", Population: 1}.New(message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const each = 1 << 40 // of one load
	var first []uint64
	for _, d := range []*names.Drawer{s.Drawer(0, 2, 1, 0), s.Drawer(1, 2, 1, 0), s.Drawer(0, 2, 2, 0),
		s.Drawer(0, 2, 1, each)} {
		_, serial := d.Next()
		if _, next := d.Next(); next != serial+1 {
			t.Fatalf("the serial number %x is followed by %x", serial, next)
		}
		for _, other := range first {
			if serial-other < each || other-serial < each {
				t.Errorf("names from %x and from %x on meet", serial, other)
			}
		}
		first = append(first, serial)
	}
}

// TestPopularity compares shares of the queries with Zipf's law: those of the first name, the first
// ten, and the less popular half. Below an exponent of 1 the tail was that of 1: with 0.5 the less
// popular half got 9 % of the queries instead of 29 %.
func TestPopularity(t *testing.T) {
	for _, m := range []names.Model{{Population: 1, Exponent: 1}, {Population: 2, Exponent: 1e-9},
		{Population: 1000, Exponent: 10}} {
		m.Domain, m.HitRatio = "bench.test", 1
		s, err := m.New(message.QueryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := s.Drawer(0, 1, 7, 0)
		for range 1000 {
			if index, _ := d.Next(); int(index) >= m.Population {
				t.Fatalf("%+v: name %d", m, index)
			}
		}
	}
	const population, draws = 10_000, 200_000
	for _, exponent := range []float64{0.3, 0.5, 0.9, 1, 1.5, 3} {
		s, err := names.Model{Domain: "bench.test", Population: population, Exponent: exponent, HitRatio: 1}.New(
			message.QueryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all, groups := 0.0, [3]float64{}
		group := func(index int, n float64, shares *[3]float64) {
			for i, in := range [3]bool{index == 0, index < 10, index >= population/2} {
				if in {
					shares[i] += n
				}
			}
		}
		for i := range population {
			p := math.Pow(float64(i+1), -exponent)
			all += p
			group(i, p, &groups)
		}
		var drawn [3]float64
		d := s.Drawer(0, 1, 7, 0)
		for range draws {
			index, _ := d.Next()
			group(int(index), 1, &drawn)
		}
		for i, name := range []string{"first name", "first ten", "less popular half"} {
			want, got := groups[i]/all, drawn[i]/draws
			if math.Abs(got-want) > 6*math.Sqrt(want*(1-want)/draws) { // of a fixed seed
				t.Errorf("exponent %g: the %s got %.4f of the queries, want %.4f", exponent, name, got, want)
			}
		}
	}
}
