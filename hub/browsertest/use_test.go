package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const eth0 = "#/interface/alpha/eth0"

// query returns a key of the page's address.
func query(key string) string {
	return `(new URLSearchParams(location.hash.split("?")[1] ?? "").get("` + key + `") ?? "")`
}

// watched opens the view of an interface and waits until it is drawn with its events.
func watched(t *testing.T, f *fake) *tab {
	t.Helper()
	tb := open(t, f)
	tb.size(1440, 1000)
	tb.dark(false)
	tb.visit(eth0)
	tb.drawn()
	tb.wait(`document.querySelector("#graph-throughput .mark")`)
	return tb
}

// TestGaps checks what uPlot draws: nothing in a gap of the history, and lines on both sides of it.
func TestGaps(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	// The test imports the module of graphs: the page keeps nothing in the window.
	script := `(async () => {
		const {Graph} = await import(document.querySelector("script[type=module]").src.replace("main.js", "graph.js"));
		const rows = [{label: "In", colour: "in", filled: true, values: [1, 2, null, null, 3, 4]}];
		const board = {win: {start: 0, end: 50, live: false}, events: [], marks: {}, key: "test"};
		const g = new Graph({id: "probe", title: "Probe", format: String, height: 120}, board);
		document.querySelector("main").append(g.element);
		g.draw({start: 0, end: 50, step: 10, times: [0, 10, 20, 30, 40, 50]}, rows);
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		// Green of the line within each tenth of the width.
		const {left, top, width, height} = g.u.bbox, ctx = g.u.ctx, inked = [];
		for (let i = 0; i < 10; i++) {
			const d = ctx.getImageData(left + width * (i + 0.3) / 10, top, width * 0.4 / 10, height - 3).data;
			let n = 0;
			for (let k = 0; k < d.length; k += 4) if (d[k + 3] > 200 && d[k + 1] > d[k] + 60) n++;
			inked.push(n > 0);
		}
		g.destroy();
		g.element.remove();
		return inked;
	})()`
	if got, want := fmt.Sprint(get[[]bool](tb, script)),
		"[true true false false false false false false true true]"; got != want {
		t.Errorf("line seen in the tenths of a graph whose middle is a gap: %s, want %s", got, want)
	}
}

// TestZoomAndPan goes into the time with the mouse, back with a double click, along it with keys,
// and finds each step in the address.
func TestZoomAndPan(t *testing.T) {
	f := &fake{interfaces: 2}
	tb := watched(t, f)
	// The hub's clock is another than the browser's here, so that some are asked twice: for the
	// browser's idea of now, and for the hub's.
	different := make(map[string]bool)
	for _, q := range f.asked("query_range") {
		different[q[:strings.Index(q, "%5B")]] = true
	}
	// Six of them ask for the peaks, which have a sample a minute; each graph asks once, at least.
	if len(different) > 17 {
		t.Errorf("the view took %d queries: %v", len(different), different)
	}
	tb.drag("throughput", 0.25, 0.5, 0)
	tb.wait(query("from") + ` !== ""`)
	// A quarter of 48 hours from 12 hours after the left edge, which is 48 hours before now.
	span := get[float64](tb, `(Date.parse(`+query("to")+`) - Date.parse(`+query("from")+`)) / 3600000`)
	if span < 11.8 || span > 12.2 {
		t.Errorf("a quarter of 48 h shows %.2f h", span)
	}
	tb.drawn()
	first := get[string](tb, query("from"))
	tb.keys(kb.ArrowRight)
	tb.wait(query("from") + ` > "` + first + `"`)
	tb.keys(kb.ArrowLeft)
	tb.wait(query("from") + ` === "` + first + `"`)
	tb.keys("+")
	tb.wait(`Date.parse(` + query("to") + `) - Date.parse(` + query("from") + `) < 6.1 * 3600000`)
	over := tb.box("#graph-throughput .u-over")
	twice := func() {
		for _, n := range []int64{1, 2} {
			for _, kind := range []input.DispatchMouseEventType{chromedp.MousePressed, chromedp.MouseReleased} {
				tb.must(called(tb.ctx, input.DispatchMouseEvent,
					input.DispatchMouseEventParams{Type: kind, X: over.X + over.W/2, Y: over.Y + over.H/2,
						Button: "left", ClickCount: n}))
			}
		}
	}
	twice()
	tb.wait(query("from") + ` === "` + first + `"`)
	twice()
	tb.wait(query("from") + ` === ""`)
	tb.keys("1")
	tb.wait(query("range") + ` === "1h"`)
	tb.wait(`document.querySelector(".ranges button[aria-pressed=true]").textContent === "1h"`)
	tb.keys("0")
	tb.wait(query("range") + ` === ""`)
}

