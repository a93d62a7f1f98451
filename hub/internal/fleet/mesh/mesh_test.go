package mesh_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/linerate/linerate/hub/internal/fleet/mesh"
)

// TestCircle: over all rounds each pair meets once, and in each round every host has one partner.
func TestCircle(t *testing.T) {
	for _, n := range []int{2, 3, 7, 10, 101, 300} {
		met := make(map[[2]int]int)
		rounds := n - 1 + n%2
		for r := range rounds {
			rests := 0
			for i := range n {
				p := mesh.Partner(i, r, n)
				if p < 0 {
					rests++
					continue
				}
				if p == i || p >= n || mesh.Partner(p, r, n) != i {
					t.Fatalf("n %d, round %d: %d meets %d, which meets %d", n, r, i, p, mesh.Partner(p, r, n))
				}
				if i < p {
					met[[2]int{i, p}]++
				}
			}
			if rests != n%2 {
				t.Fatalf("n %d, round %d: %d hosts rest", n, r, rests)
			}
		}
		if len(met) != n*(n-1)/2 {
			t.Errorf("n %d: %d pairs met", n, len(met))
		}
		for pair, times := range met {
			if times != 1 {
				t.Errorf("n %d: %v met %d times", n, pair, times)
			}
		}
	}
}

// inRacks returns n hosts in racks, on some sites.
func inRacks(n, perRack, sites int) []mesh.Host {
	hosts := make([]mesh.Host, n)
	for i := range hosts {
		rack := i / perRack
		hosts[i] = mesh.Host{ID: fmt.Sprintf("h%05d", i), Rack: fmt.Sprintf("r%04d", rack), Site: fmt.Sprint("s", rack%sites)}
	}
	return hosts
}

// TestSchedule holds the caps, and the figures of 1 000 hosts with ten partners each.
func TestSchedule(t *testing.T) {
	hosts := inRacks(1000, 40, 1)
	for _, c := range []struct{ uplink, most int }{{40, 14}, {8, 52}, {1, 425}} {
		caps := mesh.Caps{Uplink: c.uplink}
		p, err := mesh.Schedule(hosts, 10, caps, 1)
		if err != nil {
			t.Fatal(err)
		}
		partners, inter := make(map[int]int), 0
		for _, slot := range p.Slots {
			busy, uplink := make(map[int]bool), make(map[string]int)
			for _, test := range slot {
				if busy[test.A] || busy[test.B] {
					t.Fatalf("a host is in two tests: %+v", test)
				}
				busy[test.A], busy[test.B] = true, true
				partners[test.A]++
				partners[test.B]++
				if a, b := hosts[test.A].Rack, hosts[test.B].Rack; a != b {
					inter++
					uplink[a]++
					uplink[b]++
				}
			}
			for rack, n := range uplink {
				if n > c.uplink {
					t.Fatalf("%d tests on the uplink of %s", n, rack)
				}
			}
		}
		for i := range hosts {
			if partners[i] != 10 {
				t.Fatalf("host %d has %d partners", i, partners[i])
			}
		}
		bound := max(10, (2*inter+25*c.uplink-1)/(25*c.uplink))
		t.Logf("cap %d: %d slots, lower bound %d", c.uplink, len(p.Slots), bound)
		if len(p.Slots) > c.most {
			t.Errorf("cap %d: %d slots, want at most %d", c.uplink, len(p.Slots), c.most)
		}
	}
	if _, err := mesh.Schedule(hosts[:3], 5, mesh.DefaultCaps(), 1); !errors.Is(err, mesh.ErrPlan) {
		t.Errorf("five partners among three hosts: %v", err)
	}
}

