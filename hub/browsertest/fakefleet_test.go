package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/report"
)

// fakeHosts is a fleet of any size. What the API makes of it is real.
type fakeHosts struct {
	source   overview.Source
	mesh     *report.FleetMeasureDocument
	rollouts []overview.Rollout
}

// perRack is how many hosts a rack has.
const perRack = 30

// newFleet returns a fleet in which of 100 hosts one has drifted, one differs from its class, one
// is silent and five have a finding. One rack of the mesh is bad, and one host.
func newFleet(n int, odd string) *fakeHosts {
	f := &fakeHosts{source: overview.Source{Now: fakeNow, Silent: 90 * time.Second}}
	store := inventory.NewStore()
	doc := &report.FleetMeasureDocument{Selection: "", Seed: 1, Partners: 5, Ended: fakeNow.Add(-20 * time.Minute)}
	drivers := []string{"mlx5_core", "ice", "virtio_net"}
	for i := range n {
		id, name := fmt.Sprintf("01J%023d", i), fmt.Sprintf("%s%05d.%s.example.net", []string{"web", "db", "cache"}[i%3], i,
			[]string{"ams", "fra"}[i/perRack%2])
		if i == 0 && odd != "" {
			name = odd
		}
		site, rack := []string{"ams", "fra"}[i/perRack%2], fmt.Sprintf("r%03d", i/perRack)
		state := "member"
		if i%150 == 149 {
			state = "quarantined"
		}
		store.Set(id, name, state, []string{"prod"}, map[string]string{"site": site, "rack": rack})
		facts := inventory.Facts{Name: name, OS: "linux", Kernel: "6.12.8", CPU: "AMD EPYC 9354", CPUs: 64, Version: "1.0",
			Cards:    []inventory.Card{{Name: "eth0", Driver: drivers[i%3], SpeedBitsPerSec: 100e9, MTUBytes: 9000}},
			Settings: map[string]string{"net.core.rmem_max": "8388608", "net.ipv4.tcp_rmem": "4096 131072 6291456"}}
		switch i % 100 {
		case 1:
			facts.Kept = []inventory.Kept{{Knob: "sysctl:net.core.rmem_max", Want: "8388608", Have: "212992"}}
		case 2:
			facts.Settings["net.ipv4.tcp_rmem"] = "4096 87380 6291456"
		case 3, 4, 5, 6, 7:
			facts.Findings = []string{"rx-ring-overrun"}
		}
		_, hash, _ := facts.Encode() // plain data
		if i%250 != 249 {
			store.Put(id, hash, facts)
		}
		seen := fakeNow.Add(-20 * time.Second)
		if i%100 == 8 {
			seen = fakeNow.Add(-time.Hour)
		}
		store.Beat(id, "1.0", hash, seen)
		doc.Hosts = append(doc.Hosts, report.FleetMeasuredHost{FleetName: report.FleetName{ID: id, Name: name}, Rack: rack,
			Site: site})
	}
	f.source.Hosts = store.Hosts()
	if n == 0 {
		return f
	}
	pairs := make(map[[2]string]*report.FleetRackPair)
	for i := range n {
		for k := 1; k <= 3; k++ {
			to := (i + k*(n/7+1)) % n
			bad := i/perRack == 3 || to/perRack == 3 || i == 41 || to == 41
			rtt, loss := 0.0002+float64((i*7+to)%50)/1e6, 0.0
			r := report.FleetMeasured{From: i, To: to, Stage: 1, Test: "ping", RTT: &rtt, Loss: &loss, Bad: bad}
			if bad {
				loss, r.Reason = 0.05, "5 % lost"
			}
			doc.Results = append(doc.Results, r)
			a, b := overview.Place(doc.Hosts[i].Site, doc.Hosts[i].Rack), overview.Place(doc.Hosts[to].Site, doc.Hosts[to].Rack)
			if b < a {
				a, b = b, a
			}
			p := pairs[[2]string{a, b}]
			if p == nil {
				p = &report.FleetRackPair{A: a, B: b}
				pairs[[2]string{a, b}] = p
			}
			p.Tests++
			if bad {
				p.Bad++
			}
		}
	}
	for _, p := range pairs {
		doc.Racks = append(doc.Racks, *p)
	}
	doc.Culprits = []report.FleetCulprit{{Kind: "rack", Name: "fra/r003", Text: "rack fra/r003", Score: 88,
		Tests: 90, Bad: 90},
		{Kind: "host", Name: doc.Hosts[41%n].ID, Text: "host " + doc.Hosts[41%n].Name, Score: 20, Tests: 6, Bad: 6}}
	f.mesh = doc
	f.source.Mesh = overview.ValuesOf(doc)
	f.rollouts = []overview.Rollout{fakeRollout("running", false), fakeRollout("harmful", true)}
	return f
}

