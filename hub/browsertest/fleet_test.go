package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// fleetReady holds once all parts of the view are there.
const fleetReady = `document.querySelector(".tile") && document.querySelector(".fleet-list li") && ` +
	`document.querySelector(".mesh-said").textContent && document.querySelector(".boundary")`

// TestFleetWidths shows 300 hosts at six widths: nothing is wider than the screen, and each part
// has its place.
func TestFleetWidths(t *testing.T) {
	tb := open(t, &fake{interfaces: 1, members: newFleet(300, "")})
	tb.size(1440, 1000)
	tb.dark(false)
	tb.visit("#/fleet")
	tb.wait(fleetReady)
	for _, width := range []int64{320, 400, 700, 768, 1280, 1920} {
		for _, dark := range []bool{false, true} {
			tb.size(width, 1000)
			tb.dark(dark)
			get[bool](tb, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			if wide := get[[]string](tb, overflow); len(wide) > 0 {
				t.Errorf("%d px: wider than the screen: %v", width, wide)
			}
			if cut := get[[]string](tb, cutOff); len(cut) > 0 {
				t.Errorf("%d px: text that is cut off: %v", width, cut)
			}
			if get[bool](tb, `(() => { const n = document.getElementById("nav"); `+
				`return n.scrollWidth > n.clientWidth + 1; })()`) {
				t.Errorf("%d px: not all views are linked visibly", width)
			}
			if dark && width != 1280 {
				continue
			}
			for _, part := range []string{"top", "mesh-card", "rollout", "fleet-list"} {
				get[bool](tb, `(() => { const e = document.querySelector(".`+part+`"); `+
					`e.className === "top" ? scrollTo(0, 0) : e.scrollIntoView({block: "start"}); return true; })()`)
				name := fmt.Sprintf("fleet-%d-%s", width, part)
				if dark {
					name += "-dark"
				}
				tb.picture(name)
			}
		}
	}
}

// cutOff names buttons, tiles and headings whose text is wider than they are.
const cutOff = `[...document.querySelectorAll("main :is(button, h1, h2, h3, .pill, th, td)")]` +
	`.filter((e) => e.offsetWidth > 0 && e.scrollWidth > e.clientWidth + 2 && ` +
	`getComputedStyle(e).display !== "inline" && !e.classList.contains("hidden-text")).slice(0, 5).` +
	`map((e) => e.tagName + " " + e.textContent.slice(0, 60))`

// TestFleetSize: a fleet of ten thousand makes a page of the same size as one of 300, and no answer
// above a bound.
func TestFleetSize(t *testing.T) {
	elements := make(map[int]int)
	tb := open(t, &fake{interfaces: 1, members: newFleet(300, "")})
	large := &fake{interfaces: 1, members: newFleet(10_000, "")}
	bases := map[int]string{300: tb.base, 10_000: large.serve(t)}
	for _, n := range []int{300, 10_000} {
		tb.mu.Lock()
		tb.base = bases[n]
		tb.mu.Unlock()
		tb.size(1280, 1000)
		tb.visit("#/fleet")
		// The view is made anew when the hub answers that its history is young.
		tb.wait(fleetReady + ` && (() => { const n = document.querySelectorAll("main *").length; ` +
			`const same = n === window.counted; window.counted = n; return same; })()`)
		elements[n] = get[int](tb, `document.querySelectorAll("main *").length`)
		largest := get[int](tb, `Math.max(...performance.getEntriesByType("resource")`+
			`.filter((e) => e.name.includes("/fleet")).map((e) => e.decodedBodySize))`)
		t.Logf("%d hosts: %d elements, largest answer %d bytes", n, elements[n], largest)
		if largest > 700_000 {
			t.Errorf("%d hosts: an answer of %d bytes", n, largest)
		}
	}
	if elements[10_000] > elements[300]+150 {
		t.Errorf("10 000 hosts make %d elements, 300 make %d", elements[10_000], elements[300])
	}
}

// TestFleetUse selects by typing, by clicking a count and by a mistake, and turns pages. All of it
// is in the address, and works without a mouse.
func TestFleetUse(t *testing.T) {
	f := &fake{interfaces: 1, members: newFleet(300, hostile)}
	tb := open(t, f)
	tb.size(1280, 1000)
	tb.visit("#/")
	tb.wait(`[...document.querySelectorAll("#nav a")].some((a) => a.textContent === "Fleet")`)
	tb.keys("h")
	tb.wait(fleetReady)
	said := func(text string) {
		t.Helper()
		tb.wait(`document.querySelector(".view-head").innerText.includes("` + text + `")`)
	}
	said("300 hosts")
	if get[bool](tb, `"owned" in window`) {
		t.Error("the name of a host became a script")
	}
	enter := func(text string) {
		t.Helper()
		// A key event of the test is a key press and a letter: the letter would follow into the
		// field.
		get[bool](tb, `(dispatchEvent(new KeyboardEvent("keydown", {key: "/", cancelable: true})), true)`)
		tb.wait(`document.activeElement.name === "selection"`)
		tb.keys(strings.Split(text, "")...)
		tb.keys(kb.Enter)
	}
	enter("drift:yes")
	said("3 of 300 hosts")
	tb.wait(query("select") + ` === "drift:yes"`)
	if n := get[int](tb, `document.querySelectorAll(".fleet-list li").length`); n != 3 {
		t.Errorf("%d hosts are listed", n)
	}
	// Back leads to the whole fleet.
	get[bool](tb, `(document.activeElement.blur(), history.back(), true)`)
	said("300 hosts")
	tb.expect("400") // the browser logs the answer to a wrong selection
	enter("colour:red")
	tb.wait(`document.querySelector("#selection-error").textContent.includes("colour")`)
	tb.run(chromedp.Click(chromedp.CSS(`.selection .clear`)))
	tb.wait(`document.querySelector("#selection-error").textContent === ""`)
	// A tile narrows to its hosts.
	get[bool](tb, `([...document.querySelectorAll(".tile")].find((e) => e.textContent.includes("silent")).focus(), true)`)
	tb.keys(kb.Enter)
	said("3 of 300 hosts")
	tb.run(chromedp.Click(chromedp.CSS(`.selection .clear`)))
	said("300 hosts")
	// Pages.
	tb.wait(`document.querySelector(".pages").textContent.includes("1 to 50 of 300")`)
	first := get[string](tb, `document.querySelector(".fleet-list .as-link").textContent`)
	press := func(name string) {
		t.Helper()
		get[bool](tb, `([...document.querySelectorAll(".pages button")]`+
			`.find((b) => b.textContent === "`+name+`").click(), true)`)
	}
	press("Next")
	tb.wait(`document.querySelector(".pages").textContent.includes("51 to 100 of 300")`)
	press("Next")
	tb.wait(`document.querySelector(".pages").textContent.includes("101 to 150 of 300")`)
	press("Back")
	tb.wait(`document.querySelector(".pages").textContent.includes("51 to 100 of 300")`)
	press("First")
	tb.wait(`document.querySelector(".pages").textContent.includes("1 to 50 of 300")`)
	if again := get[string](tb, `document.querySelector(".fleet-list .as-link").textContent`); again != first {
		t.Errorf("the first page begins with %q, before with %q", again, first)
	}
	// Another measure.
	get[bool](tb, `(() => { const s = document.querySelector("select[aria-label='Compare by']"); s.value = "loss"; `+
		`s.dispatchEvent(new Event("change")); return true; })()`)
	tb.wait(query("by") + ` === "loss" && document.querySelector(".class-of") && ` +
		`document.body.innerText.includes("5.00 %")`)
}

// TestFleetMesh goes over the racks by keyboard, into a cell, and back; a mouse gets there too.
func TestFleetMesh(t *testing.T) {
	tb := open(t, &fake{interfaces: 1, members: newFleet(300, "")})
	tb.size(1280, 1000)
	tb.visit("#/fleet")
	tb.wait(fleetReady)
	shows := func(text string) {
		t.Helper()
		tb.wait(`document.querySelector(".mesh-said").textContent.includes("` + text + `")`)
	}
	get[bool](tb, `(document.querySelector("canvas.mesh").focus(), true)`)
	shows("ams/r000 × ams/r000")
	tb.keys(kb.ArrowDown, kb.ArrowRight)
	shows("ams/r002 × ams/r002")
	tb.keys(kb.End)
	shows("ams/r002 × fra/r009")
	tb.keys(kb.Enter)
	tb.wait(query("row") + ` === "ams/r002" && ` +
		`document.querySelector(".mesh-card h2").textContent.includes("ams/r002 × fra/r009")`)
	tb.wait(`document.querySelector(".mesh-said").textContent.includes("example.net × ")`)
	tb.keys(kb.Escape)
	tb.wait(query("row") + ` === "" && document.querySelector(".mesh-card h2").textContent === "Mesh of racks"`)
	// The pixels of a bad rack differ from those of a good one.
	colours := get[[]string](tb, `(() => { const c = document.querySelector("canvas.mesh"), x = c.getContext("2d"), `+
		`s = c.width / 10; const at = (i, j) => [...x.getImageData((j + 0.5) * s, (i + 0.5) * s, 1, 1).data].join(); `+
		`return [at(6, 2), at(0, 2), at(6, 6)]; })()`)
	t.Logf("colours: bad rack %s, good %s", colours[0], colours[1])
	if colours[0] == colours[1] {
		t.Errorf("a bad pair of racks has the colour of a good one: %v", colours)
	}
	box := tb.box("canvas.mesh")
	tb.run(chromedp.MouseClickXY(box.X+box.W*0.65, box.Y+box.H*0.25))
	tb.wait(query("column") + ` === "fra/r003"`)
	tb.picture("fleet-cell")
}

// TestFleetNothing shows a hub without hosts, and one without a fleet.
func TestFleetNothing(t *testing.T) {
	f := &fake{interfaces: 1, members: newFleet(0, "")}
	tb := open(t, f)
	tb.size(800, 900)
	tb.visit("#/fleet")
	tb.wait(`document.body.innerText.includes("linerate-hub invite")`)
	tb.expect("404")
	f.mu.Lock()
	f.members = nil
	f.mu.Unlock()
	tb.visit("#/fleet")
	tb.wait(`document.body.innerText.includes("this hub has no fleet")`)
	tb.visit("#/")
	tb.wait(`document.querySelectorAll("#nav a").length > 4`)
	if get[bool](tb, `[...document.querySelectorAll("#nav a")].some((a) => a.textContent === "Fleet")`) {
		t.Error("a hub without a fleet links it")
	}
}
