package iperf3

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

// printed is the part of the program's -J that the tests examine.
type printed struct {
	Error string `json:"error"`
	End   struct {
		Streams []struct {
			UDP map[string]any `json:"udp"`
		} `json:"streams"`
		SumSent     sum `json:"sum_sent"`
		SumReceived sum `json:"sum_received"`
		Sum         sum `json:"sum"`
		SumReverse  sum `json:"sum_sent_bidir_reverse"`

		SumReceivedReverse sum    `json:"sum_received_bidir_reverse"`
		SenderCongestion   string `json:"sender_tcp_congestion"`
		ReceiverCongestion string `json:"receiver_tcp_congestion"`
	} `json:"end"`
	ServerText string `json:"server_output_text"`
}

type sum struct {
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Lost    float64 `json:"lost_packets"`
	Packets float64 `json:"packets"`
}

// TestRealClients runs the program against this package's server: protocols, directions, numbers of
// streams, forms of output and ways to end.
func TestRealClients(t *testing.T) {
	testenv.Program(t, "iperf3")
	directions := map[string][]string{"up": nil, "reverse": {"-R"}, "bidir": {"--bidir"}}
	kinds := map[string][]string{"tcp": nil, "udp": {"-u", "-b", "5M", "-l", "200"}}
	var cases [][]string
	for _, kind := range kinds {
		for _, direction := range directions {
			for _, streams := range []string{"1", "4"} {
				for _, more := range [][]string{{"-n", "150K"}, {"-n", "150K", "-J"}} {
					cases = append(cases, concat(kind, direction, []string{"-P", streams}, more))
				}
			}
			cases = append(cases,
				concat(kind, direction, []string{"-k", "40", "-J", "--get-server-output"}),
				concat(kind, direction, []string{"-t", "1", "-J", "-b", "5M"}),
				concat(kind, direction, []string{"-t", "1", "-O", "1", "-P", "2", "-J", "-b", "5M"}))
		}
	}
	cases = append(cases,
		[]string{"-u", "-b", "20M", "-l", "200", "--udp-counters-64bit", "-n", "200K", "-J"},
		[]string{"-u", "-b", "20M", "-l", "200", "--udp-counters-64bit", "-R", "-n", "200K", "-J"},
		[]string{"-u", "-b", "0", "-l", "1400", "-n", "1M", "-J"},
		[]string{"-n", "1M", "-w", "64K", "-M", "1000", "-N", "-S", "16", "-C", "reno", "-b", "200M", "-J"},
		[]string{"-n", "1M", "-l", "1000", "-Z", "-T", "title", "--extra-data", "x", "-J"},
		[]string{"-R", "-n", "1M", "-l", "16K", "-C", "reno", "-b", "100M", "-J"},
		[]string{"-n", "150K", "--get-server-output"},
		[]string{"-t", "1", "-i", "0.2", "-4"},
	)
	for _, args := range cases {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
			// A second in which the machine gave the program no CPU has nothing to show.
			var err error
			out := traffictest.Longer(time.Second, func(window time.Duration) (out string) {
				args := slices.Clone(args)
				if i := slices.Index(args, "-t"); i >= 0 {
					args[i+1] = fmt.Sprint(window.Seconds())
				}
				out, err = realClient(t, addr, args...)
				return out
			}, func(out string) bool {
				var p printed
				return err != nil || !slices.Contains(args, "-t") || json.Unmarshal([]byte(out), &p) != nil ||
					p.End.SumReceived.Bytes > 0 || p.End.Sum.Packets > 0
			})
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			line := fmt.Sprint(args)
			udp := strings.Contains(line, "-u ")
			kind := "tcp"
			if udp {
				kind = "udp"
			}
			said.Await(t, 1, kind, "stream")
			if strings.Contains(line, "server-output") && !strings.Contains(out, "linerate, answering") {
				t.Errorf("no server output:\n%s", out)
			}
			if !strings.Contains(line, "-J") {
				if !strings.Contains(out, "iperf Done.") || !strings.Contains(out, "receiver") {
					t.Errorf("not done:\n%s", out)
				}
				return
			}
			var p printed
			if err := json.Unmarshal([]byte(out), &p); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if p.Error != "" || p.End.SumReceived.Bytes <= 0 && !udp || udp && p.End.Sum.Packets <= 0 {
				t.Errorf("error %q, %+v", p.Error, p.End)
			}
			// The server reads an amount to the last byte, so both ends count the same. Of a time it
			// counts what has arrived when the client ends it.
			up, timed := !strings.Contains(line, "-R"), slices.Contains(args, "-t")
			sent, received := p.End.SumSent.Bytes, p.End.SumReceived.Bytes
			if up && !udp && !strings.Contains(line, "-O") && (received > sent || received < sent && !timed) {
				t.Errorf("sent %.0f bytes, received %.0f", sent, received)
			}
			// Both ends report the congestion control of their own socket, whatever it does there.
			if strings.Contains(line, "-C reno") && (p.End.SenderCongestion != "reno" ||
				p.End.ReceiverCongestion != "reno") {
				t.Errorf("congestion control %q at the sender, %q at the receiver", p.End.SenderCongestion,
					p.End.ReceiverCongestion)
			}
			// Unpaced, or on a busy machine, some do not fit into the socket; but no more than were
			// sent. With -O the clock of each end decides which of them are omitted.
			if udp && !strings.Contains(line, "-O") && p.End.Sum.Lost > p.End.Sum.Packets {
				t.Errorf("lost %v of %v packets", p.End.Sum.Lost, p.End.Sum.Packets)
			}
		})
	}
}

