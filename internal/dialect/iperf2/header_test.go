package iperf2

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// captured are the first bytes of connections of iperf 2.1.8 with these options.
var captured = []struct {
	options, head string
	want          settings
}{
	{
		"-n 1M",
		"400100780000000100003ab6000000000000000000100000000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, bytes: 1 << 20},
	},
	{
		"-t 1",
		"400100780000000100003ab60000000000000000ffffff9c000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second},
	},
	{
		"-R -t 1",
		"440100780000000100003ab60000000000000000ffffff9c000000000000000004000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second, reverse: true},
	},
	{
		"--full-duplex -t 1",
		"440100780000000100003ab60000000000000000ffffff9c000000000000000008000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second, duplex: true},
	},
	{
		"-P 4 -n 1M",
		"400100780000000400003ab6000000000000000000100000000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 4, port: 15030, bytes: 1 << 20},
	},
	{
		"-d -t 1",
		"c00100790000000100003ab60000000000000000ffffff9c000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, connect: true, atOnce: true, streams: 1, port: 15030, duration: time.Second},
	},
	{
		"-X -t 1",
		"460100780000000100003ab60000000000000000ffffff9c000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second},
	},
	{
		"--trip-times -t 1",
		"400100a00000000100003ab60000000000000000ffffff9c000000000000000000100000000200010008000300000000" +
			"000000000000000000000000000000006b00488a0005329a0000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second},
	},
	{
		"-R -b 10m -t 1",
		"440100780000000100003ab60000000000000000ffffff9c000000000000000004000000000200010008000300000000" +
			"009896800000000000000000",
		settings{extended: true, streams: 1, port: 15030, duration: time.Second, reverse: true, rateBitsSec: 10e6},
	},
	{
		"-l 1000 -n 10K",
		"400100780000000100003ab6000003e80000000000002800000000000000000000000000000200010008000300000000" +
			"000000000000000000000000",
		settings{extended: true, streams: 1, port: 15030, writeBytes: 1000, bytes: 10 << 10},
	},
	{
		"--bounceback -t 1",
		"00800000000000640000000180005a5a000000006b00488a0005b226ffffffffffffffffffffffffffffffff00000000" +
			"5a5a5a5a5a5a5a5a5a5a5a5a30313233",
		settings{extended: true, bounce: true},
	},
	{"old ones", "303132333435363738393031323334353637383930313233343536373839303132333435363738393031323334353637" +
		"383930313233343536373839", settings{}},
	// Of versions that were not captured: Settings_GenerateClientHdr, and client_hdr of Settings.hpp.
	{"2.0.5 -P 16 -n 1M", "000000000000001000001389000000000000000000100000",
		settings{streams: 16, port: 5001, bytes: 1 << 20}},
	{"2.0.5 -d -t 1", "8000000100000001000013890000000000000000ffffff9c",
		settings{connect: true, atOnce: true, streams: 1, port: 5001, duration: time.Second}},
	{"2.0.13 -r -t 1", "8800000000000001000013890000000000000000ffffff9c",
		settings{connect: true, wide: true, streams: 1, port: 5001, duration: time.Second}},
	{"zeros", "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000" +
		"000000000000000000000000", settings{}},
}

