package desk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/gather"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/mesh"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// DoMeasure makes the hosts of a selection measure each other.
const DoMeasure = "measure"

// MeshRequest is what a request to measure says besides its selection. Zero values choose defaults.
type MeshRequest struct {
	Partners int    `json:"partners,omitempty"` // of each host, for pings; 0: 5
	Loads    int    `json:"loads,omitempty"`    // of each host, for load tests
	MS       int64  `json:"load_ms,omitempty"`  // of a load test
	Uplink   int    `json:"uplink,omitempty"`   // load tests at once over the uplink of a rack; 0: 1
	Site     int    `json:"site,omitempty"`     // the same between sites
	Seed     uint64 `json:"seed,omitempty"`     // 0: drawn
}

// How long a host may take beyond the test itself, and the parts of the second stage.
const (
	answerWithin = 30 * time.Second
	pingCount    = 20
	mostSuspects = 16 // and a quarter of the hosts, but at least four
	retests      = 10
	mostPartners = 64
)

// measure makes a mesh. One runs at a time.
func (d *Desk) measure(ctx context.Context, q Request) (*report.FleetMeasureDocument, error) {
	if !d.measuring.TryLock() {
		return nil, errors.New("the hub is measuring another mesh; ask again when it has ended")
	}
	defer d.measuring.Unlock()
	var m MeshRequest
	if q.Mesh != nil {
		m = *q.Mesh
	}
	if m.Partners < 0 || m.Loads < 0 || m.Partners > mostPartners || m.Loads > mostPartners || m.Uplink < 0 || m.Site < 0 {
		return nil, UsageError{fmt.Errorf("partners: want 1 to %d", mostPartners)}
	}
	if m.Partners == 0 {
		m.Partners = 5
	}
	if m.Uplink == 0 {
		m.Uplink = 1
	}
	if m.Site == 0 {
		m.Site = 1
	}
	for m.Seed == 0 {
		m.Seed = rand.Uint64() >> 12 // JavaScript reads it exactly
	}
	if m.MS == 0 {
		m.MS = 2000
	}
	chosen, _, err := d.choose(q.Selection)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	doc := &report.FleetMeasureDocument{Envelope: d.envelope(report.SchemaFleetMeasure), Selection: q.Selection,
		Seed: m.Seed, Partners: m.Partners, Hosts: []report.FleetMeasuredHost{}, Results: []report.FleetMeasured{},
		Racks: []report.FleetRackPair{}, Culprits: []report.FleetCulprit{}}
	if m.Loads > 0 {
		doc.Test = string(traffic.Stream)
	}
	var hosts []mesh.Host
	var place []int // of each in the document
	for i := range chosen {
		one := measuredHost(&chosen[i], start)
		if one.Error == "" {
			hosts = append(hosts, mesh.Host{ID: one.ID, Rack: overview.Place(one.Site, one.Rack), Site: one.Site})
			place = append(place, len(doc.Hosts))
		}
		doc.Hosts = append(doc.Hosts, one)
	}
	if len(hosts) < 2 {
		return nil, UsageError{fmt.Errorf("%d of %d hosts can be measured; a mesh needs two: %s", len(hosts), len(chosen),
			reasons(doc.Hosts))}
	}
	r, err := mesh.Run(ctx, mesh.Campaign{Hosts: hosts, Seed: m.Seed, Pings: m.Partners, Loads: m.Loads,
		Caps: mesh.Caps{Uplink: m.Uplink, Site: m.Site}, Retests: retests,
		Suspects: min(mostSuspects, max(4, len(hosts)/4))},
		func(ctx context.Context, from, to int, load bool) (mesh.Value, error) {
			return d.test(ctx, doc.Hosts[place[from]].ID, &chosen[place[to]], load, m)
		})
	if err != nil {
		return nil, err
	}
	fill(doc, r, hosts, place)
	doc.Ended, doc.Seconds = time.Now().UTC(), time.Since(start).Seconds()
	return doc, d.keepMesh(doc)
}

// measuredHost says whether a host can be in a mesh.
func measuredHost(h *inventory.Host, now time.Time) report.FleetMeasuredHost {
	one := report.FleetMeasuredHost{FleetName: report.FleetName{ID: h.ID, Name: h.Name}, Rack: h.Labels["rack"],
		Site: h.Labels["site"], Class: h.Class}
	switch {
	case h.State != string(member.Joined):
		one.Error = "not a member"
	case h.Facts == nil:
		one.Error = "not read yet"
	case now.Sub(h.Last) > SilentAfter:
		one.Error = "silent"
	case h.Facts.Measure == "":
		one.Error = "its node was started without --serve"
	default:
		if _, _, err := net.SplitHostPort(h.Facts.Measure); err != nil {
			one.Error = "its address is not HOST:PORT"
			return one
		}
		one.Target = h.Facts.Measure
	}
	return one
}

