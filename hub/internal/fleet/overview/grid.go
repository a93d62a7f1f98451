package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/report"
)

// Grid is a mesh as rows and columns: linerate.hub.fleet-mesh/1. Of racks, or, within a cell of
// racks, of hosts.
type Grid struct {
	Time      *time.Time `json:"time,omitempty"` // the end of the mesh; absent: none was measured
	Of        string     `json:"of"`             // racks or hosts
	Rows      []string   `json:"rows"`
	Columns   []string   `json:"columns"`
	RowFrom   int        `json:"row_from"` // of all rows, from 0
	ColFrom   int        `json:"column_from"`
	RowsAll   int        `json:"rows_total"`
	ColumnAll int        `json:"columns_total"`
	// Cells are [row, column, tests, bad tests], as numbers, for each two between which a test ran.
	Cells [][4]int `json:"cells"`
	// Values are those of the cells of hosts, in the same order.
	Values   []report.FleetMeasured `json:"values,omitempty"`
	Culprits []report.FleetCulprit  `json:"culprits"`
	Hosts    int                    `json:"hosts"`
	Tests    int                    `json:"tests_total"`
	Bad      int                    `json:"bad_tests_total"`
	Missing  int                    `json:"missing_hosts"` // in no test
}

// Place is the name of a rack over all sites.
func Place(site, rack string) string { return cmp.Or(site, "-") + "/" + cmp.Or(rack, "-") }

func empty(of string) *Grid {
	return &Grid{Of: of, Rows: []string{}, Columns: []string{}, Cells: [][4]int{}, Culprits: []report.FleetCulprit{}}
}

func gridOf(doc *report.FleetMeasureDocument, of string) *Grid {
	g := empty(of)
	if doc == nil {
		return g
	}
	ended := doc.Ended.UTC()
	g.Time, g.Hosts, g.Tests = &ended, len(doc.Hosts), len(doc.Results)
	g.Culprits = append(g.Culprits, doc.Culprits...)
	for i := range doc.Results {
		if doc.Results[i].Bad {
			g.Bad++
		}
	}
	for i := range doc.Hosts {
		if doc.Hosts[i].Error != "" {
			g.Missing++
		}
	}
	return g
}

// window returns a part of an axis.
func window(all []string, from, most int) ([]string, int) {
	from = min(max(from, 0), max(0, len(all)-1))
	return append([]string{}, all[from:min(len(all), from+most)]...), from
}

// GridOf rolls a mesh up to racks. rows and columns are the places where the axes begin.
func GridOf(doc *report.FleetMeasureDocument, rows, columns int) *Grid {
	g := gridOf(doc, "racks")
	if doc == nil {
		return g
	}
	var racks []string
	for i := range doc.Hosts {
		racks = append(racks, Place(doc.Hosts[i].Site, doc.Hosts[i].Rack))
	}
	slices.Sort(racks)
	racks = slices.Compact(racks)
	g.RowsAll, g.ColumnAll = len(racks), len(racks)
	g.Rows, g.RowFrom = window(racks, rows, MostRacks)
	g.Columns, g.ColFrom = window(racks, columns, MostRacks)
	row, column := index(g.Rows), index(g.Columns)
	for _, p := range doc.Racks {
		g.cell(row, column, p.A, p.B, p.Tests, p.Bad)
		if p.A != p.B {
			g.cell(row, column, p.B, p.A, p.Tests, p.Bad)
		}
	}
	return g
}

func index(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, n := range names {
		at[n] = i
	}
	return at
}

func (g *Grid) cell(row, column map[string]int, a, b string, tests, bad int) {
	i, ok := row[a]
	j, ok2 := column[b]
	if ok && ok2 {
		g.Cells = append(g.Cells, [4]int{i, j, tests, bad})
	}
}

// Within opens the cell of two racks: the hosts of one against those of the other.
func Within(doc *report.FleetMeasureDocument, a, b string, rows, columns int) *Grid {
	g := gridOf(doc, "hosts")
	if doc == nil {
		return g
	}
	of := func(rack string, from int) (names []string, at map[int]int, start, all int) {
		var hosts []int
		for i := range doc.Hosts {
			if Place(doc.Hosts[i].Site, doc.Hosts[i].Rack) == rack {
				hosts = append(hosts, i)
			}
		}
		sorting.StableFunc(hosts, func(x, y int) int { return strings.Compare(doc.Hosts[x].Name, doc.Hosts[y].Name) })
		start = min(max(from, 0), max(0, len(hosts)-1))
		names, at = []string{}, make(map[int]int)
		for k, h := range hosts[start:min(len(hosts), start+MostHosts)] {
			names = append(names, doc.Hosts[h].Name)
			at[h] = k
		}
		return names, at, start, len(hosts)
	}
	var row, column map[int]int
	g.Rows, row, g.RowFrom, g.RowsAll = of(a, rows)
	g.Columns, column, g.ColFrom, g.ColumnAll = of(b, columns)
	for i := range doc.Results {
		r := &doc.Results[i]
		bad := 0
		if r.Bad {
			bad = 1
		}
		for k, ends := range [][2]int{{r.From, r.To}, {r.To, r.From}} {
			x, ok := row[ends[0]]
			y, ok2 := column[ends[1]]
			if ok && ok2 && (k == 0 || r.From != r.To) {
				g.Cells = append(g.Cells, [4]int{x, y, 1, bad})
				g.Values = append(g.Values, *r)
			}
		}
	}
	return g
}

// ValuesOf returns what a mesh has measured of each host.
func ValuesOf(doc *report.FleetMeasureDocument) Values {
	out := make(Values)
	if doc == nil {
		return out
	}
	type lists struct{ rtt, loss, rate []float64 }
	of := make([]lists, len(doc.Hosts))
	for i := range doc.Results {
		r := &doc.Results[i]
		for _, h := range []int{r.From, r.To} {
			if h < 0 || h >= len(of) {
				continue
			}
			for _, p := range []struct {
				to *[]float64
				v  *float64
			}{{&of[h].rtt, r.RTT}, {&of[h].loss, r.Loss}, {&of[h].rate, r.Throughput}} {
				if p.v != nil {
					*p.to = append(*p.to, *p.v)
				}
			}
		}
	}
	middle := func(v []float64) *float64 {
		if len(v) == 0 {
			return nil
		}
		slices.Sort(v)
		m := stats.Quantile(v, 0.5)
		return &m
	}
	for i := range of {
		v := out[doc.Hosts[i].ID]
		v.RTT, v.Rate = middle(of[i].rtt), middle(of[i].rate)
		if len(of[i].loss) > 0 {
			m := stats.Mean(of[i].loss)
			v.Loss = &m
		}
		out[doc.Hosts[i].ID] = v
	}
	return out
}
