package cards

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

const (
	// busyProcessor is how busy one CPU must be before per-packet work can be the limit.
	busyProcessor = 0.75
	// costlyGigabyte is the CPU time per gigabyte (both ends) that decides if per-CPU times are
	// unknown: with offloads a current core spends 0.1 to 0.4 s on a gigabyte, without them 1 s and
	// more.
	costlyGigabyte = 0.8
	// manySegments per second must be sent for per-packet work to saturate a CPU: one of the last
	// fifteen years handles a hundred thousand and more. Otherwise other work saturates it.
	manySegments = 30_000
	// slowSegments suffice for a slow CPU (an old machine, an emulated CPU) that spends kernelWork
	// of its time in the kernel: then no program saturates it.
	slowSegments = 5000
	kernelWork   = 0.7
	// bundled is how many segments a packet inside the host holds on average if segmentation or
	// aggregation works at all.
	bundled = 4
)

// The features that move many segments through the kernel as one, in the order of their
// dependences: the kernel enables segmentation only with scatter-gather and checksums.
var (
	senderFeatures = []string{"tx-scatter-gather", "tx-checksum-ipv4", "tx-checksum-ip-generic",
		"tx-tcp-segmentation", "tx-generic-segmentation"}
	receiverFeatures = []string{"rx-gro"}
)

// offloadsOff finds features that are off but changeable, single segments inside the host, and a
// CPU without time left.
//
// A feature that is off while the link is full costs some CPU time and no throughput, so Judge does
// not call the rule then.
//
// Three facts must come together, because each alone is harmless: a changeable feature that is off,
// enough segments for per-packet work to matter, and a CPU (or the cost per gigabyte) that shows
// it. 536 replaces an unknown segment size (RFC 9293 §3.7.1, the least that every host accepts).
//
// Each end is judged by its own CPU: a sender that is busy with something else says nothing about
// the receiver, whose CPU may be just as busy with single segments.
func offloadsOff(f *evidence.Flow) *evidence.Finding {
	missing := missingOffloads(f)
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		i := slices.IndexFunc(missing, func(m missingOffload) bool { return m.at.Name == e.Name })
		if i < 0 {
			continue
		}
		// What this end lacks comes first; it is the first remedy to try.
		sorting.StableFunc(missing, func(a, b missingOffload) int {
			return cmp.Compare(bit(a.at.Name != e.Name), bit(b.at.Name != e.Name))
		})
		if x := unbundledAt(f, e, missing); x != nil {
			return x
		}
	}
	return nil
}

// bit returns 1 for true.
func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// unbundledAt is [offloadsOff] for one end, whose missing features come first.
func unbundledAt(f *evidence.Flow, e evidence.End, missing []missingOffload) *evidence.Finding {
	segments := f.RateBitsPerSec / 8 / max(f.MSSBytes, 536)
	cpu, busy, known := packetCPU(e)
	if segments < manySegments && !(segments >= slowSegments && known && kernelTime(e, cpu) >= kernelWork) {
		return nil
	}
	cost := f.Sender.Run.CPUSecondsPerGigabyte + f.Receiver.Run.CPUSecondsPerGigabyte
	if known && busy < busyProcessor || !known && cost < costlyGigabyte {
		return nil
	}
	size, source := packetSize(f, missing[0])
	small := size > 0 && size < bundled*max(f.MSSBytes, 536)
	// A feature that is off may make no difference: veth has GRO off by default and passes bundles
	// of its peer on unchanged. So a known packet size decides; without one, only missing
	// segmentation is evidence.
	if !small && (size > 0 || missing[0].at.Name != f.Sender.Name) {
		return nil
	}
	var names []string
	for _, m := range missing {
		names = append(names, m.feature+" at "+m.at.Name)
	}
	x := &evidence.Finding{
		Code: evidence.OffloadsOff, Severity: evidence.Warning, Where: missing[0].at.Name,
		Title: fmt.Sprintf("Segment bundling is off (%s), so per-packet work limits the flow to %s.",
			strings.Join(names, ", "), evidence.Rate(f.RateBitsPerSec)),
		Evidence: f.Common(),
		Rejected: []string{f.NotReceiveWindow(), f.NotSendBuffer(), f.NotLoss()},
		Confidence: evidence.Combine(0.3, evidence.When(known && busy >= 0.9, 0.4),
			evidence.When(known && busy < 0.9, 0.2), evidence.When(small, 0.6),
			evidence.When(cost >= costlyGigabyte, 0.3),
			evidence.When(missing[0].at.Name == f.Sender.Name, 0.2)),
	}
	for _, m := range missing {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: m.feature + " of " + m.card.Name,
			Value: "off, may be changed", Source: "ethtool features (" + m.at.Name + ")"})
	}
	if known {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", cpu),
			Value: busy, Unit: "ratio",
			Source: "/proc/stat (" + e.Name + ")"})
	}
	if size > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "mean packet inside the host", Value: size,
			Unit: "bytes", Source: source})
	}
	if cost > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "processor time per gigabyte, both ends", Value: cost,
			Unit: "seconds", Source: "/proc/stat over the run"})
	}
	if link, at, ok := f.SlowestLink(); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the link: %s at the %s host could carry %s of payload.",
			link.Name, at.Name, evidence.Rate(evidence.Goodput(link))))
	}
	x.Remedy.Text = "Switch bundling back on: segmentation at the sender, aggregation (rx-gro) at the receiver. " +
		"If it was off to work around a driver bug, watch the error counters afterwards."
	x.Remedy.Proof = "Repeat the run with the feature on and off alternately: " +
		"CPU time per gigabyte falls several times, and the rate rises if a CPU was saturated."
	for _, m := range missing {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("ethtool:" + m.card.Name + "/feature." + m.feature),
			Side: m.at.Name, Levels: []knob.Value{"on"},
			Why: featureReason[m.feature]})
	}
	return x
}

