package browsertest

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestStates puts the hub into every state, and checks what the page says.
func TestStates(t *testing.T) {
	testenv.Need(t, testenv.Browser)
	for _, c := range []struct {
		name    string
		hub     *fake
		address string
		want    []string // in the text of the page
	}{
		{"empty", &fake{empty: true}, "#/", []string{"No interface has been sampled yet", "No changes yet",
			"No findings"}},
		{"empty changes", &fake{empty: true}, "#/changes", []string{"linerate set", "appear here"}},
		{"empty measurements", &fake{empty: true}, "#/measurements",
			[]string{"No scheduled measurements yet", "run linerate serve."}},
		{"empty switches", &fake{empty: true}, "#/switches", []string{"No switch is configured"}},
		{"empty interface", &fake{empty: true}, eth0,
			[]string{"No traffic was recorded in this time", "The hub has no such interface now",
				"Nothing happened in this time"}},
		{"empty comparison", &fake{interfaces: 1}, "#/compare/alpha/eth0", []string{"Mark two intervals"}},
		{"loading", &fake{interfaces: 2, loading: true}, "#/",
			[]string{"still loading its history", "nothing is lost"}},
		{"disk full", &fake{interfaces: 2, disk: "full"}, "#/",
			[]string{"The disk is full since Fri 20 Nov 15:27:00", "last 3 min are kept in memory", "Free space"}},
		{"disk failing", &fake{interfaces: 2, disk: "failing"}, "#/", []string{"The disk fails"}},
		{"silent", &fake{interfaces: 2, silent: true}, "#/", []string{"alpha is silent", "3.3 min old"}},
		{"gap", &fake{interfaces: 2}, "#/",
			[]string{"gap in the history", "Nothing was recorded from Thu 19 Nov 04:30:00 to " +
				"Thu 19 Nov 06:30:00 (2 h): the hub did not run"}},
		{"not logged in", &fake{interfaces: 2, status: 401}, "#/", []string{"not logged in", "Reload the page"}},
		{"refused", &fake{interfaces: 2, status: 403}, "#/", []string{"refuses this browser"}},
		{"busy", &fake{interfaces: 2, status: 503}, eth0, []string{"asks the page to wait", "The page retries"}},
		{"failing", &fake{interfaces: 2, status: 500}, eth0, []string{"The hub failed: as the test wants"}},
		{"no such view", &fake{interfaces: 2}, "#/nowhere/%E0%A4%A", []string{"alpha", "12", "Overview"}},
		{"no such event", &fake{interfaces: 2}, "#/?event=never-was",
			[]string{"The hub has no event with this id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := open(t, c.hub)
			if c.hub.status != 0 {
				tb.expect("Failed to load resource")
			}
			tb.size(1280, 900)
			tb.dark(false)
			tb.visit(c.address)
			for _, want := range c.want {
				if c.name == "no such view" && want == "12" {
					continue
				}
				tb.wait(`document.body.innerText.includes(` + quoted(want) + `)`)
			}
			if wide := get[[]string](tb, overflow); len(wide) > 0 {
				t.Errorf("wider than the screen: %v", wide)
			}
			tb.picture("state-" + strings.ReplaceAll(c.name, " ", "-"))
		})
	}
}

func quoted(s string) string {
	return "\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + "\""
}

// TestFresh checks that a hub shows the figures of its first minute, over a time that they fill,
// and at the end of a longer one.
func TestFresh(t *testing.T) {
	tb := open(t, &fake{interfaces: 2, fresh: true})
	tb.size(1280, 900)
	tb.visit(eth0)
	tb.wait(`document.querySelector("#graph-throughput[data-state=drawn]")`)
	tb.wait(`document.querySelector(".ranges button[aria-pressed=true]")?.textContent === "1h"`)
	tb.picture("state-fresh")
	tb.visit(eth0 + "?range=48h")
	tb.wait(`document.querySelector("#graph-throughput[data-state=drawn] .mrtg tbody")?.innerText.includes("Mb/s")`)
	tb.visit("#/")
	tb.wait(`document.querySelector(".spark")?.getAttribute("aria-label").startsWith("Traffic in 1 h: means of at most")`)
}