func TestSettingsOfTheProgram(t *testing.T) {
	for _, c := range captured {
		t.Run(c.options, func(t *testing.T) {
			if d := cmp.Diff(c.want, parseSettings(unhex(t, c.head)), cmp.AllowUnexported(settings{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestSettingsAsTheProgram compares encoded settings with the program's.
func TestSettingsAsTheProgram(t *testing.T) {
	for _, c := range captured {
		switch c.options {
		case "-n 1M", "-t 1", "-R -t 1", "--full-duplex -t 1", "-P 4 -n 1M", "-R -b 10m -t 1", "-l 1000 -n 10K":
			var got [settingsBytes]byte
			c.want.put(got[:], false)
			if d := cmp.Diff(c.head[:2*settingsBytes], hex.EncodeToString(got[:])); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.options, d)
			}
		}
	}
}

func TestGreeting(t *testing.T) {
	const want = "000000020000001c0000000000020001000800030000000000000000"
	if got := hex.EncodeToString(greeting()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Datagrams of iperf 2.1.8 -u -l 500 -n 2000 -b 1m: the first one of data and the first end mark;
// and of -l 60.
const (
	firstDatagram = "000000016b00488c000674c800000000480100980000000100003ab6000001f400000000000007d00000000000000000" +
		"00000000000200010008000300000000000f42400000000000000000"
	lastDatagram = "fffffffb6b00489000002aeaffffffff480100980000000100003ab8000001f400000000000007d00000000000000000"
)

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     mark
		ok       bool
	}{
		{"first", firstDatagram, mark{id: 1, sent: 0x6b00488c*time.Second + 0x674c8*time.Microsecond, wide: true},
			true},
		{"end", lastDatagram, mark{id: -5, sent: 0x6b004890*time.Second + 0x2aea*time.Microsecond, wide: true}, true},
		{"beyond 32 bits", "00000002000000000000000000000001480100980000000000000000",
			mark{id: 1<<32 + 2, wide: true}, true},
		{"bare", "fffffffe0000000100000002", mark{id: -2, sent: time.Second + 2*time.Microsecond}, true},
		{"not wide", "0000000200000000000000000000000140010098", mark{id: 2}, true},
		{"short", "0000000200000000000000", mark{}, false},
	} {
		got, ok := parseMark(unhex(t, c.in))
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
	s := settings{streams: 1, port: 15030, writeBytes: 500, bytes: 2000, rateBitsSec: 1e6}
	h := newDatagramHeader(s, 0)
	p := make([]byte, h.Bytes())
	h.Put(p, datagram.Mark{Sequence: 1, Sent: 0x6b00488c*time.Second + 0x674c8*time.Microsecond})
	if d := cmp.Diff(firstDatagram, hex.EncodeToString(p)); d != "" {
		t.Errorf("datagram (-want +got):\n%s", d)
	}
	if n := testing.AllocsPerRun(100, func() { h.Put(p, datagram.Mark{Sequence: 7}) }); n != 0 {
		t.Errorf("%v allocations per header", n)
	}
	m, ok := h.Parse(p)
	if !ok || m.Sequence != 7 || m.End || !m.Measured {
		t.Errorf("read back %+v, %v", m, ok)
	}
}

// TestReports parses the report of 2.1.8 on 5 datagrams of 500 bytes, the third of them lost, and
// the one that ended the test.
func TestReports(t *testing.T) {
	const long = "00000000000000000000000000000000c800000000000000000009c40000000000009d9e000000010000000000000006" +
		"00000000000000110000000000000008000000000000009c00000000000000ef000000000000002f00003ae2000c34ff" +
		"00000000ffffffda000000050000009400000001000000000000000000000000"
	got, ok := parseReport(unhex(t, long))
	want := report{bytes: 2500, duration: 40350 * time.Microsecond, lost: 1, datagrams: 6,
		jitter: 17 * time.Microsecond, longCounts: true}
	if !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	var p [reportBytes]byte
	want.bytes += 1 << 40
	want.longCounts = false
	want.put(p[:])
	if got, ok := parseReport(p[:]); !ok || got != want {
		t.Errorf("read back %+v, %v; want %+v", got, ok, want)
	}
	// The long form, as 2.1.8 writes it for --trip-times; but for the change of the delays, which its
	// client does not show.
	delay := func(micros float64) time.Duration { return time.Duration(micros * 1e3) }
	tripped := report{bytes: 2500, duration: 40350 * time.Microsecond, lost: 1, datagrams: 6,
		jitter: 17 * time.Microsecond, trips: &trips{count: 5, min: delay(8), max: delay(156), mean: delay(47.8),
			squares: 15074.7999995, perSecond: 148}}
	written := make([]byte, longReportBytes)
	tripped.put(written)
	seen := unhex(t, long)
	clear(seen[markBytes+4*20 : markBytes+4*22])
	if d := cmp.Diff(seen, written); d != "" {
		t.Errorf("long report (-seen +written):\n%s", d)
	}
	for name, in := range map[string][]byte{"short": p[:reportBytes-1], "data": unhex(t, firstDatagram),
		"nothing": nil} {
		if _, ok := parseReport(in); ok {
			t.Errorf("%s is taken for a report", name)
		}
	}
}

func TestCountTellsLateFromTwice(t *testing.T) {
	var c count
	for _, id := range []int64{1, 2, 4, 4, 3, 7, 1, 0, 3000, 7, 2500} {
		c.add(mark{id: id}, 100, time.Duration(id))
	}
	r := c.report(3000)
	if c.received != 7 || c.duplicates != 4 || c.reordered != 2 || r.lost != 2993 || r.bytes != 700 {
		t.Errorf("%d received, %d twice, %d late; %+v", c.received, c.duplicates, c.reordered, r)
	}
	if n := testing.AllocsPerRun(100, func() { c.add(mark{id: c.highest + 1}, 100, 0) }); n != 0 {
		t.Errorf("%v allocations per datagram", n)
	}
}

// TestDelaysOfSynchronizedClocks checks the one-way delays against their definitions, with clocks
// that begin decades apart.
func TestDelaysOfSynchronizedClocks(t *testing.T) {
	const began = 1_700_000_000 * time.Second // the receiver's clock began then
	var c count
	for i, micros := range []int{50, 20, 80, 30} {
		sent := time.Duration(i) * 10 * time.Millisecond
		c.add(mark{id: int64(i + 1), sent: began + sent}, 100, sent+time.Duration(micros)*time.Microsecond)
	}
	got := *c.trips(began)
	got.squares = math.Round(got.squares)
	want := trips{count: 4, min: 20 * time.Microsecond, max: 80 * time.Microsecond, mean: 45 * time.Microsecond,
		squares: 5*5 + 25*25 + 35*35 + 15*15, perSecond: 133}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func FuzzSettings(f *testing.F) {
	for _, c := range captured {
		f.Add(unhex(f, c.head))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		s := parseSettings(p)
		if s.bytes < 0 || s.duration < 0 || s.rateBitsSec < 0 {
			t.Errorf("%+v", s)
		}
		if LooksLike(p) != (s.extended || oldSettings(p)) {
			t.Errorf("looks like settings: %v, but %+v", LooksLike(p), s)
		}
	})
}

func FuzzDatagrams(f *testing.F) {
	f.Add(unhex(f, firstDatagram))
	f.Add(unhex(f, lastDatagram))
	f.Add(unhex(f, "fffffffe0000000100000002"))
	f.Fuzz(func(t *testing.T, p []byte) {
		table := newFlowTable(func(string, ...any) {}, 0)
		for range 3 {
			if r, due := table.take(p, loopback, 0); due == theReport && (r.lost < 0 || r.datagrams < r.lost) {
				t.Errorf("%+v", r)
			}
		}
		if len(table.flows) > 1 {
			t.Errorf("%d flows of one address", len(table.flows))
		}
		(&datagramHeader{}).Parse(p)
	})
}

func FuzzReports(f *testing.F) {
	f.Add(make([]byte, reportBytes))
	f.Add(unhex(f, "00000000000000000000000000000000c800000000000000000009c400000000"+
		"00009d9e0000000100000000000000060000000000000011"))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, ok := parseReport(p)
		if ok && (r.lost > r.datagrams || r.bytes < 0 || r.duration < 0) {
			t.Errorf("%+v", r)
		}
	})
}
