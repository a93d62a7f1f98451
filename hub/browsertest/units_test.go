package browsertest

import "testing"

// TestUnits formats numbers and times with the modules of the page.
func TestUnits(t *testing.T) {
	tb := open(t, &fake{interfaces: 1})
	tb.visit("#/findings")
	tb.wait(`document.querySelector("article.finding")`)
	modules := `(async () => { const of = (name) => ` +
		`import(document.querySelector("script[type=module]").src.replace("main.js", name + ".js"));
		const u = await of("units"), time = await of("time"), q = await of("query"), ` +
		`marks = await of("marks"), kinds = await of("kinds"); return String(`
	for _, c := range []struct{ expression, want string }{
		{`u.bits(0)`, "0 b/s"},
		{`u.bits(941482e3)`, "941 Mb/s"},
		{`u.bits(9994e5)`, "999 Mb/s"},
		{`u.bits(9.996e9)`, "10.0 Gb/s"},
		{`u.bits(999.6)`, "1.00 kb/s"},
		{`u.bits(null)`, "-"},
		{`u.bits(NaN)`, "-"},
		{`u.bits(0.001)`, "< 0.01 b/s"},
		{`u.axis(u.bits)(-400e6)`, "400 Mb/s"},
		{`u.axis(u.bits)(2.5e9)`, "2.5 Gb/s"},
		{`u.axis(u.percent)(0.5)`, "50 %"},
		{`u.bytes(1536)`, "1.50 KiB"},
		{`u.seconds(0.00041)`, "410 µs"},
		{`u.seconds(1.5)`, "1.50 s"},
		{`u.percent(0.00001)`, "< 0.01 %"},
		{`u.percent(0.548)`, "54.8 %"},
		{`u.speed(2.5e9)`, "2.5 Gb/s"},
		{`u.speed(0)`, "-"},
		{`u.span(3600)`, "1 h"},
		{`u.span(5400)`, "1.5 h"},
		{`u.span(7 * 86400)`, "7 d"},
		{`u.byKey("throughput_bits_per_second", 937.2e6)`, "937 Mb/s"},
		{`u.byKey("retransmits_total", 1234567)`, "1\u202f234\u202f567"},
		{`u.byKey("mtu_bytes", 1500)`, "1500 B"},
		{`u.byKey("remote_mss_bytes", 65483)`, "65\u202f483 B"},
		{`u.byKey("window_bytes", 65536)`, "64.0 KiB"},
		{`u.byUnit("B", 1500, "linerate_interface_mtu_bytes")`, "1500 B"},
		{`u.byUnit("bytes", 1448, "segment size")`, "1448 B"},
		{`u.byUnit("bytes", 65536, "receive buffer")`, "64.0 KiB"},
		{`u.plainKey("rtt_p50_seconds")`, "rtt p50"},
		{`u.plainKey("effect_ratio")`, "effect ratio"},
		{`time.local(1795185000)`, "Fri 20 Nov 15:30:00"},
		{`time.utc(1795185000)`, "2026-11-20 14:30:00 UTC"},
		{`time.parseSpan("90m")`, "5400"},
		{`time.parseSpan("0h")`, "undefined"},
		{`time.parseTime("2026-11-20T14:30:00Z")`, "1795185000"},
		{`time.parseTime("nonsense")`, "undefined"},
		{`q.selector({host: "a\"b\\c", interface: "é"})`, `{host="a\"b\\c",interface="é"}`},
		{`JSON.stringify(q.statistics([1, 2, null, 3, 4]))`, `{"current":4,"average":2.5,"maximum":4,"p95":4}`},
		{`q.statistics([null])`, "undefined"},
		{`q.statistics([1, 2, null], [9, null, null]).maximum`, "9"},
		{`q.envelope([1, 5, null, 3], [4, 2, 7, null]).join()`, "4,5,,3"},
		{`q.highest("linerate_tcp_timeouts_total", {host: "a"}, 10)`,
			`max_over_time(irate(linerate_tcp_timeouts_total{host="a"}[2s])[10s:1s])`},
		{`q.highest("linerate_tcp_timeouts_total", {host: "a"}, 300)`,
			`max_over_time(linerate_tcp_timeouts_peak_per_second{host="a"}[300s])`},
		{`q.stepFor({start: 0, end: 172800}, 600)`, "300"},
		{`q.gridOf({start: 7, end: 31}, 10).times.join()`, "0,10,20,30"},
		{`marks.group([1, 2, 100, 103, 300].map((start) => ({start})), (t) => t, 400).map((g) => ` +
			`g.events.length).join()`, "2,2,1"},
		{`marks.lines(marks.group([{kind: "run", start: 10}, {kind: "change", start: 12}, {kind: "change", ` +
			`start: 30}, {kind: "measurement", start: 31}, {kind: "change", start: 200}], (t) => t, 400), (t) => ` +
			`t).map((l) => l.event.kind + " " + l.x).join()`, "run 10,change 12,change 30,change 200"},
		{`marks.group([{start: -5}, {start: 500}], (t) => t, 400).length`, "0"},
		{`marks.group([{kind: "run", start: -5, end: 9}, {kind: "run", start: -5, end: -1}, {kind: "finding", ` +
			`start: -9, open: true}, {kind: "change", start: -5, end: 9}], (t) => t, 400).map((g) => g.x + ":" ` +
			`+ g.events.length).join()`, "0:2"},
		{`marks.spans([{kind: "run", start: -5, end: 50}, {kind: "finding", start: 20, open: true}, {kind: ` +
			`"alert", start: 60, end: 90}, {kind: "change", start: 1, end: 90}, {kind: "gap", start: 1, end: ` +
			`90}, {kind: "measurement", start: 70, end: 73}], (t) => t, 100).map((b) => [b.event.kind, b.from, b.to, ` +
			`b.lane].join(" ")).join()`,
			"run 0 50 0,finding 20 100 1,alert 60 90 0"},
		{`["near", "far", "path", "eth0", undefined].map((state) => kinds.stateOf({kind: "finding", state})).join()`,
			",far,path,eth0,"},
		{`kinds.stateOf({kind: "change", state: "near"})`, "near"},
		{`["link-up", "link-down", "link-gone", "link-speed", "flapping"].map((state) => kinds.colourOf({kind: ` +
			`"link", state})).join()`, "s3,bad,bad,s3,bad"},
		{`marks.spans(Array(9).fill({kind: "run", start: 0, end: 50}), (t) => t, 100).length`, "4"},
	} {
		if got := get[string](tb, modules+c.expression+`); })()`); got != c.want {
			t.Errorf("%s is %q, want %q", c.expression, got, c.want)
		}
	}
}