// claim is what the server's log says about the data that it sent.
var claim = regexp.MustCompile(`; sent [^;]* in ([^;]*), ([0-9.]+) ([kMG])b/s`)

// TestServerClaimsWhatItDelivers compares what the server claims to have sent with what the program
// has read, where a rate or an amount bounds it. Both depend on bytes alone: the rate is that of
// the server's own clock.
func TestServerClaimsWhatItDelivers(t *testing.T) {
	testenv.Program(t, "iperf3")
	for _, c := range []struct {
		args  string
		bytes float64 // of the amount; 0: none
		rate  float64 // bits per second, of all streams; 0: none
	}{
		{"-R -n 5M", 5 << 20, 0},
		{"-R -n 5M -P 4", 5 << 20, 0},
		{"-R -k 40", 40 * defaultBlock, 0},
		{"-R -n 300K -b 20M", 300 << 10, 20e6},
		{"-R -b 1M -t 1", 0, 1e6},
		{"-R -b 2M -t 1 -P 4", 0, 8e6},
		{"--bidir -b 5M -t 1", 0, 5e6},
		{"--bidir -n 2M -b 50M", 2 << 20, 50e6},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			addr, said := ourServer(t, "127.0.0.1:0", admission.Limits{})
			out, err := realClient(t, addr, append(strings.Fields(c.args), "-J")...)
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			line := said.Await(t, 1, "sent")[0]
			var p printed
			if err := json.Unmarshal([]byte(out), &p); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			sent, received := p.End.SumSent.Bytes, p.End.SumReceived.Bytes
			if strings.Contains(c.args, "bidir") {
				sent, received = p.End.SumReverse.Bytes, p.End.SumReceivedReverse.Bytes
			}
			// The program counts blocks by calls of read, and so may stop early with -k.
			exact := c.bytes > 0 && !strings.Contains(c.args, "bidir") && !strings.Contains(c.args, "-k")
			switch {
			case received <= 0 || sent < received:
				t.Errorf("claimed %.0f bytes, delivered %.0f", sent, received)
			case exact && (sent != c.bytes || received < c.bytes):
				t.Errorf("claimed %.0f bytes, delivered %.0f, want %.0f", sent, received, c.bytes)
			case c.bytes > 0 && sent > c.bytes:
				t.Errorf("claimed %.0f bytes of %.0f", sent, c.bytes)
			}
			m := claim.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("no rate in %q", line)
			}
			n, _ := strconv.ParseFloat(m[2], 64)
			n *= map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9}[m[3]]
			// Three digits are printed.
			if c.rate > 0 && n > c.rate*1.005 {
				t.Errorf("claimed %g b/s where the client asked for %g: %s", n, c.rate, line)
			}
		})
	}
}

