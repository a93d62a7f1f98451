package stamp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

var stranger = netip.MustParseAddrPort("192.0.2.7:4000")

// newTestReflector returns a reflector that does not depend on the machine's clock.
func newTestReflector(key []byte, log func(string)) *reflector {
	return &reflector{
		gate: admission.New(admission.Limits{PacketsPerSecond: 1e9}), log: log, auth: newAuthenticator(key),
		port:     20862,
		clock:    clock{query: func() clockState { return clockState{maxError: time.Millisecond} }},
		sessions: make(map[sessionKey]*session),
	}
}

// packetOf returns a request of n bytes.
func packetOf(n int, sequence uint32) []byte {
	p := make([]byte, max(n, baseBytes))
	(&request{sequence: sequence, estimate: 1, timestamp: [8]byte{0xe1, 0xb6}}).put(p, &openLayout)
	return append(p[:n:n], make([]byte, 1<<16-n)...)
}

// TestAnswersDoNotGrow sends requests of every length from many sources: only a trusted source may
// get more than it sent, and at most a base packet.
func TestAnswersDoNotGrow(t *testing.T) {
	r := newTestReflector(nil, nil)
	r.trusted = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	buf := packetOf(200, 1)
	for n := range 200 {
		for from, want := range map[string]int{
			"192.0.2.7:4000": n, "192.0.2.7:862": n, "198.51.100.9:4000": max(n, baseBytes),
			"127.0.0.1:4000": max(n, baseBytes), "[::1]:4000": max(n, baseBytes),
			"192.0.2.7:53": 0, "198.51.100.9:123": 0, "127.0.0.1:1023": 0,
		} {
			if n < shortRequest || n < shortReply && want == n {
				want = 0
			}
			copy(buf, make([]byte, 200))
			(&request{sequence: 1, estimate: 1, timestamp: [8]byte{0xe1, 0xb6}}).put(buf, &openLayout)
			clear(buf[n:200])
			if got := r.answer(buf, n, arrival{from: netip.MustParseAddrPort(from)}, 1); got != want {
				t.Errorf("%d bytes from %s answered with %d, want %d", n, from, got, want)
			}
		}
	}
}

// TestReflectorsDoNotAnswerEachOther forges the packet that would start an endless exchange.
func TestReflectorsDoNotAnswerEachOther(t *testing.T) {
	a, b := newTestReflector(nil, nil), newTestReflector(nil, nil)
	for _, port := range []uint16{DefaultPort, a.port, 8620} {
		from := arrival{from: netip.AddrPortFrom(stranger.Addr(), port), at: unixNanos()}
		p := packetOf(100, 1)
		n := a.answer(p, 100, from, 1)
		if n != 100 {
			t.Fatalf("a request from port %d answered with %d bytes", port, n)
		}
		a.leave(p[:n])
		if n := b.answer(p, n, from, 1); n != 0 {
			t.Errorf("an answer from port %d answered with %d bytes", port, n)
		}
	}
}

// TestRandomPaddingIsReflected sends the request of a TWAMP Light sender whose padding is not zero:
// it is no reflector.
func TestRandomPaddingIsReflected(t *testing.T) {
	r := newTestReflector(nil, nil)
	p := packetOf(100, 1)
	for i := shortRequest; i < 100; i++ {
		p[i] = byte(i * 37)
	}
	if n := r.answer(p, 100, arrival{from: stranger}, 1); n != 100 {
		t.Errorf("answered with %d bytes", n)
	}
}