// packetCPU returns the CPU of an end that is most likely to handle its packets, and the part of
// the time that it worked: of the busy CPUs the one with most work in the kernel, since programs
// may fill another one.
func packetCPU(e evidence.End) (cpu int, busy float64, known bool) {
	cpu, busy, known = e.Busiest()
	for _, t := range e.Run.CPUs {
		total := t.Total()
		if t.CPU < 0 || total <= 0 {
			continue
		}
		worked := 1 - (t.Idle+t.Nice)/total
		if worked >= busyProcessor && kernelTime(e, t.CPU) > kernelTime(e, cpu) {
			cpu, busy = t.CPU, worked
		}
	}
	return cpu, busy, known
}

// kernelTime returns the share of one CPU's time in the kernel, packet work included.
func kernelTime(e evidence.End, cpu int) float64 {
	for _, t := range e.Run.CPUs {
		if t.CPU == cpu && t.Total() > 0 {
			return (t.System + t.IRQ + t.SoftIRQ) / t.Total()
		}
	}
	return 0
}

// offloadsOffHere is [offloadsOff] for a host without a test run: a NIC receives or sends single
// segments at a rate that saturates a CPU, and the feature that would bundle them is off. The
// packet size inside the host is unknown then, so only the features and the CPU count.
func offloadsOffHere(s *evidence.Span) *evidence.Finding {
	if s.Run != nil || s.SinceBoot {
		return nil
	}
	return worst(cardsOf(s), unbundled)
}

func unbundled(c card) *evidence.Finding {
	s := c.s
	feature, direction := "rx-gro", "rx"
	if !c.off(feature) || c.large("rx") < mostLarge {
		feature, direction = "tx-tcp-segmentation", "tx"
		if !c.off(feature) || c.large("tx") < mostLarge {
			return nil
		}
	}
	rate := s.PerSecond(c.count(direction + "_packets"))
	cpu := s.BusiestBy(func(r evidence.ClassRatios) float64 { return r.SoftIRQ + r.System })
	work := cpu.SoftIRQ + cpu.System + cpu.IRQ
	if rate < manySegments {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.OffloadsOff, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("Feature %s is off on %s, which moves %s full packets a second one at a time.", feature,
			c.Name,
			evidence.Count(rate)),
		Evidence: []evidence.Evidence{
			{Name: feature + " of " + c.Name, Value: "off, may be changed", Source: "ethtool features (" +
				s.Side + ")"},
			{Name: "packets per second", Value: rate, Unit: "packets_per_second",
				Source: c.source(direction + "_packets")},
			{Name: "mean size of a packet", Value: c.large(direction) * float64(c.MTUBytes), Unit: "bytes",
				Source: c.source(direction + "_bytes / " + direction + "_packets")},
		},
		Rejected: []string{fmt.Sprintf("Not small packets, which no offload combines: they fill %s of the MTU.",
			evidence.Percent(min(c.large(direction), 1)))},
		Confidence: evidence.Combine(0.4, evidence.When(work >= evidence.FullProcessor, 0.5)),
	}
	if cpu.Known {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: fmt.Sprintf("kernel time of the busiest processor, CPU %d", cpu.CPU), Value: work,
				Unit:   "ratio",
				Source: "/proc/stat (" + s.Side + ")"})
		if work >= evidence.FullProcessor {
			x.Severity = evidence.Warning
		} else {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything now: CPU %d spent %s of its time in the kernel.", cpu.CPU,
					evidence.Percent(work)))
		}
	}
	x.Remedy.Text = "Switch it on, unless it is off to work around a driver bug; " +
		"then watch the error counters afterwards. A router may need it off for the lowest forwarding delay."
	x.Remedy.Add(evidence.Candidate{Knob: c.ethtool("feature." + feature), Side: where(s), Levels: []knob.Value{"on"},
		Why: featureReason[feature]})
	x.Remedy.Proof = "Run the same load with the feature on and off alternately: " +
		"CPU time per gigabyte falls several times."
	return x
}

