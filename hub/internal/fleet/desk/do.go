package desk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/gather"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/report"
)

// Do serves a request and returns its document. item receives documents of hosts.
func (d *Desk) Do(ctx context.Context, q Request, item func(Item) error) (any, error) {
	switch q.Do {
	case DoStatus:
		return d.status(), nil
	case DoHosts:
		return d.list(q)
	case DoAsk:
		return d.ask(ctx, q)
	case DoFetch:
		return d.fetch(ctx, q, item)
	case DoMeasure:
		return d.measure(ctx, q)
	case DoInvite:
		return d.invite(q)
	case DoWithdraw, DoApprove, DoRemove:
		return d.decide(q)
	case DoPlan, DoAgain, DoBegin, DoHalt, DoRollouts:
		return d.rollouts(ctx, q)
	}
	return nil, UsageError{fmt.Errorf("request %.40q is not known to this hub", q.Do)}
}

func (d *Desk) envelope(schema string) report.Envelope {
	return report.NewEnvelope(d.o.Version, d.o.Name).Of(schema)
}

// status counts.
func (d *Desk) status() *report.FleetStatusDocument {
	doc := &report.FleetStatusDocument{Envelope: d.envelope(report.SchemaFleetStatus),
		Members: make(map[string]int), Findings: make(map[string]int), Connections: d.hub.Connections(), Cut: d.hub.Cut(),
		Undecided: []report.FleetHost{}, Invitations: []report.FleetInvitation{}, Classes: []report.FleetClass{}}
	for _, m := range d.register.Members() {
		doc.Members[string(m.State)]++
		if m.State == member.Waiting || m.State == member.Quarantined {
			doc.Undecided = append(doc.Undecided, hostOf(m))
		}
	}
	var members []inventory.Host
	for _, h := range d.hosts.Hosts() {
		if h.State == string(member.Joined) {
			members = append(members, h)
		}
	}
	for _, c := range inventory.Summarize(members, time.Now().Add(-SilentAfter)) {
		doc.Silent += c.Silent
		doc.Drifted += c.Drifted
		doc.Differing += c.Differ
		for code, n := range c.Findings {
			doc.Findings[code] += n
		}
		doc.Classes = append(doc.Classes, report.FleetClass{Name: c.Name, Hosts: c.Hosts, Silent: c.Silent,
			Drifted: c.Drifted, Differing: c.Differ, Findings: c.Findings})
	}
	for _, i := range d.register.Invitations() {
		doc.Invitations = append(doc.Invitations, invitationOf(i))
	}
	return doc
}

func hostOf(m member.Member) report.FleetHost {
	return report.FleetHost{ID: m.ID, Name: m.Name, State: string(m.State), Reason: m.Reason,
		Fingerprint: m.Fingerprint(), From: m.From, Groups: m.Groups, Labels: m.Labels}
}

func invitationOf(i member.Invitation) report.FleetInvitation {
	return report.FleetInvitation{ID: i.ID, Expires: i.Expires, Uses: i.Uses, Used: i.Used, Groups: i.Groups,
		Labels: i.Labels, Approve: i.Approve}
}

// choose returns the hosts of a selection, sorted by name.
func (d *Desk) choose(text string) ([]inventory.Host, bool, error) {
	s, err := selection.Parse(text)
	if err != nil {
		return nil, false, err
	}
	now := time.Now()
	var chosen []inventory.Host
	for _, h := range d.hosts.Hosts() {
		if s.Match(&h, now) {
			chosen = append(chosen, h)
		}
	}
	return chosen, s.Everything(), nil
}

// mostListed is the longest page of hosts.
const mostListed = 1000

// list returns a page of hosts.
func (d *Desk) list(q Request) (*report.FleetHostsDocument, error) {
	chosen, _, err := d.choose(q.Selection)
	if err != nil {
		return nil, err
	}
	doc := &report.FleetHostsDocument{Envelope: d.envelope(report.SchemaFleetHosts), Selection: q.Selection,
		Selected: len(chosen), Hosts: []report.FleetHost{}}
	limit := min(cmp.Or(max(q.Limit, 0), 100), mostListed)
	for _, h := range chosen {
		at := h.Name + " " + h.ID
		if q.After != "" && at <= q.After {
			continue
		}
		if len(doc.Hosts) == limit {
			last := doc.Hosts[limit-1]
			doc.Next = last.Name + " " + last.ID
			break
		}
		m, _ := d.register.Get(h.ID)
		one := hostOf(m)
		overview.Describe(&one, &h)
		doc.Hosts = append(doc.Hosts, one)
	}
	if len(chosen) == 1 {
		for _, x := range d.hosts.Outliers(chosen[0].ID) {
			doc.Differences = append(doc.Differences, report.FleetDifference(x))
		}
	}
	return doc, nil
}

// members returns the ids of the members among hosts, and the names of all.
func members(hosts []inventory.Host) (ids []string, names map[string]string) {
	names = make(map[string]string, len(hosts))
	for _, h := range hosts {
		if h.State == string(member.Joined) {
			ids = append(ids, h.ID)
			names[h.ID] = h.Name
		}
	}
	return ids, names
}