func TestSessionsCount(t *testing.T) {
	var lines []string
	r := newTestReflector(nil, func(s string) { lines = append(lines, s) })
	ask := func(from netip.AddrPort, sequence uint32, now time.Duration) uint32 {
		p := packetOf(44, sequence)
		if n := r.answer(p, 44, arrival{from: from}, now); n != 44 {
			t.Fatalf("answered with %d bytes", n)
		}
		return binary.BigEndian.Uint32(p)
	}
	other := netip.MustParseAddrPort("192.0.2.8:4000")
	// 0xffffffff wraps to 0; number 1 is lost on the way.
	for i, c := range []struct {
		from      netip.AddrPort
		sent, own uint32
	}{{stranger, 0xfffffffe, 0}, {stranger, 0xffffffff, 1}, {other, 0, 0}, {stranger, 0, 2}, {stranger, 2, 3},
		{other, 1, 1}} {
		if got := ask(c.from, c.sent, time.Second); got != c.own {
			t.Errorf("packet %d got %d, want %d", i, got, c.own)
		}
	}
	r.sweep(sessionQuiet, false)
	if len(lines) != 0 {
		t.Errorf("logged too early: %q", lines)
	}
	r.sweep(2*sessionQuiet+2*time.Second, false)
	all := strings.Join(lines, "\n")
	if len(lines) != 2 ||
		!strings.Contains(all,
			"stamp 192.0.2.7:4000: 4 packets reflected, 176 bytes in 0.0 s, 1 missing on the way here") {
		t.Errorf("log %q", lines)
	}
	if got := ask(stranger, 5, 3*sessionQuiet); got != 0 {
		t.Errorf("a session that was over goes on at %d", got)
	}
	r.stateless = true
	if got := ask(stranger, 77, 3*sessionQuiet); got != 77 {
		t.Errorf("stateless: %d", got)
	}
}

// TestSessionsAreBounded has a hundred thousand sources: those without a place get copies of their
// own numbers, and the log stays short.
func TestSessionsAreBounded(t *testing.T) {
	var lines []string
	r := newTestReflector(nil, func(s string) { lines = append(lines, s) })
	request, p := packetOf(44, 9)[:44], make([]byte, 44)
	for i := range uint32(100_000) {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 4000)
		copy(p, request)
		r.answer(p, 44, arrival{from: from}, time.Duration(i))
		if got := binary.BigEndian.Uint32(p); i >= maxSessions && got != 9 {
			t.Fatalf("source %d got number %d", i, got)
		}
	}
	if len(r.sessions) != maxSessions {
		t.Errorf("%d sessions", len(r.sessions))
	}
	r.sweep(time.Hour, true)
	if len(lines) != maxSessions+1 || !strings.Contains(lines[maxSessions], fmt.Sprint(100_000-maxSessions)) {
		t.Errorf("%d sentences, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestAllowanceAndReasons runs on a clock that stands still, because allowances grow with time.
func TestAllowanceAndReasons(t *testing.T) { synctest.Test(t, testAllowanceAndReasons) }

func testAllowanceAndReasons(t *testing.T) {
	var lines []string
	r := newTestReflector(nil, func(s string) { lines = append(lines, s) })
	r.gate = admission.New(admission.Limits{PacketsPerSecond: 4})
	for i := range uint32(6) {
		r.answer(packetOf(44, i), 44, arrival{from: stranger}, 1)
	}
	r.answer(packetOf(20, 0), 20, arrival{from: stranger}, 1)
	r.answer(packetOf(13, 0), 13, arrival{from: stranger}, 1)
	r.sweep(2*sessionQuiet, false)
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		": 4 packets reflected", "2 packets not reflected: over this host's limits",
		"1 packets not reflected: shorter than any answer", "1 packets not reflected: too short",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the log:\n%s", want, all)
		}
	}
}

// TestReflectingDoesNotAllocate counts allocations for a packet of a known session, in both modes.
func TestReflectingDoesNotAllocate(t *testing.T) {
	for _, key := range [][]byte{nil, []byte("key")} {
		r := newTestReflector(key, nil)
		l := r.auth.layout()
		buf := make([]byte, 1<<16)
		req := request{estimate: 1}
		round := func() {
			req.sequence++
			req.put(buf, l)
			putPadding(buf[l.bytes:200], nil)
			if r.auth != nil {
				r.auth.sign(buf)
			}
			if n := r.answer(buf, 200, arrival{from: stranger}, 1); n != 200 {
				t.Fatalf("answered with %d bytes", n)
			}
			r.leave(buf[:200])
		}
		round()
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%v allocations per packet, authenticated %v", n, key != nil)
		}
	}
}