// TestRecovery stops the hub and starts it again: the drawn page stays, and the notice disappears
// with the first answer.
func TestRecovery(t *testing.T) {
	f := &fake{interfaces: 2}
	tb := open(t, f)
	tb.expect("Failed to load resource")
	tb.size(1280, 900)
	tb.visit("#/interface/alpha/eth0?range=1h")
	tb.drawn()
	f.fail(503)
	tb.wait(`document.body.innerText.includes("asks the page to wait")`)
	if n := get[int](tb, `document.querySelectorAll(".graph[data-state=drawn]").length`); n < 3 {
		t.Errorf("%d graphs are left while the hub is away", n)
	}
	f.fail(0)
	tb.wait(`!document.body.innerText.includes("asks the page to wait")`)
}

// TestHostile uses names that break a page which takes names for markup, for queries or for
// addresses.
func TestHostile(t *testing.T) {
	f := &fake{interfaces: 3, hostile: true}
	tb := open(t, f)
	tb.size(1280, 900)
	inert := func() {
		t.Helper()
		if get[bool](tb, `window.owned !== undefined || document.querySelector("main img, dialog img, main `+
			`script, #tip img") !== null`) {
			t.Error("a name became markup")
		}
	}
	tb.visit("#/")
	tb.wait(`[...document.querySelectorAll(".interface-row a")].some((a) => a.textContent.includes("onerror")) ` +
		`&& document.querySelector(".finding h3")`)
	inert()
	tb.picture("hostile-overview")
	if get[bool](tb, `document.body.innerText.includes("\u202e")`) {
		t.Error("a character that turns the direction of text is shown")
	}
	// The list may be drawn anew at this moment.
	tb.wait(`[...document.querySelectorAll(".interface-row a")].filter((a) => a.textContent.includes("onerror")).` +
		`slice(0, 1).map((a) => a.click()).length === 1`)
	tb.wait(`document.querySelector("main").dataset.view === "interface"`)
	tb.drawn()
	tb.wait(`document.querySelector(".events .event-row") && ` +
		`document.querySelector("#graph-throughput").dataset.state === "drawn"`)
	inert()
	get[bool](tb, `document.querySelector("#graph-throughput .mark").focus() ?? true`)
	tb.wait(`!document.getElementById("tip").hidden`)
	inert()
	tb.visit("#/interface/alpha/eth1?event=change-2")
	tb.wait(`document.querySelector("#event[open] #raw pre")`)
	inert()
	tb.visit("#/changes")
	tb.wait(`document.querySelector(".from-to .to")`)
	inert()
	tb.visit("#/findings")
	tb.wait(`document.querySelector("article.finding")`)
	inert()
	// The hub got the name unchanged, in a valid query.
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wrong) != 0 {
		t.Errorf("not PromQL: %q", f.wrong)
	}
}

// TestAccessible checks every view for readers without sight or without a mouse.
func TestAccessible(t *testing.T) {
	tb := open(t, &fake{interfaces: 6, crowded: true})
	tb.size(1280, 900)
	for _, view := range []struct{ address, ready string }{
		{"#/", `document.querySelector(".interface-row") && document.querySelector(".finding") && ` +
			`document.querySelector(".event-row")`},
		{eth0, `document.querySelector("#graph-rtt[data-state=drawn]") && document.querySelector(".events ` +
			`.event-row")`},
		{"#/compare/alpha/eth0?a=2026-11-19T16:30:00Z/2026-11-19T18:00:00Z&b=2026-11-19T19:00:00Z/2026-11-19T20:30:00Z",
			`document.querySelector(".compared")`},
		{"#/changes", `document.querySelector(".change .to")`},
		{"#/findings", `document.querySelector("article.finding")`},
		{"#/measurements?pair=[%22alpha%22,%22beta%22]",
			`document.querySelector(".matrix") && document.querySelector(".graph")`},
		{"#/switches", `document.querySelector(".interface-row")`},
		{eth0 + "?event=run-1", `document.querySelector("#event[open] table")`},
	} {
		tb.visit(view.address)
		tb.wait(view.ready)
		for _, problem := range get[[]string](tb, examine) {
			t.Errorf("%s: %s", view.address, problem)
		}
	}
}

