package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// Blind is a gap in a case and what it costs the verdict.
type Blind struct {
	What string `json:"what"` // what is missing
	Why  string `json:"why"`  // why: the kernel, the network or the case itself
	// Lowers is the share by which the gap lowers the confidence of the findings in Of. It is a
	// judgement: how often the missing information would have changed the verdict.
	Lowers float64         `json:"lowers_confidence_ratio"`
	Of     []evidence.Code `json:"findings,omitempty"` // the findings with lowered confidence
}

// gap is a Blind before it is applied, with a filter for the findings that it concerns.
type gap struct {
	Blind
	concerns func(evidence.Finding) bool
}

// The shares by which gaps lower confidence. A fault at an unknown host is as likely as one at a
// known host, but most faults also show in the flow. Without the sender's TCP_INFO, little remains
// but rates.
const (
	withoutFar     = 0.25
	withoutTCPInfo = 0.30
	withoutFigure  = 0.15 // one kind of evidence among several
	withoutDetail  = 0.10 // sharpens a verdict but never decides it
	withoutTrifle  = 0.05
)

// dim returns the gaps of a case, largest first, and lowers the confidence of the findings that
// depend on them.
func dim(c *evidence.Case, loaded []*evidence.Flow, found []evidence.Finding) []Blind {
	gaps := slices.Concat(farGaps(c), flowGaps(loaded), runGaps(c, loaded), hostGaps(c), readingGaps(c))
	var all []Blind
	for _, g := range gaps {
		for i := range found {
			// A doubt about the measurement depends on the data that exists.
			if g.concerns(found[i]) && found[i].Code != evidence.MeasurementUnreliable {
				// More than three digits would suggest a precision that a judgement does not have.
				found[i].Confidence = math.Round(1000*found[i].Confidence*(1-g.Lowers)) / 1000
				g.Of = append(g.Of, found[i].Code)
			}
		}
		if !slices.ContainsFunc(all, func(b Blind) bool { return b.What == g.What && b.Why == g.Why }) {
			all = append(all, g.Blind)
		}
	}
	sorting.StableFunc(all, func(a, b Blind) int { return cmp.Compare(b.Lowers, a.Lowers) })
	return all
}

// of returns a filter for the findings of some codes. It always includes healthy, because "nothing
// found" depends on everything that was examined.
func of(codes ...evidence.Code) func(evidence.Finding) bool {
	return func(f evidence.Finding) bool { return f.Code == evidence.Healthy || slices.Contains(codes, f.Code) }
}

// farGaps returns the gap that an unknown far host leaves.
func farGaps(c *evidence.Case) []gap {
	if c.Far != nil || len(c.Runs)+len(c.Probes) == 0 {
		return nil
	}
	return []gap{{Blind{What: "the far host",
		Why:    "it reports no settings, counters or CPU times; run `linerate serve` there to see them",
		Lowers: withoutFar},
		func(f evidence.Finding) bool {
			return f.Where != "near" || f.Code == evidence.LinkRateReached || f.Code == evidence.Healthy
		}}}
}

// flowGaps returns what the sender's kernel does not report about a flow.
func flowGaps(loaded []*evidence.Flow) []gap {
	var all []gap
	for _, f := range loaded {
		at := f.Sender.Name
		switch {
		case f.RateBitsPerSec <= 0:
			// A flow that moved nothing has nothing to report.
		case f.Streams == 0:
			all = append(all, gap{Blind{What: "windows, round trips and retransmissions of the flow",
				Lowers: withoutTCPInfo,
				Why:    "the sender (" + at + ") does not report them; Linux does, in TCP_INFO"},
				of(evidence.PathLoss, evidence.CongestionControlMismatch, evidence.Bufferbloat, evidence.Policer,
					evidence.Reordering, evidence.TimeoutsIncast,
					evidence.ReceiveWindowLimited, evidence.SendBufferLimited, evidence.WindowScalingOff,
					evidence.RouteWindowClamped,
					evidence.ApplicationLimited, evidence.MTUSmall, evidence.LinkRateReached)})
		default:
			if f.BusySeconds <= 0 {
				all = append(all, gap{Blind{What: "how long windows and buffers limited the flow",
					Lowers: withoutFigure,
					Why:    "the kernel of the sender (" + at + ") does not record it; Linux 4.10 and later do"},
					of(evidence.ReceiveWindowLimited, evidence.SendBufferLimited, evidence.ApplicationLimited,
						evidence.LinkRateReached)})
			}
			if f.WindowBytes <= 0 {
				all = append(all, gap{Blind{What: "the window that the receiver advertised", Lowers: withoutFigure,
					Why: "the kernel of the sender (" + at + ") does not report it; Linux 5.4 and later do"},
					of(evidence.ReceiveWindowLimited, evidence.LinkRateReached)})
			}
		}
	}
	return all
}

