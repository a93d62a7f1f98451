package sockperf

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGoldenMessages has messages that sockperf 3.7 sent, and the answers of its own server.
func TestGoldenMessages(t *testing.T) {
	for _, c := range []struct {
		name, message string
		want          header
		ok, asks      bool
		answer        string
	}{
		{"ping-pong", "0000000000000001 0003 00000010 968f", header{1, fromClient | wantsPong, 16}, true, true,
			"0000000000000001 0002 00000010 968f"},
		{"under load, no answer wanted", "0000000000000002 0001 0000000e", header{2, fromClient, 14}, true, false, ""},
		{"warm-up", "0000000000000005 0007 0000000e", header{5, fromClient | wantsPong | warmUp, 14}, true, false, ""},
		{"an answer", "0000000000000001 0002 0000000e", header{1, wantsPong, 14}, true, false, ""},
		{"flags of later versions", "0000000000000005 0103 0000000e", header{5, 0x100 | fromClient | wantsPong, 14},
			true, true, "0000000000000005 0102 0000000e"},
		{"too short for its own header", "0000000000000001 0003 0000000d", header{1, 3, 13}, false, true, ""},
		{"too long", "0000000000000001 0003 0000ffe4", header{1, 3, 65508}, false, true, ""},
		{"cut off", "0000000000000001 0003 000000", header{}, false, false, ""},
	} {
		p := unhex(t, c.message)
		h, ok := parseHeader(p)
		if ok != c.ok || h != c.want || h.asks() != c.asks {
			t.Errorf("%s: %+v %v, asks %v", c.name, h, ok, h.asks())
		}
		if c.answer != "" {
			turn(p)
			if diff := cmp.Diff(unhex(t, c.answer), p); diff != "" {
				t.Errorf("%s answered: %s", c.name, diff)
			}
		}
	}
	if got := newMessage(16)[:14]; !bytes.Equal(got, unhex(t, "0000000000000000 0003 00000010")) {
		t.Errorf("own message %x", got)
	}
}

var stranger = netip.MustParseAddrPort("192.0.2.7:4000")

func TestJudgeDatagrams(t *testing.T) {
	gate := admission.New(admission.Limits{PacketsPerSecond: 2})
	said := new(traffictest.Log)
	b := newBook(said.Add)
	ask := func(sequence uint64, claim, length int, f flags) []byte {
		p := make([]byte, length)
		header{sequence, f, uint32(claim)}.put(p)
		return p
	}
	for _, c := range []struct {
		name string
		p    []byte
		want bool
	}{
		{"asks", ask(1, 64, 64, fromClient|wantsPong), true},
		{"does not ask", ask(2, 64, 64, fromClient), false},
		{"claims more", ask(3, 65, 64, fromClient|wantsPong), false},
		{"claims less", ask(3, 63, 64, fromClient|wantsPong), false},
		{"garbage", []byte("GET / HTTP/1.1\r\n\r\n"), false},
		{"empty", nil, false},
		{"asks again, after a loss of two", ask(5, 14, 14, fromClient|wantsPong), true},
		{"asks too often", ask(6, 14, 14, fromClient|wantsPong), false},
	} {
		before := bytes.Clone(c.p)
		if got := judge(c.p, stranger, gate, b, time.Second); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if !c.want && !bytes.Equal(before, c.p) {
			t.Errorf("%s: changed without being answered", c.name)
		}
	}
	service := netip.AddrPortFrom(stranger.Addr(), lowestPort-1)
	if judge(ask(7, 14, 14, fromClient|wantsPong), service, admission.New(admission.Limits{}),
		newBook(func(string) {}), time.Second) {
		t.Error("a forged request from the port of a service is answered")
	}
	b.sweep(2*time.Second, false)
	if len(said.Lines()) != 0 {
		t.Errorf("logged too early: %q", said.Lines())
	}
	b.sweep(8*time.Second, false)
	want := []string{"sockperf 192.0.2.7:4000 over udp: 4 messages of 156 bytes in all, 2 answered in 0.0 s, " +
		"2 lost on the way here; 1 not answered: over this host's limits of packets and bytes; " +
		"4 not answered: not sockperf messages"}
	if diff := cmp.Diff(want, said.Lines()); diff != "" {
		t.Error(diff)
	}
}

// TestBookIsBounded has a hundred thousand sources.
func TestBookIsBounded(t *testing.T) {
	gate := admission.New(admission.Limits{})
	said := new(traffictest.Log)
	b := newBook(said.Add)
	for i := range 100_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		judge(newMessage(20), from, gate, b, time.Duration(i+1)*time.Microsecond)
	}
	if len(b.guests) > maxGuests {
		t.Errorf("%d pages", len(b.guests))
	}
	b.sweep(time.Hour, true)
	if len(said.Lines()) != maxGuests+1 || len(b.guests) != 0 {
		t.Errorf("%d sentences, %d pages left", len(said.Lines()), len(b.guests))
	}
	said.Await(t, 1, "further sources", "99968 messages")
}

// FuzzDatagram checks the answers to arbitrary datagrams.
func FuzzDatagram(f *testing.F) {
	f.Add(newMessage(14))
	f.Add(newMessage(100))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0, 0, 0, 14})
	f.Add([]byte("0123456789012345678901234567890"))
	f.Fuzz(func(t *testing.T, p []byte) {
		gate := admission.New(admission.Limits{})
		before := bytes.Clone(p)
		answered := judge(p, stranger, gate, newBook(func(string) {}), 1)
		if answered {
			h, ok := parseHeader(p)
			if !ok || !h.answers(h.sequence, len(p)) || len(p) != len(before) || !bytes.Equal(p[:9], before[:9]) ||
				!bytes.Equal(p[10:], before[10:]) {
				t.Fatalf("%x answered with %x", before, p)
			}
			// An answer is never answered, so two servers cannot keep each other busy.
			if judge(p, stranger, gate, newBook(func(string) {}), 1) {
				t.Fatalf("answer %x answered", p)
			}
		} else if !bytes.Equal(before, p) {
			t.Fatalf("%x changed", before)
		}
	})
}
