package switches

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
)

// window is over how long findings judge, at least two readings.
const window = 5 * time.Minute

// apart is the time between two moments that are kept, besides the newest: a dozen of a port.
const apart = window / 10

// moment is what was counted at a port until a time.
type moment struct {
	time time.Time
	sums [mib.Counters]float64
}

// port is a port of a switch and what was counted since the first reading.
type port struct {
	last    mib.Port
	sums    [mib.Counters]float64
	known   [mib.Counters]bool // the counter has a sum that means something
	past    []moment
	seen    bool
	series  *portSeries
	restart bool // its counters began anew at the last reading
}

// Keeper adds up the counters of one switch. One goroutine at a time may use it.
type Keeper struct {
	name     string
	last     *mib.Snapshot
	ports    map[string]*port
	warnings []string
	own      *switchSeries
	shown    bool // the last reading had values
}

// NewKeeper returns a keeper for a switch of a name.
func NewKeeper(name string) *Keeper {
	return &Keeper{name: name, ports: make(map[string]*port)}
}

// Take adds a snapshot. Its time must be later than that of the one before.
func (k *Keeper) Take(s *mib.Snapshot) {
	k.warnings = k.warnings[:0]
	fresh := k.last == nil || restarted(k.last, s)
	var elapsed time.Duration
	if k.last != nil {
		elapsed = s.Time.Sub(k.last.Time)
		if fresh {
			k.warn("the switch restarted: what it counted before the restart is lost")
		}
	}
	for _, p := range k.ports {
		p.seen = false
	}
	for i := range s.Ports {
		now := &s.Ports[i]
		p := k.ports[now.Name]
		if p == nil {
			p = &port{last: *now, restart: true}
			k.ports[now.Name] = p
			p.begin(now, elapsed)
		} else {
			k.advance(p, now, elapsed, fresh)
		}
		p.seen, p.last = true, *now
		if n := len(p.past); n > 1 && s.Time.Sub(p.past[n-2].time) < apart {
			p.past = p.past[:n-1] // the one before is near enough
		}
		p.past = append(p.past, moment{s.Time, p.sums})
		p.forget(s.Time)
	}
	k.last = s
}

// begin marks the counters that have a sum from now on.
func (p *port) begin(now *mib.Port, elapsed time.Duration) {
	for c := range now.Counters {
		p.known[c] = now.Counters[c].Width != 0 && !twice(now, mib.Counter(c), elapsed)
	}
}

// forget drops moments before the window, and keeps the newest of those.
func (p *port) forget(now time.Time) {
	for len(p.past) > 2 && now.Sub(p.past[1].time) >= window {
		p.past = p.past[1:]
	}
}

// advance adds what the counters of a port grew by, or nothing if they began anew.
func (k *Keeper) advance(p *port, now *mib.Port, elapsed time.Duration, fresh bool) {
	p.begin(now, elapsed)
	if c, what := mib.InBytes, now.Counters[mib.InBytes]; what.Width == 32 && !p.known[c] {
		k.warn("port %s has only 32-bit counters, which may wrap twice in %v at its speed: its bytes have no series",
			now.Name, elapsed.Round(time.Second))
	}
	p.restart = fresh || now.Discontinuity != p.last.Discontinuity
	if p.restart {
		return
	}
	var grew [mib.Counters]float64
	wraps := 0
	for c := range now.Counters {
		before, after := p.last.Counters[c], now.Counters[c]
		if before.Width != after.Width {
			p.restart = true // another card, or another reading of it
			continue
		}
		if after.Width == 0 || !p.known[c] {
			continue
		}
		switch each := perSecond(now, mib.Counter(c)); {
		case after.Value >= before.Value:
			grew[c] = float64(after.Value - before.Value)
			if grew[c] > max(faster*each*(elapsed+stale).Seconds(), 1e6) {
				p.restart = true
			}
		case after.Width == 32 && now.Index == p.last.Index:
			grew[c] = float64(uint32(after.Value) - uint32(before.Value))
			wraps++
			if grew[c] > min(wrapFaster*each*(elapsed+wrapStale).Seconds(), wrapShare*(1<<32)) {
				p.restart = true
			}
		default:
			p.restart = true
		}
	}
	// Two counters that wrap between the same two readings are a reset.
	p.restart = p.restart || wraps > 1
	if p.restart { // all counters of a port are reset together
		k.warn("the counters of port %s began anew or jumped: nothing is added for this reading", now.Name)
		return
	}
	for c := range grew {
		p.sums[c] += grew[c]
	}
}