// ask asks the members of a selection, and joins equal answers.
func (d *Desk) ask(ctx context.Context, q Request) (*report.FleetAskDocument, error) {
	chosen, everything, err := d.choose(q.Selection)
	if err != nil {
		return nil, err
	}
	ids, names := members(chosen)
	g, err := d.asks.Ask(ctx, gather.Question{Verb: q.Verb, Args: q.Args, IDs: ids, All: everything,
		Within: time.Duration(q.WithinMS) * time.Millisecond})
	if err != nil {
		return nil, err
	}
	doc := &report.FleetAskDocument{Envelope: d.envelope(report.SchemaFleetAsk), Verb: q.Verb, Arguments: q.Args,
		Selection: q.Selection, Asked: len(ids), Answers: []report.FleetAnswer{}, Incomplete: g.Incomplete,
		Seconds: g.Took.Seconds()}
	name := func(ids []string) []report.FleetName {
		out := make([]report.FleetName, 0, len(ids))
		for _, id := range ids {
			out = append(out, report.FleetName{ID: id, Name: names[id]})
		}
		return out
	}
	doc.Absent, doc.Silent = name(g.Absent), name(g.Silent)
	index := make(map[string]int)
	for _, id := range ids {
		a, ok := g.Answers[id]
		if !ok {
			continue
		}
		key := a.Error + "\x00" + string(a.Data)
		i, known := index[key]
		if !known {
			i = len(doc.Answers)
			index[key] = i
			doc.Answers = append(doc.Answers, report.FleetAnswer{Answer: a.Data, Error: a.Error})
		}
		doc.Answers[i].Hosts = append(doc.Answers[i].Hosts, report.FleetName{ID: id, Name: names[id]})
	}
	sorting.StableFunc(doc.Answers, func(a, b report.FleetAnswer) int { return cmp.Compare(len(b.Hosts), len(a.Hosts)) })
	return doc, nil
}

// fetch fetches a document from the members of a selection.
func (d *Desk) fetch(ctx context.Context, q Request, item func(Item) error) (*report.FleetFetchDocument, error) {
	chosen, _, err := d.choose(q.Selection)
	if err != nil {
		return nil, err
	}
	if q.Document == "" {
		return nil, UsageError{fmt.Errorf("name a document")}
	}
	ids, names := members(chosen)
	doc := &report.FleetFetchDocument{Envelope: d.envelope(report.SchemaFleetFetch), Document: q.Document,
		Selection: q.Selection, Fetched: []report.FleetFetched{}, Missing: []report.FleetFetched{}}
	start := time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	err = d.bulk.Fetch(ctx, q.Document, ids, nil, func(f gather.Fetched) {
		one := report.FleetFetched{FleetName: report.FleetName{ID: f.ID, Name: names[f.ID]}}
		if f.Err != nil {
			one.Error = f.Err.Error()
			doc.Missing = append(doc.Missing, one)
			return
		}
		one.Hash, one.Bytes = f.Hash, int64(len(f.Data))
		doc.Fetched = append(doc.Fetched, one)
		if failed == nil && item != nil {
			if failed = item(Item{ID: f.ID, Name: names[f.ID], Hash: f.Hash, Data: f.Data}); failed != nil {
				stop() // the client has gone
			}
		}
	})
	doc.Seconds = time.Since(start).Seconds()
	for _, list := range [][]report.FleetFetched{doc.Fetched, doc.Missing} {
		sorting.Func(list, func(a, b report.FleetFetched) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
		})
	}
	return doc, cmp.Or(failed, err)
}

// invite makes an invitation.
func (d *Desk) invite(q Request) (*report.FleetInviteDocument, error) {
	for _, g := range q.Groups {
		if !bus.GroupName(g) {
			return nil, UsageError{fmt.Errorf("group %.60q: want letters, digits, - and _", g)}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(q.Labels)) {
		if !bus.GroupName(k) || q.Labels[k] == "" || len(q.Labels[k]) > 64 {
			return nil, UsageError{fmt.Errorf("label %.60q: want NAME=VALUE, the name of letters, digits, - and _", k)}
		}
	}
	i, t, err := d.register.Invite(member.Invitation{Groups: q.Groups, Labels: q.Labels, Uses: q.Uses, Approve: q.Approve},
		time.Duration(q.TTLMS)*time.Millisecond, d.authority.Fingerprint)
	if err != nil {
		return nil, UsageError{err}
	}
	address := d.o.Address
	if address == "" {
		host, port, err := net.SplitHostPort(d.JoinAddress())
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() { // listens on all: the name says where
			host = d.o.Name
		}
		address = net.JoinHostPort(host, port)
	}
	return &report.FleetInviteDocument{Envelope: d.envelope(report.SchemaFleetInvite), FleetInvitation: invitationOf(i),
		Line: "linerate-hub join " + address + " " + t.String()}, nil
}

// decide approves or removes hosts, or withdraws an invitation.
func (d *Desk) decide(q Request) (*report.FleetDecideDocument, error) {
	doc := &report.FleetDecideDocument{Envelope: d.envelope(report.SchemaFleetDecide), Hosts: []report.FleetHost{}}
	if len(q.IDs) == 0 {
		return nil, UsageError{fmt.Errorf("name the hosts by their ids")}
	}
	for _, id := range q.IDs {
		if q.Do == DoWithdraw {
			if err := d.register.Withdraw(id); err != nil {
				return nil, err
			}
			continue
		}
		to := member.Joined
		if q.Do == DoRemove {
			to = member.Removed
		}
		_, m, err := d.register.Decide(id, to, q.Reason)
		if now, ok := d.register.Get(id); err != nil && ok && to == member.Removed && now.State == member.Removed {
			m, err = now, nil // removed before, perhaps by a request that failed half way: put it in force
		}
		if err == nil {
			err = d.admit(m)
		}
		if err != nil {
			return nil, err
		}
		d.log.Info("fleet: "+q.Do, "host", m.ID, "name", m.Name, "reason", q.Reason)
		doc.Hosts = append(doc.Hosts, hostOf(m))
	}
	return doc, nil
}
