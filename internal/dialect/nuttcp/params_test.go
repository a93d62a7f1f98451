package nuttcp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/linerate/linerate/internal/traffic/datagram"
)

// Lines of clients of nuttcp 6.1.2, and the shorter line of an older one.
const (
	lineTCP = "buflen = 65536, nbuf = 20, win = 0, nstream = 3, rate = 4294967295, port = 15010, trans = 1, " +
		"braindead = 0, timeout = 0.000000, udp = 0, vers = 6.1.2, interval = 0.000000, reverse = 0, format = 2048, " +
		"traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , " +
		"rate_pps = 0 , nodelay = 0\n"
	lineUDP = "buflen = 500, nbuf = 2147483647, win = 1048576, nstream = 1, rate = 1000, port = 15010, trans = 0, " +
		"braindead = 0, timeout = 0.500000, udp = 1, vers = 6.1.2, interval = 0.200000, reverse = 0, format = 2117, " +
		"traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , nbuf_bytes = 0 , " +
		"rate_pps = 0 , nodelay = 0\n"
	lineOpts = "buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = 15010, trans = 1, " +
		"braindead = 0, timeout = 10.000000, udp = 0, vers = 6.1.2, interval = 0.000000, reverse = 1, format = 2048, " +
		"traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = 500 , tos = 20 , nbuf_bytes = 0 , " +
		"rate_pps = 0 , nodelay = 1\n"
	lineOld = "buflen = 8192, nbuf = 2048, win = 0, nstream = 1, rate = 0, port = 5001, trans = 1, braindead = 0, " +
		"timeout = 1, udp = 0, vers = 5.0.1\n"
)

func TestParamsOfTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want params
	}{
		"tcp": {lineTCP, params{blockBytes: 65536, blocks: 20, streams: 3, rateKbit: unlimitedRate, port: 15010,
			transmit: true, format: 2048}},
		"udp": {lineUDP, params{
			blockBytes: 500, blocks: unlimitedBlock, windowBytes: 1 << 20, streams: 1, rateKbit: 1000, port: 15010,
			seconds: 0.5, udp: true,
			interval: 0.2, format: 2117,
		}},
		"options": {lineOpts, params{
			blockBytes: 65536, blocks: unlimitedBlock, streams: 1, rateKbit: unlimitedRate, port: 15010, transmit: true,
			seconds: 10, reverse: true,
			format: 2048, mssBytes: 500, tos: 0x20, noDelay: true,
		}},
		"old": {lineOld, params{blockBytes: 8192, blocks: 2048, streams: 1, port: 5001, transmit: true, seconds: 1}},
	} {
		got, err := parseParams(c.line)
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(params{})); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
		if name != "old" && got.line() != c.line {
			t.Errorf("%s: written as\n%swant\n%s", name, got.line(), c.line)
		}
	}
}

func TestParamsThatNobodyGets(t *testing.T) {
	change := func(old, with string) string {
		if !strings.Contains(lineTCP, old) {
			t.Fatalf("%q is not in the line", old)
		}
		return strings.Replace(lineTCP, old, with, 1)
	}
	for _, c := range []struct{ line, reason string }{
		{"", "is not key = value"},
		{"GET / HTTP/1.1\r\n", "is not key = value"},
		{"buflen = 1", "nbuf is missing"},
		{change("buflen = 65536", "buflen = 0"), "buflen 0"},
		{change("buflen = 65536", "buflen = 99999999"), "buflen 99999999"},
		{change("buflen = 65536", "buflen = 99999999999999999999"), "out of range"},
		{change("buflen = 65536", "buflen = 1, buflen = 2"), "twice"},
		{change("nbuf = 20", "nbuf = -1"), "nbuf -1"},
		{change("nstream = 3", "nstream = 1000"), "nstream 1000"},
		{change("nstream = 3", "nstream = -3"), "nstream -3"},
		{change("port = 15010", "port = 22"), "port 22"},
		{change("port = 15010", "port = 65534"), "port 65534 with nstream 3"},
		{change("timeout = 0.000000", "timeout = -1"), "not a time"},
		{change("timeout = 0.000000", "timeout = NaN"), "not a time"},
		{change("timeout = 0.000000", "timeout = Inf"), "not a time"},
		{change("interval = 0.000000", "interval = 0.0001"), "interval 0.0001"},
		{strings.Replace(lineUDP, "nstream = 1", "nstream = 3", 1), "nstream 3 with udp"},
		{change("udp = 0", "udp = yes"), "not 0 or 1"},
		{change("traceroute = 0", "traceroute = 1"), "traceroute"},
		{change("_NULL_", "192.0.2.1"), "third-party"},
		{change("multicast = 0", "multicast = 5"), "multicast"},
		{change("tos = 0", "tos = 100"), "out of range"},
	} {
		if _, err := parseParams(c.line); !errors.Is(err, errParams) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: %v, want %q", c.line, err, c.reason)
		}
	}
}

