package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

// What iperf3 3.12 (Debian 12) sends, byte for byte.
const (
	seenCookie = "qwmfdyeyhanplshaf2q2v75vdme5cjry5l5u\x00"
	seenParams = `{"tcp":true,"omit":0,"time":0,"num":102400,"blockcount":0,"parallel":1,"len":131072,` +
		`"pacing_timer":1000,"client_version":"3.12"}`
	seenUDPParams = `{"udp":true,"omit":1,"time":1,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,"len":200,` +
		`"bandwidth":1000000,"pacing_timer":1000,"get_server_output":1,"udp_counters_64bit":1,"client_version":"3.12"}`
	seenAllParams = `{"tcp":true,"omit":0,"time":0,"num":1048576,"blockcount":0,"MSS":1000,"nodelay":true,` +
		`"parallel":1,"window":65536,"len":131072,"bandwidth":100000000,"fqrate":50000000,"pacing_timer":1000,"TOS":16,` +
		`"title":"hi","extra_data":"xx","congestion":"reno","zerocopy":1,"client_version":"3.12"}`
	seenResults = `{"cpu_util_total":65.686274509803923,"cpu_util_user":65.196078431372555,"cpu_util_system":0,` +
		`"sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,"bytes":131072,` +
		`"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":0.000155}]}`
	seenUDPResults = `{"cpu_util_total":5.1007278408486636,"cpu_util_user":2.4630849327407547,` +
		`"cpu_util_system":2.6376429081079085,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":125000,` +
		`"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":1250,"start_time":0,"end_time":0.999889},` +
		`{"id":3,"bytes":125000,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":1250,"start_time":0,` +
		`"end_time":0.999891},{"id":4,"bytes":125000,"retransmits":18446744073709551615,"jitter":1.848397523073974e-05,` +
		`"errors":0,"packets":1251,"start_time":0,"end_time":0.999892},{"id":5,"bytes":125000,` +
		`"retransmits":18446744073709551615,"jitter":6.1740904968750419e-06,"errors":0,"packets":1251,"start_time":0,` +
		`"end_time":0.999892}]}`
)

func TestParametersSeenOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		want params
	}{
		"tcp amount": {seenParams, params{Bytes: 102400, Streams: 1, BlockBytes: 131072, PacingTimer: time.Millisecond,
			ClientVersion: "3.12"}},
		"udp bidir": {seenUDPParams, params{
			UDP: true, Omit: time.Second, Time: time.Second, Streams: 2, Bidir: true, BlockBytes: 200, BitsPerSec: 1e6,
			PacingTimer: time.Millisecond, ServerOutput: true, WideCounters: true, ClientVersion: "3.12",
		}},
		"everything": {seenAllParams, params{
			Bytes: 1 << 20, Streams: 1, BlockBytes: 131072, MSSBytes: 1000, NoDelay: true, WindowBytes: 65536,
			BitsPerSec: 1e8, PacingBits: 5e7, PacingTimer: time.Millisecond, TOS: 16, Congestion: "reno",
			ClientVersion: "3.12",
		}},
	} {
		got, err := decodeParams([]byte(c.wire))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(params{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestParametersAsTheProgramWritesThem compares encoded parameters with the program's for the same
// test.
func TestParametersAsTheProgramWritesThem(t *testing.T) {
	for _, seen := range []string{seenParams, seenUDPParams} {
		p, err := decodeParams([]byte(seen))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(seen, `"3.12"`, `"`+version+`"`, 1); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestParametersOutOfBounds(t *testing.T) {
	for wire, want := range map[string]serverCode{
		`[]`:                                codeParams,
		`{"tcp":true`:                       codeParams,
		`{}`:                                codeProtocol,
		`{"tcp":true,"udp":true}`:           codeProtocol,
		`{"sctp":true}`:                     codeNoSCTP,
		`{"tcp":true,"omit":601}`:           codeOmit,
		`{"tcp":true,"time":86401}`:         codeDuration,
		`{"tcp":true,"time":-1}`:            codeDuration,
		`{"tcp":true,"num":-1}`:             codeParams,
		`{"tcp":true,"parallel":129}`:       codeStreams,
		`{"tcp":true,"parallel":-2}`:        codeStreams,
		`{"tcp":true,"len":1048577}`:        codeBlock,
		`{"udp":true,"len":11}`:             codeDatagram,
		`{"udp":true,"len":65508}`:          codeDatagram,
		`{"udp":true}`:                      codeDatagram,
		`{"tcp":true,"window":536870913}`:   codeBuffer,
		`{"tcp":true,"TOS":256}`:            codeTOS,
		`{"tcp":true,"congestion":"../x"}`:  codeCongestion,
		`{"tcp":true,"parallel":1e300}`:     codeStreams,
		`{"udp":1,"len":12,"time":1e18}`:    codeDuration,
		`{"tcp":true,"time":9999999999999}`: codeDuration,
	} {
		_, err := decodeParams([]byte(wire))
		var r *refusal
		if !errors.As(err, &r) || r.code != want {
			t.Errorf("%s: %v, want code %d", wire, err, want)
		}
	}
}

// TestParametersOfOtherVersions has unknown keys, wrong types and numbers instead of flags.
func TestParametersOfOtherVersions(t *testing.T) {
	got, err := decodeParams(
		[]byte(`{"tcp":1,"reverse":1,"nodelay":0,"len":"many","parallel":2.9,"bandwidth":-5,"title":{"a":[1]},"gso":1,` +
			`"congestion":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(params{Reverse: true, Streams: 2, BlockBytes: defaultBlock}, got,
		cmp.AllowUnexported(params{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestResultsSeenOnTheWire(t *testing.T) {
	got, err := decodeResults([]byte(seenResults), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := results{
		CPUTotal: 65.686274509803923, CPUUser: 65.196078431372555, HasRetransmits: -1, Congestion: "bbr",
		Streams: []streamResult{{ID: 1, Bytes: 131072, Retransmits: -1, EndSeconds: 0.000155}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tcp (-want +got):\n%s", d)
	}
	udp, err := decodeResults([]byte(seenUDPResults), 4)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, s := range udp.Streams {
		ids = append(ids, s.ID)
	}
	if d := cmp.Diff([]int{1, 3, 4, 5}, ids); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
}

func TestResultsSurviveTheWire(t *testing.T) {
	want := results{
		TellsOmitted: true, CPUTotal: 12.5, CPUUser: 2.5, CPUSystem: 10, HasRetransmits: -1, Congestion: "cubic",
		Output: "a \"line\"\n",
		Streams: []streamResult{
			{ID: 1, Bytes: 1 << 60, Retransmits: -1, EndSeconds: 1.5},
			{ID: 3, Bytes: 7, Retransmits: 12, JitterSeconds: 1e-5, Errors: 3, Packets: 1 << 40, OmittedErrors: 1,
				OmittedPackets: 9, EndSeconds: 1.25},
		},
	}
	body, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeResults(body, 2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestResultsThatMakeNoSense(t *testing.T) {
	for _, wire := range []string{
		``, `[]`, `{}`, `{"streams":7}`, `{"streams":[]}`,
		`{"streams":[{"id":1},{"id":3}]}`, // one too many
		`{"streams":[{"id":2}]}`,
		`{"streams":[{"id":-1}]}`,
		`{"streams":[{"id":3}]}`, // of one stream, which is 1
		`{"streams":[{"id":1,"bytes":-5}]}`,
		`{"streams":[{"id":1,"packets":18446744073709551615}]}`,
	} {
		if got, err := decodeResults([]byte(wire), 1); err == nil {
			t.Errorf("%s: read as %+v", wire, got)
		}
	}
	if _, err := decodeResults([]byte(`{"streams":[{"id":1},{"id":1}]}`), 2); err == nil {
		t.Error("one stream twice is taken for two")
	}
}

func TestCookies(t *testing.T) {
	c, err := readCookie(strings.NewReader(seenCookie + "payload"))
	if err != nil || string(c[:]) != seenCookie {
		t.Errorf("read %q, %v", c, err)
	}
	// One byte at a time, and none of the payload after it.
	r := strings.NewReader(seenCookie + "payload")
	if c, err := readCookie(iotest.OneByteReader(r)); err != nil || string(c[:]) != seenCookie ||
		r.Len() != len("payload") {
		t.Errorf("byte by byte: %q, %v, %d left", c, err, r.Len())
	}
	if c := newCookie(); !mayBeCookie(c[:]) || c == newCookie() {
		t.Errorf("own cookie %q", c)
	}
	old := "host.example.1700000000.123456.5f" // up to 3.1: a name and the time
	if c, err := readCookie(strings.NewReader(old + strings.Repeat("\x00", cookieBytes-len(old)))); err != nil {
		t.Errorf("old cookie %q: %v", c, err)
	}
}

func TestStrangersAreNamed(t *testing.T) {
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":       "HTTP",
		"\x16\x03\x01\x02\x00\x01":                "TLS",
		"SSH-2.0-OpenSSH_9.2p1 Debian\r\n":        "SSH",
		"\x40\x01\x00\x78\x00\x00\x00\x01":        "iperf2",
		strings.Repeat("\x00", 40):                "nothing but zeros",
		"HELO nuttcp v6.1.2\n":                    "nuttcp",
		strings.Repeat("a", 40):                   "something unknown",
		"abc":                                     "something unknown",
		"\xff\xff\xff\xff":                        "something unknown",
		"short" + strings.Repeat("\x00", 9) + "x": "something unknown",
	} {
		_, err := readCookie(strings.NewReader(head))
		var s *strangerError
		if !errors.As(err, &s) {
			t.Errorf("%q: %v", head, err)
			continue
		}
		if !strings.HasSuffix(s.Error(), "speaks "+want) {
			t.Errorf("%q: %v, want %s", head, s, want)
		}
	}
	if _, err := readCookie(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("silence: %v", err)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	if _, err := readMessage(strings.NewReader("\x7f\xff\xff\xff{"), 100); err == nil ||
		!strings.Contains(err.Error(), "more than 100") {
		t.Errorf("oversized: %v", err)
	}
	if _, err := readMessage(strings.NewReader("\x00\x00\x00\x05{}"), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short: %v", err)
	}
	// A claimed length alone must not cost memory.
	if n := testing.AllocsPerRun(10, func() {
		if b, err := readMessage(strings.NewReader("\x00\xff\xff\xff{}"), maxServerResultsBytes); err == nil ||
			cap(b) > 1<<16 {
			t.Errorf("%d bytes held, %v", cap(b), err)
		}
	}); n > 50 {
		t.Errorf("%v allocations", n)
	}
}

// TestResultsOverASlowPath checks that results of 300 kB pass at 64 kb/s, longer than the fixed
// wait, and that a peer that sends far less is given up.
func TestResultsOverASlowPath(t *testing.T) {
	for _, c := range []struct {
		rate   int
		passes bool
	}{{8000, true}, {500, false}} {
		synctest.Test(t, func(t *testing.T) {
			a, slow := net.Pipe()
			fast, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			go func() {
				defer slow.Close()
				defer fast.Close()
				buf := make([]byte, 1000)
				for {
					n, err := slow.Read(buf)
					time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
					if _, errW := fast.Write(buf[:n]); err != nil || errW != nil {
						return
					}
				}
			}()
			body := bytes.Repeat([]byte(" "), 300_000)
			sent := make(chan error, 1)
			go func() { sent <- control{conn: a}.writeMessage(body, writeWithin) }()
			began := time.Now()
			got, err := control{conn: b}.readMessage(maxServerResultsBytes, answerWithin)
			if passes := err == nil && len(got) == len(body); passes != c.passes {
				t.Errorf("at %d B/s: %d bytes, %v", c.rate, len(got), err)
			}
			if took := time.Since(began); !c.passes && took > 2*answerWithin {
				t.Errorf("given up after %v", took)
			}
			a.Close()
			b.Close()
			if err := <-sent; c.passes && err != nil {
				t.Errorf("sending at %d B/s: %v", c.rate, err)
			}
		})
	}
}

func TestControlMessages(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	near, far := control{conn: a}, control{conn: b}
	sent := make(chan error, 1)
	go func() {
		err := near.writeState(accessDenied, time.Minute)
		if err == nil {
			err = near.writeMessage([]byte(`{"a":1}`), time.Minute)
		}
		if err == nil {
			err = near.writeState(serverError, time.Minute)
		}
		if err == nil {
			err = near.write([]byte{0, 0, 0, 27, 0, 0, 0, 111}, time.Minute)
		}
		near.writeError(codeDuration)
		sent <- err
	}()
	if s, err := far.readState(time.Minute); s != accessDenied || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	if body, err := far.readMessage(100, time.Minute); string(body) != `{"a":1}` || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	for _, want := range []serverCode{codeTotalRate, codeDuration} {
		if s, err := far.readState(time.Minute); s != serverError || err != nil {
			t.Errorf("%v, %v", s, err)
		}
		if code, _, err := far.readError(time.Minute); code != want || err != nil {
			t.Errorf("%v, %v", code, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestDatagramsSeenOnTheWire reads the headers of two datagrams of 3.12 and writes them again.
func TestDatagramsSeenOnTheWire(t *testing.T) {
	for _, c := range []struct {
		wide     bool
		wire     string
		sequence uint64
		sent     time.Duration
	}{
		{true, "\x00\x001\xb0\x00\x04\x07\xf3\x00\x00\x00\x00\x00\x00\x00\x01", 1,
			12720*time.Second + 264179*time.Microsecond},
		{false, "\x00\x0025\x00\nPU\x00\x00\x00\x01", 1, 12853*time.Second + 675925*time.Microsecond},
	} {
		h := header{wide: c.wide}
		in, r := []byte(c.wire+"\x81\x88"), h.receiving()
		if n := testing.AllocsPerRun(10, func() { _, _ = r.Parse(in) }); n != 0 {
			t.Errorf("%v allocations per datagram", n)
		}
		m, ok := h.Parse(in)
		if m.Sequence != c.sequence || m.Sent != c.sent || !m.Measured || !ok {
			t.Errorf("%q: %+v, %v", c.wire, m, ok)
		}
		p := make([]byte, h.Bytes())
		if n := testing.AllocsPerRun(10, func() { h.Put(p, m) }); n != 0 || string(p) != c.wire {
			t.Errorf("written %q with %v allocations, want %q", p, n, c.wire)
		}
	}
	if _, ok := (header{wide: true}).Parse(hello); ok {
		t.Error("a hello is taken for data")
	}
}

// TestShortSequenceNumbersGoOn follows them over their overflow, with reordered datagrams there.
func TestShortSequenceNumbersGoOn(t *testing.T) {
	short := header{}
	p := make([]byte, short.Bytes())
	h := short.receiving()
	for _, n := range []uint64{1, 5, 3, 1 << 31, 1<<32 - 2, 1<<32 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 7, 6 << 30, 15 << 29,
		8 << 30, 1<<33 + 2} {
		short.Put(p, datagram.Mark{Sequence: n})
		if m, ok := h.Parse(p); !ok || m.Sequence != n {
			t.Errorf("%d is read as %d, %v", n, m.Sequence, ok)
		}
	}
	short.Put(p, datagram.Mark{Sequence: 1<<32 - 1})
	if m, ok := short.receiving().Parse(p); ok {
		t.Errorf("a number before the first is read as %d", m.Sequence)
	}
}

func TestHellos(t *testing.T) {
	for _, p := range [][]byte{[]byte("6789"), {0xb1, 0x68, 0xde, 0x3a}, {0x3a, 0xde, 0x68, 0xb1}} {
		if !isReply(p) {
			t.Errorf("%x is no reply", p)
		}
	}
	if isReply([]byte("9876")) || isReply(nil) || !isHello([]byte{0x15, 0xcd, 0x5b, 7}) || isHello([]byte("98765")) {
		t.Error("hellos and replies mixed up")
	}
}

func TestStreamNumbers(t *testing.T) {
	var ids []int
	for i := range 6 {
		ids = append(ids, streamID(i))
	}
	if d := cmp.Diff([]int{1, 3, 4, 5, 6, 7}, ids); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func FuzzParams(f *testing.F) {
	for _, s := range []string{seenParams, seenUDPParams, seenAllParams, `{"tcp":1,"len":-1e999}`,
		`{"udp":true,"len":16,"parallel":18446744073709551615}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodeParams(body)
		if err != nil {
			var r *refusal
			if !errors.As(err, &r) || r.text == "" {
				t.Errorf("%v is no refusal", err)
			}
			return
		}
		if p.Streams < 1 || p.all() > 2*maxStreams || p.BlockBytes < 1 || p.BlockBytes > maxBlockBytes ||
			p.UDP && p.BlockBytes > maxDatagramBytes ||
			p.Time < 0 || p.Omit < 0 || p.Bytes < 0 || p.BitsPerSec < 0 || p.TOS&^255 != 0 || p.WindowBytes < 0 {
			t.Errorf("accepted out of bounds: %+v", p)
		}
		if _, err := p.encode(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	})
}

func FuzzResults(f *testing.F) {
	for _, s := range []string{seenResults, `{"streams":[{"id":1,"bytes":1e400}]}`,
		`{"streams":[{"id":1,"bytes":18446744073709551615}]}`} {
		f.Add([]byte(s), 1)
	}
	f.Add([]byte(seenUDPResults), 4)
	f.Fuzz(func(t *testing.T, body []byte, streams int) {
		if streams < 0 || streams > 2*maxStreams {
			return
		}
		r, err := decodeResults(body, streams)
		if err != nil {
			return
		}
		if len(r.Streams) != streams {
			t.Fatalf("%d streams instead of %d", len(r.Streams), streams)
		}
		for i, s := range r.Streams {
			if s.ID != streamID(i) || s.Bytes < 0 || s.Packets < 0 || s.JitterSeconds < 0 {
				t.Errorf("stream %d: %+v", i, s)
			}
		}
		out, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeResults(out, streams); err != nil {
			t.Errorf("own results are not read: %v\n%s", err, out)
		}
	})
}

// FuzzControl feeds both readers of the control connection.
func FuzzControl(f *testing.F) {
	f.Add([]byte(seenCookie + "\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x80" + seenParams))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		if c, err := readCookie(r); err == nil && !mayBeCookie(c[:]) {
			t.Errorf("cookie %q", c)
		}
		body, err := readMessage(bytes.NewReader(in), 1000)
		if err == nil && len(body) > 1000 {
			t.Errorf("%d bytes", len(body))
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("\x00\x001\xb0\x00\x04\x07\xf3\x00\x00\x00\x00\x00\x00\x00\x01"), true)
	f.Add([]byte("9876"), false)
	f.Fuzz(func(t *testing.T, p []byte, wide bool) {
		h := header{wide}
		m, ok := h.Parse(p)
		again := h.receiving()
		if _, same := again.Parse(p); same && !ok {
			t.Errorf("%x is read by the receiver alone", p)
		}
		if !ok {
			return
		}
		// Microseconds over a million are invalid but must not crash; otherwise the round trip is
		// exact.
		out := make([]byte, h.Bytes())
		h.Put(out, m)
		if back, ok := h.Parse(out); !ok || back != m && m.Sent/time.Second < 1<<32 {
			t.Errorf("%x: %+v, again %+v", p, m, back)
		}
	})
}

// TestEveryCodeSaysSomething checks that every code has a sentence of its own.
func TestEveryCodeSaysSomething(t *testing.T) {
	for _, c := range []serverCode{
		codeDuration, codeStreams, codeBlock, codeBuffer, codeOmit, codeNoSCTP, codeDatagram, codeTOS,
		codeTotalRate, codeParams,
		codeResults, codeDenied, codeWindow, codeProtocol, codeCongestion, codeAuth, codeStreamSetup, codeStreamWrite,
		codeStreamRead,
	} {
		if strings.Contains(c.String(), "error ") {
			t.Errorf("code %d has no sentence", int32(c))
		}
	}
	if got := serverCode(999).String(); got != "error 999 of iperf3" {
		t.Error(got)
	}
	if !json.Valid([]byte(seenParams)) {
		t.Error("not what was seen")
	}
}