func reasons(hosts []report.FleetMeasuredHost) string {
	count := make(map[string]int)
	for _, h := range hosts {
		if h.Error != "" {
			count[h.Error]++
		}
	}
	var all []string
	for why, n := range count {
		all = append(all, fmt.Sprintf("%d: %s", n, why))
	}
	sorting.Func(all, strings.Compare)
	return strings.Join(all, "; ")
}

// test makes one test. The hub asks the host that sends; that host holds its own lease, and the
// responder of the other one holds the other.
func (d *Desk) test(ctx context.Context, from string, to *inventory.Host, load bool,
	m MeshRequest) (mesh.Value, error) {
	q := message.Measure{Target: to.Facts.Measure, Groups: to.Groups, Test: string(traffic.Ping), Count: pingCount}
	within := answerWithin
	if load {
		q.Test, q.DurationMS = string(traffic.Stream), m.MS
		within += time.Duration(m.MS) * time.Millisecond * 2
	}
	got, err := d.asks.Measure(ctx, from, q, within)
	switch {
	case errors.Is(err, gather.ErrAbsent), errors.Is(err, gather.ErrSilent):
		return mesh.Value{Refused: err.Error()}, nil // the bus is not the path
	case err != nil:
		return mesh.Value{}, err
	case got.Busy != "":
		return mesh.Value{}, fmt.Errorf("%.100q: %w", got.Busy, mesh.ErrBusy)
	}
	return mesh.Value{RTT: got.RTTSeconds, Loss: got.LossRatio, Rate: got.BitsPerSec, Most: got.MostBitsPerSec,
		Failed: got.Failed, Refused: got.Refused, Late: got.LateSeconds}, nil
}

// fill writes the outcome into the document.
func fill(doc *report.FleetMeasureDocument, r *mesh.Report, hosts []mesh.Host, place []int) {
	doc.Refused, doc.Left = r.Refused, r.Left
	index := make(map[[2]string]int)
	for _, o := range r.Outcomes {
		test := string(traffic.Ping)
		if o.Load {
			test = string(traffic.Stream)
		}
		doc.Results = append(doc.Results, report.FleetMeasured{From: place[o.A], To: place[o.B], Stage: o.Stage, Test: test,
			RTT: o.RTT, Loss: o.Loss, Throughput: o.Rate, Bad: o.Bad, Reason: o.Reason, Error: o.Refused})
		if o.Disturbed { // a value that is not one of the path
			one := &doc.Results[len(doc.Results)-1]
			one.RTT, one.Loss, one.Throughput, one.Reason, one.Error = nil, nil, nil, "", o.Reason
		}
		if o.Refused != "" || o.Disturbed {
			continue
		}
		a, b := hosts[o.A].Rack, hosts[o.B].Rack
		if b < a {
			a, b = b, a
		}
		i, known := index[[2]string{a, b}]
		if !known {
			i = len(doc.Racks)
			index[[2]string{a, b}] = i
			doc.Racks = append(doc.Racks, report.FleetRackPair{A: a, B: b})
		}
		p := &doc.Racks[i]
		p.Tests++
		if o.Bad {
			p.Bad++
		}
		worst(&p.RTT, o.RTT, 1)
		worst(&p.Loss, o.Loss, 1)
		worst(&p.Throughput, o.Rate, -1)
	}
	for _, c := range r.Culprits {
		text := string(c.Kind) + " " + c.Name
		if c.Kind == mesh.HostElement {
			for _, h := range doc.Hosts {
				if h.ID == c.Name {
					text = "host " + h.Name
				}
			}
		}
		doc.Culprits = append(doc.Culprits, report.FleetCulprit{Kind: string(c.Kind), Name: c.Name, Text: text,
			Score: c.Score, Tests: c.Tests, Bad: c.Bad})
	}
}

// worst keeps the higher value, or with a negative sign the lower one.
func worst(kept **float64, v *float64, sign float64) {
	if v != nil && (*kept == nil || sign**v > sign**(*kept)) {
		*kept = v
	}
}
