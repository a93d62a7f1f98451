package overview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/report"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// source returns n hosts of one class; number 3 has drifted, 5 is silent, 7 differs and waits.
func source(n int) *overview.Source {
	store := inventory.NewStore()
	for i := range n {
		id := fmt.Sprintf("h%05d", i)
		state := "member"
		if i == 7 {
			state = "waiting"
		}
		store.Set(id, id, state, nil, map[string]string{"site": fmt.Sprint("s", i%30)})
		f := inventory.Facts{Name: id, Kernel: "6.12.1", Settings: map[string]string{"a": "1"}}
		if i == 3 {
			f.Kept = []inventory.Kept{{Knob: "k", Want: "1", Have: "2"}}
		}
		if i == 7 {
			f.Settings["a"] = "2"
		}
		_, hash, _ := f.Encode() // plain data
		store.Put(id, hash, f)
		at := noon.Add(-time.Second)
		if i == 5 {
			at = noon.Add(-time.Hour)
		}
		store.Beat(id, "1.0", hash, at)
	}
	return &overview.Source{Hosts: store.Hosts(), Now: noon, Silent: 90 * time.Second}
}

func TestCount(t *testing.T) {
	s := source(1000)
	c, err := s.Count("", overview.Differs)
	if err != nil {
		t.Fatal(err)
	}
	if c.All != 1000 || c.Members != 999 || c.Undecided != 1 || c.Silent != 1 || c.Drifted != 1 || c.Differing != 1 {
		t.Errorf("%+v", c)
	}
	if len(c.Sites) != overview.MostCounted || c.More != 10 || c.Sites[0].Select != "site:s0" {
		t.Errorf("%d sites are listed, %d more, first %+v", len(c.Sites), c.More, c.Sites[0])
	}
	if c, err = s.Count("drift:yes", overview.Drift); err != nil || c.Hosts != 1 || c.Members != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err = s.Count("colour:red", overview.Drift); err == nil {
		t.Error("a selection with an unknown key is taken")
	}
	// The selection of a count chooses the hosts that were counted.
	c, _ = s.Count("", overview.Differs)
	for _, one := range append(slices.Clone(c.Sites), c.Versions...) {
		if again, err := s.Count(one.Select, overview.Differs); err != nil || again.Hosts != one.Hosts {
			t.Errorf("%s: %d hosts, counted %d, %v", one.Select, again.Hosts, one.Hosts, err)
		}
	}
}

// TestWorst: the host far from its class comes before one whose class is always like this.
func TestWorst(t *testing.T) {
	s := source(100)
	for i := range s.Hosts {
		s.Hosts[i].State = "member"
		if i >= 50 {
			s.Hosts[i].Class = "slow"
		}
	}
	s.Mesh = make(overview.Values)
	for i, h := range s.Hosts {
		rtt := 0.001 + float64(i%10)/1e5
		if i >= 50 {
			rtt *= 100
		}
		if i == 20 {
			rtt = 0.01
		}
		v := s.Mesh[h.ID]
		v.RTT = &rtt
		s.Mesh[h.ID] = v
	}
	c, err := s.Count("", overview.RTT)
	if err != nil || len(c.Worst) == 0 || c.Worst[0].ID != "h00020" || c.Worst[0].Distance == nil ||
		*c.Worst[0].Distance < 50 {
		t.Fatalf("%+v, %v", c.Worst[:1], err)
	}
	if c.Spread.Hosts != 100 || c.Spread.Max < 0.1 || len(c.Worst) > overview.MostCounted {
		t.Errorf("%+v, %d worst", c.Spread, len(c.Worst))
	}
	for _, w := range c.Worst {
		if w.Value <= w.Usual {
			t.Errorf("%s is better than its class: %+v", w.Name, w)
		}
	}
}

