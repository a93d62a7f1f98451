package stamp

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func newResult() *traffic.Result { return &traffic.Result{Test: traffic.Ping} }

// newTestSender returns a sender without a socket.
func newTestSender(query func() clockState) *sender {
	if query == nil {
		query = func() clockState { return clockState{maxError: unknownError} }
	}
	return newSender(nil, traffic.Spec{Duration: time.Second, Gap: time.Millisecond, RequestBytes: baseBytes},
		ClientOptions{query: query})
}

// play feeds a sender with the answers of a simulated path: per packet what happens in each
// direction.
type play struct {
	up, down []time.Duration // delays; negative: lost
	offset   time.Duration   // of the reflector's clock
	estimate errorEstimate
	inside   time.Duration // in the reflector
	copies   bool          // stateless
}

// run sends the packets through the path, a millisecond apart, and returns the report.
func (p play) run(t *testing.T, s *sender) *Report {
	t.Helper()
	base := golden2020
	type event struct {
		sequence, own uint32
		t1, t2, t3    int64
		t4            int64
	}
	counter := uint32(0)
	number := func(sequence uint32) uint32 {
		if p.copies {
			return sequence
		}
		counter++
		return counter - 1
	}
	// In the sender's order: 0 is the greeting, 1 is skipped, 2 is the first mark.
	greeting := mark{answered: true, tries: 1, sequence: 0, reflector: number(0)}
	begin := mark{answered: true, tries: 1, sequence: 2, reflector: number(2)}
	var events []event
	for i := range p.up {
		sequence := uint32(3 + i)
		at := base + int64(i)*1e6
		s.waiting[sequence] = sending{sequence: sequence, state: underway, measured: true,
			at: time.Duration(i) * time.Millisecond, unix: at}
		s.sent++
		if p.up[i] < 0 {
			continue
		}
		e := event{sequence: sequence, t1: at, t2: at + int64(p.up[i])}
		e.t3 = e.t2 + int64(p.inside)
		e.own = number(sequence)
		e.t4 = e.t3 + int64(p.down[i])
		if p.down[i] >= 0 {
			events = append(events, e)
		}
	}
	end := mark{answered: true, tries: 1, sequence: uint32(3 + len(p.up)), reflector: number(uint32(3 + len(p.up)))}
	for _, e := range events {
		packet := make([]byte, baseBytes)
		req := request{sequence: e.sequence, estimate: 1}
		var received [8]byte
		putTimestamp(received[:], e.t2+int64(p.offset), ntpFormat, 0)
		putReply(packet, &openLayout, &req, e.own, p.estimate.bits(), received[:], 250)
		putTimestamp(packet[4:], e.t3+int64(p.offset), ntpFormat, 0)
		s.judge(packet, arrival{at: e.t4}, time.Duration(e.t4-base))
	}
	s.shut = time.Second
	r := &Report{Result: newResult()}
	s.fill(r, greeting, begin, end)
	return r
}

