package stamp

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The packets of the figures of RFC 8762 with the SSID of RFC 8972 figures 1 to 4, filled in by
// hand: number 7 sent at 2020-01-01 00:00:00.5 UTC (NTP e1b65f80.80000000), arrived at .75, left at
// .875; clock of the sender not synchronised (multiplier 1), of the reflector within 2^-32·16·2^20
// s; session 0x1234; TTL 255.
const (
	goldenRequest = "00000007 e1b65f80 80000000 0001 1234" +
		"00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	goldenReply = "00000003 e1b65f80 e0000000 9410 1234 e1b65f80 c0000000" +
		"00000007 e1b65f80 80000000 0001 0000 ff 000000"
	goldenAuthRequest = "00000007 00000000 00000000 00000000 e1b65f80 80000000 0001 1234 00000000" +
		"00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000" +
		"00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
	goldenAuthReply = "00000003 00000000 00000000 00000000 e1b65f80 e0000000 9410 1234 00000000" +
		"e1b65f80 c0000000 00000000 00000000 00000007 00000000 00000000 00000000" +
		"e1b65f80 80000000 0001 0000 00000000 ff 000000 00000000 00000000 00000000"
)

// golden2020 is 2020-01-01 00:00:00.5 UTC.
var golden2020 = time.Date(2020, 1, 1, 0, 0, 0, 5e8, time.UTC).UnixNano()

func TestGoldenPackets(t *testing.T) {
	for _, c := range []struct {
		name           string
		auth           *authenticator
		request, reply string
	}{
		{"unauthenticated", nil, goldenRequest, goldenReply},
		{"authenticated", newAuthenticator([]byte("key")), goldenAuthRequest, goldenAuthReply},
	} {
		l := c.auth.layout()
		wantRequest, wantReply := unhex(t, c.request), unhex(t, c.reply)
		if c.auth != nil {
			wantRequest = append(wantRequest, unhex(t, goldenRequestHMAC)...)
			wantReply = append(wantReply, unhex(t, goldenReplyHMAC)...)
		}
		r := request{sequence: 7, estimate: errorEstimate{multiplier: 1}.bits(), ssid: 0x1234}
		putTimestamp(r.timestamp[:], golden2020, ntpFormat, 0)
		p := bytes.Repeat([]byte{0xee}, l.bytes)
		r.put(p, l)
		if c.auth != nil {
			c.auth.sign(p)
		}
		if diff := cmp.Diff(wantRequest, p); diff != "" {
			t.Errorf("%s request: %s", c.name, diff)
		}
		if got := parseRequest(p, l); got != r {
			t.Errorf("%s request reads as %+v", c.name, got)
		}
		var received [8]byte
		putTimestamp(received[:], golden2020+25e7, ntpFormat, 0)
		putReply(p, l, &r, 3, 0x9410, received[:], 255)
		putTimestamp(p[l.timestamp:], golden2020+375e6, ntpFormat, 0)
		if c.auth != nil {
			c.auth.sign(p)
		}
		if diff := cmp.Diff(wantReply, p); diff != "" {
			t.Errorf("%s reply: %s", c.name, diff)
		}
		got, ok := parseReply(p, c.auth)
		if !ok || got.sequence != 3 || got.sent.sequence != 7 || got.sent.timestamp != r.timestamp ||
			got.sent.estimate != 1 || got.ssid != 0x1234 || got.ttl != 255 ||
			!got.estimate.trusted() || math.Abs(got.estimate.seconds()-16*math.Pow(2, 20-32)) > 1e-12 {
			t.Errorf("%s reply reads as %+v, %v", c.name, got, ok)
		}
		at, ok := parseTimestamp(got.received, got.estimate.format, 0, golden2020)
		if !ok || at != golden2020+25e7 {
			t.Errorf("%s received at %d", c.name, at)
		}
		// The HMAC detects any flipped bit.
		for i := range p {
			if c.auth == nil {
				break
			}
			p[i] ^= 1
			if _, ok := parseReply(p, c.auth); ok {
				t.Errorf("byte %d changed unnoticed", i)
			}
			p[i] ^= 1
		}
	}
}

// TestShortReplies parses the answers of TWAMP Light reflectors.
func TestShortReplies(t *testing.T) {
	p := unhex(t, goldenReply)
	for n, c := range map[int]struct{ ok, ttl bool }{37: {false, false}, 38: {true, false}, 40: {true, false},
		41: {true, true}, 44: {true, true}, 0: {false, false}} {
		r, ok := parseReply(p[:n], nil)
		if ok != c.ok || r.hasTTL != c.ttl {
			t.Errorf("%d bytes: %v, ttl %v", n, ok, r.hasTTL)
		}
	}
	if _, ok := parseReply(append(p, make([]byte, 100)...), newAuthenticator([]byte("k"))); ok {
		t.Error("unauthenticated reply taken for an authenticated one")
	}
}

func TestTimestampsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()
	var p [8]byte
	for range 100_000 {
		at := now + r.Int64N(2*60*365*86400*1e9) - 60*365*86400*1e9 // sixty years in both directions: across 2036 and 1970
		for _, f := range []format{ntpFormat, ptpFormat} {
			for _, tai := range []int64{0, 37} {
				putTimestamp(p[:], at, f, tai)
				got, ok := parseTimestamp(p[:], f, tai, now)
				if !ok || got != at {
					t.Fatalf("%v at %d reads as %d, %v", f, at, got, ok)
				}
			}
		}
	}
	// RFC 5905 figure 4: the first day of Unix, and of the second era.
	for at, want := range map[int64]string{0: "83aa7e80 00000000", 2085978496e9: "00000000 00000000",
		1: "83aa7e80 00000004"} {
		putTimestamp(p[:], at, ntpFormat, 0)
		if !bytes.Equal(p[:], unhex(t, want)) {
			t.Errorf("%d: %x, want %s", at, p, want)
		}
	}
	if _, ok := parseTimestamp(unhex(t, "00000000 3b9aca00"), ptpFormat, 0, now); ok {
		t.Error("a second of nanoseconds accepted")
	}
}

