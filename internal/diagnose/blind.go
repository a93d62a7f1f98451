package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// Blind is something that a verdict could not see, and what that costs it.
type Blind struct {
	What string `json:"what"` // that was not seen
	Why  string `json:"why"`  // the kernel's, the network's or the case's reason
	// Lowers is by which part of itself the confidence of the findings in Of is lowered. It is a
	// judgement: how often the thing would have changed the mind of somebody who sees it.
	Lowers float64         `json:"lowers_confidence_ratio"`
	Of     []evidence.Code `json:"findings,omitempty"` // whose confidence it lowered
}

// gap is a Blind in the making, with the findings that it concerns.
type gap struct {
	Blind
	concerns func(evidence.Finding) bool
}

// The parts by which gaps lower confidence. A fault at a host that nobody sees is as likely as one
// at the host that is seen, but most of them show in the flow as well; without the sender's account
// little is left but rates.
const (
	withoutFar     = 0.25
	withoutTCPInfo = 0.30
	withoutFigure  = 0.15 // one kind of evidence among several
	withoutDetail  = 0.10 // sharpens a verdict, decides none
	withoutTrifle  = 0.05
)

// dim lists what the case could not show, the largest first, and lowers the confidence of the
// findings that would have rested on it.
func dim(c *evidence.Case, loaded []*evidence.Flow, found []evidence.Finding) []Blind {
	gaps := slices.Concat(farGaps(c), flowGaps(loaded), runGaps(c, loaded), hostGaps(c), readingGaps(c))
	var all []Blind
	for _, g := range gaps {
		for i := range found {
			// A doubt rests on what was seen.
			if g.concerns(found[i]) && found[i].Code != evidence.MeasurementUnreliable {
				// A judgement has no more than three digits.
				found[i].Confidence = math.Round(1000*found[i].Confidence*(1-g.Lowers)) / 1000
				g.Of = append(g.Of, found[i].Code)
			}
		}
		if !slices.ContainsFunc(all, func(b Blind) bool { return b.What == g.What && b.Why == g.Why }) {
			all = append(all, g.Blind)
		}
	}
	slices.SortStableFunc(all, func(a, b Blind) int { return cmp.Compare(b.Lowers, a.Lowers) })
	return all
}

// of concerns the findings of some codes. Healthy is always among them: "nothing found" is worth no
// more than what was looked at.
func of(codes ...evidence.Code) func(evidence.Finding) bool {
	return func(f evidence.Finding) bool { return f.Code == evidence.Healthy || slices.Contains(codes, f.Code) }
}

// farGaps is the far host of a path that tells nothing of itself.
func farGaps(c *evidence.Case) []gap {
	if c.Far != nil || len(c.Runs)+len(c.Probes) == 0 {
		return nil
	}
	return []gap{{Blind{What: "the far host",
		Why:    "it tells nothing of its settings, counters and processors; `linerate serve` there would",
		Lowers: withoutFar},
		func(f evidence.Finding) bool {
			return f.Where != "near" || f.Code == evidence.LinkRateReached || f.Code == evidence.Healthy
		}}}
}

// flowGaps is what the sender's kernel does not say of a flow.
func flowGaps(loaded []*evidence.Flow) []gap {
	var all []gap
	for _, f := range loaded {
		at := f.Sender.Name
		switch {
		case f.RateBitsPerSec <= 0:
			// Where nothing moved there was nothing to say.
		case f.Streams == 0:
			all = append(all, gap{Blind{What: "windows, round trips and repetitions of the flow",
				Lowers: withoutTCPInfo,
				Why:    "the sender (" + at + ") does not tell them; Linux does, by TCP_INFO"},
				of(evidence.PathLoss, evidence.CongestionControlMismatch, evidence.Bufferbloat, evidence.Policer,
					evidence.Reordering, evidence.TimeoutsIncast,
					evidence.ReceiveWindowLimited, evidence.SendBufferLimited, evidence.WindowScalingOff,
					evidence.RouteWindowClamped,
					evidence.ApplicationLimited, evidence.MTUSmall, evidence.LinkRateReached)})
		default:
			if f.BusySeconds <= 0 {
				all = append(all, gap{Blind{What: "how long windows and buffers held the flow", Lowers: withoutFigure,
					Why: "the kernel of the sender (" + at + ") keeps no account of it; Linux 4.10 and later do"},
					of(evidence.ReceiveWindowLimited, evidence.SendBufferLimited, evidence.ApplicationLimited,
						evidence.LinkRateReached)})
			}
			if f.WindowBytes <= 0 {
				all = append(all, gap{Blind{What: "the window that the receiver offered", Lowers: withoutFigure,
					Why: "the kernel of the sender (" + at + ") does not tell it; Linux 5.4 and later do"},
					of(evidence.ReceiveWindowLimited, evidence.LinkRateReached)})
			}
		}
	}
	return all
}

