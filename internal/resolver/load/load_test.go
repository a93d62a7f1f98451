package load

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/resolver/answer"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// questions returns a model that package answer answers.
func questions(t *testing.T) *names.Set {
	t.Helper()
	s, err := names.Model{Domain: "bench.test", Population: 100, Exponent: 1, HitRatio: 0.7, NXRatio: 0.2}.New(
		message.QueryOptions{Recursion: true, UDPBytes: 1232})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve starts a server on loopback.
func serve(t *testing.T, o answer.Options) *answer.Server {
	t.Helper()
	o.Listen = netip.AddrPortFrom(loopback.Addr(), uint16(testenv.FreePorts(t, 1)))
	o.ListenTLS = loopback
	s, err := answer.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// kind returns how many messages of a kind a result has.
func (r *Result) kind(k message.Kind) uint64 {
	for _, w := range r.Wrong {
		if w.Kind == k.String() {
			return w.Total
		}
	}
	return 0
}

// TestFaultsAreNeverAnswers lets the server misbehave in every way, over every transport. All cases
// wait for their lost queries at the same time; more are outstanding than are lost, so that one
// wait suffices.
func TestFaultsAreNeverAnswers(t *testing.T) {
	t.Parallel()
	const queries, every = 200, 10
	var group sync.WaitGroup
	for _, transport := range []Transport{UDP, TCP, TLS} {
		for _, c := range []struct {
			fault answer.Fault
			kind  message.Kind
			lost  bool // the query goes on waiting
		}{
			{"", message.Sound, false},
			{answer.Drop, message.Sound, true},
			{answer.WrongID, message.UnknownID, true},
			{answer.OtherPort, message.OtherServer, true},
			{answer.OtherQuestion, message.OtherQuestion, true},
			{answer.NoQuestion, message.NoQuestion, true},
			{answer.Loop, message.CompressionLoop, true},
			{answer.Malformed, message.Malformed, true},
			{answer.Trailing, message.Trailing, true},
			{answer.Short, message.Short, true},
			{answer.Query, message.NotAnAnswer, true},
			{answer.Failure, message.OtherCode, false},
		} {
			if c.fault == answer.OtherPort && transport != UDP ||
				transport == TLS && c.fault != "" && c.fault != answer.WrongID { // reads messages as TCP does
				continue
			}
			title := string(transport) + "/" + string(c.fault)
			set := questions(t)
			at := netip.AddrPortFrom(loopback.Addr(), uint16(testenv.FreePorts(t, 1)))
			group.Go(func() {
				o := Options{Transport: transport, Mode: Closed, Outstanding: 2 * queries / every, Sockets: 4,
					Queries: queries, Duration: MaxDuration, Names: set}
				faults := uint64(0)
				if c.fault != "" {
					faults = queries / every
				}
				lost := faults
				if !c.lost {
					lost = 0
				}
				wrong := uint64(0)
				if c.kind != message.Sound {
					wrong = faults
				}
				var arrived uint64
				r, err := settled(lost, expected{c.kind, wrong}, func(timeout time.Duration) (*Result, error) {
					s, err := answer.Start(answer.Options{Listen: at, ListenTLS: loopback,
						Faults: answer.Faults{Every: map[answer.Fault]uint64{c.fault: every}}})
					if err != nil {
						return nil, err
					}
					o.Server, o.Timeout = s.Addr(), timeout
					if transport == TLS {
						o.Server = s.AddrTLS()
					}
					r, err := Run(t.Context(), o, nil)
					arrived = s.Queries()
					return r, errors.Join(err, s.Close())
				})
				if err != nil {
					t.Errorf("%s: %v", title, err)
					return
				}
				if r.Queries != queries || arrived != queries {
					t.Errorf("%s: %d queries sent, %d arrived, want %d", title, r.Queries, arrived, queries)
				}
				if r.kind(c.kind) != wrong || r.WrongTotal != wrong {
					t.Errorf("%s: wrong messages are %+v, want %d of kind %v", title, r.Wrong, wrong, c.kind)
				}
				if r.Lost != lost {
					t.Errorf("%s: %d queries lost, want %d", title, r.Lost, lost)
				}
				if r.Answers > queries-faults {
					t.Errorf("%s: %d answers: some of %d wrong ones count", title, r.Answers, faults)
				}
				ended := r.Answers + r.Lost
				if !c.lost {
					ended += wrong
				}
				if ended != queries {
					t.Errorf("%s: %d answers and %d lost of %d queries", title, r.Answers, r.Lost, queries)
				}
				if r.Latency == nil || r.Latency.Count != r.Answers {
					t.Errorf("%s: latency is %+v of %d answers", title, r.Latency, r.Answers)
				}
				codes := uint64(0)
				for _, code := range r.Codes {
					codes += code.Total
				}
				if codes != r.Answers || r.NoEDNS != 0 {
					t.Errorf("%s: codes are %+v, %d answers without EDNS", title, r.Codes, r.NoEDNS)
				}
			})
		}
	}
	group.Wait()
}

func TestSecondAndLateAnswers(t *testing.T) {
	t.Parallel()
	const queries = 200
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.Twice: 2}}})
		r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Closed, Outstanding: 4, Queries: queries,
			Timeout: MaxTimeout, Duration: MaxDuration, Names: questions(t)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Those of the last queries may arrive after the end.
		if r.Answers != queries || r.Duplicates < queries/2-4 || r.Duplicates > queries/2 || r.WrongTotal != 0 {
			t.Errorf("got %+v", r.Counts)
		}
	})
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		// Of the four queries that wait at a time, a lost one waits for its timeout. So the load lasts
		// ten timeouts, however late it begins, and the first late answers arrive within it.
		const queries, outstanding = 80, 4
		s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.Late: 2},
			LateBy: 300 * time.Millisecond}})
		r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Closed, Outstanding: outstanding, Queries: queries,
			Timeout: 100 * time.Millisecond, Duration: MaxDuration, Names: questions(t)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Queries != queries || r.Lost < queries/2 || r.Late == 0 || r.Late > r.Lost || r.WrongTotal != 0 ||
			r.Answers+r.Lost != queries {
			t.Errorf("got %+v", r.Counts)
		}
	})
	t.Run("truncated", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.Truncated: 1}}})
		set, err := names.Read(strings.NewReader("www.bench.test A 192.0.2.1"), message.QueryOptions{UDPBytes: 1232})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Closed, Queries: 20, Timeout: MaxTimeout,
			Duration: MaxDuration, Names: set}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Answers != 20 || r.Truncated != 20 || r.NoEDNS != 20 {
			t.Errorf("got %+v", r.Counts)
		}
	})
}