// runGaps returns a gap for every run that was wanted but could not be made.
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
			g.What, g.Lowers = "the rate of the path", withoutTCPInfo
		}
		all = append(all, g)
	}
	if _, refused := c.Refused["ping"]; !refused && len(loaded) > 0 && loaded[0].IdleRTTSeconds <= 0 {
		all = append(all, gap{Blind{What: "the idle round trip", Why: "no ping was run before the load",
			Lowers: withoutDetail},
			of(evidence.Bufferbloat, evidence.LinkRateReached, evidence.ReceiveWindowLimited,
				evidence.SendBufferLimited)})
	}
	return all
}

// families are groups of counters, by prefix, that are never all zero on a host that moves packets.
var families = []struct {
	prefix, what string
	concerns     []evidence.Code
}{
	{"nic.", "the counters of the interfaces", []evidence.Code{evidence.PathLoss, evidence.TimeoutsIncast}},
	{"softnet.", "the counters of the per-CPU backlogs",
		[]evidence.Code{evidence.PathLoss, evidence.TimeoutsIncast}},
	{"Tcp.", "the basic counters of TCP", []evidence.Code{evidence.PathLoss, evidence.Reordering}},
	{"TcpExt.", "the detailed counters of TCP", []evidence.Code{evidence.Reordering, evidence.TimeoutsIncast}},
}

// hostGaps returns what an examined host does not count, each kind once per side.
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
		// An unknown host is one gap and not five.
		if s.Host == nil || s.Run != nil && !s.Loaded() {
			continue
		}
		if len(s.CPUs) == 0 {
			add(s.Side, "the CPUs", "their times were not reported", withoutFigure, evidence.LinkRateReached)
		}
		if s.SinceBoot {
			add(s.Side, "the time of the counts",
				"one snapshot has counters since boot; two snapshots show what happened between them",
				withoutFar)
		}
		if s.Run == nil && s.Sockets == nil {
			add(s.Side, "sockets", aboutSockets(s.Host.Warnings), withoutDetail, evidence.ListenOverflow,
				evidence.UDPSocketOverflow, evidence.ApplicationLimited)
		}
		if len(s.Counters) == 0 {
			add(s.Side, "the counters of the host", "none were reported", withoutFigure, evidence.PathLoss,
				evidence.TimeoutsIncast, evidence.Reordering)
			continue
		}
		for _, f := range families {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(s.Counters)),
				func(name string) bool { return strings.HasPrefix(name, f.prefix) }) {
				add(s.Side, f.what, "the host does not have these counters, or does not report them", withoutDetail,
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

// aboutSockets returns the reason why no sockets were reported: the first warning about sockets, if
// any.
func aboutSockets(warnings []string) string {
	for _, sentence := range warnings {
		if strings.Contains(sentence, "socket") {
			return sentence
		}
	}
	return "none were reported"
}

// lacking lists counters that rules use and that old kernels do not have. It applies to watched
// hosts only, because a run leaves out counters that are zero.
func lacking(counters map[string]uint64) string {
	var missing []string
	for _, name := range []string{
		"TcpExt.ListenOverflows", "TcpExt.TCPTimeouts", "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPBacklogDrop",
		"TcpExt.TCPReqQFullDrop", "TcpExt.TCPDSACKRecv",
		"Udp.RcvbufErrors", "softnet.dropped", "softnet.time_squeeze",
	} {
		if _, ok := counters[name]; !ok {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}

// classes are the words by which a snapshot says that it could not read something, and how much
// such a gap costs.
var classes = []struct {
	name   string
	lowers float64
}{
	{"not permitted", withoutDetail}, {"not readable", withoutDetail}, {"not supported", withoutTrifle},
	{"not there", withoutTrifle},
}

// readingGaps returns what the snapshots could not read, grouped by reason: forty values that need
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
					continue // two readings of one host give the same warnings
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
