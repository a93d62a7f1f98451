package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	conntrackMax = "sysctl:net.netfilter.nf_conntrack_max"
	// entryBytes is what one tracked connection takes of the kernel's memory: struct nf_conn and
	// its extensions (accounting, NAT, time stamps), 320 bytes on 64 bits and up to half as much
	// again.
	entryBytes = 400
)

// conntrackFull: the table of tracked connections has no room, so that the first packet of a new
// connection dies.
//
// The counter "drop" alone does not tell: two packets of one new connection that race on two
// processors clash, and what cannot be resolved is counted there as well (nf_ct_resolve_clash), at
// any fill. So the table must be seen full, or entries must have been evicted early, which the
// kernel does in a full table only (early_drop in net/netfilter/nf_conntrack_core.c).
func conntrackFull(s *evidence.Span) *evidence.Finding {
	entries, limit := max(s.Count("conntrack.count"), s.Count("conntrack.entries")), s.Count("conntrack.max")
	if limit == 0 {
		limit, _ = s.Number(conntrackMax, 0)
	}
	dropped, evicted := s.Count("conntrack.drop"), s.Count("conntrack.early_drop")
	fill := part(entries, limit)
	refused := dropped > 0 && (fill >= full || evicted > 0)
	if !refused && evicted == 0 && fill < nearlyFull {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.ConntrackFull, Severity: evidence.Notice, Where: s.Side,
		Evidence: []evidence.Evidence{
			{Name: "tracked connections", Value: entries, Unit: "entries", Source: s.Source("nf_conntrack_count")},
			{Name: "room in the table", Value: limit, Unit: "entries", Source: s.Source("nf_conntrack_max")},
			counted(s, "packets dropped by connection tracking", "conntrack.drop", "packets"),
			counted(s, "entries evicted to make room", "conntrack.early_drop", "entries"),
		},
		Confidence: evidence.Combine(0.5, evidence.When(fill >= full, 0.6), evidence.When(refused, 0.75),
			evidence.When(evicted > 0, 0.4)),
	}
	table := fmt.Sprintf("the table of tracked connections holds %s of %s", evidence.Count(entries),
		evidence.Count(limit))
	switch {
	case refused && lasting(s, dropped, 1):
		// Each drop is a new connection that does not come about, until its program tries again a
		// second later.
		x.Severity = evidence.Critical
		x.Title = fmt.Sprintf("New connections die: %s, and %s packets were dropped %s%s.", table,
			evidence.Count(dropped), s.When(), perSecond(s, dropped))
	case refused && fill >= full:
		// It is full now, and it has refused: also of a counter since boot this is more than
		// history.
		x.Severity = evidence.Warning
		x.Title = fmt.Sprintf("New connections die: %s, and %s packets were dropped %s.", table,
			evidence.Count(dropped), s.When())
	case refused || evicted > 0:
		x.Title = fmt.Sprintf(
			"Connection tracking ran out of room %s: %s entries were evicted and %s packets dropped; now %s.", s.When(),
			evidence.Count(evicted),
			evidence.Count(dropped), table)
	default:
		x.Title = fmt.Sprintf("Connection tracking is close to its limit, and new connections die beyond it: %s.",
			table)
	}
	x.Rejected = []string{
		fmt.Sprintf("Not clashes of simultaneous packets, which are dropped at any fill: %s entries could not be inserted, and the table is %s full.",
			evidence.Count(s.Count("conntrack.insert_failed")), evidence.Percent(fill)),
		fmt.Sprintf("Not the path: these %s packets had arrived at this host.", evidence.Count(dropped)),
	}
	x.Remedy.Text = fmt.Sprintf(
		"Raise nf_conntrack_max (twice as many entries take %s of memory), let idle connections be forgotten sooner, or exempt traffic that "+
			"needs no state (notrack). "+
			"First see who owns the entries (conntrack -L): a flood or a leak fills any table.",
		evidence.Bytes(limit*entryBytes))
	x.Remedy.Proof = "With a larger table the drops stop at once and the count settles below the limit; packets of connections that existed before pass all the time."
	x.Remedy.Add(evidence.Candidate{Knob: conntrackMax, Side: s.Side, Levels: multiples(limit, 2, 4),
		Why: "a new connection needs an entry; the limit is a number and not memory that is set aside"})
	return x
}