// examine checks every visible element: names, roles, headings, and the contrast of its text with
// its background.
const examine = `(() => {
	const out = [];
	// A colour on its way to another one is no colour of the page.
	document.getAnimations().forEach(a => a.finish());
	const shown = (e) => e.checkVisibility() && e.getClientRects().length > 0;
	const said = (e) => e.tagName + (e.className && typeof e.className === "string" ? "." + e.className : "") + ` +
	`" " + (e.textContent ?? "").trim().slice(0, 40);
	const named = (e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || ` +
	`(e.labels && e.labels.length) || e.textContent.trim();
	for (const e of document.querySelectorAll("button, a[href], input, select, [role=img], canvas, ` +
	`summary, dialog[open], nav, meter")) {
		if (!shown(e) || e.closest(".plot canvas, .plot .uplot")) continue;
		if (e.tagName === "CANVAS" && e.closest("[role=img]") !== e && e.closest("[role=img]")) continue;
		if (!named(e)) out.push("has no name: " + said(e));
	}
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of new Set(ids)) if (ids.filter((x) => x === id).length > 1) out.push("two elements have the id " + id);
	for (const e of document.querySelectorAll("[aria-labelledby], [aria-controls]")) ` +
	`for (const a of ["aria-labelledby", "aria-controls"]) ` +
	`for (const id of (e.getAttribute(a) ?? "").split(" ").filter(Boolean)) ` +
	`if (!document.getElementById(id)) out.push(a + " leads nowhere: " + id);
	if (document.querySelectorAll("h1").length !== 1) out.push("has " + document.querySelectorAll("h1").length + ` +
	`" first headings");
	if (document.querySelectorAll("main").length !== 1) out.push("has not one main part");
	for (const t of document.querySelectorAll("table")) ` +
	`if (!t.querySelector("th[scope]")) out.push("a table without heads: " + said(t));
	for (const b of document.querySelectorAll("button")) if (shown(b) && !b.closest(".markers")) { ` +
	`const r = b.getBoundingClientRect(); if (r.height < 23.5 || r.width < 20) ` +
	`if (!b.classList.contains("as-link")) out.push("is too small to hit, " + ` +
	`Math.round(r.width) + "x" + Math.round(r.height) + ": " + said(b)); }
	// Contrast: the colour of the text on the first ground behind it that is not transparent. ` +
	`Channels by a canvas, which reads every form of colour.
	const ctx = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", ` +
	`{willReadFrequently: true});
	const parse = (c) => { ctx.clearRect(0, 0, 1, 1); ctx.fillStyle = c; ctx.fillRect(0, 0, 1, 1); ` +
	`return ctx.getImageData(0, 0, 1, 1).data; };
	const light = (c) => { const [r, g, b] = [c[0], c[1], c[2]].map((v) => { v /= 255; ` +
	`return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const seen = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!shown(e) || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || ` +
	`e.closest("[disabled], .hidden-text, .skip, svg")) continue;
		const style = getComputedStyle(e);
		let ground = [255, 255, 255, 255];
		for (let p = e; p; p = p.parentElement) { const c = parse(getComputedStyle(p).backgroundColor); ` +
	`if (c[3] > 250) { ground = c; break; } }
		const [x, y] = [light(parse(style.color)), light(ground)].sort((a, b) => b - a);
		const ratio = (x + 0.05) / (y + 0.05);
		const need = e.classList.contains("mark") || parseFloat(style.fontSize) >= 18.6 ? 3.5 : 4.5;
		const key = e.className + style.color + ground;
		if (ratio < need && !seen.has(key)) { seen.add(key); out.push("has the contrast " + ratio.toFixed(2) + ": " + ` +
	`said(e)); }
	}
	return out;
})()`