// TestSiteCap: one load test at a time between two sites.
func TestSiteCap(t *testing.T) {
	hosts := inRacks(80, 10, 2)
	p, err := mesh.Schedule(hosts, 3, mesh.DefaultCaps(), 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range p.Slots {
		far := 0
		for _, test := range slot {
			if hosts[test.A].Site != hosts[test.B].Site {
				far++
			}
		}
		if far > 1 {
			t.Fatalf("%d tests between two sites at once", far)
		}
	}
}

// fault is one planted fault: what it is, and how likely a test across it is bad.
type fault struct {
	element  mesh.Element
	severity float64
}

// crossed reports whether a test meets the fault.
func (f fault) crossed(a, b mesh.Host, spine string) bool {
	inter := a.Rack != b.Rack
	switch f.element.Kind {
	case mesh.HostElement:
		return a.ID == f.element.Name || b.ID == f.element.Name
	case mesh.Rack:
		return a.Rack == f.element.Name || b.Rack == f.element.Name
	case mesh.Spine:
		return inter && spine == f.element.Name
	case mesh.Link:
		return inter && (a.Rack+" "+spine == f.element.Name || b.Rack+" "+spine == f.element.Name)
	}
	return false
}

// measure plays the tests of slots.
func measure(hosts []mesh.Host, slots [][]mesh.Test, f fault, spines int, rng *rand.Rand) []mesh.Result {
	var out []mesh.Result
	for _, slot := range slots {
		for _, test := range slot {
			r := mesh.Result{Test: test}
			if hosts[test.A].Rack != hosts[test.B].Rack {
				r.Spine = fmt.Sprint("spine-", rng.IntN(spines))
			}
			p := 0.02
			if f.crossed(hosts[test.A], hosts[test.B], r.Spine) {
				p = f.severity
			}
			r.Bad = rng.Float64() < p
			out = append(out, r)
		}
	}
	return out
}

// TestDisturbed: where a machine disturbs tests of all paths, by chance or all of some slots, no
// element is accused of it; a host that is bad besides is still found.
func TestDisturbed(t *testing.T) {
	const trials = 40
	hosts := inRacks(100, 10, 1)
	bad := mesh.Element{Kind: mesh.HostElement, Name: "h00037"}
	for _, noise := range []float64{0.1, 0.3} {
		for _, burst := range []bool{false, true} {
			innocent, found := 0, 0
			for trial := range trials {
				rng := rand.New(rand.NewPCG(uint64(trial), 11))
				play := func(slots [][]mesh.Test, f fault) (all []mesh.Result) {
					for _, slot := range slots {
						one := measure(hosts, [][]mesh.Test{slot}, f, 1, rng)
						all = append(all, one...)
						hit := rng.Float64() < noise
						for i := range one {
							all[len(all)-len(one)+i].Spine = "" // no fabric says which
							if hit && burst || !burst && rng.Float64() < noise {
								all[len(all)-len(one)+i].Bad = true
							}
						}
					}
					return all
				}
				plan, err := mesh.Schedule(hosts, 5, mesh.Caps{}, uint64(trial))
				if err != nil {
					t.Fatal(err)
				}
				whole := func(f fault) []mesh.Suspect {
					results := play(plan.Slots, f)
					again := mesh.Second(hosts, results, 16, 10, uint64(trial))
					return mesh.Culprits(hosts, append(results, play(mesh.Again(hosts, again, mesh.Caps{}), f)...), 8)
				}
				innocent += len(whole(fault{}))
				if named := whole(fault{bad, 0.95}); len(named) > 0 && named[0].Element == bad {
					found++
				}
			}
			t.Logf("noise %.0f %%, whole slots %v: %d innocent elements named; the bad host is found in %d of %d", 100*noise,
				burst, innocent, found, trials)
			if innocent > trials/20 {
				t.Errorf("noise %.0f %%, whole slots %v: %d innocent elements are named in %d trials", 100*noise, burst,
					innocent, trials)
			}
			if noise <= 0.1 && !burst && found < trials*9/10 {
				t.Errorf("noise %.0f %%, whole slots %v: the bad host is found in %d of %d trials", 100*noise, burst, found,
					trials)
			}
		}
	}
}

// TestPlantedFaults: five partners each and a second stage find each of twelve faults among 100
// hosts in 95 of 100 trials.
func TestPlantedFaults(t *testing.T) {
	const trials, spines = 100, 4
	hosts := inRacks(100, 10, 1)
	faults := []fault{
		{mesh.Element{Kind: mesh.HostElement, Name: "h00000"}, 0.9},
		{mesh.Element{Kind: mesh.HostElement, Name: "h00037"}, 0.7},
		{mesh.Element{Kind: mesh.HostElement, Name: "h00099"}, 0.98},
		{mesh.Element{Kind: mesh.HostElement, Name: "h00055"}, 0.6},
		{mesh.Element{Kind: mesh.Link, Name: "r0000 spine-0"}, 0.9},
		{mesh.Element{Kind: mesh.Link, Name: "r0004 spine-3"}, 0.7},
		{mesh.Element{Kind: mesh.Link, Name: "r0009 spine-1"}, 0.98}, {mesh.Element{Kind: mesh.Rack, Name: "r0002"}, 0.9},
		{mesh.Element{Kind: mesh.Rack, Name: "r0007"}, 0.5}, {mesh.Element{Kind: mesh.Rack, Name: "r0005"}, 0.98},
		{mesh.Element{Kind: mesh.Spine, Name: "spine-2"}, 0.9}, {mesh.Element{Kind: mesh.Spine, Name: "spine-1"}, 0.5},
	}
	plans := make([]*mesh.Plan, trials)
	for i := range plans {
		var err error
		if plans[i], err = mesh.Schedule(hosts, 5, mesh.Caps{Uplink: 2}, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	tests := 0
	for _, f := range faults {
		first, found, accused := 0, 0, 0
		for trial := range trials {
			rng := rand.New(rand.NewPCG(uint64(trial), 8))
			results := measure(hosts, plans[trial].Slots, f, spines, rng)
			if mesh.Vote(hosts, results)[0].Element == f.element {
				first++
			}
			again := mesh.Second(hosts, results, 16, 10, uint64(trial))
			tests += len(again)
			results = append(results, measure(hosts, mesh.Again(hosts, again, mesh.Caps{Uplink: 2}), f, spines, rng)...)
			named := mesh.Culprits(hosts, results, 3)
			if len(named) > 0 && named[0].Element == f.element {
				found++
			}
			accused += len(named)
		}
		t.Logf("%s %s, %.0f %%: first stage %d %%, with the second %d %%; %.2f named", f.element.Kind, f.element.Name,
			100*f.severity, first, found, float64(accused)/trials)
		if found < 95 {
			t.Errorf("%s %s is found in %d of %d trials", f.element.Kind, f.element.Name, found, trials)
		}
	}
	t.Logf("%d tests in the first stage, %d in the second", 250, tests/trials/len(faults))
	innocent := 0
	for trial := range trials {
		rng := rand.New(rand.NewPCG(uint64(trial), 9))
		results := measure(hosts, plans[trial].Slots, fault{}, spines, rng)
		results = append(results, measure(hosts, mesh.Again(hosts, mesh.Second(hosts, results, 16, 10, 1), mesh.Caps{}),
			fault{}, spines, rng)...)
		innocent += len(mesh.Culprits(hosts, results, 3))
	}
	if t.Logf("without a fault: %d named in %d trials", innocent, trials); innocent > 5 {
		t.Errorf("%d innocent elements are named in %d trials", innocent, trials)
	}
}
