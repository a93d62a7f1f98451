package page

import (
	"testing"
)

// TestViews looks at every view in light and in dark, wide and on a phone: nothing is wrong in the console, nothing is wider than the screen, and a picture is kept.
func TestViews(t *testing.T) {
	f := &fake{interfaces: 12, crowded: true}
	tb := open(t, f)
	marked := "a=2026-11-19T16:30:00Z/2026-11-19T18:00:00Z&b=2026-11-19T19:00:00Z/2026-11-19T20:30:00Z"
	views := []struct{ name, address, ready string }{
		{"overview", "#/", `document.querySelectorAll(".interface-row").length === 13 && document.querySelector(".spark").dataset.at && document.querySelector(".col-in").textContent !== "…" && document.querySelector(".finding")`},
		{"interface", "#/interface/alpha/eth0?" + marked, `document.querySelector(".mark")`},
		{"compare", "#/compare/alpha/eth0?" + marked, `document.querySelector(".compared .moved")`},
		{"changes", "#/changes", `document.querySelector(".from-to .to")`},
		{"findings", "#/findings", `document.querySelector("article.finding") && document.querySelector(".event-list button")`},
		{"measurements", "#/measurements?pair=[%22alpha%22,%22beta%22]", `document.querySelector(".matrix .cell") && document.querySelector(".graph")`},
		{"event", "#/interface/alpha/eth0?event=run-1", `document.querySelector("#event[open] .terms table")`},
	}
	for _, v := range views {
		for _, look := range []struct {
			name          string
			width, height int64
			dark          bool
		}{{"light", 1440, 1000, false}, {"dark", 1440, 1000, true}, {"phone", 360, 780, false}} {
			t.Run(v.name+"/"+look.name, func(t *testing.T) {
				tb := &tab{T: t, ctx: tb.ctx, base: tb.base}
				tb.size(look.width, look.height)
				tb.dark(look.dark)
				tb.visit(v.address)
				tb.wait(v.ready)
				if get[bool](tb, `!!document.querySelector(".graph")`) {
					tb.drawn()
				}
				if wide := get[[]string](tb, overflow); len(wide) > 0 {
					t.Errorf("wider than the screen: %v", wide)
				}
				tb.picture(v.name + "-" + look.name)
			})
		}
	}
}

// overflow names what makes the page scroll sideways.
const overflow = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, 5).map((e) => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right)).concat("scroll width " + document.documentElement.scrollWidth)`