// TestEvent opens the document of an event by mouse and by keyboard, reads it, and comes back to
// where it was.
func TestEvent(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	tb.run(chromedp.Click(chromedp.CSS(`#graph-throughput .mark[data-ids~="change-1"]`)))
	tb.wait(`document.querySelector("#event[open]")`)
	// It shares its marker with others: the dialog lets one choose.
	tb.wait(`[...document.querySelectorAll("#event .event-row")].some((e) => e.textContent.includes("ring.rx"))`)
	get[bool](tb, `[...document.querySelectorAll("#event .event-row")].find((e) => `+
		`e.textContent.includes("ring.rx")).click() ?? true`)
	tb.wait(query("event") + ` === "change-1"`)
	tb.wait(`document.querySelector("#event #raw pre")?.textContent.includes('"to": "4096"')`)
	text := get[string](tb, `document.querySelector("#event").innerText`)
	for _, want := range []string{"linerate undo change-1", "256", "4096", "19:30:00", "18:30:00 UTC", "committed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document of a change does not say %q: %s", want, text)
		}
	}
	tb.keys(kb.Escape)
	tb.wait(`!document.querySelector("#event[open]") && ` + query("event") + ` === ""`)
	// The same without a mouse: n goes from marker to marker, Enter opens.
	tb.keys("n")
	tb.wait(`document.activeElement.classList.contains("mark") && !document.getElementById("tip").hidden`)
	tb.keys("n", "p", kb.Enter)
	tb.wait(`document.querySelector("#event[open]") && ` + query("event") + ` !== ""`)
	// A link opens the same event.
	tb.visit(eth0 + "?event=run-1")
	tb.wait(`document.querySelector("#event[open] table") && ` +
		`document.querySelector("#event").innerText.includes("reverted-unproven")`)
}

// TestMarkersStay lays the markers anew, as each new point does: the one with the focus keeps it.
func TestMarkersStay(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	tb.wait(`[...document.querySelectorAll(".graph[data-state=drawn]")].every((g) => g.querySelector(".mark"))`)
	get[bool](tb, `(window.kept = document.querySelector("#graph-throughput .mark")).focus() ?? true`)
	tb.keys("a")
	tb.wait(query("a") + ` !== "" && document.querySelector(".marked").textContent !== ""`)
	if !get[bool](tb, `document.activeElement === window.kept && !document.getElementById("tip").hidden`) {
		t.Error("a marker lost the focus when the markers were laid anew")
	}
}

// TestKinds takes a kind away, and its markers go; none of it is asked of the hub again.
func TestKinds(t *testing.T) {
	f := &fake{interfaces: 2, crowded: true}
	tb := watched(t, f)
	many := get[string](tb,
		`[...document.querySelectorAll("#graph-throughput .mark")].map((m) => m.textContent).find((text) => `+
			`/^C\+\d{2,}$/.test(text)) ?? ""`)
	if many == "" {
		t.Error("a hundred changes within an hour have no marker with their count")
	}
	before := len(f.asked("events"))
	get[bool](tb, `[...document.querySelectorAll(".chip")].find((c) => `+
		`c.textContent.includes("Changes")).click() ?? true`)
	tb.wait(query("kinds") +
		` !== "" && ![...document.querySelectorAll("#graph-throughput .mark")].some((m) => ` +
		`m.dataset.ids.includes("crowd"))`)
	if after := len(f.asked("kind=gap")); len(f.asked("events"))-before > after {
		t.Error("filtering asked the hub for events")
	}
	if n := get[int](tb, `document.querySelectorAll(".events .event-row").length`); n == 0 || n > 30 {
		t.Errorf("%d rows are listed beside the graphs", n)
	}
}

// TestBeforeGap checks that a graph has what was recorded before the hub last started.
func TestBeforeGap(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	wide := get[bool](tb, `(() => { const c = document.querySelector("#graph-throughput canvas"), ctx = c.getContext("2d");
		const d = ctx.getImageData(c.width * 0.12, 0, c.width * 0.08, c.height * 0.8).data;
		for (let k = 0; k < d.length; k += 4) if (d[k + 3] > 200 && d[k + 1] > d[k] + 60) return true;
		return false; })()`)
	if !wide {
		t.Error("nothing is drawn at the left edge of 48 hours")
	}
}

