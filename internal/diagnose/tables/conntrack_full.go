package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	conntrackMax = "sysctl:net.netfilter.nf_conntrack_max"
	// entryBytes is the kernel memory of one tracked connection: struct nf_conn and its extensions
	// (accounting, NAT, timestamps), 320 bytes on 64 bits and up to half as much again.
	entryBytes = 400
)

// conntrackFull finds that the table of tracked connections has no room, so that the kernel drops
// the first packet of a new connection.
//
// The counter "drop" alone does not show it: if two packets of one new connection race on two CPUs
// they clash, and an unresolved clash counts there as well (nf_ct_resolve_clash), however full the
// table is. So the table must be full, or the kernel must have evicted entries early, which it does
// only in a full table (early_drop in net/netfilter/nf_conntrack_core.c).
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
		Code: evidence.ConntrackFull, Severity: evidence.Notice, Where: s.Side, LostPerSec: s.PerSecond(dropped),
		Evidence: []evidence.Evidence{
			{Name: "tracked connections", Value: entries, Unit: "entries", Source: s.Source("nf_conntrack_count")},
			{Name: "room in the table", Value: limit, Unit: "entries", Source: s.Source("nf_conntrack_max")},
			counted(s, "packets dropped by connection tracking", "conntrack.drop", "packets"),
			counted(s, "entries evicted to make room", "conntrack.early_drop", "entries"),
		},
		Confidence: evidence.Combine(0.5, evidence.When(fill >= full, 0.6), evidence.When(refused, 0.75),
			evidence.When(evicted > 0, 0.4)),
	}
	// Packets of open connections have their entry: these losses are other connections', unless
	// entries were evicted.
	x.Aside = s.FewFor(dropped + evicted)
	table := fmt.Sprintf("the table of tracked connections holds %s of %s", evidence.Count(entries),
		evidence.Count(limit))
	switch {
	case refused && lasting(s, dropped, 1):
		// Each drop is a new connection that fails until its program tries again a second later.
		x.Severity = evidence.Critical
		x.Title = fmt.Sprintf("New connections fail: %s, and %s packets were dropped %s%s.", table,
			evidence.Count(dropped), s.When(), perSecond(s, dropped))
	case refused && fill >= full:
		// The table is full now and has refused connections: even counted since boot this is more
		// than history.
		x.Severity = evidence.Warning
		x.Title = fmt.Sprintf("New connections fail: %s, and %s packets were dropped %s.", table,
			evidence.Count(dropped), s.When())
	case refused || evicted > 0:
		x.Title = fmt.Sprintf(
			"Connection tracking ran out of room %s: it evicted %s entries and dropped %s packets; now %s.", s.When(),
			evidence.Count(evicted),
			evidence.Count(dropped), table)
	default:
		x.Title = fmt.Sprintf("Connection tracking is close to its limit, beyond which new connections fail: %s.",
			table)
	}
	x.Rejected = []string{
		fmt.Sprintf("Not collisions of simultaneous packets, which are dropped however full the table is: "+
			"%s entries could not be inserted, and the table is %s full.",
			evidence.Count(s.Count("conntrack.insert_failed")), evidence.Percent(fill)),
		fmt.Sprintf("Not the path: these %s packets had reached this host.", evidence.Count(dropped)),
	}
	x.Remedy.Text = fmt.Sprintf(
		"First see which connections own the entries (conntrack -L): a flood or a leak fills any table. "+
			"Then raise nf_conntrack_max (twice as many entries take %s of memory), "+
			"shorten the timeouts of idle connections, or exempt traffic that needs no state (notrack).",
		evidence.Bytes(limit*entryBytes))
	x.Remedy.Proof = "With a larger table the drops stop at once and the count settles below the limit; " +
		"packets of existing connections pass throughout."
	x.Remedy.Add(evidence.Candidate{Knob: conntrackMax, Side: s.Side, Levels: multiples(limit, 2, 4),
		Why: "a new connection needs an entry; the limit is only a number and reserves no memory"})
	return x
}
