package message_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/linerate/linerate/internal/resolver/message"
)

// question returns the question of a query for a name, as sent.
func question(t testing.TB, name string, kind message.Type) []byte {
	t.Helper()
	wire, err := message.AppendName(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	return message.AppendQuery(nil, wire, kind, message.QueryOptions{})[message.HeaderBytes:]
}

// full is an answer with a record of every kind that Check looks into, packed by another library.
func full(t testing.TB) []byte {
	t.Helper()
	n := dnsmessage.MustNewName
	header := func(name string, kind dnsmessage.Type, ttl uint32) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: n(name), Type: kind, Class: dnsmessage.ClassINET, TTL: ttl}
	}
	var opt dnsmessage.ResourceHeader
	if err := opt.SetEDNS0(1232, dnsmessage.RCode(16), true); err != nil {
		t.Fatal(err)
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: 7, Response: true, RecursionDesired: true, RecursionAvailable: true,
			AuthenticData: true},
		Questions: []dnsmessage.Question{{Name: n("www.bench.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		Answers: []dnsmessage.Resource{
			{Header: header("www.bench.test.", dnsmessage.TypeCNAME, 300),
				Body: &dnsmessage.CNAMEResource{CNAME: n("host1.bench.test.")}},
			{Header: header("host1.bench.test.", dnsmessage.TypeA, 60),
				Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}},
			{Header: header("host1.bench.test.", dnsmessage.TypeAAAA, 90),
				Body: &dnsmessage.AAAAResource{AAAA: [16]byte{0x20, 1, 0x0d, 0xb8, 15: 1}}},
			{Header: header("bench.test.", dnsmessage.TypeMX, 90),
				Body: &dnsmessage.MXResource{Pref: 10, MX: n("mail.bench.test.")}},
			{Header: header("bench.test.", dnsmessage.TypeTXT, 90),
				Body: &dnsmessage.TXTResource{TXT: []string{"any octets"}}},
			{Header: header("_dns._udp.bench.test.", dnsmessage.TypeSRV, 90),
				Body: &dnsmessage.SRVResource{Port: 53, Target: n("ns.bench.test.")}},
		},
		Authorities: []dnsmessage.Resource{
			{Header: header("bench.test.", dnsmessage.TypeNS, 90), Body: &dnsmessage.NSResource{NS: n("ns.bench.test.")}},
			{Header: header("bench.test.", dnsmessage.TypeSOA, 90),
				Body: &dnsmessage.SOAResource{NS: n("ns.bench.test."), MBox: n("root.bench.test."), Serial: 1}},
		},
		Additionals: []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}},
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheckReadsWhatAnotherLibraryPacked(t *testing.T) {
	b := full(t)
	var a message.Answer
	if k := message.Check(b, question(t, "WWW.bench.TEST", message.TypeA), &a); k != message.Sound {
		t.Fatalf("kind is %v", k)
	}
	if a.Code != message.BadVersion || !a.EDNS || !a.Authentic || a.Truncated || a.Records != 6 || a.MinTTL != 60 {
		t.Errorf("got %+v", a)
	}
	if !a.HasAddress(b, []byte{192, 0, 2, 1}) || a.HasAddress(b, []byte{192, 0, 2, 2}) {
		t.Error("the address 192.0.2.1, and no other, is in the answer")
	}
	if !a.HasAddress(b, []byte{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Error("the IPv6 address is in the answer")
	}
}

// short is the smallest sound answer: header, question, one A record behind a pointer.
func short(t testing.TB) (answer, asked []byte) {
	asked = question(t, "a.test", message.TypeA)
	answer = []byte{0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}
	answer = append(answer, asked...)
	answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
	return answer, asked
}

func TestCheckNamesEveryFault(t *testing.T) {
	answer, asked := short(t)
	owner := len(asked) + message.HeaderBytes
	change := func(at int, octets ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], octets); return b }
	}
	record := func(kind message.Type, data ...byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b = b[:owner+2]
			b = binary.BigEndian.AppendUint16(b, uint16(kind))
			b = append(b, 0, 1, 0, 0, 0, 60)
			b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
			return append(b, data...)
		}
	}
	opt := []byte{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   message.Kind
	}{
		{"nothing", func(b []byte) []byte { return b }, message.Sound},
		{"half a header", func(b []byte) []byte { return b[:11] }, message.Short},
		{"a query", change(2, 1), message.NotAnAnswer},
		{"opcode 2", change(2, 0x91), message.OtherOpcode},
		{"no question", change(5, 0), message.NoQuestion},
		{"two questions", change(5, 2), message.NoQuestion},
		{"another name", change(13, 'b'), message.OtherQuestion},
		{"another type", change(owner-3, 2), message.OtherQuestion},
		{"another class", change(owner-1, 3), message.OtherQuestion},
		{"the type in another case", change(owner-3, 1|0x20), message.OtherQuestion},
		{"a name cut short", func(b []byte) []byte { return b[:owner-5] }, message.OtherQuestion},
		{"a pointer to itself", change(owner, 0xc0, byte(owner)), message.CompressionLoop},
		{"a pointer ahead", change(owner, 0xc0, byte(owner+6)), message.CompressionLoop},
		{"a pointer into the header", change(owner, 0xc0, 4), message.Malformed},
		{"a reserved label", change(owner, 0x80), message.Malformed},
		{"a record that is missing", func(b []byte) []byte { return b[:owner] }, message.Malformed},
		{"half a pointer", func(b []byte) []byte { return b[:owner+1] }, message.Malformed},
		{"half a record", func(b []byte) []byte { return b[:len(b)-5] }, message.Malformed},
		{"an address of three octets", record(message.TypeA, 192, 0, 2), message.Malformed},
		{"an IPv6 address of four", record(message.TypeAAAA, 192, 0, 2, 1), message.Malformed},
		{"a name server", record(message.TypeNS, 2, 'n', 's', 0xc0, 12), message.Sound},
		{"a name server that loops", record(message.TypeNS, 2, 'n', 's', 0xc0, byte(owner+12)), message.CompressionLoop},
		{"a name server and a rest", record(message.TypeNS, 0xc0, 12, 1), message.Malformed},
		{"a mail server", record(message.TypeMX, 0, 10, 0xc0, 12), message.Sound},
		{"a mail server without a name", record(message.TypeMX, 0, 10), message.Malformed},
		{"a service", record(message.TypeSRV, 0, 0, 0, 0, 0, 53, 0xc0, 12), message.Sound},
		{"a start of authority cut short", record(message.TypeSOA, 0xc0, 12, 0xc0, 12, 1), message.Malformed},
		{"an unknown type", record(65280, 1, 2, 3), message.Sound},
		{"an octet too many", func(b []byte) []byte { return append(b, 0) }, message.Trailing},
		{"one OPT record", func(b []byte) []byte { b[11] = 1; return append(b, opt...) }, message.Sound},
		{"two OPT records", func(b []byte) []byte { b[11] = 2; return append(append(b, opt...), opt...) },
			message.BadEDNS},
		{"an OPT record among the answers", record(message.TypeOPT), message.BadEDNS},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a message.Answer
			if k := message.Check(c.change(append([]byte(nil), answer...)), asked, &a); k != c.want {
				t.Errorf("kind is %v, want %v", k, c.want)
			}
		})
	}
}