// overhead is what a frame takes on the wire at least, in bits: 64 bytes, preamble and gap.
const overhead = 84 * 8

const (
	// stale is how much older than a reading an agent's copy of its counters may be.
	stale = time.Minute
	// unknownSpeed stands for a speed that a port does not say, in bits per second.
	unknownSpeed = 800e9
	// faster is how much more than its stated speed a port may carry: aggregates state that of a
	// member, and some agents state what was negotiated long ago.
	faster = 8
	// A counter that decreased has wrapped if the port may have carried that much, by less generous
	// bounds: a reset of a large counter looks like a wrap.
	wrapFaster = 1.25
	wrapStale  = 15 * time.Second
	// wrapShare is the largest part of the range of a 32-bit counter that a wrap may have passed.
	wrapShare = 0.95
)

func perSecond(p *mib.Port, c mib.Counter) float64 {
	speed := p.Speed
	if speed <= 0 {
		speed = unknownSpeed
	}
	if c == mib.InBytes || c == mib.OutBytes {
		return speed / 8
	}
	return speed / overhead
}

// twice reports whether a 32-bit counter may wrap twice between readings of a distance.
func twice(p *mib.Port, c mib.Counter, elapsed time.Duration) bool {
	return p.Counters[c].Width == 32 && p.Speed > 0 && perSecond(p, c)*elapsed.Seconds() > wrapShare*(1<<32) &&
		(c < mib.InDiscards) // losses do not come at the rate of the link
}

// restarted reports whether a switch restarted between two readings: its boot number changed, or it
// booted later than it had booted before. sysUpTime wraps after 497 days, which is no restart.
func restarted(before, after *mib.Snapshot) bool {
	if before.Boots >= 0 && after.Boots >= 0 && before.Boots != after.Boots {
		return true
	}
	elapsed := after.UptimeAt.Sub(before.UptimeAt)
	expected := before.UptimeTicks + uint32(elapsed/(10*time.Millisecond))
	behind := time.Duration(int32(expected-after.UptimeTicks)) * 10 * time.Millisecond
	return behind > 5*time.Second+elapsed/20
}

func (k *Keeper) warn(format string, args ...any) {
	const most = 20
	if len(k.warnings) < most {
		k.warnings = append(k.warnings, fmt.Sprintf(format, args...))
	}
}

// Warnings returns what the last reading could not use, one sentence each.
func (k *Keeper) Warnings() []string {
	if k.last == nil {
		return nil
	}
	return slices.Concat(k.last.Warnings, k.warnings)
}

// delta is what a port counted in a time.
type delta struct {
	port  *mib.Port
	over  time.Duration
	grew  [mib.Counters]float64
	known [mib.Counters]bool
}

// deltas returns what each port counted over at most the window, by index; none before the second
// reading of a port.
func (k *Keeper) deltas() []delta {
	var out []delta
	for _, name := range slices.Sorted(maps.Keys(k.ports)) {
		p := k.ports[name]
		if !p.seen {
			continue
		}
		d := delta{port: &p.last, known: p.known}
		if len(p.past) > 1 {
			first, last := p.past[0], p.past[len(p.past)-1]
			d.over = last.time.Sub(first.time)
			for c := range d.grew {
				d.grew[c] = last.sums[c] - first.sums[c]
			}
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b delta) int { return int(int64(a.port.Index) - int64(b.port.Index)) })
	return out
}

// sum adds counters.
func (d *delta) sum(counters ...mib.Counter) float64 {
	n := 0.0
	for _, c := range counters {
		n += d.grew[c]
	}
	return n
}

// rate returns counters per second; 0 before the second reading.
func (d *delta) rate(counters ...mib.Counter) float64 {
	if d.over <= 0 {
		return 0
	}
	return d.sum(counters...) / d.over.Seconds()
}

var (
	framesIn  = []mib.Counter{mib.InUnicast, mib.InMulticast, mib.InBroadcast}
	framesOut = []mib.Counter{mib.OutUnicast, mib.OutMulticast, mib.OutBroadcast}
)