func TestEstimates(t *testing.T) {
	for err := time.Duration(1); err < time.Hour; err = err*7/5 + 1 {
		for _, sync := range []bool{false, true} {
			e := estimate(err, sync, ptpFormat)
			if got := e.seconds(); got < err.Seconds() || got > err.Seconds()*1.01+3e-10 {
				t.Errorf("%v is estimated as %g s", err, got)
			}
			if e.multiplier == 0 || parseEstimate(e.bits()) != e || e.trusted() != sync {
				t.Errorf("%v: %+v reads as %+v", err, e, parseEstimate(e.bits()))
			}
		}
	}
	if e := estimate(-5, true, ntpFormat); e.multiplier == 0 || e.scale != 0 {
		t.Errorf("%+v", e)
	}
	if e := estimate(1000*time.Hour, false, ntpFormat); e.seconds() < 3600 || e.seconds() > 3650 {
		t.Errorf("%+v", e)
	}
	if parseEstimate(0x8000).trusted() {
		t.Error("a multiplier of zero means something")
	}
	// PTP counts TAI; a host that does not know the offset cannot vouch for its timestamps.
	for _, c := range []struct {
		state clockState
		f     format
		want  bool
	}{
		{clockState{synchronised: true}, ntpFormat, true},
		{clockState{synchronised: true}, ptpFormat, false},
		{clockState{synchronised: true, taiOffset: 37}, ptpFormat, true},
		{clockState{taiOffset: 37}, ptpFormat, false},
	} {
		if got := c.state.estimate(c.f).trusted(); got != c.want {
			t.Errorf("%+v %v: %v", c.state, c.f, got)
		}
	}
}

func TestReflectTLVs(t *testing.T) {
	sent, answered := unhex(t, "00000007"), unhex(t, "00000003")
	key := newAuthenticator([]byte("key"))
	with := func(tlvs string) string {
		p := unhex(t, tlvs)
		return tlvs + "80080010" + hex.EncodeToString(key.of(sent, p))
	}
	back := func(tlvs string) string {
		return tlvs + "00080010" + hex.EncodeToString(key.of(answered, unhex(t, tlvs)))
	}
	wrong := strings.Repeat("5a", 16)
	for _, c := range []struct {
		name     string
		auth     *authenticator
		in, want string
	}{
		{"nothing", nil, "", ""},
		{"padding", nil, "80010002 aabb", "00010002 aabb"},
		{"padding without a value", nil, "80010000", "00010000"},
		{"class of service, not understood", nil, "00040004 01020304", "80040004 01020304"},
		{"reserved flags", nil, "ff010001 00", "00010001 00"},
		{"two", nil, "80010001 aa 80020001 bb", "00010001 aa 80020001 bb"},
		{"longer than the packet", nil, "80010001 aa 80020009 bb", "00010001 aa 40020009 bb"},
		{"half a header", nil, "80010001 aa 8001", "00010001 aa 4001"},
		{"zeros", nil, "00000000 00000000 0000", "00000000 00000000 0000"},
		{"zeros behind", nil, "80010001 aa 00000000 00", "00010001 aa 00000000 00"},
		{"one odd zero", nil, "00", "00"},
		{"type zero that is no padding", nil, "80000001 aa", "80000001 aa"},
		{"hmac without a key", nil, "80080010" + wrong, "80080010" + wrong},
		{"hmac of a wrong size", key, "80080004 01020304 80010001 aa", "40080004 01020304 80010001 aa"},
		{"hmac", key, with("80010001aa80c80001bb"), back("00010001aa80c80001bb")},
		{"hmac, padding behind", key, with("80c80001bb") + "80010001aa", back("80c80001bb") + "00010001aa"},
		{"hmac that is wrong", key, "80c80001bb 80080010" + wrong, "a0c80001bb 20080010" + wrong},
		{"hmac, more behind", key, with("80010001aa") + "80c80001bb", "20010001aa" + "20" + with("80010001aa")[12:] +
			"a0c80001bb"},
		{"no hmac where there must be one", key, "80c80001bb", "a0c80001bb"},
		{"padding wants none", key, "80010001aa", "00010001aa"},
	} {
		p := unhex(t, c.in)
		reflectTLVs(p, c.auth, sent, answered)
		if got := hex.EncodeToString(p); got != hex.EncodeToString(unhex(t, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	p := make([]byte, 20)
	putPadding(p, bytes.Repeat([]byte{7}, 16))
	if !bytes.Equal(p, unhex(t, "80010010 07070707 07070707 07070707 07070707")) {
		t.Errorf("padding %x", p)
	}
}

// The HMACs of the golden packets under the key "key", computed by Python's hmac module; the first
// 16 bytes.
const (
	goldenRequestHMAC = "1faadcad239c4df4ab17c688f07a0d5f"
	goldenReplyHMAC   = "0677f7d6a4708d84cc576d8823cc7a7f"
)
