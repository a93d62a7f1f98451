package echo

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestSearchOverARouter searches with real kernels: over a router with narrow hops, which reports
// what it drops or not.
func TestSearchOverARouter(t *testing.T) {
	for _, c := range []struct {
		up, down int
		silent   bool
		v6       bool
	}{
		{up: 1500, down: 1500}, {up: 1400, down: 1500}, {up: 1500, down: 1337}, {up: 1300, down: 1401, silent: true},
		{up: 1400, down: 1320, v6: true}, {up: 1300, down: 1401, silent: true, v6: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			h := newHop(t, c.up, c.down)
			if c.silent {
				h.silence(t)
			}
			near, far := netip.MustParseAddr("10.0.1.1"), netip.MustParseAddr("10.0.2.1")
			if c.v6 {
				near, far = netip.MustParseAddr("fd01::1"), netip.MustParseAddr("fd02::1")
			}
			var s *Server
			h.far.do(t, func() { s = listen(t, ":0") })
			if s == nil {
				t.Fatal("no server")
			}
			token := register(t, s, near.String())
			var got PathMTU
			var err error
			started := time.Now()
			h.near.do(t, func() {
				got, err = SearchPathMTU(t.Context(), SearchOptions{UDP: netip.AddrPortFrom(far, uint16(s.Port())),
					Token: token})
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %+v", time.Since(started), got)
			want := func(mtu int) PathSide {
				p := PathSide{Bytes: mtu, Exact: true, Interface: 1500, BlackHole: mtu < 1500 && c.silent}
				if mtu < 1500 && !c.silent {
					p.Reported = mtu
				}
				return p
			}
			if got.Method != "udp echo" || got.Up != want(c.up) || got.Down != want(c.down) {
				t.Errorf("%+v", got)
			}
			// Without a far linerate: the smaller of both directions, since echoes come back as
			// large as they went.
			h.near.do(t, func() { got, err = SearchPathMTU(t.Context(), SearchOptions{IP: far}) })
			if err != nil {
				t.Fatal(err)
			}
			// The far kernel may fragment its answers, as Linux does for IPv4.
			if got.Method != "icmp echo" || got.Up.Bytes != c.up && got.Up.Bytes != min(c.up, c.down) ||
				got.Down != (PathSide{}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestPingsTellWhatTheNetworkSays pings hosts that the router does not forward to.
func TestPingsTellWhatTheNetworkSays(t *testing.T) {
	for _, c := range []struct{ route, want string }{
		{"unreachable", "10.0.1.254 says: host unreachable"},
		{"prohibit", "10.0.1.254 says: administratively prohibited"},
	} {
		t.Run(c.route, func(t *testing.T) {
			t.Parallel()
			h := newHop(t, 1500, 1500)
			h.router.run(t, "ip route add "+c.route+" 10.0.3.0/24")
			var err error
			h.near.do(t, func() {
				var w *engine.Worker
				w, _, err = NewPinger(t.Context(), &engine.Phase{},
					PingOptions{IP: netip.MustParseAddr("10.0.3.1"), Bytes: 56, Gap: time.Millisecond})
				if err == nil {
					w.Close()
				}
			})
			if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPingsTellTheHopThatIsTooNarrow has a router report which size would pass.
func TestPingsTellTheHopThatIsTooNarrow(t *testing.T) {
	h := newHop(t, 1000, 1500)
	var troubles []Trouble
	h.near.do(t, func() {
		socket, err := openICMP(netip.Addr{}, netip.MustParseAddr("10.0.2.1"), 1200)
		if err != nil {
			t.Error(err)
			return
		}
		defer socket.close()
		if err := socket.dontFragment(); err != nil {
			t.Error(err)
		}
		w, s := newPinger(&engine.Phase{}, socket, Token{1}, PingOptions{Bytes: 1200})
		s.sendPing(w, w.Now())
		for until := time.Now().Add(time.Minute); len(s.Troubles()) == 0 && time.Now().Before(until); {
			s.takeAnswer(w, 100*time.Millisecond)
		}
		troubles = s.Troubles()
	})
	if len(troubles) != 1 || troubles[0].MTU != 1000 || troubles[0].By != netip.MustParseAddr("10.0.1.254") ||
		troubles[0].Text != "fragmentation needed" {
		t.Errorf("%+v", troubles)
	}
}

// TestPingsUseTheKernelsTimes holds on every Linux that this program runs on: every device has a
// queue to enter, if only in name.
func TestPingsUseTheKernelsTimes(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	token := register(t, s, "127.0.0.1")
	// The time at which the first ping left may arrive behind its answer on a busy machine.
	method := ""
	for range 20 {
		w, _, err := NewPinger(t.Context(), &engine.Phase{},
			PingOptions{UDP: s.local, Token: token, Bytes: 56, Gap: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if method = w.Method; method == "udp echo, kernel timestamps" {
			return
		}
	}
	t.Errorf("method %q", method)
}

func TestRoundTripBelievesNoImpossibleClock(t *testing.T) {
	const wall = 1_000_000_000
	for _, c := range []struct {
		left, received int64
		want           time.Duration
	}{
		{0, 0, 100},                       // the kernel reported nothing
		{0, wall + 90, 90},                // when it arrived
		{wall + 20, wall + 90, 70},        // and when it left
		{wall - 20, wall + 90, 90},        // of another ping
		{wall + 95, wall + 90, 90},        // left after it arrived
		{wall + 20, wall - 5, 100},        // the clock was set back
		{wall + 20, wall + 5_000, 100},    // and forth
		{wall + 20, wall + 20 + 101, 100}, // longer than around it
	} {
		s := &Pinger{}
		if got := s.between(&pingSent{at: 50, wall: wall, left: c.left}, 150, c.received); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