func concat(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// TestRealServers runs this package's client against the program.
func TestRealServers(t *testing.T) {
	testenv.Program(t, "iperf3")
	for _, test := range []traffic.Test{traffic.Stream, traffic.UDP} {
		for _, direction := range []traffic.Direction{traffic.Up, traffic.Down, traffic.Bidir} {
			for _, streams := range []int{1, 4} {
				for name, change := range map[string]func(*traffic.Spec){
					"amount": func(s *traffic.Spec) { s.Bytes = 200_000 },
					"time":   func(s *traffic.Spec) { s.Duration = 500 * time.Millisecond },
					"warm-up": func(s *traffic.Spec) {
						s.Duration, s.WarmUp = 500*time.Millisecond, time.Second
					},
				} {
					if streams == 4 && name == "warm-up" {
						continue
					}
					t.Run(fmt.Sprintf("%s %s %d %s", test, direction, streams, name), func(t *testing.T) {
						t.Parallel()
						s := traffic.Spec{Test: test, Direction: direction, Streams: streams,
							Interval: 200 * time.Millisecond, RateBitsPerSec: 20e6}
						if test == traffic.UDP {
							s.RateBitsPerSec, s.PacketBytes = 5e6, 200
						}
						change(&s)
						checkRun(t, func() string {
							addr, _ := realServer(t, "-1")
							return addr.String()
						}, s)
					})
				}
			}
		}
	}
}

// TestRealServerOverIPv6 also sets every option of the connections.
func TestRealServerOverIPv6(t *testing.T) {
	testenv.Program(t, "iperf3")
	t.Parallel()
	addr, _ := realServer(t, "-1")
	noDelay := true
	target := fmt.Sprintf("[::1]:%d", addr.Port())
	checkRun(t, func() string { return target }, traffic.Spec{
		Test: traffic.Stream, Bytes: 1 << 20, WindowBytes: 128 << 10, MSSBytes: 1000, TOS: 16, Congestion: "reno",
		NoDelay:        &noDelay,
		RateBitsPerSec: 200e6,
	})
}

// checkRun runs this package's client and checks that its result is consistent. A test of a time
// whose window has nothing to show is repeated with a longer one.
func checkRun(t *testing.T, target func() string, s traffic.Spec) *traffic.Result {
	t.Helper()
	var seen []traffic.Interval
	r := traffictest.Longer(s.Duration, func(window time.Duration) *traffic.Result {
		seen, s.Duration = nil, window
		// No hello is lost here, however late it is answered.
		r, err := Run(t.Context(), target(), s, ClientOptions{HostName: "near", helloWait: time.Minute},
			func(i traffic.Interval) { seen = append(seen, i) })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}, func(r *traffic.Result) bool {
		return s.Bytes > 0 || r.Bytes > 0 && len(r.Intervals) > 0 && (r.UDP == nil || r.UDP.Sent > 0) &&
			(s.Direction != traffic.Bidir || r.UpBitsPerSec > 0 && r.DownBitsPerSec > 0)
	})
	text, _ := json.Marshal(r)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s\n%s", fmt.Sprintf(format, args...), text)
	}
	if r.Bytes <= 0 || r.ThroughputBitsPerSec <= 0 || math.IsInf(r.ThroughputBitsPerSec, 0) || r.DurationSeconds <= 0 {
		fail("nothing measured")
	}
	if !strings.HasPrefix(r.Method, "iperf3, ") || r.LocalAddress == "" || r.RemoteAddress == "" ||
		r.Ends.Local.Host != "near" {
		fail("method %q, addresses %s and %s", r.Method, r.LocalAddress, r.RemoteAddress)
	}
	if len(seen) != len(r.Intervals) || len(seen) == 0 {
		fail("%d intervals seen, %d in the result", len(seen), len(r.Intervals))
	}
	checkSums(t, s, r)
	if s.Direction == traffic.Bidir && (r.UpBitsPerSec <= 0 || r.DownBitsPerSec <= 0) {
		fail("one direction carried nothing")
	}
	if s.Test == traffic.UDP {
		if r.UDP == nil || r.UDP.Sent == 0 || r.UDP.Sent != r.UDP.Received+r.UDP.Lost || r.LossRatio == nil {
			fail("datagrams do not add up: %+v", r.UDP)
		}
		var lost uint64
		for _, l := range r.Losses {
			lost += l.Packets
		}
		if r.UDP != nil && lost != r.UDP.Lost {
			fail("%d packets lost, %d explained", r.UDP.Lost, lost)
		}
	} else if r.RetransmitsTotal == nil || r.CongestionControl == "" {
		fail("nothing known of the connections")
	}
	return r
}

var unread = regexp.MustCompile(`counted (\d+) bytes fewer than it acknowledged`)

// checkSums checks that a document does not contradict its own intervals: they cover the measured
// part, and their bytes are those of the result. Of datagrams that this end sends, intervals count
// what was sent and the result what was received.
func checkSums(t *testing.T, s traffic.Spec, r *traffic.Result) {
	t.Helper()
	var bytes, seconds float64
	for _, i := range r.Intervals {
		if !i.Omitted {
			bytes += i.ThroughputBitsPerSec * (i.EndSeconds - i.StartSeconds) / 8
			seconds += i.EndSeconds - i.StartSeconds
		}
	}
	if total := r.ThroughputBitsPerSec * r.DurationSeconds / 8; math.Abs(total-float64(r.Bytes)) > 1 {
		t.Errorf("%d bytes, but %.0f by rate and duration", r.Bytes, total)
	}
	if s.Test == traffic.UDP && s.Direction != traffic.Down {
		return
	}
	// Some microseconds pass between the end of an amount and its last interval. The cookie of each
	// stream that this end sends on is acknowledged with the data.
	slack := float64(64 * (s.Streams + 1))
	if s.Bytes > 0 {
		slack += 0.02 * float64(r.Bytes)
	}
	// What the program acknowledged and did not read in time, as the result says.
	if m := unread.FindStringSubmatch(strings.Join(r.Warnings, "\n")); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64)
		slack += n
	}
	// A remainder of milliseconds is no interval. After a pause it may hold much of an amount.
	missing, rest := float64(r.Bytes)-bytes, r.DurationSeconds-seconds
	if s.Bytes > 0 && missing > 0 && rest > 0.0005 {
		missing = 0
	}
	if math.Abs(missing) > slack || math.Abs(seconds-r.DurationSeconds) > 0.01*r.DurationSeconds+0.006 {
		t.Errorf("%d bytes in %g s, but the intervals have %.0f in %g s", r.Bytes, r.DurationSeconds, bytes, seconds)
	}
}
