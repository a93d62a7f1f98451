package echo

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakePath is a path of a few hops behind a search: packets that fit pass after a round trip; the
// path reports larger ones or not.
type fakePath struct {
	headers          int
	local, far       int // MTU of the two interfaces
	up, down         int // of the narrowest hop
	reports          bool
	unnamed          bool // reports name no size
	loss             float64
	trip             time.Duration
	away             time.Duration // the process pauses for so long whenever it waits
	random           *rand.Rand
	coming           []arrival
	server           registration
	packets, largest int
}

type arrival struct {
	at time.Time
	e  event
}

func (f *fakePath) lost() bool { return f.random.Float64() < f.loss }

func (f *fakePath) comes(after time.Duration, e event) {
	f.coming = append(f.coming, arrival{time.Now().Add(after), e})
}

func (f *fakePath) send(p []byte, _ uint64) error {
	f.packets++
	size := len(p) + f.headers
	f.largest = max(f.largest, size)
	if size > f.local {
		f.comes(0, event{trouble: Trouble{MTU: f.local, Count: 1}, tooBig: true, local: true})
		return syscall.EMSGSIZE
	}
	hop := func(mtu int) int {
		if f.unnamed {
			return 0
		}
		return mtu
	}
	switch {
	case f.lost():
	case size > f.up:
		if f.reports {
			f.comes(f.trip/2, event{payload: append([]byte(nil), p[:min(len(p), 100)]...),
				trouble: Trouble{MTU: hop(f.up), Count: 1}, tooBig: true})
		}
	default:
		f.server.from = loopback
		answer := append([]byte(nil), p...)
		r := f.server.probed(answer)
		if r.bytes == 0 {
			return nil
		}
		back := r.bytes + f.headers
		switch {
		case r.probe && back > f.far:
			putTooBig(answer, f.far)
			r.bytes = probeHeaderBytes
		case r.probe && back > f.down:
			if f.reports {
				f.server.hop = max(hop(f.down), unnamed)
			}
			return nil
		}
		if f.lost() {
			return nil
		}
		answer = append(answer, make([]byte, maxDatagram)...)
		f.comes(f.trip, event{payload: answer[:r.bytes]})
	}
	return nil
}

func (f *fakePath) next(wait time.Duration) event {
	time.Sleep(f.away)
	for i, a := range f.coming {
		if d := time.Until(a.at); d <= wait {
			f.coming = append(f.coming[:i], f.coming[i+1:]...)
			time.Sleep(d)
			return a.e
		}
	}
	time.Sleep(wait)
	return event{}
}

func TestSearchFindsEveryPath(t *testing.T) {
	type path struct {
		local, far, up, down int
		reports, unnamed     bool
		loss                 float64
		v6                   bool
		trip                 time.Duration
	}
	paths := []path{
		{local: 1500, far: 1500, up: 1500, down: 1500, reports: true},
		{local: 65536, far: 65536, up: 65536, down: 65536},
		{local: 1500, far: 1500, up: 1400, down: 1500, reports: true},
		{local: 1500, far: 1500, up: 1500, down: 1399, reports: true},
		{local: 1500, far: 1500, up: 1401, down: 1337},
		{local: 9000, far: 1500, up: 1500, down: 1500},
		{local: 9000, far: 9000, up: 8999, down: 68},
		{local: 9000, far: 9000, up: 4352, down: 1006, reports: true, unnamed: true},
		{local: 65535, far: 65535, up: 32001, down: 40000, trip: 300 * time.Millisecond},
		{local: 1500, far: 1500, up: 1280, down: 1452, v6: true},
		{local: 1500, far: 1500, up: 1280, down: 1452, v6: true, reports: true, trip: 80 * time.Millisecond},
		{local: 1500, far: 9000, up: 1420, down: 1420, loss: 0.02},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		p := path{local: 1280 + random.IntN(9000), far: 1280 + random.IntN(9000), reports: random.IntN(2) == 0,
			trip: time.Duration(random.IntN(100)) * time.Millisecond}
		p.up, p.down = 600+random.IntN(p.local-600), 600+random.IntN(p.far-600)
		paths = append(paths, p)
	}
	for i, p := range paths {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakePath{headers: 28, local: p.local, far: p.far, up: p.up, down: p.down, reports: p.reports,
					unnamed: p.unnamed,
					loss:    p.loss, trip: p.trip, random: rand.New(rand.NewPCG(uint64(i), 3))}
				if p.v6 {
					f.headers = 48
				}
				s := newSearch(f, Token{1}, p.v6, true)
				started := time.Now()
				if err := s.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				took := time.Since(started)
				got := s.result("")
				up := PathSide{Bytes: min(p.up, p.local, maxPacket), Exact: true, Interface: p.local}
				down := PathSide{Bytes: min(p.down, p.far, maxPacket), Exact: true, Interface: p.far}
				for _, d := range []*PathSide{&up, &down} {
					narrow := d.Bytes < min(d.Interface, maxPacket)
					if narrow && p.reports && !p.unnamed {
						d.Reported = d.Bytes
					}
					d.BlackHole = narrow && !p.reports
					if d.Interface > maxPacket {
						d.Interface = 0 // nothing was too big for it
					}
				}
				if got.Up != up || got.Down != down {
					t.Errorf("%+v:\nup   %+v\nwant %+v\ndown %+v\nwant %+v", p, got.Up, up, got.Down, down)
				}
				// Silent paths cost the tries of some rounds; those that report cost some round
				// trips.
				bound := 12 * probeTries * max(4*p.trip, leastProbeWait)
				if p.reports && p.loss == 0 && !p.unnamed {
					bound = 4*p.trip + 6*probeTries*max(4*p.trip, leastProbeWait)
				}
				if took > bound || f.packets > 400 {
					t.Errorf("%+v: took %v (bound %v) and %d packets", p, took, bound, f.packets)
				}
			})
		})
	}
}

