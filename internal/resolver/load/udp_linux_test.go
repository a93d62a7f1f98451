package load

import (
	"context"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/resolver/answer"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// TestPackKeepsEveryQuery arranges bursts of several lengths and compares the datagrams that the
// kernel makes of the messages with the queries.
func TestPackKeepsEveryQuery(t *testing.T) {
	w := &worker{split: true, memory: make([]byte, 0, mostBurst*100)}
	for i := range mostBurst {
		w.slots = append(w.slots, []byte(fmt.Sprintf("query %d of %*d", i, 1+i%5, i)))
		w.lengths[i] = len(w.slots[i])
	}
	for n := 1; n <= mostBurst; n++ {
		var want, got []string
		for i := range n {
			want = append(want, string(w.slots[i]))
		}
		messages := w.pack(n)
		var placed uint64
		for i := range messages {
			if placed&w.placed[i] != 0 || bits.OnesCount64(w.placed[i])*max(w.segment[i], 1) > len(w.packed[i]) {
				t.Errorf("message %d of %d has the queries %b", i, n, w.placed[i])
			}
			placed |= w.placed[i]
			rest, segment := w.packed[i], w.segment[i]
			if segment == 0 {
				segment = len(rest)
			}
			if len(rest)%segment != 0 {
				t.Errorf("a message of %d octets in segments of %d", len(rest), segment)
			}
			for ; len(rest) > 0; rest = rest[segment:] {
				got = append(got, string(rest[:segment]))
			}
		}
		if bits.OnesCount64(placed) != n {
			t.Errorf("%d queries are placed as %b", n, placed)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d queries become %q", n, got)
		}
	}
	if messages := w.pack(mostBurst); messages > 10 {
		t.Errorf("queries of a few lengths become %d messages", messages)
	}
	w.split = false
	if messages := w.pack(mostBurst); messages != mostBurst {
		t.Errorf("%d queries become %d messages without splitting", mostBurst, messages)
	}
}

// TestStrangersAreAllCounted lets another port answer every query. Of these answers only as many
// counted as fit into the buffer of a socket: 2048 of 30 000 in a load of three seconds.
func TestStrangersAreAllCounted(t *testing.T) {
	t.Parallel()
	const queries = 2000
	var arrived uint64
	r, err := settled(queries, expected{message.OtherServer, queries}, func(timeout time.Duration) (*Result, error) {
		s := serve(t, answer.Options{Faults: answer.Faults{Every: map[answer.Fault]uint64{answer.OtherPort: 1}}})
		r, err := Run(t.Context(), Options{Server: s.Addr(), Mode: Closed, Outstanding: queries, Queries: queries, Sockets: 1,
			Timeout: timeout, Duration: MaxDuration, Names: questions(t)}, nil)
		arrived = s.Queries()
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Answers != 0 || r.kind(message.OtherServer) != arrived || arrived < queries/2 {
		t.Errorf("got %+v, %+v of %d", r.Counts, r.Wrong, arrived)
	}
}

// TestLongAnswers asks for answers of more octets than most servers send over UDP: each counted as
// longer than the query allowed.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		in := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(in)
			if err != nil {
				return
			}
			q, err := message.ParseQuery(in[:n])
			if err != nil {
				t.Error(err)
				return
			}
			m := append([]byte{in[0], in[1], 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0}, q.Question...)
			const data = 6000
			m = append(m, 0xc0, message.HeaderBytes, 0, byte(message.TypeTXT), 0, 1, 0, 0, 0, 60, data>>8, data&0xff)
			_, _ = conn.WriteToUDPAddrPort(append(m, make([]byte, data)...), from) // a load that has ended needs none
		}
	}()
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	for bytes, sound := range map[uint16]bool{8192: true, 4096: false} {
		set, err := names.Read(strings.NewReader("www.bench.test TXT"), message.QueryOptions{UDPBytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		var lost uint64
		if !sound {
			lost = 5
		}
		r, err := settled(lost, expected{message.Oversize, lost}, func(timeout time.Duration) (*Result, error) {
			return Run(t.Context(), Options{Server: at, Mode: Closed, Outstanding: 5, Queries: 5, Timeout: timeout,
				Duration: MaxDuration, Names: set}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Lost != lost || r.kind(message.Oversize) != lost {
			t.Errorf("%d octets allowed: %+v, %+v", bytes, r.Counts, r.Wrong)
		}
	}
}

// TestErrorsDuringALoad distinguishes errors of the first query, which end a load, from those of
// later ones, which the network caused: "host isolated" (ICMP) ended it.
func TestErrorsDuringALoad(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENETUNREACH, unix.ENONET, unix.ENETDOWN, unix.EINVAL} {
		w := &worker{tally: newTally(), scratch: make([]byte, sys.ErrorScratchBytes)}
		if _, fatal := w.refusal(-1, errno); fatal == nil {
			t.Errorf("%v of the first query ends no load", errno)
		}
		w.sent = 1
		if again, fatal := w.refusal(-1, errno); fatal != nil || !again {
			t.Errorf("%v of a later query: %v, %v", errno, again, fatal)
		}
	}
}

// TestClosedLoopFillsItsPlaces has a server that answers when all queries of a closed loop are
// there. The places of answered ones stayed empty until the next answer arrived, or for five
// milliseconds: with answers after 20 ms a loop of 100 queries had 85 on the way, and its rate was
// 12 % below that of dnsperf.
func TestClosedLoopFillsItsPlaces(t *testing.T) {
	t.Parallel()
	const outstanding = 4 * gatherAbove
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var quick atomic.Bool
	go func() {
		var waiting [][]byte
		var from []netip.AddrPort
		answered := time.Time{}
		for {
			in := make([]byte, 512)
			n, at, err := conn.ReadFromUDPAddrPort(in)
			if err != nil {
				return
			}
			in[2] |= 0x80
			if waiting, from = append(waiting, in[:n]), append(from, at); len(waiting) < outstanding {
				continue
			}
			if !answered.IsZero() && time.Since(answered) < sweepEvery/2 {
				quick.Store(true)
				cancel()
			}
			for i, m := range waiting {
				_, _ = conn.WriteToUDPAddrPort(m, from[i]) // a load that has ended needs none
			}
			waiting, from, answered = nil, nil, time.Now()
		}
	}()
	set, err := names.Read(strings.NewReader("www.bench.test A"), message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(ctx, Options{Server: conn.LocalAddr().(*net.UDPAddr).AddrPort(), Mode: Closed, Outstanding: outstanding,
		Sockets: 1, Timeout: time.Second, Duration: MaxDuration, Names: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !quick.Load() {
		t.Errorf("%d answers, and never all queries within %v", r.Answers, sweepEvery/2)
	}
}

// TestRunsAskEachQuestion divides runs through a file among workers: those that begin with the
// first questions had fewer queries than their part, so some questions were asked once too often.
func TestRunsAskEachQuestion(t *testing.T) {
	set, err := names.Read(strings.NewReader("a. A\nb. A\nc. A\nd. A\ne. A\n"), message.QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for workers := 1; workers <= 7; workers++ {
		const runs = 3
		o, err := Options{Server: netip.MustParseAddrPort("127.0.0.1:53"), Names: set, Workers: workers,
			Queries: runs * uint64(set.Len())}.Filled()
		if err != nil {
			t.Fatal(err)
		}
		b, err := newBatched(o)
		if err != nil {
			t.Fatal(err)
		}
		asked := make([]uint64, set.Len())
		for _, w := range b.workers {
			for range w.queries {
				i, _ := w.drawer.Next()
				asked[i]++
			}
		}
		b.close()
		if slices.ContainsFunc(asked, func(n uint64) bool { return n != runs }) {
			t.Errorf("%d workers ask %v times", workers, asked)
		}
	}
}

// TestClosedLoopHasNoPauseWhileItLacksQueries fills the places of a closed loop that are more than
// those of one turn: a worker slept for five milliseconds before each further turn.
func TestClosedLoopHasNoPauseWhileItLacksQueries(t *testing.T) {
	t.Parallel()
	s := serve(t, answer.Options{})
	for outstanding, lacks := range map[int]bool{2 * closedBurst: false, closedBurst: false, 1000: true} {
		o, err := Options{Server: s.Addr(), Mode: Closed, Outstanding: outstanding, Sockets: 1, Names: questions(t)}.Filled()
		if err != nil {
			t.Fatal(err)
		}
		b, err := newBatched(o)
		if err != nil {
			t.Fatal(err)
		}
		w := b.workers[0]
		if err := w.refill(); err != nil {
			t.Error(err)
		}
		if w.lacks != lacks || w.waiting != min(outstanding, 2*closedBurst) {
			t.Errorf("of %d queries %d were sent, and lacks is %v", outstanding, w.waiting, w.lacks)
		}
		b.close()
	}
}
