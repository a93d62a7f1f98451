package browsertest

import (
	"testing"
)

// TestViews opens every view in light and dark, wide and on a phone: no console error, nothing
// wider than the screen, and a screenshot of each.
func TestViews(t *testing.T) {
	f := &fake{interfaces: 12, crowded: true}
	tb := open(t, f)
	marked := "a=2026-11-19T16:30:00Z/2026-11-19T18:00:00Z&b=2026-11-19T19:00:00Z/2026-11-19T20:30:00Z"
	views := []struct{ name, address, ready string }{
		{"overview", "#/", `document.querySelectorAll(".interface-row").length === 13 && ` +
			`document.querySelector(".spark").dataset.at && document.querySelector(".col-in").textContent !== ` +
			`"…" && document.querySelector(".finding")`},
		{"interface", "#/interface/alpha/eth0?" + marked, `document.querySelector(".mark")`},
		{"compare", "#/compare/alpha/eth0?" + marked, `document.querySelector(".compared .moved")`},
		{"changes", "#/changes", `document.querySelector(".from-to .to")`},
		{"findings", "#/findings",
			`document.querySelector("article.finding") && document.querySelector(".event-list button")`},
		{"measurements", "#/measurements?pair=[%22alpha%22,%22beta%22]",
			`document.querySelector(".matrix .cell") && document.querySelector(".graph")`},
		{"switches", "#/switches", `document.querySelectorAll(".interface-row").length === 2`},
		{"port", "#/port/core-1/Gi0%2F1", `document.querySelector("#graph-port-losses[data-state=drawn]")`},
		{"event", "#/interface/alpha/eth0?event=run-1", `document.querySelector("#event[open] .terms table")`},
	}
	looks := []struct {
		name          string
		width, height int64
		dark          bool
	}{{"light", 1440, 1000, false}, {"dark", 1440, 1000, true}, {"phone", 360, 780, false}}
	for _, v := range views {
		tb.size(1440, 1000)
		tb.dark(false)
		tb.visit(v.address)
		tb.wait(v.ready)
		if get[bool](tb, `!!document.querySelector(".graph")`) {
			tb.drawn()
			// The page asks for the events of a graph apart from its values.
			tb.wait(`[...document.querySelectorAll(".graph[data-state=drawn]")].every((g) => g.querySelector(".mark"))`)
		}
		// The window changes under the loaded page, as it does when a screen is turned or the theme
		// changes.
		for _, look := range looks {
			tb.size(look.width, look.height)
			tb.dark(look.dark)
			get[bool](tb, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			if stray := get[[]string](tb, astray); len(stray) > 0 {
				t.Errorf("%s, %s: markers are not above their plot, or lie on each other: %v", v.name, look.name, stray)
			}
			if wide := get[[]string](tb, overflow); len(wide) > 0 {
				t.Errorf("%s, %s: wider than the screen: %v", v.name, look.name, wide)
			}
			tb.picture(v.name + "-" + look.name)
		}
	}
}

// TestPhone checks a phone with everything that can be wrong: notices take little of it and unfold,
// nothing is wider than the screen, and a marker at the edge of a plot keeps its text on one line.
func TestPhone(t *testing.T) {
	tb := open(t, &fake{interfaces: 12, crowded: true, pinged: true, noted: true, disk: "full", silent: true, long: true})
	for _, width := range []int64{320, 360, 400, 430} {
		tb.size(width, 800)
		for _, address := range []string{"#/", "#/interface/alpha/enp193s0f0np1.4?range=6h", "#/changes", "#/findings"} {
			tb.visit(address)
			tb.wait(`document.querySelectorAll(".notice").length >= 6`)
			if get[bool](tb, `!!document.querySelector(".graph")`) {
				tb.drawn()
				tb.wait(`document.querySelector(".mark.many")`)
			}
			if high := get[float64](tb, `document.getElementById("notices").getBoundingClientRect().height`); high > 100 {
				t.Errorf("%s, %d px: notices take %.0f of 800 px", address, width, high)
			}
			if broken := get[[]string](tb, brokenMarks); len(broken) > 0 {
				t.Errorf("%s, %d px: markers of several lines: %v", address, width, broken)
			}
			for _, unfolded := range []bool{false, true} {
				if unfolded {
					get[bool](tb, `document.querySelector(".notices-fold").click() ?? true`)
					tb.wait(`document.body.innerText.includes("no permission")`)
				}
				if wide := get[[]string](tb, overflow); len(wide) > 0 {
					t.Errorf("%s, %d px, unfolded %v: wider than the screen: %v", address, width, unfolded, wide)
				}
			}
		}
	}
}

// brokenMarks names markers whose text has more than one line.
const brokenMarks = `[...document.querySelectorAll(".mark")].filter((m) => { const r = document.createRange(); ` +
	`r.selectNodeContents(m); return new Set([...r.getClientRects()].map((c) => Math.round(c.top))).size > 1 || ` +
	`m.scrollHeight > 22; }).map((m) => m.textContent)`

// TestWide checks that a wide screen has graphs side by side.
func TestWide(t *testing.T) {
	tb := open(t, &fake{interfaces: 2})
	tb.size(2560, 1400)
	tb.visit(eth0)
	tb.drawn()
	tb.wait(`document.querySelector("#graph-drops .mark")`)
	columns := get[int](tb, `new Set([...document.querySelectorAll(".graph")].map((g) => `+
		`Math.round(g.getBoundingClientRect().left))).size`)
	used := get[float64](tb, `document.querySelector(".graphs").getBoundingClientRect().width / innerWidth`)
	if columns != 2 || used < 0.8 {
		t.Errorf("%d columns of graphs over %.0f %% of the width", columns, 100*used)
	}
	if wide := get[[]string](tb, overflow); len(wide) > 0 {
		t.Errorf("wider than the screen: %v", wide)
	}
	tb.picture("wide")
}

// overflow names the elements that make the page scroll sideways.
const overflow = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body ` +
	`*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, ` +
	`5).map((e) => e.tagName + "." + e.className + " " + ` +
	`Math.round(e.getBoundingClientRect().right)).concat("scroll width " + document.documentElement.scrollWidth)`

// astray names markers that are beside their plot or overlap.
const astray = `[...document.querySelectorAll(".graph[data-state=drawn]")].flatMap((g) => {
	const plot = g.querySelector(".u-over").getBoundingClientRect(), boxes = ` +
	`[...g.querySelectorAll(".mark")].map((m) => [m.textContent, m.getBoundingClientRect()]);
	return boxes.filter(([, r], i) => r.left + r.width / 2 < plot.left - 1 || r.left + r.width / 2 > plot.right + 1 || ` +
	`(i > 0 && r.left < boxes[i - 1][1].right - 1)).map(([text, r]) => g.id + " " + text + " at " + Math.round(r.left))
		.concat(boxes.length === 0 ? [g.id + " has no markers"] : []);
})`