func TestContentIsChecked(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{})
	set, err := names.Read(strings.NewReader("www.bench.test A 198.51.100.1\nwww.gone.test A NXDOMAIN\n"),
		message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Closed, Queries: 20, Timeout: MaxTimeout,
		Duration: MaxDuration, Names: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Answers != 10 || r.kind(message.OtherContent) != 10 || r.Lost != 0 {
		t.Errorf("got %+v, %+v", r.Counts, r.Wrong)
	}
}

// TestStallShowsInOpenLoop stops the server for 300 ms of a second. Of 300 queries a second, 90 are
// due meanwhile, and the latency of the slowest hundredth is nearly the whole stall. All queries
// together fit into the server's receive buffer where the host allows no more than the default
// (net.core.rmem_max 212992), so none is lost while either side stands still.
func TestStallShowsInOpenLoop(t *testing.T) {
	t.Parallel()
	const stall, queries = 300 * time.Millisecond, 300
	s := serve(t, answer.Options{Stall: stall, StallAfter: 100 * time.Millisecond})
	r, err := Run(t.Context(), Options{Server: s.Addr(), Rate: queries, Duration: time.Second, Timeout: MaxTimeout,
		Interval: 200 * time.Millisecond, Names: questions(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Queries != queries || r.Answers != queries {
		t.Fatalf("got %+v", r.Counts)
	}
	if r.Latency.P99 < 0.8*stall.Seconds() || r.Latency.P90 < 0.5*stall.Seconds() {
		t.Errorf("latency is %+v after a stall of %v", r.Latency, stall)
	}
	// The last one may be short, and then is one with the one before.
	if n := len(r.Intervals); n < 4 || n > 5 && r.DurationSeconds < 1.1 || r.Intervals[n-1].AtSeconds < 1 {
		t.Errorf("intervals are %+v", r.Intervals)
	}
}

func TestConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{})
	r, err := Run(t.Context(), Options{Server: s.Addr(), Transport: TCP, Mode: Closed, Outstanding: 4, Sockets: 4,
		Queries: 100, PerConnection: 5, Timeout: MaxTimeout, Duration: MaxDuration, Names: questions(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One connection each may carry fewer: where the last query comes differs.
	if r.Answers != 100 || r.Connections < 20 || r.Connections > 24 {
		t.Errorf("got %+v on %d connections in %g s", r.Counts, r.Connections, r.DurationSeconds)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(testenv.FreePorts(t, 1)))
	for _, transport := range []Transport{UDP, TCP, TLS, HTTPS} {
		_, err := Run(t.Context(), Options{Server: at, Transport: transport, Queries: 20, Duration: time.Second,
			Timeout: 100 * time.Millisecond, Names: questions(t)}, nil)
		if !errors.Is(err, ErrNoServer) {
			t.Errorf("%s: %v", transport, err)
		}
	}
}

// TestSilentServer asks a port that accepts connections and says nothing, as one of another
// protocol does.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", loopback.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, transport := range []Transport{TLS, HTTPS} {
		_, err := Run(t.Context(), Options{Server: netip.MustParseAddrPort(l.Addr().String()), Transport: transport,
			Queries: 20, Duration: time.Second, Timeout: 100 * time.Millisecond, Names: questions(t)}, nil)
		if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "no connection within 1s") {
			t.Errorf("%s: %v", transport, err)
		}
	}
}

// TestServerThatGoesAway distinguishes a server that is gone at the end from one that pauses, loses
// some, or never answered.
func TestServerThatGoesAway(t *testing.T) {
	for name, c := range map[string]struct {
		answers []float64 // per second, in intervals of a second with 100 queries
		at      float64
		gone    bool
	}{
		"to the end": {[]float64{100, 100, 99}, 0, false},
		"gone":       {[]float64{100, 40, 0, 0}, 2, true},
		"a pause":    {[]float64{100, 0, 0, 1}, 0, false},
		"never":      {[]float64{0, 0, 0}, 0, false},
		"no time":    {nil, 0, false},
	} {
		r := &Result{}
		for i, rate := range c.answers {
			r.Intervals = append(r.Intervals, Interval{AtSeconds: float64(i + 1), QueriesPerSecond: 100, AnswersPerSecond: rate})
		}
		if at, gone := r.WentAway(); at != c.at || gone != c.gone {
			t.Errorf("%s: %v, %v", name, at, gone)
		}
	}
	slow := &Result{Intervals: []Interval{{AtSeconds: 1, QueriesPerSecond: 1, AnswersPerSecond: 1},
		{AtSeconds: 2, QueriesPerSecond: 1}}}
	if _, gone := slow.WentAway(); gone {
		t.Error("one lost query is a server that is gone")
	}
}

// TestRatesAreOfTheWholeTime holds the time that rates are of. That of the slow server is what
// dnsperf 2.10 says too: 300 queries, 100 at a time and two seconds each, in 6.27 s.
func TestRatesAreOfTheWholeTime(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	type counts struct{ answers, lost, interrupted uint64 }
	open, closed := Options{Mode: Open, Rate: 100}, Options{Mode: Closed}
	for name, c := range map[string]struct {
		o         Options
		n         counts
		mean      time.Duration // of an answer
		sent, ran time.Duration
		whole     bool
		want      time.Duration
	}{
		"open":          {open, counts{1000, 0, 0}, 2 * second, 9990 * ms, 12 * second, true, 10 * second},
		"open, late":    {open, counts{1000, 0, 0}, 2 * second, 11 * second, 13 * second, true, 11 * second},
		"one query":     {open, counts{1, 0, 0}, 2 * second, 0, 2 * second, false, 10 * ms},
		"ten queries":   {open, counts{10, 0, 0}, 2 * second, 90 * ms, 2090 * ms, false, 100 * ms},
		"closed, slow":  {closed, counts{600, 0, 0}, 2 * second, 10 * second, 12 * second, true, 12 * second},
		"closed, once":  {closed, counts{100, 0, 0}, 2 * second, 0, 2 * second, false, 2 * second},
		"closed, dead":  {closed, counts{0, 300, 0}, 0, 8 * second, 12 * second, true, 12 * second},
		"closed, ends":  {closed, counts{1e6, 100, 0}, ms, 5 * second, 10 * second, true, 10 * second},
		"closed by far": {closed, counts{100, 100, 0}, ms, 10 * second, 10001 * ms, true, 10001 * ms},
		"closed, break": {closed, counts{150, 0, 0}, 2 * second, 2 * second, 4 * second, false, 4 * second},
		"silent, break": {closed, counts{0, 0, 100}, 0, ms, 3 * second, false, 3 * second},
	} {
		c.o.Duration, c.o.Timeout = 10*second, 4*second
		sum := newTally()
		sum.Answers, sum.Lost, sum.Interrupted = c.n.answers, c.n.lost, c.n.interrupted
		sum.Queries = c.n.answers + c.n.lost + c.n.interrupted
		sum.latency.Record(int64(c.mean))
		if got := sum.lasted(c.o, c.sent, c.ran, c.whole); got.Round(ms/1000) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	slow := serve(t, answer.Options{Delay: 300 * time.Millisecond})
	r, err := Run(t.Context(), Options{Server: slow.Addr(), Mode: Closed, Outstanding: 10, Queries: 10,
		Timeout: MaxTimeout, Duration: MaxDuration, Names: questions(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if most := 10 / 0.3; r.AnswersPerSecond > most {
		t.Errorf("%g answers/s from a server that needs 0.3 s for each of the 10 that wait: more than %g",
			r.AnswersPerSecond, most)
	}
}

// TestFewQueries asks fewer queries than there are workers: a worker without one sent them without
// end.
func TestFewQueries(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{})
	r, err := settled(0, expected{}, func(timeout time.Duration) (*Result, error) {
		return Run(t.Context(), Options{Server: s.Addr(), Names: questions(t), Queries: 2, Workers: 3, Sockets: 4,
			Duration: time.Second, Timeout: timeout}, nil)
	})
	if err != nil || r.Queries != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestQueriesAreTheBound asks for a number of queries without a duration: the load ended after ten
// seconds. dnsperf 2.10 has a time limit only with -l.
func TestQueriesAreTheBound(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want time.Duration // 0: impossible
	}{
		"neither":        {Options{}, 10 * time.Second},
		"queries":        {Options{Queries: 100_000, Rate: 50}, MaxDuration},
		"closed":         {Options{Queries: mostQueries, Mode: Closed}, MaxDuration},
		"both":           {Options{Queries: 100_000, Duration: time.Second, Rate: 50}, time.Second},
		"too long":       {Options{Queries: 100_000, Rate: 20}, 0},
		"too many":       {Options{Queries: mostQueries + 1, Mode: Closed}, 0},
		"of a ramp":      {Options{Queries: 100, Mode: Ramp}, 0},
		"ramp, duration": {Options{Mode: Ramp}, 2 * time.Second},
	} {
		c.o.Names, c.o.Server = questions(t), netip.MustParseAddrPort("127.0.0.1:53")
		if o, err := c.o.Filled(); (err != nil) != (c.want == 0) || err == nil && o.Duration != c.want {
			t.Errorf("%s: %v, %v", name, o.Duration, err)
		}
	}
}

// TestRampThatNeverBegan cancels a ramp before its first step.
func TestRampThatNeverBegan(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Run(ctx, Options{Server: serve(t, answer.Options{}).Addr(), Names: questions(t), Mode: Ramp}, nil)
	if err != nil || r.Knee != 0 || len(r.Steps) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOptionsRefuse(t *testing.T) {
	sound := Options{Server: netip.MustParseAddrPort("127.0.0.1:53"), Names: questions(t)}
	if _, err := sound.Filled(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"rate":        func(o *Options) { o.Rate = 2 * MaxRate },
		"not a rate":  func(o *Options) { o.Rate = math.NaN() },
		"duration":    func(o *Options) { o.Duration = 2 * MaxDuration },
		"timeout":     func(o *Options) { o.Timeout = time.Microsecond },
		"sockets":     func(o *Options) { o.Sockets = MaxSockets + 1 },
		"workers":     func(o *Options) { o.Workers = 17 },
		"outstanding": func(o *Options) { o.Outstanding = -1 },
		"transport":   func(o *Options) { o.Transport = "quic" },
		"mode":        func(o *Options) { o.Mode = "wide" },
		"server":      func(o *Options) { o.Server = netip.AddrPort{} },
		"names":       func(o *Options) { o.Names = nil },
		"path":        func(o *Options) { o.Path = "dns" },
	} {
		o := sound
		change(&o)
		if _, err := o.Filled(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRampFindsTheKnee lets a simulated server lose what is above its capacity.
func TestRampFindsTheKnee(t *testing.T) {
	for _, capacity := range []float64{700, 12_345, 300_000} {
		o := Options{Server: netip.MustParseAddrPort("127.0.0.1:53"), Names: questions(t), Mode: Ramp}
		o, err := o.Filled()
		if err != nil {
			t.Fatal(err)
		}
		r, err := ramp(t.Context(), o, func(Interval) {}, func(o Options) (*Result, error) {
			answered := min(o.Rate, capacity)
			return &Result{Target: o.Rate, QueriesPerSecond: o.Rate, AnswersPerSecond: answered,
				LossRatio: 1 - answered/o.Rate, Latency: &stats.Latencies{P99: 0.001}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// Five halvings of a factor of two, and the loss of one in a hundred that is allowed.
		if r.Knee < capacity*0.93 || r.Knee > capacity*1.02 || r.Mode != Ramp {
			t.Errorf("the knee of %g is %g, after %+v", capacity, r.Knee, r.Steps)
		}
	}
}

func TestTable(t *testing.T) {
	tab := newTable(10, 0x1234)
	var ids []uint16
	for i := range int64(3) {
		ids = append(ids, tab.add(i, 100+i, uint32(i), 0))
	}
	if q := tab.find(ids[1]); q == nil || q.index != 1 {
		t.Fatalf("found %+v", q)
	}
	if tab.find(ids[2]+1) != nil || tab.find(ids[0]^0x8000) != nil {
		t.Error("found a query that was not sent")
	}
	tab.close(tab.find(ids[1]))
	if n := tab.expire(102); n != 1 || tab.waiting != 1 {
		t.Errorf("%d expired, %d waiting", n, tab.waiting)
	}
	if q := tab.find(ids[0]); q.state != lost {
		t.Errorf("state is %d", q.state)
	}
	tab.drop(1)
	if tab.waiting != 0 || tab.room() != leastTable {
		t.Errorf("%d waiting, room for %d", tab.waiting, tab.room())
	}
	// An id comes back after 65 536 queries, and is not taken for the old one.
	for range 1<<16 - 1 {
		tab.close(tab.find(tab.add(0, 0, 7, 0)))
	}
	if q := tab.find(ids[0]); q == nil || q.index != 7 {
		t.Errorf("found %+v", q)
	}
}

func TestPacer(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
	}{{1, 1}, {1000, 1}, {20_000, 1}, {21_000, 2}, {100_000, 5}, {5_000_000, 64}} {
		p := newPacer(c.rate, 1000)
		if p.burst != c.burst {
			t.Errorf("%g a second are due %d together, want %d", c.rate, p.burst, c.burst)
		}
		p.count = 1_000_000
		if got := float64(p.due()-1000) / 1e9 * c.rate / float64(p.burst); math.Abs(got-1e6) > 1 {
			t.Errorf("after a million bursts at %g a second the schedule is at %g", c.rate, got)
		}
	}
}

// TestRampSeesOverload lets a server that has too much to do answer wrongly, fail, truncate
// (response rate limiting), or end. A server that answered every query SERVFAIL held each rate.
func TestRampSeesOverload(t *testing.T) {
	const capacity = 12_345
	for name, c := range map[string]struct {
		why   string
		shape func(r *Result, over uint64) error
	}{
		"wrong": {"wrong answers", func(r *Result, over uint64) error {
			r.Answers, r.WrongTotal = r.Answers-over, over
			return nil
		}},
		"failures": {"SERVFAIL, REFUSED", func(r *Result, over uint64) error {
			usual := r.Answers / 5 // names that no server answers
			r.Codes = []CodeCount{{"NOERROR", r.Answers - over - usual}, {"SERVFAIL", usual}, {"REFUSED", over}}
			return nil
		}},
		"truncated": {"truncated answers", func(r *Result, over uint64) error { r.Truncated = over; return nil }},
		"ends": {"loss", func(_ *Result, over uint64) error {
			if over > 0 {
				return ErrNoServer
			}
			return nil
		}},
	} {
		o, err := Options{Server: netip.MustParseAddrPort("127.0.0.1:53"), Names: questions(t), Mode: Ramp}.Filled()
		if err != nil {
			t.Fatal(err)
		}
		fresh := map[uint64]bool{}
		r, err := ramp(t.Context(), o, func(Interval) {}, func(o Options) (*Result, error) {
			if fresh[o.FreshFrom] && name != "ends" { // its last steps send no query
				t.Errorf("%s: a step asks again for the fresh names of another", name)
			}
			fresh[o.FreshFrom] = true
			n := uint64(2 * o.Rate)
			r := &Result{Target: o.Rate, QueriesPerSecond: o.Rate, AnswersPerSecond: o.Rate,
				Counts: Counts{Queries: n, Answers: n}, Latency: &stats.Latencies{P99: 0.001}}
			return r, c.shape(r, uint64(max(0, 0.7*2*(o.Rate-capacity))))
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Knee < capacity*0.93 || r.Knee > capacity*1.05 || r.Steps[4].Why != c.why {
			t.Errorf("%s: the knee of %d is %g, after %+v", name, capacity, r.Knee, r.Steps)
		}
	}
}

// TestRampThatHeldNothing keeps what the lowest rate showed.
func TestRampThatHeldNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.Failure: 1}}})
	r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Ramp, Names: questions(t), FirstRate: 100,
		Duration: 100 * time.Millisecond}, nil)
	if err != nil || r.Knee != 0 || r.Answers != 0 || r.Queries == 0 || r.Method == "" ||
		r.kind(message.OtherCode)+r.Lost != r.Queries {
		t.Errorf("%+v, %v", r, err)
	}
}