// TestLines compares lines with those of a 6.1.2 server for the same figures.
func TestLines(t *testing.T) {
	tcp := params{blockBytes: 65536, streams: 1, transmit: true, format: 2048}
	part := figures{bytes: 345*megabyte + 15*megabyte/16, elapsed: 200081 * time.Microsecond}
	if got, want := intervalLine(tcp, part, part), "  345.9375 MB /   0.20 sec = 14503.7964 Mbps\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	udp := params{blockBytes: 500, streams: 1, transmit: true, udp: true, format: 2048}
	part = figures{bytes: 25000, elapsed: 200060 * time.Microsecond, packets: 50, sentBytes: 25000}
	total := figures{bytes: 50000, elapsed: 400640 * time.Microsecond, packets: 100, sentBytes: 50000}
	for format, want := range map[int]string{
		0: "    0.0238 MB /   0.20 sec =    0.9997 Mbps     0 /    50 ~drop/pkt  0.00 ~%loss\n",
		1 | 4: "    0.0238 MB /   0.20 sec =    0.9997 Mbps     0 /    50 ~drop/pkt  0.00 ~%loss " +
			"Tot:     0.0477 MB /   0.40 sec =    0.9984 Mbps     0 /   100 ~drop/pkt  0.00 ~%loss " +
			"Trans:     0.0238 MB Tot:     0.0477 MB\n",
		64: "megabytes=0.0238 real_sec=0.20 rate_Mbps=0.9997 drop=0 pkt=50 data_loss=0.00000\n",
		64 | 1: "megabytes=0.0238 real_sec=0.20 rate_Mbps=0.9997 drop=0 pkt=50 data_loss=0.00000 " +
			"tx_megabytes=0.0238\n",
		64 | 5: "megabytes=0.0238 real_sec=0.20 rate_Mbps=0.9997 drop=0 pkt=50 data_loss=0.00000 " +
			"total_megabytes=0.0477 total_real_sec=0.40 total_rate_Mbps=0.9984 drop=0 pkt=100 data_loss=0.00000 " +
			"tx_megabytes=0.0238 tx_total_megabytes=0.0477\n",
		8 | 16:        "    0.0238 MB /   0.20 sec =    0.9997 Mbps\n",
		formatNoDrops: "    0.0238 MB /   0.20 sec =    0.9997 Mbps  0.00 ~%loss\n",
	} {
		udp.format = format
		if d := cmp.Diff(want, intervalLine(udp, part, total)); d != "" {
			t.Errorf("format %d (-want +got):\n%s", format, d)
		}
	}
	end := figures{bytes: 5 * megabyte / 4, elapsed: 1050 * time.Millisecond, calls: 22, cpu: 0.02, user: 0.01,
		system: 0.01}
	want := "nuttcp-r: 1.2500 MB in 1.05 real seconds = 1219.05 KB/sec = 9.9864 Mbps\n" +
		"nuttcp-r: 1.2500 MB in 0.02 CPU seconds = 64000.00 KB/cpu sec\n" +
		"nuttcp-r: 22 I/O calls, msec/call = 47.73, calls/sec = 20.95\n" +
		"nuttcp-r: 0.0user 0.0sys 0:01real 2% 0i+0d 0maxrss 0+0pf 0+0csw\n"
	if d := cmp.Diff(want, report(tcp, end)); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	tcp.format, tcp.transmit = 64, false
	want = "nuttcp-t: megabytes=1.2500 real_seconds=1.05 rate_KBps=1219.05 rate_Mbps=9.9864\n" +
		"nuttcp-t: megabytes=1.2500 cpu_seconds=0.02 KB_per_cpu_second=64000.00\n" +
		"nuttcp-t: retrans=0\nnuttcp-t: io_calls=22 msec_per_call=47.73 calls_per_sec=20.95\n" +
		"nuttcp-t: stats=cpu user=0.0 system=0.0 elapsed=0:01 cpu=2% memory=0i+0d-0maxrss io=0+0pf swaps=0+0csw\n"
	if d := cmp.Diff(want, report(tcp, end)); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	// Without data, nothing may be divided by zero.
	if got := report(tcp, figures{}); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error(got)
	}
}

