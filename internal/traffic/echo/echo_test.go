package echo

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// replyTo turns a request as the pinger makes it into the reply that a host sends, IPv4 header
// included where the socket shows it.
func replyTo(e icmpEcho, request []byte) []byte {
	p := bytes.Clone(request)
	p[0] = icmpEchoReply
	if e.v6 {
		p[0] = icmp6EchoReply
	}
	if !e.v6 && e.kind == sys.EchoRaw {
		head := make([]byte, 24) // one word of options
		head[0] = 4<<4 | 6
		p = append(head, p...)
	}
	return p
}

func TestEchoRoundTrip(t *testing.T) {
	token := Token{1, 2, 3}
	for _, e := range []icmpEcho{
		{kind: sys.EchoPing}, {kind: sys.EchoPing, v6: true}, {kind: sys.EchoRaw, id: 0xbeef},
		{kind: sys.EchoRaw, v6: true, id: 7},
	} {
		request := make([]byte, icmpHeaderBytes+56)
		putPing(request[icmpHeaderBytes:], token, 1<<40+5)
		e.finish(request, 5)
		if _, ok := e.payload(request); ok {
			t.Errorf("%+v: own request taken for a reply", e)
		}
		payload, ok := e.payload(replyTo(e, request))
		if !ok {
			t.Fatalf("%+v: reply not seen", e)
		}
		if sequence, ok := parsePing(payload, token); !ok || sequence != 1<<40+5 {
			t.Errorf("%+v: sequence %d, %v", e, sequence, ok)
		}
		if _, ok := parsePing(payload, Token{9}); ok {
			t.Errorf("%+v: foreign token accepted", e)
		}
		if e.kind == sys.EchoRaw {
			other := e
			other.id++
			if _, ok := e.payload(
				replyTo(e, func() []byte { p := bytes.Clone(request); other.finish(p, 5); return p }())); ok {
				t.Errorf("%+v: reply to another identifier accepted", e)
			}
		}
		if e.kind == sys.EchoRaw && !e.v6 && internetChecksum(request) != 0 {
			t.Errorf("checksum %#x does not verify", binary.BigEndian.Uint16(request[2:]))
		}
	}
}

// TestChecksumAgainstReference adds bit by bit what the loop adds in words, for every length of a
// packet.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func TestChecksumAgainstReference(t *testing.T) {
	b := engine.Pattern(1501)
	for n := range b {
		var sum uint64
		for i, v := range b[:n] {
			if i%2 == 0 {
				sum += uint64(v) << 8
			} else {
				sum += uint64(v)
			}
		}
		want := ^uint16(sum % 0xffff)
		got := internetChecksum(b[:n])
		// Ones' complement has two zeros.
		if got != want && !(got == 0 && want == 0xffff) {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// FuzzEchoReply feeds what a raw socket may deliver.
func FuzzEchoReply(f *testing.F) {
	for _, e := range []icmpEcho{{kind: sys.EchoPing}, {kind: sys.EchoRaw, id: 9},
		{kind: sys.EchoRaw, v6: true, id: 9}} {
		request := make([]byte, icmpHeaderBytes+echoHeaderBytes)
		putPing(request[icmpHeaderBytes:], Token{1}, 77)
		e.finish(request, 77)
		f.Add(replyTo(e, request), e.kind == sys.EchoRaw, e.v6)
	}
	f.Add([]byte{0x4f, 0, 0}, true, false)
	f.Fuzz(func(t *testing.T, b []byte, raw, v6 bool) {
		e := icmpEcho{kind: sys.EchoPing, v6: v6, id: 9}
		if raw {
			e.kind = sys.EchoRaw
		}
		p, ok := e.payload(b)
		if ok && len(p) > len(b)-icmpHeaderBytes {
			t.Fatalf("payload of %d bytes out of %d", len(p), len(b))
		}
		if sequence, ok := parsePing(p, Token{1}); ok {
			again := make([]byte, len(p))
			putPing(again, Token{1}, sequence)
			if !bytes.Equal(again[:echoHeaderBytes], p[:echoHeaderBytes]) {
				t.Fatalf("%x reads as %d", p, sequence)
			}
		}
	})
}

func TestEchoServerAnswersOnlyItsOwn(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	good, err := s.Register(loopback, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := s.Register(netip.MustParseAddr("192.0.2.1"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	packet := func(token Token, n int) []byte { return append(token[:], make([]byte, n)...) }
	now := time.Now()
	for _, c := range []struct {
		name string
		p    []byte
		from string
		at   time.Time
		want bool
	}{
		{"registered", packet(good, 8), "127.0.0.1", now, true},
		{"registered, IPv4 in IPv6", packet(good, 8), "::ffff:127.0.0.1", now, true},
		{"no token", packet(Token{}, 8), "127.0.0.1", now, false},
		{"other address", packet(good, 8), "192.0.2.1", now, false},
		{"token of another address", packet(foreign, 8), "127.0.0.1", now, false},
		{"expired", packet(good, 8), "127.0.0.1", now.Add(2 * time.Minute), false},
		{"too short", packet(good, 7), "127.0.0.1", now, false},
		{"empty", nil, "127.0.0.1", now, false},
	} {
		r := s.answer(c.p, netip.AddrPortFrom(netip.MustParseAddr(c.from), 5), s.local, c.at)
		if got := r.bytes > 0; got != c.want || got && r != (reply{bytes: len(c.p)}) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	s.Revoke(good)
	if s.answer(packet(good, 8), netip.AddrPortFrom(loopback, 5), s.local, now).bytes != 0 {
		t.Error("revoked token still good")
	}

	// Over the wire: the bad packet first, so that an answer to it would come first.
	good, err = s.Register(loopback, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("udp", s.local.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := append(packet(good, 8), "payload"...)
	for _, p := range [][]byte{packet(Token{}, 100), want} {
		if _, err := c.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2000)
	n, err := c.Read(buf)
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Errorf("got %x, %v", buf[:n], err)
	}
}

func TestEchoServerIsBounded(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Expired ones make room, living ones do not.
	for range 2 * maxTokens {
		if _, err := s.Register(loopback, -time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for range maxTokens {
		if _, err := s.Register(loopback, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Register(loopback, time.Hour); err == nil {
		t.Error("no end to tokens")
	}
}