func ms(v ...float64) []time.Duration {
	out := make([]time.Duration, len(v))
	for i, x := range v {
		out[i] = time.Duration(x * 1e6)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.001*math.Abs(b)+1e-9 }

// TestReportOfAKnownPath checks every figure against arithmetic by hand.
func TestReportOfAKnownPath(t *testing.T) {
	right := errorEstimate{synchronised: true, multiplier: 1}
	sure := func() clockState { return clockState{synchronised: true, maxError: time.Microsecond} }
	unsure := func() clockState { return clockState{maxError: time.Microsecond} }
	p := play{up: ms(10, 12, -1, 14, 10), down: ms(20, 20, 20, -1, 26), inside: 500 * time.Millisecond, estimate: right}

	r := p.run(t, newTestSender(sure))
	if r.UDP.Sent != 5 || r.UDP.Received != 3 || r.UDP.Lost != 2 || *r.LossRatio != 0.4 {
		t.Errorf("%+v, loss %g", r.UDP.DatagramCounts, *r.LossRatio)
	}
	if !r.Stateful || *r.Up.Lost != 1 || *r.Down.Lost != 1 || r.UDP.Up.Sent != 5 || r.UDP.Up.Received != 4 ||
		r.UDP.Down.Sent != 4 || r.UDP.Down.Received != 3 {
		t.Errorf("up %v down %v", r.UDP.Up, r.UDP.Down)
	}
	if !near(r.RTT.Min, 0.030) || !near(r.RTT.Max, 0.036) || !near(r.RTT.Mean, 0.098/3) {
		t.Errorf("rtt %+v", r.RTT)
	}
	if !near(r.Up.Delay.Min, 0.010) || !near(r.Up.Delay.Max, 0.012) || !near(r.Down.Delay.Max, 0.026) ||
		r.Up.DelayError < 1e-6 || r.Up.DelayError > 2e-6 {
		t.Errorf("delay up %+v ± %g, down %+v", r.Up.Delay, r.Up.DelayError, r.Down.Delay)
	}
	if !near(r.Up.DelayVariation.Max, 0.002) || r.Up.DelayVariation.Min != 0 ||
		!near(r.Down.DelayVariation.Max, 0.006) {
		t.Errorf("variation up %+v, down %+v", r.Up.DelayVariation, r.Down.DelayVariation)
	}
	// RFC 3550: J += (|D| - J) / 16, of 2 ms and 2 ms.
	if !near(r.Up.JitterSeconds, 0.002/16+(0.002-0.002/16)/16) {
		t.Errorf("jitter %g", r.Up.JitterSeconds)
	}
	if r.Hops == nil || *r.Hops != 5 || len(r.Warnings) != 0 {
		t.Errorf("hops %v, warnings %q", r.Hops, r.Warnings)
	}

	if w := r.result().OneWay; w.Up.Delay != r.Up.Delay || *w.Up.Lost != 1 ||
		w.Down.DelayVariation != r.Down.DelayVariation || r.Result.Hops.Up != 5 || r.Result.Hops.Down != 0 {
		t.Errorf("as a result: %+v, hops %+v", w, r.Result.Hops)
	}

	// A clock offset changes delays, which only synchronised clocks show, and nothing else.
	p.offset = -time.Hour
	for name, c := range map[string]struct {
		query func() clockState
		sync  bool
	}{"we are not sure": {unsure, true}, "it is not": {sure, false}} {
		p.estimate.synchronised = c.sync
		r := p.run(t, newTestSender(c.query))
		if r.Up.Delay != nil || r.Down.Delay != nil || r.Up.DelayError != 0 || len(r.Warnings) != 0 {
			t.Errorf("%s: delay %+v, warnings %q", name, r.Up.Delay, r.Warnings)
		}
		if !near(r.RTT.Max, 0.036) || !near(r.Up.DelayVariation.Max, 0.002) || *r.Up.Lost != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	p.estimate.synchronised = true
	if r := p.run(t, newTestSender(sure)); r.Up.Delay != nil || len(r.Warnings) != 1 ||
		!strings.Contains(r.Warnings[0], "arrived before they were sent") {
		t.Errorf("a far clock that claims to be right: %+v, %q", r.Up.Delay, r.Warnings)
	}

	// A reflector that copies numbers does not show which direction lost packets.
	p.copies, p.offset = true, 0
	if r := p.run(t, newTestSender(sure)); r.Stateful || r.Up.Lost != nil || r.UDP.Up != nil || r.Up.Reordered != nil ||
		r.UDP.Lost != 2 || r.Up.Delay == nil {
		t.Errorf("stateless: %+v", r)
	}

	// A reflector whose reported time exceeds the round trip is not believed.
	p = play{up: ms(1, 1), down: ms(1, 1), inside: -time.Second, estimate: right}
	if r := p.run(t, newTestSender(unsure)); len(r.Warnings) == 0 || r.RTT.Max > 0.003 {
		t.Errorf("%+v, %q", r.RTT, r.Warnings)
	}
}

// TestDoubledAndLateAnswers simulates duplicates and reordering.
func TestDoubledAndLateAnswers(t *testing.T) {
	s := newTestSender(nil)
	answer := func(sequence, own uint32) {
		p := make([]byte, baseBytes)
		putReply(p, &openLayout, &request{sequence: sequence}, own, 1, make([]byte, 8), 0)
		s.judge(p, arrival{at: golden2020 + 1e6}, time.Millisecond)
	}
	for i := range uint32(6) {
		s.waiting[i] = sending{sequence: i, state: underway, measured: true, unix: golden2020}
		s.sent++
	}
	answer(0, 0)
	answer(0, 0) // the answer arrived twice
	answer(1, 1)
	answer(1, 2) // the packet arrived twice
	answer(4, 5) // 2 and 3 changed places on the way up, 4 overtook both on the way down
	answer(3, 3)
	answer(2, 4)
	answer(5, 6)
	answer(5, 6)
	answer(77, 7) // unknown number
	if s.answered != 6 || s.duplicates != 3 || s.upDuplicates != 1 || s.foreign != 1 {
		t.Errorf("%d answered, %d doubled, %d of them on the way up, %d foreign", s.answered, s.duplicates,
			s.upDuplicates, s.foreign)
	}
	if s.down.reordered != 2 || s.up.reordered != 0 {
		t.Errorf("reordered %d up, %d down", s.up.reordered, s.down.reordered)
	}
	// Late answers to numbers whose place another packet has taken.
	s.waiting[0] = sending{sequence: underWay, state: underway}
	answer(0, 9)
	if s.foreign != 2 {
		t.Errorf("%d foreign", s.foreign)
	}
}

// TestBothEndsOfOurs runs over IPv4, IPv6 and another address of the host, in both modes.
func TestBothEndsOfOurs(t *testing.T) {
	sure := func() clockState {
		return clockState{synchronised: true, maxError: 10 * time.Microsecond, taiOffset: 37}
	}
	for _, c := range []struct {
		name, listen, ask string
		key               []byte
		ptp               bool
		bytes             int
	}{
		{"ipv4", "127.0.0.1:0", "127.0.0.1", nil, false, 0},
		{"ipv6", "[::1]:0", "::1", nil, false, 44},
		{"all addresses", ":0", "127.0.0.1", nil, true, 1400},
		{"another address", ":0", "127.0.0.2", testKey, false, 0},
		{"another address, ipv4 only", "0.0.0.0:0", "127.0.0.3", testKey, true, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Listen(t.Context(), ServerOptions{Address: c.listen, Key: c.key})
			if err != nil && c.name == "ipv6" {
				testenv.Missing(t, testenv.Network, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.r.clock.query = sure
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			target := netip.AddrPortFrom(netip.MustParseAddr(c.ask), s.Addr().Port()).String()
			n := uint64(0)
			sample := func() (*host.Counters, error) {
				n++
				return &host.Counters{Time: time.Now(), Values: map[string]uint64{"Udp.InDatagrams": n},
					CPUs: []host.CPUTimes{{CPU: -1, User: float64(n)}}}, nil
			}
			spec := traffic.Spec{Test: traffic.Ping, WarmUp: 50 * time.Millisecond,
				Gap: 2 * time.Millisecond, Interval: 100 * time.Millisecond, RequestBytes: c.bytes}
			if runtime.GOOS == "linux" {
				spec.TOS = 0x10
			}
			var seen []traffic.Interval
			r := traffictest.Longer(100*time.Millisecond, func(window time.Duration) *Report {
				seen, spec.Duration = nil, window
				r, err := Measure(t.Context(), target, spec, ClientOptions{Key: c.key, PTP: c.ptp, SSID: 5,
					HostName: "near", Sample: sample, query: sure, greetWait: time.Minute},
					func(i traffic.Interval) { seen = append(seen, i) })
				if err != nil {
					t.Fatal(err)
				}
				return r
			}, func(r *Report) bool {
				return r.RTT != nil && r.Up.Delay != nil && len(seen) >= 2 && seen[len(seen)-1].RTTSeconds > 0
			})
			if r.RTT == nil || r.RTT.Min <= 0 || !r.Stateful || r.Up.Lost == nil ||
				*r.Up.Lost+*r.Down.Lost != r.UDP.Lost || r.Hops == nil ||
				*r.Hops != 0 {
				t.Errorf("%+v, hops %v", r.Result, r.Hops)
			}
			if r.Up.Delay == nil || r.Up.Delay.Min < 0 || r.Down.Delay == nil || r.Up.DelayError < 20e-6 ||
				r.Up.DelayError > 21e-6 || len(r.Warnings) != 0 {
				t.Errorf("delay up %+v ± %g, warnings %q", r.Up.Delay, r.Up.DelayError, r.Warnings)
			}
			if len(seen) != len(r.Intervals) || len(seen) < 2 || !seen[0].Omitted || seen[len(seen)-1].Omitted ||
				seen[len(seen)-1].RTTSeconds <= 0 {
				t.Errorf("intervals %+v", seen)
			}
			if r.Ends.Local.Host != "near" || r.Ends.Local.CPUSeconds <= 0 ||
				r.Ends.Local.Counters["Udp.InDatagrams"] != 1 || r.RemoteAddress != c.ask {
				t.Errorf("end %+v", r.Ends.Local)
			}
		})
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	s, _ := startServer(t, ServerOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := errors.New("enough")
	spec := traffic.Spec{Test: traffic.Ping, Interval: 100 * time.Millisecond}
	if _, err := Run(ctx, s.Addr().String(), spec, ClientOptions{},
		func(traffic.Interval) { cancel(cause) }); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestBadSpecsAreRefused(t *testing.T) {
	for _, c := range []struct {
		spec traffic.Spec
		want string
	}{
		{traffic.Spec{Test: traffic.Stream}, "not stream"},
		{traffic.Spec{Test: traffic.RR}, "not rr"},
		{traffic.Spec{Test: traffic.Ping, NearCPUs: []int{1}}, "processors"},
		{traffic.Spec{Test: "x"}, "no test"},
	} {
		if _, err := Run(t.Context(), "127.0.0.1", c.spec, ClientOptions{}, nil); !errors.Is(err, traffic.ErrBadSpec) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
	for asked, want := range map[int]int{0: 56, 24: 44, 44: 44, 47: 44, 48: 48, 1400: 1400} {
		spec, err := fit(traffic.Spec{Test: traffic.Ping, RequestBytes: asked}, false)
		if err != nil || spec.RequestBytes != want {
			t.Errorf("%d bytes become %d, %v", asked, spec.RequestBytes, err)
		}
	}
	if spec, err := fit(traffic.Spec{Test: traffic.Ping}, true); err != nil || spec.RequestBytes != authBytes {
		t.Errorf("authenticated: %d bytes, %v", spec.RequestBytes, err)
	}
}

// TestSendingDoesNotAllocate counts allocations for a packet and its answer.
func TestSendingDoesNotAllocate(t *testing.T) {
	s, _ := startServer(t, ServerOptions{Key: testKey})
	sock, err := dial(s.Addr(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sock.close()
	sender := newSender(sock, traffic.Spec{Duration: time.Second, Gap: time.Millisecond, RequestBytes: 200},
		ClientOptions{Key: testKey})
	round := func() {
		before := sender.answered
		sender.send(true)
		for range 100 {
			if sender.take(100 * time.Millisecond); sender.answered > before {
				return
			}
		}
		t.Fatal("no answer")
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations per packet, both ends together", n)
	}
	if got := binary.BigEndian.Uint32(sender.packet); got != sender.sequence-1 {
		t.Errorf("sequence %d", got)
	}
}

func TestClockState(t *testing.T) {
	s := queryClock()
	if s.maxError < 0 || s.taiOffset < 0 || s.taiOffset > 100 {
		t.Errorf("%+v", s)
	}
	asked := 0
	c := clock{query: func() clockState { asked++; return s }}
	for range 1000 {
		c.now()
	}
	if asked < 1 || asked > 20 {
		t.Errorf("asked %d times", asked)
	}
}
