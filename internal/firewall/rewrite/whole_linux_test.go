package rewrite_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// row is the outcome of the filter sets of one seed, size and program.
type row struct {
	sets, changed          int
	cells, packets         int
	sent, counters, moved  int
	before, after, factors []float64
}

// outcomes are the rows of the long test by their names.
type outcomes struct {
	sync.Mutex
	rows map[string]*row
}

// TestGeneratedWhole: filter sets for nftables and for iptables are equal after the rewrite by
// cells, by traced packets and in the kernel: 12 of 50 and 100 rules, or 408 of 50 to 10 000 for
// make soak, which prints the table of docs/evidence/firewall.md.
func TestGeneratedWhole(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers, testenv.Long)
	sizes := func(n int) int {
		if n%17 == 16 {
			return 10_000
		}
		return []int{50, 100, 200, 500, 1000, 2000}[n%6]
	}
	xtables := []ruleset.Program{ruleset.IPTablesLegacy, ruleset.IPTablesNFT}
	rounds := 2
	if testenv.Provided(testenv.Soak) {
		rounds = 68
	}
	out := outcomes{rows: make(map[string]*row)}
	work := make(chan func())
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	for n := range rounds {
		size := sizes(n)
		for _, s := range seeds {
			work <- func() { out.whole(t, s, size, generated(s, uint64(n), size)) }
			work <- func() { out.whole(t, s, size, generatedXtables(s, uint64(n), size, xtables[n%2])) }
		}
	}
	close(work)
	workers.Wait()
	var names []string
	for name := range out.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []float64
	for _, name := range names {
		r := out.rows[name]
		t.Logf("%s: %d sets, %d shorter; rules per packet %.1f before, %.1f after, divided by %.1f (medians); "+
			"%d cells, %d packets traced, %d in the kernel, %d counters, %d of them moved", name, r.sets, r.changed,
			median(r.before), median(r.after), median(r.factors), r.cells, r.packets, r.sent, r.counters, r.moved)
		all = append(all, r.factors...)
	}
	sets := 2 * len(seeds) * rounds
	if len(all) < sets/2 {
		t.Fatalf("of %d filter sets only %d became shorter", sets, len(all))
	}
	t.Logf("all: %d shorter, rules per packet divided by %.1f in the median, from %.1f to %.1f", len(all), median(all),
		slices.Min(all), slices.Max(all))
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func (o *outcomes) whole(t *testing.T, s seed, size int, before *ruleset.Ruleset) {
	limits := equal.Usual()
	limits.Steps = 1_000_000
	got := rewrite.Optimise(before, limits)
	name := fmt.Sprintf("%s %s %5d", before.Program, s.name, size)
	if got.Proof.Answer != equal.Equal || len(got.Kept) > 0 {
		t.Errorf("%s: %s %s, kept %v", name, got.Proof.Answer, got.Proof.What, got.Kept)
		return
	}
	var k equal.KernelResult
	if len(got.Changed) > 0 {
		var err error
		k, err = equal.Kernel(t.Context(), before, got.Rules, forwarded(before, 2000), 1)
		if err != nil || k.Different != "" {
			t.Errorf("%s: %s %v", name, k.Different, err)
		}
		t.Logf("%s: %.1f rules per packet before, %.1f after; %d cells, %d packets traced, %d in the kernel, %d counters",
			name, got.Before, got.After, got.Proof.Cells, got.Proof.Packets, k.Packets, k.Counters)
	}
	o.Lock()
	defer o.Unlock()
	r := o.rows[name]
	if r == nil {
		r = new(row)
		o.rows[name] = r
	}
	r.sets++
	r.cells, r.packets = r.cells+got.Proof.Cells, r.packets+got.Proof.Packets
	if len(got.Changed) > 0 {
		r.changed++
		r.before, r.after = append(r.before, got.Before), append(r.after, got.After)
		r.factors = append(r.factors, got.Before/got.After)
	}
	r.sent, r.counters, r.moved = r.sent+k.Packets, r.counters+k.Counters, r.moved+k.Moved
}
