package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// neighbourTableFull finds more neighbours on the attached networks than the kernel may remember,
// so that packets to a further one fail (ENOBUFS).
//
// Each table_fulls is one refused neighbour (neigh_alloc in net/core/neighbour.c, since Linux 4.3).
// Entries above gc_thresh3 alone prove nothing: permanent ones and those of routing daemons (EVPN)
// count among them and need no room, so such a host gets a notice.
func neighbourTableFull(s *evidence.Span) *evidence.Finding {
	var worst *evidence.Finding
	for _, family := range [...]string{"ipv4", "ipv6"} {
		// The worse table decides; the evidence of the other adds nothing.
		if x := neighbourTable(s, family); x != nil &&
			(worst == nil || worst.Severity == evidence.Notice && x.Severity == evidence.Critical) {
			worst = x
		}
	}
	return worst
}

func neighbourTable(s *evidence.Span, family string) *evidence.Finding {
	group := "neigh." + family + "."
	knobs := "sysctl:net." + family + ".neigh.default."
	refused, entries, limit := s.Count(group+"table_fulls"), s.Count(group+"entries"), s.Count(group+"gc_thresh3")
	if limit == 0 {
		limit, _ = s.Number(knobs+"gc_thresh3", 0)
	}
	fill := part(entries, limit)
	if refused == 0 && fill < nearlyFull {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.NeighbourTableFull, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			counted(s, "neighbours refused for lack of room", group+"table_fulls", "neighbours"),
			counted(s, "neighbours known", group+"entries", "neighbours"),
			{Name: "most neighbours", Value: limit, Unit: "neighbours", Source: s.Source(family + " gc_thresh3")},
			counted(s, "neighbours that were looked up and did not answer", group+"res_failed", "neighbours"),
		},
		Confidence: evidence.Combine(0.3, evidence.When(refused > 0, 0.85), evidence.When(fill >= nearlyFull, 0.3)),
	}
	switch {
	case lasting(s, refused, 1):
		x.Severity = evidence.Critical
		x.Title = fmt.Sprintf("Packets to new neighbours fail: the %s table holds %s of %s, and refused %s %s%s.",
			family, evidence.Count(entries), evidence.Count(limit), evidence.Count(refused), s.When(),
			perSecond(s, refused))
	case refused > 0:
		x.Title = fmt.Sprintf("The %s neighbour table had no room %s times %s; it holds %s of %s now.",
			family, evidence.Count(refused), s.When(), evidence.Count(entries), evidence.Count(limit))
	default:
		x.Title = fmt.Sprintf(
			"The %s neighbour table holds %s of %s; packets to further neighbours fail once it is full.", family,
			evidence.Count(entries),
			evidence.Count(limit))
	}
	x.Rejected = []string{
		fmt.Sprintf("Not unanswered look-ups, which lose packets one at a time: %s look-ups failed %s.",
			evidence.Count(s.Count(group+"res_failed")), s.When()),
	}
	x.Remedy.Text = "Raise gc_thresh3 above the number of hosts on the attached networks, " +
		"and gc_thresh2 with it; or divide the network. A scan of unused addresses also fills the table: " +
		"`ip neigh` shows its entries in state FAILED."
	x.Remedy.Proof = "With a higher gc_thresh3, the counter table_fulls stops; " +
		"traffic to known neighbours never changed."
	x.Remedy.Add(evidence.Candidate{Knob: knob.ID(knobs + "gc_thresh3"), Side: s.Side, Levels: multiples(limit, 2, 4),
		Why: "beyond it the kernel refuses a neighbour and every packet to it"})
	return x
}
