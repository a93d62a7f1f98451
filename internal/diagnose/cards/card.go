package cards

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/traffic"
)

// card is one interface of a host with its counters over a span.
type card struct {
	*host.Interface
	s *evidence.Span
}

// cardsOf returns the NICs of a span to judge: physical ones, and what a hypervisor presents as
// such. During a test run these are the NIC that carried it and those below it (members of a bond,
// the carrier of a VLAN), because others had no part in it.
func cardsOf(s *evidence.Span) []card {
	return slices.DeleteFunc(interfacesOf(s), func(c card) bool { return c.Virtual || c.Asleep })
}

// interfacesOf is [cardsOf] including interfaces without hardware.
func interfacesOf(s *evidence.Span) []card {
	if s.Host == nil {
		return nil
	}
	var all []card
	for i := range s.Host.Interfaces {
		x := &s.Host.Interfaces[i]
		if x.Kind == "loopback" || x.Name == "lo" || !carries(s, x.Name) {
			continue
		}
		all = append(all, card{x, s})
	}
	return all
}

// carries reports whether the run of a span used that interface; true for all if there was no run,
// or the interface is unknown.
func carries(s *evidence.Span, name string) bool {
	if s.End == nil || s.End.Card == nil {
		return true
	}
	return name == s.End.Card.Name || slices.Contains(s.End.Card.Carriers, name)
}

// count returns the increase of a counter of /sys/class/net/X/statistics. Without an observation
// the value comes from the snapshot.
//
//go:noinline // 30 copies took 8 kB
func (c card) count(name string) float64 {
	if n, ok := c.s.Counters["nic."+c.Name+"."+name]; ok || !c.s.SinceBoot {
		return float64(n)
	}
	return float64(c.Counters[name])
}

// source returns a counter of this NIC as the source of a piece of evidence.
func (c card) source(counter string) string { return counter + " of " + c.Name + " (" + c.s.Side + ")" }

// rate returns what the NIC moved in one direction ("rx" or "tx"), in bits per second of frames; 0
// if the time is unknown.
func (c card) rate(direction string) float64 { return c.s.PerSecond(c.count(direction+"_bytes")) * 8 }

// frames returns how many frames the NIC moved in one direction. Some drivers count a bundle that
// the NIC splits or merged as one packet; then the bytes give a better figure.
func (c card) frames(direction string) float64 {
	return max(c.count(direction+"_packets"), c.count(direction+"_bytes")/float64(max(c.MTUBytes, 1500)+ethernetHeader))
}

// ethernetHeader is the size of the frame header that drivers count beside the payload.
const ethernetHeader = 14

// tally is one place where a NIC counts losses or faults. Queues with a counter each are one place.
type tally struct {
	counter string
	n       float64 // packets, or events
	nicstat.Entry
}

// events reports whether the counter counts events and not the affected packets.
func (t tally) events() bool { return strings.Contains(t.Meaning, "(an event)") }

// tallies returns the counters of this NIC of the given classes that increased, largest first.
//
// Drivers count one loss in several places (sysfs and ethtool, port and queue), which must not be
// added up: the largest one is certain. The queues of one direction count different packets, so
// they add up.
func (c card) tallies(classes ...nicstat.Class) []tally {
	places := make(map[string]tally)
	// The two sources of a name stay separate until their sums are known.
	for _, source := range []string{"nic.", "ethtool."} {
		sums := make(map[string]tally)
		for name, n := range c.s.Counters {
			if name, ok := strings.CutPrefix(name, source+c.Name+"."); ok {
				c.gather(sums, name, n, classes)
			}
		}
		larger(places, sums)
	}
	if c.s.SinceBoot {
		sums := make(map[string]tally)
		for _, x := range c.Symptoms {
			c.gather(sums, x.Counter, x.Total, classes)
		}
		larger(places, sums)
	}
	all := make([]tally, 0, len(places))
	for _, t := range places {
		all = append(all, t)
	}
	sorting.Func(all,
		func(a, b tally) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.counter, b.counter)) })
	return all
}

// gather adds a counter to the sum of its place if it belongs to one of the classes.
func (c card) gather(sums map[string]tally, name string, n uint64, classes []nicstat.Class) {
	e, ok := nicstat.Lookup(c.Driver, name)
	if !ok || n == 0 || !slices.Contains(classes, e.Class) {
		return
	}
	if queue, counter, ok := nicstat.Queue(name); ok {
		direction, _, _ := strings.Cut(queue, "-")
		name = counter + " of all " + direction + " queues"
	}
	sums[name] = tally{counter: name, n: sums[name].n + float64(n), Entry: e}
}

// larger replaces places by sums that are larger.
func larger(places, sums map[string]tally) {
	for name, t := range sums {
		if t.n > places[name].n {
			places[name] = t
		}
	}
}

// lost returns the place where most packets of these classes were dropped; false if none was.
// Events are not packets, and some counted packets need not be lost: Intel's rx_no_buffer_count has
// those that waited in the NIC.
func (c card) lost(classes ...nicstat.Class) (tally, bool) {
	all := slices.DeleteFunc(c.tallies(classes...), func(t tally) bool {
		return t.events() || t.Kept
	})
	if len(all) == 0 {
		return tally{}, false
	}
	return all[0], true
}