// TestReportOfTheProgram parses the report of a 6.1.2 server.
func TestReportOfTheProgram(t *testing.T) {
	f := far{retrans: -1}
	for line := range strings.Lines("   73.9375 MB /   0.50 sec = 1240.4257 Mbps     0 retrans\nDONE\n" +
		"nuttcp-t: v6.1.2: socket\nnuttcp-t: buflen=65536, nbuf=20, nstream=1, port=15010 tcp -> 127.0.0.1\n" +
		"nuttcp-t: send window size = 4194304, receive window size = 131072\n" +
		"nuttcp-t: 342.1250 MB in 1.00 real seconds = 349867.18 KB/sec = 2866.1119 Mbps\n" +
		"nuttcp-t: 342.1250 MB in 0.05 CPU seconds = 7367584.28 KB/cpu sec\n" +
		"nuttcp-t: retrans = 3\nnuttcp-t: 5478 I/O calls, msec/call = 0.19, calls/sec = 5470.67\n" +
		"nuttcp-t: 0.0user 0.0sys 0:01real 4% 0i+0d 970maxrss 0+0pf 5475+8csw\n") {
		f.read(strings.TrimSpace(line))
	}
	if want := (far{known: true, bytes: 342*megabyte + megabyte/8, seconds: 1, cpu: 0.05, retrans: 3}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	f.read("nuttcp-r: v6.1.2: Error: not receiving data from server")
	if f.refusal != "not receiving data from server" {
		t.Errorf("refusal %q", f.refusal)
	}
}

func TestHeaders(t *testing.T) {
	h := header{packetBytes: 500, counted: true}
	p := make([]byte, 500)
	h.Put(p, datagram.Mark{Sequence: 2})
	// The third one of 500 bytes, from a capture.
	if string(p[:5]) != "BOD1\x00" || p[24] != 0xdc || p[25] != 5 || p[26] != 0 {
		t.Errorf("% x", p[:32])
	}
	if m, ok := h.Parse(p); !ok || m.Sequence != 2 || !m.Measured || m.End {
		t.Errorf("read back %+v, %v", m, ok)
	}
	if m, ok := h.Parse([]byte("EOD0")); !ok || !m.End {
		t.Errorf("the end is read as %+v, %v", m, ok)
	}
	for _, s := range []string{"", "BOD1", "EO", "something else that is long enough for it"} {
		if m, ok := h.Parse([]byte(s)); ok {
			t.Errorf("%q is read as %+v", s, m)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		h.Put(p, datagram.Mark{Sequence: 7})
		h.Parse(p)
	}); n != 0 {
		t.Errorf("%v allocations per datagram", n)
	}
	got := newTally(params{blockBytes: 500, interval: 1})
	if n := testing.AllocsPerRun(100, func() { got.take(p, time.Now()) }); n != 0 {
		t.Errorf("%v allocations per datagram received", n)
	}
}

func FuzzParams(f *testing.F) {
	for _, line := range []string{lineTCP, lineUDP, lineOpts, lineOld, "buflen = 1, nbuf", "=,=,"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := parseParams(line)
		if err != nil {
			return
		}
		if p.blockBytes < 1 || p.blockBytes > maxBlockBytes || p.streams < 1 || p.streams > maxStreams ||
			p.port < lowestPort || p.amount() < 0 || p.duration() < 0 {
			t.Errorf("%+v", p)
		}
		// Parsed parameters can be formatted and parse as the same ones, except for versions and
		// digits without meaning.
		again, err := parseParams(p.line())
		p.seconds, again.seconds, p.interval, again.interval = 0, 0, 0, 0
		if err != nil || p != again {
			t.Errorf("%v: %+v, then %+v", err, p, again)
		}
	})
}

func FuzzReport(f *testing.F) {
	f.Add("nuttcp-r: 0.1250 MB in 1.05 real seconds = 122.10 KB/sec = 1.0003 Mbps")
	f.Add("nuttcp-t: retrans = 3")
	f.Add("nuttcp-r: v6.1.2: Error: x")
	f.Fuzz(func(t *testing.T, line string) {
		var r far
		r.read(line)
		if r.bytes < 0 || r.seconds < 0 || r.retrans < 0 || len(r.refusal) > 200 {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzTally(f *testing.F) {
	f.Add([]byte("BOD0"), []byte("EOD0"))
	f.Add([]byte("BOD1"), []byte("BOD1\x00.1.2\n\x00 v6.1.2\n\x004567\xf4\x01\x00\x00\x00\x00\x00\x00@ABC"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		h := header{packetBytes: 100, counted: true}
		got := newTally(params{blockBytes: 100, interval: 1})
		for _, p := range [][]byte{a, b, a, b, []byte("EOD0"), a} {
			h.Parse(p)
			got.take(p, time.Now())
		}
		sum, _ := got.now()
		missing, sent := sum.drops(100)
		if sum.bytes < 0 || missing < 0 || sent < 0 || sum.elapsed < 0 {
			t.Errorf("%+v", sum)
		}
	})
}