// agree fails where Check accepts what another library cannot read, or reads it differently.
func agree(t *testing.T, m, asked []byte) message.Kind {
	t.Helper()
	var a message.Answer
	k := message.Check(m, asked, &a)
	if k != message.Sound {
		return k
	}
	var p dnsmessage.Parser
	h, err := p.Start(m)
	if err != nil {
		t.Fatalf("check accepts %x, whose header is unreadable: %v", m, err)
	}
	if !h.Response || h.Truncated != a.Truncated || h.Authoritative != a.Authoritative ||
		h.RCode&15 != dnsmessage.RCode(a.Code)&15 {
		t.Fatalf("check read %+v, the other library %+v", a, h)
	}
	for _, skip := range []func() error{p.SkipAllQuestions, p.SkipAllAnswers, p.SkipAllAuthorities, p.SkipAllAdditionals} {
		if err := skip(); err != nil {
			t.Fatalf("check accepts %x, which the other library cannot read: %v", m, err)
		}
	}
	return k
}

// TestMalformedAnswers changes one to four octets of a sound answer, or its length, 10 000 times.
func TestMalformedAnswers(t *testing.T) {
	sound := full(t)
	asked := question(t, "www.bench.test", message.TypeA)
	rnd := rand.New(rand.NewPCG(21, 4))
	var seen [message.Kinds]int
	for range 10_000 {
		m := append([]byte(nil), sound...)
		for range 1 + rnd.IntN(4) {
			m[rnd.IntN(len(m))] = byte(rnd.Uint32())
		}
		if rnd.IntN(4) == 0 {
			m = m[:rnd.IntN(len(m))]
		}
		seen[agree(t, m, asked)]++
	}
	for _, k := range []message.Kind{message.Short, message.NotAnAnswer, message.OtherOpcode, message.NoQuestion,
		message.OtherQuestion, message.CompressionLoop, message.Malformed, message.Trailing, message.BadEDNS} {
		if seen[k] == 0 {
			t.Errorf("no answer was of the kind %v: %v", k, seen)
		}
	}
	for k, n := range seen {
		if n > 0 {
			t.Logf("%s %d", message.Kind(k), n)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(full(f))
	answer, _ := short(f)
	f.Add(answer)
	f.Fuzz(func(t *testing.T, m []byte) {
		asked := question(t, "www.bench.test", message.TypeA)
		agree(t, m, asked)
		if len(m) > message.HeaderBytes+len(asked) {
			copy(m[message.HeaderBytes:], asked)
			agree(t, m, asked)
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	wire, err := message.AppendName(nil, "www.bench.test")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message.AppendQuery(nil, wire, message.TypeA, message.QueryOptions{Recursion: true, UDPBytes: 1232}))
	f.Fuzz(func(t *testing.T, m []byte) {
		q, err := message.ParseQuery(m)
		if err != nil {
			return
		}
		again, err := message.AppendName(nil, message.NameText(q.Name))
		if err != nil || string(again) != string(q.Name) {
			t.Fatalf("name %x reads %q, which packs to %x, %v", q.Name, message.NameText(q.Name), again, err)
		}
		if strings.Contains(string(q.Name), ".") {
			return // dnsmessage refuses a dot within a label, which RFC 1035 permits
		}
		var p dnsmessage.Parser
		if _, err := p.Start(m); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Question(); err != nil || uint16(got.Type) != uint16(q.Type) {
			t.Fatalf("question is %v, %v; ours has type %v", got, err, q.Type)
		}
	})
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"": "\x00", ".": "\x00", "a.test": "\x01a\x04test\x00", "a.test.": "\x01a\x04test\x00",
		`a\.b.test`: "\x03a.b\x04test\x00", `\255\\`: "\x02\xff\\\x00",
	} {
		if got, err := message.AppendName(nil, name); err != nil || string(got) != want {
			t.Errorf("%q packs to %q, %v; want %q", name, got, err, want)
		}
	}
	long := "a123456789012345678901234567890123456789012345678901234567890123"
	for _, name := range []string{"..", "a..b", ".a", long, `a\`, `\256`,
		fmt.Sprintf("%[1]s.%[1]s.%[1]s.%[1]s.xy", long[:62])} {
		if got, err := message.AppendName(nil, name); err == nil {
			t.Errorf("%q packs to %q, want an error", name, got)
		}
	}
}

// BenchmarkCheck is the cost of checking one answer, against a library that reads the same.
func BenchmarkCheck(b *testing.B) {
	m, asked := short(b)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		var a message.Answer
		for b.Loop() {
			if message.Check(m, asked, &a) != message.Sound {
				b.Fatal("not sound")
			}
		}
	})
	b.Run("dnsmessage", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var p dnsmessage.Parser
			if _, err := p.Start(m); err != nil {
				b.Fatal(err)
			}
			if _, err := p.Question(); err != nil {
				b.Fatal(err)
			}
			if err := p.SkipAllQuestions(); err != nil {
				b.Fatal(err)
			}
			for {
				if _, err := p.AnswerHeader(); err != nil {
					break
				}
				if _, err := p.AResource(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