// evidence returns at most three tallies as evidence.
func (c card) evidence(all []tally) []evidence.Evidence {
	var listed []evidence.Evidence
	for _, t := range all[:min(len(all), 3)] {
		unit := "packets"
		if t.events() {
			unit = "events"
		}
		listed = append(listed, evidence.Evidence{Name: t.Meaning, Value: t.n, Unit: unit, Source: c.source(t.counter)})
	}
	return listed
}

// receives and sends report whether the host of a span received or sent the payload of its run;
// both are true without a run.
func receives(s *evidence.Span) bool { return s.Run == nil || s.Run.Direction != sendingOf(s.Side) }
func sends(s *evidence.Span) bool    { return s.Run == nil || s.Run.Direction != sendingOf(other(s.Side)) }

// sendingOf returns the direction in which only that side sends.
func sendingOf(side string) traffic.Direction {
	if side == "far" {
		return traffic.Down
	}
	return traffic.Up
}

func other(side string) string {
	if side == "far" {
		return "near"
	}
	return "far"
}

// repaired returns what the flows of the span's run lost: retransmitted segments less those that
// the receiver had already (DSACK), and their share; for datagrams, those that did not arrive.
// known is false without a test run, or if its senders report nothing.
func repaired(s *evidence.Span) (packets, ratio float64, known bool) {
	if s.Run == nil {
		return 0, 0, false
	}
	if u := s.Run.UDP; u != nil && u.Sent > 0 {
		return float64(u.Lost), float64(u.Lost) / float64(u.Sent), true
	}
	var segments float64
	for _, e := range []traffic.End{s.Run.Ends.Local, s.Run.Ends.Remote} {
		for _, t := range e.TCP {
			if t.Sender {
				segments += float64(t.SegsOut)
				packets += max(float64(t.RetransSegs)-float64(t.DSACKDups), 0)
			}
		}
	}
	if segments == 0 {
		return 0, 0, false
	}
	return packets, packets / segments, true
}

// linkFull reports whether the run of the span filled the link of this NIC, so that only the link
// limited it. The speed of an emulated NIC is not a fact: a run above it proves that, and the link
// is not full then.
func (c card) linkFull() bool {
	if !c.s.Loaded() || c.s.Run.Direction == traffic.Bidir || c.SpeedBitsPerSec <= 0 {
		return false
	}
	rate := c.s.Run.ThroughputBitsPerSec
	return rate >= 0.94*evidence.Goodput(c.Interface) && rate <= c.SpeedBitsPerSec
}

// The thresholds for losses; see weigh.
const (
	// Fewer than fewest losses are an accident of a moment: a link that comes up, a burst at start.
	fewest = 5
	// traceShare is the share from which on losses are worth a notice: one frame in a hundred
	// thousand, about eight per second of a full gigabit.
	traceShare = 1e-5
	// feltShare slows traffic on any path: a loss-based sender with a round trip of 10 ms reaches
	// 45 Mb/s at one in a thousand (Mathis).
	feltShare = 1e-3
	// damningShare of all traffic since boot cannot come from one bad hour of a year.
	damningShare = 1e-2
	// perSecond is the rate of losses that shows, in an observation of seconds, that they continue.
	perSecond = 10
	// ownShare is the share of the flow's retransmissions that this place must have dropped to be
	// the one that limits it.
	ownShare = 0.2
)

// weigh returns the severity of packets that were dropped at one place, compared with those that
// passed it; false if too few were dropped.
//
// During a test run its sender is the best evidence: it is a warning if the flow lost enough to
// slow its congestion control, lost a good part of that here, and the link was not full. For a
// watched host only the share counts; for counters since boot, only a share that no past hour
// explains.
func (c card) weigh(lost, passed float64) (evidence.Severity, bool) {
	s := c.s
	share := lost / max(lost+passed, 1)
	if lost < fewest || share < traceShare {
		return "", false
	}
	again, ratio, known := repaired(s)
	warn := false
	switch {
	case s.SinceBoot:
		if share < 10*traceShare {
			return "", false
		}
		warn = share >= damningShare
	case known:
		warn = share >= evidence.MinLoss && ratio >= evidence.MinLoss && lost >= ownShare*again && !c.linkFull()
	default:
		warn = share >= feltShare && s.PerSecond(lost) >= perSecond
	}
	if warn {
		return evidence.Warning, true
	}
	return evidence.Notice, true
}

// busiest returns the CPU with the least idle time; Known is false if nothing was counted, or for
// counters since boot, which say nothing about one CPU.
func busiest(s *evidence.Span) evidence.ClassRatios {
	if s.SinceBoot {
		return evidence.ClassRatios{}
	}
	return s.BusiestBy(evidence.ClassRatios.Busy)
}

// where returns the place of a finding on a host.
func where(s *evidence.Span) string { return cmp.Or(s.Side, "near") }

// worst returns the most severe finding for several NICs, the first of equals.
func worst(all []card, rule func(card) *evidence.Finding) *evidence.Finding {
	var found *evidence.Finding
	for _, c := range all {
		if x := rule(c); x != nil && (found == nil || rank(x) > rank(found) ||
			rank(x) == rank(found) && x.LostPerSec > found.LostPerSec) {
			found = x
		}
	}
	return found
}

func rank(x *evidence.Finding) int {
	return slices.Index([]evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical},
		x.Severity)
}