// fakeRollout plays a rollout over 200 hosts until it is proven or halts.
func fakeRollout(id string, harmful bool) overview.Rollout {
	bounds := rollout.Boundary()
	r := overview.Rollout{ID: "01JROLLOUT" + id, Knob: "sysctl:net.ipv4.tcp_rmem", To: "4096 131072 67108864",
		Started: fakeNow.Add(-50 * time.Hour), Phase: string(rollout.Soaking), Stage: rollout.Wave50, Proven: true,
		Hosts:  200,
		States: map[string]int{"committed": 101, "pending": 99}, Changed: []int{9, 18, 18, 29, 104, 200}, Boundary: bounds,
		Looks: []overview.Look{{Stage: 1, Pairs: 9, Effect: 0.02, T: 1.1}, {Stage: 2, Pairs: 9, Effect: 0.025, T: 1.8},
			{Stage: 3, Pairs: 20, Effect: 0.03, T: 2.9, Proven: true}}}
	if harmful {
		r.Phase, r.Stage, r.Proven = string(rollout.Halted), rollout.Wave10, false
		r.Reason = "the measurements after wave 10 % show harm: mlx5-6.12-100g-1a2b3c"
		r.States = map[string]int{string(rollout.Committed): 29, "pending": 171}
		r.Looks = []overview.Look{{Stage: 1, Pairs: 9, Effect: -0.01, T: -0.6}, {Stage: 2, Pairs: 9, Effect: -0.02, T: -1.5},
			{Stage: 3, Pairs: 20, Effect: -0.06, T: -4.4, Harm: "mlx5-6.12-100g-1a2b3c"}}
	}
	return r
}

// answer answers a request for the fleet as the API of the hub does; nil: there is no such part.
func (f *fakeHosts) answer(r *http.Request) (any, error) {
	q := r.URL.Query()
	from := func(key string) int {
		n, _ := strconv.Atoi(q.Get(key)) // absent: 0
		return n
	}
	switch strings.TrimPrefix(r.URL.Path, "/api/linerate/v1/fleet") {
	case "":
		return f.source.Count(q.Get("selection"), overview.Measure(q.Get("by")))
	case "/hosts":
		return f.source.List(q.Get("selection"), overview.Measure(q.Get("order")), q.Get("after"), from("limit"))
	case "/mesh":
		if a, b := q.Get("row"), q.Get("column"); a != "" {
			return overview.Within(f.mesh, a, b, from("row_from"), from("column_from")), nil
		}
		return overview.GridOf(f.mesh, from("row_from"), from("column_from")), nil
	}
	return object{"rollouts_total": len(f.rollouts), "rollouts": append([]overview.Rollout{}, f.rollouts...)}, nil
}

// serveFleet serves the part of the API about the fleet.
func (f *fake) serveFleet(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.URL.String())
	members := f.members
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if members == nil {
		w.WriteHeader(http.StatusNotFound)
		json.NewEncoder(w).Encode(object{"error": "this hub has no fleet"})
		return
	}
	a, err := members.answer(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(object{"error": `invalid parameter "selection": ` + err.Error()})
		return
	}
	json.NewEncoder(w).Encode(a)
}