// mostLarge is the share of the MTU that packets of bulk traffic fill on average.
const mostLarge = 0.8

// large returns the mean packet size of one direction as a share of the MTU; 0 if the driver counts
// bundles, which proves that bundling works.
func (c card) large(direction string) float64 {
	packets := c.count(direction + "_packets")
	if packets == 0 || c.MTUBytes <= 0 {
		return 0
	}
	size := c.count(direction+"_bytes") / packets / float64(c.MTUBytes)
	if size > 1.2 {
		return 0
	}
	return size
}

// off reports whether a feature is off and changeable.
func (c card) off(feature string) bool {
	state, ok := c.Features[feature]
	return ok && !state.On && !state.Fixed
}

var featureReason = map[string]string{
	"tx-scatter-gather":       "segmentation needs it: a bundle consists of many pages",
	"tx-checksum-ipv4":        "segmentation needs it: every segment of a bundle gets its own checksum",
	"tx-checksum-ip-generic":  "segmentation needs it: every segment of a bundle gets its own checksum",
	"tx-tcp-segmentation":     "one pass through the stack for up to 64 KiB instead of one per segment",
	"tx-generic-segmentation": "the same in software, splitting as late as possible",
	"rx-gro":                  "the receiver's stack handles bundles instead of single segments",
}

// missingOffload is a changeable feature that is off and matters for this flow.
type missingOffload struct {
	at      evidence.End
	card    *host.Interface
	feature string
}

// missingOffloads returns the changeable features that are off, sender first. Generic segmentation
// counts only if TCP segmentation is off too, because it has nothing to do otherwise. TUN and TAP
// are left out: the program that holds the device decides about their offloads, not the
// administrator.
func missingOffloads(f *evidence.Flow) []missingOffload {
	var missing []missingOffload
	off := func(e evidence.End, feature string) bool {
		if e.Card == nil || e.Card.Driver == "tun" {
			return false
		}
		state, ok := e.Card.Features[feature]
		return ok && !state.On && !state.Fixed
	}
	segmentation := off(f.Sender, "tx-tcp-segmentation")
	for _, name := range senderFeatures {
		if off(f.Sender, name) && (segmentation || name == "tx-tcp-segmentation") {
			missing = append(missing, missingOffload{f.Sender, f.Sender.Card, name})
		}
	}
	for _, name := range receiverFeatures {
		if off(f.Receiver, name) {
			missing = append(missing, missingOffload{f.Receiver, f.Receiver.Card, name})
		}
	}
	return missing
}

// packetSize returns the mean packet size in bytes inside the end where the first feature is
// missing, and its source; 0 if no counter shows it. The counters of a virtual interface count
// packets as the kernel sees them, and a veth pair passes them on unchanged. Those of a physical
// NIC count what its driver got, or frames on the wire: at a sender without segmentation these are
// the same, and bundles would prove that it has some. At a receiver the packets handed to the
// protocols (softnet) show it; they include acknowledgements of the other direction, so the result
// is slightly too small.
func packetSize(f *evidence.Flow, first missingOffload) (size float64, source string) {
	at, direction := f.Receiver, "rx"
	if sender := f.Sender.Card; first.at.Name == f.Sender.Name && sender != nil && !sender.Virtual {
		at, direction = f.Sender, "tx"
	}
	if card := at.Card; card != nil && (card.Virtual || direction == "tx") {
		octets, packets := at.Run.Counters["nic."+card.Name+"."+direction+"_bytes"],
			at.Run.Counters["nic."+card.Name+"."+direction+"_packets"]
		if packets > 0 && octets > 0 {
			return float64(octets) / float64(packets),
				fmt.Sprintf("%s_bytes / %s_packets of %s (%s)", direction, direction, card.Name, at.Name)
		}
	}
	if processed := f.Receiver.Run.Counters["softnet.processed"]; direction == "rx" && processed > 0 &&
		f.Run.Bytes > 0 {
		return float64(f.Run.Bytes) / float64(processed), "payload / softnet processed (" + f.Receiver.Name + ")"
	}
	return 0, ""
}
