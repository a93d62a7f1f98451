package datagram

import (
	"testing"
	"time"
)

// drive runs a sender against a simulated clock: each call takes the given time, and now and then
// the thread is suspended for a while.
func drive(p *pacer, span, call time.Duration, away func(at time.Duration) time.Duration) (packets int,
	bursts []time.Duration) {
	for now := time.Duration(0); now < span; {
		n, wait := p.take(now)
		if n == 0 {
			now += wait
			continue
		}
		packets += n
		bursts = append(bursts, now)
		now += call
		if away != nil {
			now += away(now)
		}
	}
	return packets, bursts
}

func TestPacerKeepsTheRate(t *testing.T) {
	const span = 10 * time.Second
	for _, c := range []struct {
		name string
		gap  float64
		most int // packets per call
		away func(time.Duration) time.Duration
	}{
		{"10 Mb/s of 1448 bytes", 1448 * 8 / 10e6 * 1e9, 64, nil},
		{"100 Mb/s of 1448 bytes", 1448 * 8 / 100e6 * 1e9, 64, nil},
		{"1 Gb/s of 1448 bytes", 1448 * 8 / 1e9 * 1e9, 64, nil},
		{"three million packets a second", 1e9 / 3e6, 256, nil},
		{"one packet a second", 1e9, 1, nil},
		{"sleeps that end late", 1448 * 8 / 10e6 * 1e9, 1,
			func(time.Duration) time.Duration { return 300 * time.Microsecond }},
		{"a thread that is taken away", 1e9 / 1e5, 1, func(at time.Duration) time.Duration {
			if at%(100*time.Millisecond) < 3*time.Microsecond {
				return 20 * time.Millisecond
			}
			return 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newExactPacer(c.gap, c.most)
			n, _ := drive(&p, span, 2*time.Microsecond, c.away)
			want := float64(span) / c.gap
			// The first packet goes at once, so one more than the gaps; the last burst may or may
			// not be in.
			if off := (float64(n) - 1) - want; off > float64(p.burst) || off < -want/100-float64(p.burst) {
				t.Errorf("%d packets, want %.0f", n, want)
			}
			if p.forgiven != 0 {
				t.Errorf("%v ns forgiven", p.forgiven)
			}
		})
	}
}

// TestPacerKeepsTheMeanOnABusyHost: every sleep of a sender in bursts of a millisecond ends four
// milliseconds late. It hands over what is due, and never more than ten milliseconds at once.
func TestPacerKeepsTheMeanOnABusyHost(t *testing.T) {
	const span, late, call = 10 * time.Second, 4 * time.Millisecond, 2 * time.Microsecond
	for _, gap := range []float64{56e3, 336e3, 5e6} { // nanoseconds
		p := newExactPacer(gap, 64)
		p.burst = max(p.burst, int(1e6/gap))
		p.keepMean()
		sent, together, most := 0, 0, 0
		for now := time.Duration(0); now < span; {
			n, wait := p.take(now)
			if n > 0 {
				sent, together, now = sent+n, together+n, now+call
				most = max(most, together)
				continue
			}
			together, now = 0, now+wait+late
		}
		if want := float64(span) / gap; float64(sent) < 0.99*want || float64(sent) > want+float64(p.burst)+1 {
			t.Errorf("gap %g: %d packets, want %.0f", gap, sent, want)
		}
		if limit := max(float64(mostAtOnce)/gap, float64(p.burst)); float64(most) > limit {
			t.Errorf("gap %g: %d packets at once, want %.0f at most", gap, most, limit)
		}
	}
}

// TestPacerDoesNotBurst stops the sender for longer than its credit and looks at how it goes on.
func TestPacerDoesNotBurst(t *testing.T) {
	const gap = 100 * time.Microsecond
	p := newPacer(gap, 64)
	gone := false
	_, bursts := drive(&p, time.Second, time.Microsecond, func(at time.Duration) time.Duration {
		if at > 300*time.Millisecond && !gone {
			gone = true
			return 200 * time.Millisecond
		}
		return 0
	})
	if p.burst != 1 {
		t.Fatalf("%d packets together", p.burst)
	}
	for i := range bursts[1:] {
		if d := bursts[i+1] - bursts[i]; d < gap/2 {
			t.Fatalf("packet %d comes %v after the one before", i+1, d)
		}
	}
	// What was lost in 200 ms is not sent later.
	if want := 8000 + int(credit/gap); len(bursts) > want+10 {
		t.Errorf("%d packets, want %d at most", len(bursts), want)
	}
	if p.forgiven == 0 {
		t.Error("nothing forgiven")
	}
}

func TestPacerWithoutScheduleIsAlwaysDue(t *testing.T) {
	p := newPacer(0, 64)
	p.burst = 64
	for now := range time.Duration(100) {
		if n, wait := p.take(now); n != 64 || wait != 0 {
			t.Fatalf("%d packets, %v", n, wait)
		}
	}
}

func TestPacerPlansBurstsOnlyWherePacketsAreTooClose(t *testing.T) {
	for _, c := range []struct {
		gap         float64
		limit, want int
	}{
		{1e9, 64, 1}, {11584, 64, 1}, {10000, 64, 1}, {5000, 64, 2}, {500, 64, 20}, {100, 64, 64}, {500, 1, 1},
	} {
		if p := newExactPacer(c.gap, c.limit); p.burst != c.want {
			t.Errorf("gap %v ns, at most %d: %d together, want %d", c.gap, c.limit, p.burst, c.want)
		}
	}
}