// TestPages: every host is on one page, also while hosts come and go.
func TestPages(t *testing.T) {
	for _, order := range append([]overview.Measure{""}, overview.Measures...) {
		s := source(517)
		var seen []string
		after := ""
		for range 100 {
			p, err := s.List("", order, after, 50)
			if err != nil {
				t.Fatal(err)
			}
			if p.First != len(seen)+1 {
				t.Errorf("%s: a page begins with %d after %d hosts", order, p.First, len(seen))
			}
			for _, h := range p.Hosts {
				seen = append(seen, h.ID)
			}
			if after = p.Next; after == "" {
				break
			}
		}
		slices.Sort(seen)
		if len(slices.Compact(seen)) != 517 {
			t.Errorf("%s: %d hosts on all pages", order, len(seen))
		}
	}
	s := source(100)
	p, _ := s.List("", "", "", 10)
	s.Hosts = slices.Delete(s.Hosts, 8, 11) // the last of the page is among them
	if p, _ = s.List("", "", p.Next, 10); p.Hosts[0].ID != "h00011" {
		t.Errorf("after the last host has gone, the next page begins with %s", p.Hosts[0].ID)
	}
	if p, _ = s.List("", "", "nonsense", 10_000); len(p.Hosts) != 97 || p.First != 1 {
		t.Errorf("%d hosts from %d", len(p.Hosts), p.First)
	}
	if p, _ = source(1000).List("", "", "", 10_000); len(p.Hosts) != overview.MostListed {
		t.Errorf("%d hosts on a page", len(p.Hosts))
	}
}

func TestGrid(t *testing.T) {
	if g := overview.GridOf(nil, 0, 0); g.Time != nil || len(g.Rows) != 0 {
		t.Errorf("%+v", g)
	}
	doc := &report.FleetMeasureDocument{Ended: noon}
	for i := range 300 * 2 {
		doc.Hosts = append(doc.Hosts, report.FleetMeasuredHost{FleetName: report.FleetName{ID: fmt.Sprint(i),
			Name: fmt.Sprintf("h%03d", i)}, Rack: fmt.Sprintf("r%03d", i/2)})
	}
	rtt := 0.5
	doc.Results = []report.FleetMeasured{{From: 0, To: 599, Bad: true, RTT: &rtt}, {From: 2, To: 3}}
	doc.Racks = []report.FleetRackPair{{A: "-/r000", B: "-/r299", Tests: 1, Bad: 1}, {A: "-/r001", B: "-/r001", Tests: 1}}
	g := overview.GridOf(doc, 0, 0)
	if len(g.Rows) != overview.MostRacks || g.RowsAll != 300 || len(g.Cells) != 1 || g.Cells[0] != [4]int{1, 1, 1, 0} ||
		g.Bad != 1 {
		t.Errorf("%d rows of %d, cells %v", len(g.Rows), g.RowsAll, g.Cells)
	}
	if g = overview.GridOf(doc, 0, 256); len(g.Cells) != 1 || g.Cells[0] != [4]int{0, 43, 1, 1} {
		t.Errorf("cells %v", g.Cells)
	}
	g = overview.Within(doc, "-/r000", "-/r299", 0, 0)
	if strings.Join(g.Rows, " ") != "h000 h001" || strings.Join(g.Columns, " ") != "h598 h599" || len(g.Cells) != 1 ||
		g.Cells[0] != [4]int{0, 1, 1, 1} || g.Values[0].RTT != &rtt {
		t.Errorf("%+v", g)
	}
	if g = overview.Within(doc, "nowhere", "-/r299", 9, 9); len(g.Rows) != 0 || len(g.Cells) != 0 {
		t.Errorf("%+v", g)
	}
	if v := overview.ValuesOf(doc); v["0"].RTT == nil || *v["599"].RTT != 0.5 || v["5"].RTT != nil {
		t.Errorf("%+v", v)
	}
}

// TestRollout: the bounds that a page draws are those that the machine judges by.
func TestRollout(t *testing.T) {
	var hosts []rollout.Host
	for i := range 100 {
		hosts = append(hosts, rollout.Host{ID: fmt.Sprint("h", i), Class: "c", Rack: fmt.Sprint(i % 10)})
	}
	p, err := rollout.NewPlan("r", 1, hosts, rollout.DefaultTiming())
	if err != nil {
		t.Fatal(err)
	}
	r := overview.Of(p, rollout.New(p))
	if len(r.Boundary) != len(rollout.StageNames) || r.Boundary[0].Benefit != nil || *r.Boundary[5].Benefit != 2.04 ||
		r.Boundary[1].Harm > -2.80 || r.Boundary[1].Harm < -2.82 || r.Changed[5] != 100 || r.States["pending"] != 100 {
		t.Errorf("%+v", r)
	}
}
