package cards

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/nicstat"
	"github.com/linerate/linerate/internal/traffic"
)

// card is one interface of a host with what was counted of it in a span.
type card struct {
	*host.Interface
	s *evidence.Span
}

// cardsOf gives the cards of a span that are worth judging: real hardware, or what a hypervisor
// shows as such. During a run of ours these are the card that carried it and those below it
// (members of a bond, the carrier of a VLAN), as what happened on others had nothing to do with it.
func cardsOf(s *evidence.Span) []card {
	return slices.DeleteFunc(interfacesOf(s), func(c card) bool { return c.Virtual || c.Asleep })
}

// interfacesOf is cardsOf with the interfaces that have no hardware below.
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

// carries tells whether the run of a span went over that interface; true for all where there was no
// run, or nobody knows.
func carries(s *evidence.Span, name string) bool {
	if s.End == nil || s.End.Card == nil {
		return true
	}
	return name == s.End.Card.Name || slices.Contains(s.End.Card.Carriers, name)
}

// count is what a counter of /sys/class/net/X/statistics moved by. A host that nobody watched tells
// it in its snapshot.
func (c card) count(name string) float64 {
	if n, ok := c.s.Counters["nic."+c.Name+"."+name]; ok || !c.s.SinceBoot {
		return float64(n)
	}
	return float64(c.Counters[name])
}

// source names a counter of this card.
func (c card) source(counter string) string { return counter + " of " + c.Name + " (" + c.s.Side + ")" }

// rate is what the card moved in one direction ("rx" or "tx"), bits per second of frames; 0 where
// the time is not known.
func (c card) rate(direction string) float64 { return c.s.PerSecond(c.count(direction+"_bytes")) * 8 }

// frames is how many frames a card moved in one direction. Drivers count a bundle that the card
// cuts up, or has put together, as one packet, some of them; then the bytes tell better.
func (c card) frames(direction string) float64 {
	return max(c.count(direction+"_packets"), c.count(direction+"_bytes")/float64(max(c.MTUBytes, 1500)+ethernetHeader))
}

// ethernetHeader is what a driver counts of a frame beside its payload.
const ethernetHeader = 14

// tally is one place in which a card counts trouble. Queues that have a counter each are one place.
type tally struct {
	counter string
	n       float64 // packets, or events
	nicstat.Entry
}

// events tells that the counter counts what happened and not the packets that it happened to.
func (t tally) events() bool { return strings.Contains(t.Meaning, "(an event)") }

// tallies are the counters of this card that moved and are of one of the classes, largest first.
//
// Drivers tell one loss at several places (sysfs and ethtool, port and queue), so that they must
// not be added up: the largest is what is known to have happened. The queues of one direction are
// different packets and are added up.
func (c card) tallies(classes ...nicstat.Class) []tally {
	places := make(map[string]tally)
	// The two sources of a name are kept apart until their sums are known.
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
	slices.SortFunc(all,
		func(a, b tally) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.counter, b.counter)) })
	return all
}

// gather adds a counter to the sum of its place if it is of one of the classes.
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

// larger takes the sums into places where they are larger.
func larger(places, sums map[string]tally) {
	for name, t := range sums {
		if t.n > places[name].n {
			places[name] = t
		}
	}
}

// lost is the tally of the place where most packets of these classes died; false: nowhere. Events
// are not packets.
func (c card) lost(classes ...nicstat.Class) (tally, bool) {
	all := slices.DeleteFunc(c.tallies(classes...), func(t tally) bool {
		// Intel's rx_no_buffer_count is packets that had to wait in the card; those that died of it
		// are missed as well.
		return t.events() || t.counter == "rx_no_buffer_count"
	})
	if len(all) == 0 {
		return tally{}, false
	}
	return all[0], true
}

// evidence says the tallies as evidence, three at most.
func (c card) evidence(all []tally) []evidence.Evidence {
	var said []evidence.Evidence
	for _, t := range all[:min(len(all), 3)] {
		unit := "packets"
		if t.events() {
			unit = "events"
		}
		said = append(said, evidence.Evidence{Name: t.Meaning, Value: t.n, Unit: unit, Source: c.source(t.counter)})
	}
	return said
}

// receives and sends tell what the host of a span did in its run: payload that came, payload that
// went. Both where there was none.
func receives(s *evidence.Span) bool { return s.Run == nil || s.Run.Direction != sendingOf(s.Side) }
func sends(s *evidence.Span) bool    { return s.Run == nil || s.Run.Direction != sendingOf(other(s.Side)) }

// sendingOf is the direction in which that side sends alone.
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

// repaired is what the flows of the span's run lost for good reason: segments sent again, less
// those that the receiver had already (DSACK), and their share. Of datagrams it is those that never
// came. Known is false without a run of ours, or where its senders tell nothing.
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

// linkFull tells that the run of the span filled the link of this card, so that nothing held it but
// the link. The speed of an imitated card is no fact: a run that passes it proves that, and the
// link is not full then.
func (c card) linkFull() bool {
	if !c.s.Loaded() || c.s.Run.Direction == traffic.Bidir || c.SpeedBitsPerSec <= 0 {
		return false
	}
	rate := c.s.Run.ThroughputBitsPerSec
	return rate >= 0.94*evidence.Goodput(c.Interface) && rate <= c.SpeedBitsPerSec
}

// The shares of packets from which losses count, see weigh.
const (
	// fewest losses are no accident of a moment: a link that comes up, a burst at start.
	fewest = 5
	// traceShare is where losses are worth a word: one frame in a hundred thousand, some eight in a
	// second of a full gigabit.
	traceShare = 1e-5
	// feltShare of passing traffic is felt on any path: a loss-based sender with a round trip of 10
	// ms gets 45 Mb/s at one in a thousand (Mathis).
	feltShare = 1e-3
	// damningShare of everything since the host started cannot be one bad hour of a year.
	damningShare = 1e-2
	// perSecond is how often it has to happen in a watch of seconds to be going on.
	perSecond = 10
	// ownShare of what the flow had to send again must have died here for this place to be the one
	// that holds it.
	ownShare = 0.2
)

// weigh judges packets that died at one place, out of those that passed it. False: too few to be
// told.
//
// During a run of ours its sender knows best: it is a warning if the flow lost what congestion
// controls feel, and a good part of it here, and the link was not full. Of a host that was watched
// the share alone speaks; of one that was not, only a share that no past hour explains.
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

// busiest is the processor with the least idle time; Known is false where nothing was counted. Of a
// history it says nothing.
func busiest(s *evidence.Span) evidence.ClassRatios {
	if s.SinceBoot {
		return evidence.ClassRatios{}
	}
	return s.BusiestBy(evidence.ClassRatios.Busy)
}

// where is the place of a finding on a host.
func where(s *evidence.Span) string { return cmp.Or(s.Side, "near") }

// worst keeps the severest finding of several cards, the first of equals.
func worst(all []card, rule func(card) *evidence.Finding) *evidence.Finding {
	var found *evidence.Finding
	for _, c := range all {
		if x := rule(c); x != nil && (found == nil || rank(x) > rank(found)) {
			found = x
		}
	}
	return found
}

func rank(x *evidence.Finding) int {
	return slices.Index([]evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical},
		x.Severity)
}
