package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Column is a column of the table of interfaces.
type Column struct {
	Name  string // argument of --sort
	Title string // above the column; empty: it is not shown
	Help  string

	width int
	value func(*Interface) float64 // nil: the name
	cell  func(*glyphs, *Interface) Span
}

// worst is the look of a number that needs attention.
const worst = Bold | Red

// Columns returns the columns in the order of the screen. A narrow screen keeps name, in, out and
// drops.
func Columns() []Column {
	number := func(value func(*Interface) float64) func(*glyphs, *Interface) Span {
		return func(_ *glyphs, i *Interface) Span { return figure(value(i)) }
	}
	bad := func(value func(*Interface) float64) func(*glyphs, *Interface) Span {
		return func(g *glyphs, i *Interface) Span { return alarm(g, value(i)) }
	}
	in := func(i *Interface) float64 { return i.Receive }
	out := func(i *Interface) float64 { return i.Transmit }
	packetsIn := func(i *Interface) float64 { return i.ReceivePackets }
	packetsOut := func(i *Interface) float64 { return i.TransmitPackets }
	speed := func(i *Interface) float64 { return valueOr(i.Speed, 0) }
	return []Column{
		{Name: "name", Title: "INTERFACE", Help: "the interface; > marks the one that enter opens", width: 9},
		{Name: "in", Title: "IN b/s", Help: "received, bits per second", width: 8, value: in, cell: number(in)},
		{Name: "out", Title: "OUT b/s", Help: "sent, bits per second", width: 8, value: out, cell: number(out)},
		{Name: "link", Title: "LINK",
			Help: "share of the link's speed, in the busier direction; ! from 95 %; down: no carrier", width: 6,
			value: func(i *Interface) float64 { return valueOr(i.Share, -1) }, cell: shareOf},
		{Name: "packets-in", Title: "IN p/s", Help: "packets received per second", width: 7, value: packetsIn,
			cell: number(packetsIn)},
		{Name: "packets-out", Title: "OUT p/s", Help: "packets sent per second", width: 8, value: packetsOut,
			cell: number(packetsOut)},
		{Name: "drops", Title: "DROP/s",
			Help: "packets lost per second at any place of the interface; ! when there are any", width: 7,
			value: dropRate, cell: bad(dropRate)},
		{Name: "errors", Title: "ERR/s", Help: "broken packets per second", width: 6, value: errorRate,
			cell: bad(errorRate)},
		{Name: "speed", Title: "SPEED", Help: "negotiated speed of the link, bits per second", width: 6, value: speed,
			cell: func(g *glyphs, i *Interface) Span {
				if i.Speed == nil {
					return Span{g.absent, Dim}
				}
				return Span{short(*i.Speed), 0}
			}},
		{Name: "traffic", Help: "received and sent together; not shown as a column",
			value: func(i *Interface) float64 { return i.Receive + i.Transmit }},
	}
}

// columnNames returns the arguments of --sort.
func columnNames() []string {
	var names []string
	for _, c := range Columns() {
		names = append(names, c.Name)
	}
	return names
}

func valueOr(x *float64, otherwise float64) float64 {
	if x == nil {
		return otherwise
	}
	return *x
}

// figure shows a quantity; zero is dim.
func figure(x float64) Span {
	if !(x > 0) {
		return Span{short(x), Dim}
	}
	return Span{short(x), 0}
}

// alarm shows a quantity that should be zero.
func alarm(g *glyphs, x float64) Span {
	if !(x > 0) {
		return Span{short(x), Dim}
	}
	return Span{g.alarm + short(x), worst}
}

// nearlyFull is the share of a link from which it is marked.
const nearlyFull = 0.95

func shareOf(g *glyphs, i *Interface) Span {
	switch {
	case !i.Up:
		return Span{"down", Dim}
	case i.Share == nil:
		return Span{g.absent, Dim}
	case *i.Share >= nearlyFull:
		return Span{g.alarm + percent(*i.Share), Bold | Yellow}
	case *i.Share <= 0:
		return Span{percent(0), Dim}
	}
	return Span{percent(*i.Share), 0}
}

// unwanted is the place of packets that no program on the host waited for.
const unwanted = "unwanted"

// dropRate returns how many packets the interface lost per second.
func dropRate(i *Interface) float64 {
	sum := 0.0
	for _, d := range i.Drops {
		if d.Place != unwanted {
			sum += d.Rate
		}
	}
	return sum
}

func errorRate(i *Interface) float64 {
	sum := 0.0
	for _, d := range i.Errors {
		sum += d.Rate
	}
	return sum
}

// arrange returns the interfaces that match a filter, sorted: numbers descending, names ascending,
// or reversed.
func arrange(all []Interface, filter, by string, reversed, busyOnly bool) []Interface {
	var kept []Interface
	for _, i := range all {
		if matches(&i, filter) && (!busyOnly || i.ReceivePackets+i.TransmitPackets+dropRate(&i)+errorRate(&i) > 0) {
			kept = append(kept, i)
		}
	}
	columns := Columns()
	at := slices.IndexFunc(columns, func(c Column) bool { return c.Name == by })
	sorting.StableFunc(kept, func(a, b Interface) int {
		order := natural(a.Name, b.Name)
		if at >= 0 && columns[at].value != nil {
			order = cmp.Or(cmp.Compare(columns[at].value(&b), columns[at].value(&a)), order)
		}
		if reversed {
			return -order
		}
		return order
	})
	return kept
}

// matches reports whether the name, driver, kind or parent of an interface contains a text, without
// regard to case.
func matches(i *Interface, text string) bool {
	text = strings.ToLower(text)
	for _, s := range []string{i.Name, i.Driver, i.Kind, i.Parent} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}
