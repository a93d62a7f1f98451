package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/profile"
)

// gprofLeast is the share of the samples below which a function has no entry in the call graph.
const gprofLeast = 0.001

// Gprof writes the two tables of GNU gprof. Calls are samples: how often a function was seen below
// its caller.
func Gprof(w io.Writer, p *profile.Profile) error {
	b := bufio.NewWriter(w)
	weight, unit := weightOf(p)
	seconds := weight / 1e9
	column := "seconds"
	if unit != "nanoseconds" {
		seconds, column = 1, "samples"
	}
	fmt.Fprintf(b, "Flat profile: %s, %d busy samples\n\n", p.Event, p.Busy)
	fmt.Fprintf(b, "  %%   cumulative   self              self     total\n")
	fmt.Fprintf(b, " time   %-8s  %-8s   samples  ns/packet ns/packet name\n", column, column)
	cumulative := 0.0
	for _, f := range p.Functions {
		if f.Samples == 0 {
			continue
		}
		self := float64(f.Samples) * seconds
		cumulative += self
		per, total := "", ""
		if f.PerPacket != nil {
			per = fmt.Sprintf("%.1f", *f.PerPacket)
			total = fmt.Sprintf("%.1f", *f.PerPacket*float64(f.Inclusive)/float64(f.Samples))
		}
		fmt.Fprintf(b, "%5.1f %10.2f %8.2f %9d %9s %9s  %s [%s]\n", 100*f.Share, cumulative, self, f.Samples, per, total,
			f.Name, f.Stage)
	}
	fmt.Fprintf(b, "\nCall graph: functions with at least %.1f %% of the samples\n", 100*gprofLeast)
	fmt.Fprintf(b, "\nindex %% time     self  children   samples     name\n")
	g := graphOf(p)
	order := slices.DeleteFunc(g.order(p), func(f int) bool {
		return float64(p.Functions[f].Inclusive) < gprofLeast*float64(p.Busy)
	})
	index := make(map[int]int)
	for i, f := range order {
		index[f] = i + 1
	}
	name := func(f int) string {
		if n := index[f]; n > 0 {
			return fmt.Sprintf("%s [%d]", p.Functions[f].Name, n)
		}
		return p.Functions[f].Name
	}
	for i, f := range order {
		row := p.Functions[f]
		for _, e := range g.callers[f] {
			fmt.Fprintf(b, "                %8.2f %8.2f %7d/%-7d     %s\n", float64(e.self)*seconds,
				float64(e.samples-e.self)*seconds, e.samples, row.Inclusive, name(e.function))
		}
		fmt.Fprintf(b, "%-6s %6.1f   %8.2f %8.2f %7d         %s\n", fmt.Sprintf("[%d]", i+1),
			100*float64(row.Inclusive)/float64(max(1, p.Busy)), float64(row.Samples)*seconds,
			float64(row.Inclusive-row.Samples)*seconds, row.Inclusive, name(f))
		for _, e := range g.callees[f] {
			fmt.Fprintf(b, "                %8.2f %8.2f %7d/%-7d     %s\n", float64(e.self)*seconds,
				float64(e.samples-e.self)*seconds, e.samples, p.Functions[e.function].Inclusive, name(e.function))
		}
		fmt.Fprintf(b, "-----------------------------------------------\n")
	}
	return flushed(b, "gprof tables")
}

// edge is a caller or a callee.
type edge struct {
	function      int
	samples, self uint64 // seen through the edge; of these in the callee itself
}

type graph struct{ callers, callees map[int][]edge }

// graphOf counts each pair of caller and callee once in a stack, as recursion would count it
// several times.
func graphOf(p *profile.Profile) graph {
	type pair struct{ from, to int }
	counts := make(map[pair]*edge)
	for _, s := range p.Stacks {
		seen := make(map[pair]bool)
		for i := range len(s.Functions) - 1 {
			e := pair{s.Functions[i+1], s.Functions[i]}
			if seen[e] {
				continue
			}
			seen[e] = true
			if counts[e] == nil {
				counts[e] = &edge{}
			}
			counts[e].samples += s.Samples
			if i == 0 {
				counts[e].self += s.Samples
			}
		}
	}
	g := graph{make(map[int][]edge), make(map[int][]edge)}
	for e, n := range counts {
		g.callers[e.to] = append(g.callers[e.to], edge{e.from, n.samples, n.self})
		g.callees[e.from] = append(g.callees[e.from], edge{e.to, n.samples, n.self})
	}
	for _, edges := range []map[int][]edge{g.callers, g.callees} {
		for _, list := range edges {
			sorting.Func(list, func(x, y edge) int {
				return cmp.Or(cmp.Compare(y.samples, x.samples), cmp.Compare(x.function, y.function))
			})
		}
	}
	return g
}

// order returns the functions by their inclusive samples.
func (graph) order(p *profile.Profile) []int {
	all := make([]int, len(p.Functions))
	for i := range all {
		all[i] = i
	}
	sorting.StableFunc(all, func(x, y int) int {
		return cmp.Compare(p.Functions[y].Inclusive, p.Functions[x].Inclusive)
	})
	return all
}