// runGaps are runs that were wanted and could not be made.
func runGaps(c *evidence.Case, loaded []*evidence.Flow) []gap {
	var all []gap
	for _, p := range slices.Sorted(maps.Keys(c.Refused)) {
		g := gap{Blind{What: "the probe " + string(p), Why: c.Refused[p], Lowers: withoutDetail},
			func(f evidence.Finding) bool { return f.Where == "path" || f.Code == evidence.Healthy }}
		switch p {
		case "ping":
			g.What, g.concerns = "the idle round trip", of(evidence.Bufferbloat, evidence.LinkRateReached,
				evidence.ReceiveWindowLimited, evidence.SendBufferLimited)
		case "rr":
			g.What, g.concerns = "single requests and responses",
				of(evidence.InterruptModerationLatency, evidence.DelayedACKStall)
		case "stream":
			g.What, g.Lowers = "what the path carries", withoutTCPInfo
		}
		all = append(all, g)
	}
	if _, told := c.Refused["ping"]; !told && len(loaded) > 0 && loaded[0].IdleRTTSeconds <= 0 {
		all = append(all, gap{Blind{What: "the idle round trip", Why: "no ping was run before the load",
			Lowers: withoutDetail},
			of(evidence.Bufferbloat, evidence.LinkRateReached, evidence.ReceiveWindowLimited,
				evidence.SendBufferLimited)})
	}
	return all
}

// families are groups of counters that are never all zero on a host that moves packets, by how
// their names begin.
var families = []struct {
	prefix, what string
	concerns     []evidence.Code
}{
	{"nic.", "what the interfaces count", []evidence.Code{evidence.PathLoss, evidence.TimeoutsIncast}},
	{"softnet.", "what the backlogs of the processors count",
		[]evidence.Code{evidence.PathLoss, evidence.TimeoutsIncast}},
	{"Tcp.", "what TCP counts", []evidence.Code{evidence.PathLoss, evidence.Reordering}},
	{"TcpExt.", "what TCP counts in detail", []evidence.Code{evidence.Reordering, evidence.TimeoutsIncast}},
}

// hostGaps is what a host that was looked at does not count. One gap of a kind is enough for each
// side.
func hostGaps(c *evidence.Case) []gap {
	var all []gap
	seen := make(map[string]bool)
	add := func(side, what, why string, lowers float64, codes ...evidence.Code) {
		what += " (" + side + ")"
		if !seen[what] {
			seen[what] = true
			all = append(all, gap{Blind{What: what, Why: why, Lowers: lowers}, of(codes...)})
		}
	}
	for _, s := range evidence.SpansOf(c) {
		// A host of which nothing is known is one gap, and not five.
		if s.Host == nil || s.Run != nil && !s.Loaded() {
			continue
		}
		if len(s.CPUs) == 0 {
			add(s.Side, "the processors", "their time was not told", withoutFigure, evidence.LinkRateReached)
		}
		if s.SinceBoot {
			add(s.Side, "when it was counted",
				"one moment has counters since the start of the host; two moments have what happened in between",
				withoutFar)
		}
		if s.Run == nil && s.Sockets == nil {
			add(s.Side, "sockets", aboutSockets(s.Host.Warnings), withoutDetail, evidence.ListenOverflow,
				evidence.UDPSocketOverflow, evidence.ApplicationLimited)
		}
		if len(s.Counters) == 0 {
			add(s.Side, "what the host counts", "no counters were told", withoutFigure, evidence.PathLoss,
				evidence.TimeoutsIncast, evidence.Reordering)
			continue
		}
		for _, f := range families {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(s.Counters)),
				func(name string) bool { return strings.HasPrefix(name, f.prefix) }) {
				add(s.Side, f.what, "the host has no such counters, or does not tell them", withoutDetail,
					f.concerns...)
			}
		}
		if s.Run == nil {
			if missing := lacking(s.Counters); missing != "" {
				add(s.Side, "the counters "+missing, "the kernel does not have them", withoutTrifle)
			}
		}
	}
	return all
}

// aboutSockets is why none were told, where somebody said so.
func aboutSockets(warnings []string) string {
	for _, sentence := range warnings {
		if strings.Contains(sentence, "socket") {
			return sentence
		}
	}
	return "none were told"
}

// lacking lists counters that rules look at and that old kernels do not have. Zeros are left out of
// what a run counted, so that it can be asked of a watched host alone.
func lacking(counters map[string]uint64) string {
	var missing []string
	for _, name := range []string{
		"TcpExt.ListenOverflows", "TcpExt.TCPTimeouts", "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPBacklogDrop",
		"TcpExt.TCPReqQFullDrop", "TcpExt.TCPDSACKRecv",
		"Udp.RcvbufErrors", "softnet.dropped", "softnet.time_squeeze",
	} {
		if _, there := counters[name]; !there {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}

// classes are how the snapshot says that something could not be read, with what to make of it.
var classes = []struct {
	name   string
	lowers float64
}{
	{"not permitted", withoutDetail}, {"not readable", withoutDetail}, {"not supported", withoutTrifle},
	{"not there", withoutTrifle},
}

// readingGaps is what the snapshots could not read, put together by reason: forty values that need
// another user are one gap.
func readingGaps(c *evidence.Case) []gap {
	var all []gap
	for _, h := range []evidence.End{{Name: "near", Host: c.Near}, {Name: "far", Host: c.Far}} {
		if h.Host == nil {
			continue
		}
		for _, class := range classes {
			var what []string
			var first string
			for _, sentence := range h.Host.Warnings {
				subject, reason, ok := strings.Cut(sentence, ": "+class.name+": ")
				if !ok || slices.Contains(what, subject) {
					continue // two readings of one host complain about the same things
				}
				if what = append(what, subject); first == "" {
					first = reason
				}
			}
			if len(what) == 0 {
				continue
			}
			named := strings.Join(what[:min(len(what), 3)], ", ")
			if more := len(what) - 3; more > 0 {
				named += fmt.Sprintf(" and %d more", more)
			}
			all = append(all, gap{Blind{What: named + " (" + h.Name + ")", Why: class.name + ": " + first,
				Lowers: class.lowers}, of()})
		}
	}
	return all
}