// TestSearchBearsLoss counts how often a search on a path that loses a packet in ten each way is
// wrong.
func TestSearchBearsLoss(t *testing.T) {
	wrong := 0
	const runs = 200
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			f := &fakePath{headers: 28, local: 1500, far: 1500, up: 1450, down: 1387, loss: 0.1,
				trip: 10 * time.Millisecond, random: rand.New(rand.NewPCG(uint64(i), 9))}
			s := newSearch(f, Token{1}, false, true)
			if err := s.run(t.Context()); err != nil {
				wrong++
				return
			}
			if r := s.result(""); r.Up.Bytes != 1450 || r.Down.Bytes != 1387 {
				wrong++
			}
		})
	}
	if wrong > runs/50 {
		t.Errorf("%d of %d searches are wrong", wrong, runs)
	}
}

// TestSearchBearsPauses has a host that pauses the process for longer than a try in every wait. The
// answers arrive meanwhile.
func TestSearchBearsPauses(t *testing.T) {
	for _, reports := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakePath{headers: 28, local: 1500, far: 1500, up: 1450, down: 1387, trip: 10 * time.Millisecond,
				away: 2 * longestProbeWait, reports: reports, random: rand.New(rand.NewPCG(1, 4))}
			s := newSearch(f, Token{1}, false, true)
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r := s.result(""); r.Up.Bytes != 1450 || r.Down.Bytes != 1387 {
				t.Errorf("reports %v: up %+v, down %+v", reports, r.Up, r.Down)
			}
		})
	}
}

func TestSearchWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePath{headers: 28, local: 1500, loss: 1, random: rand.New(rand.NewPCG(1, 1))}
		if err := newSearch(f, Token{1}, false, true).run(t.Context()); err == nil {
			t.Error("a path without answers has an mtu")
		}
	})
}

// FuzzProbeAnswer gives a search what a socket may deliver; the search stays within its bounds for
// any input.
func FuzzProbeAnswer(f *testing.F) {
	p := make([]byte, probeHeaderBytes)
	putProbe(p, Token{1}, kindAnswer, 5, 1400)
	f.Add(p[TokenBytes:], false, 0)
	putTooBig(p, 1500)
	f.Add(p[TokenBytes:], false, 0)
	f.Add([]byte{}, true, -1)
	f.Add(binary.BigEndian.AppendUint64(nil, 1), true, 1<<30)
	f.Fuzz(func(t *testing.T, rest []byte, tooBig bool, mtu int) {
		s := newSearch(nil, Token{1}, false, true)
		s.up.low, s.down.low = 68, 68
		s.up.probes, s.down.probes = []probe{{size: 1400, first: 5}}, []probe{{size: 1400, first: 6}}
		packet := append(append([]byte(nil), s.token[:]...), rest...)
		e := event{payload: packet}
		if tooBig {
			e.tooBig, e.trouble = true, Trouble{MTU: mtu, Count: 1, By: netip.Addr{}}
		}
		s.take(e, time.Now())
		for _, d := range []*side{&s.up, &s.down} {
			d.conclude()
			d.plan()
			if d.low >= d.high || d.on && (d.low < 68 || d.high > maxPacket+1) {
				t.Fatalf("low %d, high %d", d.low, d.high)
			}
			for _, p := range d.probes {
				if p.size <= d.low || p.size > maxPacket {
					t.Fatalf("size %d is tried with low %d", p.size, d.low)
				}
			}
		}
	})
}

// TestManyHintsAreFewProbes reports another MTU with every packet, as an attacker would who makes
// them up.
func TestManyHintsAreFewProbes(t *testing.T) {
	d := side{on: true, low: 68, high: maxPacket}
	for mtu := range 10_000 {
		d.named(100 + mtu)
	}
	if d.plan(); len(d.probes) < 2 || len(d.probes) > maxHints+2 {
		t.Errorf("%d probes", len(d.probes))
	}
	if d.hop != 100+9999 {
		t.Errorf("the last word was lost: %d", d.hop)
	}
}