// TestBurst checks that a burst of one second has the same height over every time.
func TestBurst(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2, burst: true})
	for _, length := range []string{"1h", "6h", "48h", "7d"} {
		tb.visit(eth0 + "?range=" + length)
		tb.wait(`document.querySelector("#graph-throughput .mrtg tbody tr")?.innerText.includes("40.0 Gb/s")`)
		tb.picture("burst-" + length)
	}
	for graph, want := range map[string]string{"throughput": "Maximum", "drops": "Maximum", "cpu": "Highest mean"} {
		tb.wait(`document.querySelector("#graph-` + graph + ` .mrtg thead")?.innerText.includes("` + want + `")`)
	}
}

// TestPings checks that a measurement each minute leaves the changes on the graph.
func TestPings(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2, pinged: true})
	for _, id := range []string{"change-1", "change-2"} {
		if !get[bool](tb, `!!document.querySelector("#graph-throughput .mark[data-ids~=\"`+id+`\"]")`) {
			t.Errorf("%s has no marker", id)
		}
	}
}

// TestCompareByMouse marks two times with Shift, sees both shaded, and compares them.
func TestCompareByMouse(t *testing.T) {
	f := &fake{interfaces: 2}
	tb := watched(t, f)
	tb.drag("throughput", 0.1, 0.2, input8)
	tb.wait(query("a") + ` !== "" && ` + query("b") + ` === ""`)
	tb.drag("throughput", 0.6, 0.7, input8)
	tb.wait(query("b") + ` !== ""`)
	if got := get[string](tb, query("from")); got != "" {
		t.Errorf("marking zoomed too: from %s", got)
	}
	get[bool](tb, `[...document.querySelectorAll(".marked a")].find((a) => `+
		`a.textContent.includes("Compare")).click() ?? true`)
	tb.wait(`document.querySelector(".compared .moved")`)
	text := get[string](tb, `document.querySelector("#compared").innerText`)
	for _, want := range []string{"3 of 5 moved", "×1.60", "×1.52 – ×1.69", "41 ", "304 Mb/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comparison does not say %q: %s", want, text)
		}
	}
	asked := f.asked("compare")
	if len(asked) != 1 || !strings.Contains(asked[0], "host=alpha&interface=eth0") {
		t.Errorf("asked to compare: %q", asked)
	}
	get[bool](tb, `[...document.querySelectorAll("#compared button")].find((b) => b.textContent ===`+
		` "Show all metrics").click() ?? true`)
	tb.wait(`document.querySelectorAll(".compared tbody tr").length === 5`)
}

const input8 = 8 // Shift, as the protocol has it

// TestCompareByKeyboard does the same with a, b and d, and once from the document of an event.
func TestCompareByKeyboard(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	tb.keys("1")
	tb.wait(query("range") + ` === "1h"`)
	tb.drawn()
	tb.keys("a")
	tb.wait(query("a") + ` !== ""`)
	tb.keys(kb.ArrowLeft, kb.ArrowLeft, "b")
	tb.wait(query("b") + ` !== ""`)
	tb.keys("d")
	tb.wait(`location.hash.startsWith("#/compare/alpha/eth0") && document.querySelector(".compared .moved")`)
	tb.keys("x")
	tb.wait(query("a") + ` === ""`)

	tb.visit(eth0 + "?event=change-1")
	tb.wait(`document.querySelector("#event[open] .before-after")`)
	tb.run(chromedp.Focus(chromedp.CSS(`#event .before-after`)))
	tb.keys(kb.Enter)
	tb.wait(`location.hash.startsWith("#/compare/alpha/eth0") && document.querySelector(".compared .moved")`)
	if got, want := get[string](tb, query("a")), "2026-11-19T17:30:00Z/2026-11-19T18:30:00Z"; got != want {
		t.Errorf("the hour before the change is %s, want %s", got, want)
	}
	if got := get[bool](tb, `!document.querySelector("#event[open]")`); !got {
		t.Error("the document still covers the comparison")
	}
}

// TestCursor moves over one graph and finds the same moment, in both zones, on all.
func TestCursor(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	over := tb.box("#graph-throughput .u-over")
	tb.must(called(tb.ctx, input.DispatchMouseEvent,
		input.DispatchMouseEventParams{Type: chromedp.MouseMoved, X: over.X + over.W*0.8, Y: over.Y + over.H/2}))
	tb.wait(`document.querySelector("#graph-throughput .when").textContent.includes("UTC")`)
	tb.wait(`document.querySelector("#graph-throughput .at:not(th)").textContent.includes("b/s")`)
	if whens := get[[]string](tb,
		`[...new Set([...document.querySelectorAll(".graph[data-state=drawn] .when")].map((w) => `+
			`w.textContent))]`); len(whens) != 1 || !strings.Contains(whens[0], "Fri 20 Nov 05:54:00 · "+
		"2026-11-20 04:54:00 UTC") && !strings.Contains(whens[0], "Fri 20 Nov 05:5") {
		t.Errorf("the graphs show the moments %q, want one", whens)
	}
}