// FuzzReflector checks the answers to arbitrary packets.
func FuzzReflector(f *testing.F) {
	f.Add(packetOf(44, 7)[:44], false, uint16(4000))
	f.Add(packetOf(14, 7)[:14], false, uint16(862))
	f.Add(append(unhex(f, goldenRequest), unhex(f, "80010004 01020304 80040004 00000000")...), false, uint16(862))
	auth := append(unhex(f, goldenAuthRequest), unhex(f, goldenRequestHMAC)...)
	f.Add(auth, true, uint16(4000))
	f.Add(append(auth, unhex(f, "80010004 01020304 80080010 00000000 00000000 00000000 00000000")...), true,
		uint16(4000))
	f.Add(unhex(f, goldenReply), false, uint16(862))
	f.Fuzz(func(t *testing.T, in []byte, authenticated bool, port uint16) {
		if len(in) > maxPacketBytes {
			return
		}
		var key []byte
		if authenticated {
			key = []byte("key")
		}
		r := newTestReflector(key, func(string) {})
		l := r.auth.layout()
		p := append(bytes.Clone(in), make([]byte, 1<<16-len(in))...)
		n := r.answer(p, len(in), arrival{from: netip.AddrPortFrom(stranger.Addr(), port), at: golden2020, ttl: 60}, 1)
		if n > len(in) {
			t.Fatalf("%d bytes answered with %d", len(in), n)
		}
		if n == 0 {
			return
		}
		r.leave(p[:n])
		got, ok := parseReply(p[:n], r.auth)
		if !ok {
			t.Fatalf("unreadable answer %x", p[:n])
		}
		if want := parseRequest(in, l); got.sent.sequence != want.sequence || got.sent.timestamp != want.timestamp ||
			got.sent.estimate != want.estimate || got.ssid != want.ssid {
			t.Fatalf("%x answered with %+v", in, got)
		}
		// After the base packet, only flags and the HMACs of key holders may change.
		if !authenticated {
			changed := 0
			for i := l.bytes; i < n; i++ {
				if p[i] != in[i] {
					changed++
				}
			}
			if changed > (n-l.bytes)/tlvHeaderBytes+1 {
				t.Fatalf("%d bytes of %x changed", changed, in[l.bytes:])
			}
		}
	})
}

// FuzzReply feeds arbitrary packets to a sender that waits for an answer.
func FuzzReply(f *testing.F) {
	f.Add(unhex(f, goldenReply), false)
	f.Add(unhex(f, goldenReply)[:38], false)
	f.Add(append(unhex(f, goldenAuthReply), unhex(f, goldenReplyHMAC)...), true)
	f.Fuzz(func(t *testing.T, p []byte, authenticated bool) {
		s := newTestSender(nil)
		if authenticated {
			s.auth = newAuthenticator([]byte("key"))
		}
		s.waiting[7] = sending{sequence: 7, state: underway, measured: true, at: time.Second, unix: golden2020}
		s.judge(p, arrival{at: golden2020 + 1e9}, 2*time.Second)
		s.judge(p, arrival{at: golden2020 + 1e9}, 2*time.Second)
		if s.answered > 1 || s.count.answered > 1 || s.answered+s.foreign == 0 && s.duplicates == 0 {
			t.Fatalf("%x: %d answered, %d foreign", p, s.answered, s.foreign)
		}
		if s.answered == 1 {
			if l := s.rtt.Snapshot(); l.Min < 0 || l.Max > 1.001 {
				t.Fatalf("%x: round trip of %g s within one second", p, l.Max)
			}
		}
		r := &Report{Result: newResult()}
		s.shut = time.Second
		s.fill(r, mark{answered: true}, mark{answered: true, sequence: 6, reflector: 4},
			mark{answered: true, tries: 1, sequence: 8, reflector: 6})
	})
}