// TestTheme switches, finds it remembered after a reload, and the graphs drawn in the other
// colours.
func TestTheme(t *testing.T) {
	tb := watched(t, &fake{interfaces: 2})
	light := get[string](tb, `getComputedStyle(document.body).backgroundColor`)
	tb.keys("t", "t")
	tb.wait(`document.documentElement.dataset.theme === "dark"`)
	if dark := get[string](tb, `getComputedStyle(document.body).backgroundColor`); dark == light {
		t.Errorf("light and dark are both %s", dark)
	}
	tb.drawn()
	tb.visit("#/")
	tb.wait(`document.documentElement.dataset.theme === "dark" && document.querySelector(".interface-row")`)
	// Paper is white in both themes.
	get[bool](tb, `dispatchEvent(new Event("beforeprint"))`)
	if got := get[string](tb, `getComputedStyle(document.body).backgroundColor`); got != light {
		t.Errorf("a page for the printer is %s, on the light screen %s", got, light)
	}
	get[bool](tb, `dispatchEvent(new Event("afterprint"))`)
	tb.wait(`document.documentElement.dataset.theme === "dark"`)
	tb.keys("t")
	tb.wait(`!document.documentElement.dataset.theme`)
}

// TestKeys opens the list of keys and goes to every view by its key.
func TestKeys(t *testing.T) {
	tb := open(t, &fake{interfaces: 3})
	tb.size(1440, 1000)
	tb.visit("#/")
	tb.wait(`document.querySelector(".interface-row")`)
	tb.keys("?")
	tb.wait(`document.querySelector("#keys[open]") && document.querySelectorAll("#keys kbd").length > 25`)
	tb.picture("keys")
	tb.keys(kb.Escape)
	tb.wait(`!document.querySelector("#keys[open]")`)
	for key, view := range map[string]string{"f": "findings", "c": "changes", "m": "measurements", "s": "switches",
		"d": "compare",
		"o": "overview"} {
		tb.keys(key)
		tb.wait(`document.querySelector("main").dataset.view === "` + view + `"`)
	}
	tb.keys("o")
	tb.wait(`document.querySelector(".interface-row")`)
	// A letter in a field is a letter. Typed as a browser does, where a key that was taken writes
	// nothing; chromedp's own way writes it all the same.
	tb.must(called(tb.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: "/", Text: "/"}))
	tb.wait(`document.activeElement.type === "search"`)
	tb.keys("e", "t", "h", "1")
	tb.wait(`document.querySelectorAll(".interface-row").length === 1 && ` +
		`document.querySelector("main").dataset.view === "overview"`)
	tb.keys(kb.Escape, "j", kb.Enter)
	tb.wait(`location.hash.startsWith("#/interface/alpha/eth1")`)
	if got := get[string](tb, `document.title`); got != "eth1 on alpha · linerate" {
		t.Errorf("the title is %q", got)
	}
}

// TestLogin checks that a login leads to the requested address, after a wrong password too.
func TestLogin(t *testing.T) {
	tb := open(t, &fake{interfaces: 2, password: "correct horse"})
	tb.expect("Failed to load resource") // of the answer to the wrong one
	tb.visit(eth0)
	// These waits go on in the document that comes after, where an expression would end with its
	// own.
	tb.run(chromedp.SendKeys("#password", "wrong horse\r"), chromedp.WaitVisible("p[role=alert]:not(:empty)"))
	tb.run(chromedp.SendKeys("#password", "correct horse\r"), chromedp.WaitVisible(".graph"))
	if got := get[string](tb, "location.hash"); got != eth0 {
		t.Errorf("after the login the page is at %s, want %s", got, eth0)
	}
	// A link on another site comes without the cookie, and so to the form: the session still counts.
	alert := "#/findings?event=alert-1"
	tb.run(chromedp.Navigate("about:blank"), chromedp.Navigate(tb.base+"/login?next=%2F"+alert),
		chromedp.WaitVisible("#event[open]"))
	if got := get[string](tb, "location.hash + document.querySelector('#event').innerText"); !strings.HasPrefix(
		got, alert) || !strings.Contains(got, "segments are sent again") {
		t.Errorf("the link of an alert leads to %s", got)
	}
}
