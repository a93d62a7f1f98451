package api

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAttacks has the known attacks that bring servers down or lead out of their directory, each
// with its right answer.
func TestAttacks(t *testing.T) {
	h := served(t, func(o *Options) { o.Timeline = happened(t) })
	deep := func(open, middle, end string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	const (
		query = "/api/v1/query?"
		rng   = "/api/v1/query_range?"
		all   = `{__name__=~".+"}`
		docs  = "/api/linerate/v1/documents/"
		of    = "/api/linerate/v1/"
	)
	for _, c := range []struct {
		name, target string
		want         int
	}{
		{"step 0", rng + q("query", all, "start", "0", "end", "10", "step", "0"), 400},
		{"step below a millisecond", rng + q("query", "vector(1)", "start", "0", "end", "0", "step", "0.0001"), 400},
		{"negative step", rng + q("query", all, "start", "0", "end", "10", "step", "-1"), 400},
		{"step NaN", rng + q("query", all, "start", "0", "end", "10", "step", "NaN"), 400},
		{"step Inf", rng + q("query", all, "start", "0", "end", "10", "step", "Inf"), 400},
		{"step of 1e308", rng + q("query", all, "start", "0", "end", "10", "step", "1e308"), 400},
		{"step too long for its number", rng + q("query", all, "start", "0", "end", "10", "step", "10000000000000y"),
			400},
		{"long step", rng + q("query", all, "start", "0", "end", "10", "step", "9223372036"), 200},
		{"no step", rng + q("query", all, "start", "0", "end", "10"), 400},
		{"time NaN", query + q("query", "vector(1)", "time", "NaN"), 400},
		{"time Inf", query + q("query", "vector(1)", "time", "-Inf"), 400},
		{"time 1e308", query + q("query", "vector(1)", "time", "1e308"), 400},
		{"time beyond 9999", query + q("query", "vector(1)", "time", "253402300800"), 400},
		{"time in hexadecimal", query + q("query", "vector(1)", "time", "0x1p10"), 200},
		{"the first second", query + q("query", all, "time", "0001-01-01T00:00:00Z"), 200},
		{"the last second", query + q("query", all, "time", "9999-12-31T23:59:59Z"), 200},
		{"ten thousand years", rng + q("query", "vector(1)", "start", "0001-01-01T00:00:00Z", "end",
			"9999-12-31T23:59:59Z", "step", "366d"), 200},
		{"ten thousand years by the second", rng + q("query", all, "start", "0001-01-01T00:00:00Z", "end",
			"9999-12-31T23:59:59Z", "step", "1"), 400},
		{"end before start", rng + q("query", all, "start", "10", "end", "0", "step", "1"), 400},
		{"timeout 0", query + q("query", all, "timeout", "0"), 400},
		{"timeout of a nanosecond", query + q("query", all, "timeout", "0.000000001"), 503},
		{"timeout NaN", query + q("query", all, "timeout", "NaN"), 400},
		{"limit -1", query + q("query", all, "limit", "-1"), 400},
		{"limit too long for its number", query + q("query", all, "limit", "99999999999999999999"), 400},
		{"lookback NaN", query + q("query", all, "lookback_delta", "NaN"), 400},

		{"subquery by the millisecond over years", query + q("query", "max_over_time(vector(1)[10y:1ms])"), 422},
		{"subqueries in subqueries", query + q("query", "max_over_time(max_over_time(vector(1)[1d:1s])[11d:1s])"), 422},
		{"subquery under a long range", rng + q("query", "max_over_time(vector(1)[1s:1ms])", "start", "0", "end",
			"100000", "step", "1000"), 422},
		{"subquery at a far time", query + q("query", "max_over_time(vector(1)[10m:1s] @ 1e300)"), 400},
		{"offset too long", query + q("query", "up offset 99999999999y"), 400},
		{"offset of a century", query + q("query", all+" offset 100y"), 200},
		{"range too long", query + q("query", "rate("+all+"[99999999999y])"), 400},
		{"range of a century", query + q("query", "rate(linerate_interface_receive_bytes_total[100y])"), 200},
		{"deep parentheses", query + q("query", deep("(", "1", ")", 10000)), 400},
		{"deep calls", query + q("query", deep("abs(", "vector(1)", ")", 5000)), 400},
		{"minus of a number many times", query + q("query", strings.Repeat("-", 10000)+"1"), 200},
		{"minus of a series many times", query + q("query", strings.Repeat("-", 10000)+"up"), 400},
		{"long sum", query + q("query", strings.Repeat("1+", 16000)+"1"), 400},
		{"long query", query + q("query", strings.Repeat("a", 100_000)), 400},
		{"unclosed", query + q("query", strings.Repeat("{", 10000)), 400},
		{"unclosed text", query + q("query", `"`+strings.Repeat(`\`, 9999)), 400},
		{"expression of doubt", query + q("query", `{__name__=~"(a+)+$"}`), 200},
		{"expression that repeats", query + q("query", `{__name__=~"((a{1,100}){1,100}){1,100}"}`), 400},
		{"expression that repeats within bounds", query + q("query", `{__name__=~"(x{1,10}){1,100}"}`), 200},
		{"expression of many words", query + q("query", `{__name__=~"`+strings.Repeat("(a|b|c|d)", 500)+`"}`), 200},
		{"expression that is none", query + q("query", `{__name__=~"["}`), 400},
		{"everything times everything", query + q("query", all+" * ignoring(__name__,interface,host) group_left "+all),
			422},
		{"everything and everything", query + q("query", all+" or "+all+" or "+all), 200},
		{"bad UTF-8", query + "query=%ff%fe%80", 400},
		{"bad UTF-8 in a matcher", query + q("query", "{a=\"\xff\"}"), 400},
		{"null byte", query + q("query", "up\x00"), 400},
		{"bad escape", query + "query=%zz", 400},
		{"semicolons", query + "query=1;time=2", 400},
		{"twice the same", query + "query=vector(1)&query=rate(&time=1&time=NaN", 200},
		{"experimental", query + q("query", "info(up)"), 400},
		{"division by nothing", query + q("query", "1 % 0"), 200},
		{"rounding to nothing", query + q("query", "round(vector(1), 0)"), 200},
		{"quantile of nothing", query + q("query", "quantile(NaN, "+all+")"), 200},
		{"topk of infinity", query + q("query", "topk(Inf, "+all+")"), 422},
		{"topk of much", query + q("query", "topk(1e300, "+all+")"), 422},
		{"topk of a name", query + q("query", `count_values("a b", `+all+")"), 200},
		{"label to nothing",
			query + q("query", `label_replace(linerate_interface_speed_bits_per_second, "__name__", "", "", "")`), 200},
		{"labels alike", query + q("query", `label_replace(`+all+`, "interface", "", "", "")`), 422},
		{"string that is long", query + q("query", `"`+strings.Repeat("a", 30_000)+`"`), 200},

		{"many selectors", "/api/v1/series?" + strings.Repeat("match[]=up&", 1000), 400},
		{"selector of everything", "/api/v1/series?" + q("match[]", all), 200},
		{"selector of nothing", "/api/v1/series?" + q("match[]", "{}"), 400},
		{"selector that is empty", "/api/v1/series?" + q("match[]", ""), 400},
		{"selector that is a query", "/api/v1/series?" + q("match[]", "rate(up[1m])"), 400},
		{"labels by nothing", "/api/v1/labels?" + q("match[]", `{a=~".*"}`), 400},
		{"labels backwards", "/api/v1/labels?start=10&end=1", 400},
		{"label without a name", "/api/v1/label//values", 404},
		{"label with a path", "/api/v1/label/..%2f..%2fetc/values", 404},
		{"label of bad UTF-8", "/api/v1/label/%ff/values", 400},
		{"label of a thousand letters", "/api/v1/label/" + strings.Repeat("a", 1000) + "/values", 200},
		{"label with an odd escape", "/api/v1/label/U___zz_/values", 200},

		{"document up", docs + "../secret", 404},
		{"document up, coded", docs + "%2e%2e%2fsecret", 404},
		{"document up, coded twice", docs + "%252e%252e%252fsecret", 404},
		{"document up, backslash", docs + `..\secret`, 404},
		{"document at the root", docs + "/etc/passwd", 404},
		{"document dot", docs + ".", 404},
		{"document dots", docs + "..", 404},
		{"document null", docs + "c1%00.json", 404},
		{"document long", docs + strings.Repeat("a", 5000), 404},
		{"document by suffix", docs + "c1.json", 404},
		{"document lock", docs + "../lock", 404},
		{"document with a device's name", docs + "CON", 404},
		{"events of a host that is a path", of + "events?" + q("host", "../../etc"), 200},
		{"compare years", of + "compare?" + q("before_start", "0", "before_end", "1e9", "after_start", "1.1e9",
			"after_end", "1.2e9"), 400},
		{"compare the same", of + "compare?" + q("before_start", "0", "before_end", "100", "after_start", "50",
			"after_end", "150"), 400},
		{"compare with a host that is PromQL", of + "compare?" + q("before_start", "0", "before_end", "100",
			"after_start", "100", "after_end", "200", "host", `"} or vector(1) or {a="`), 200},
		{"compare with bad UTF-8",
			of + "compare?before_start=0&before_end=100&after_start=100&after_end=200&interface=%ff", 200},
		{"compare with a long host", of + "compare?" + q("before_start", "0", "before_end", "100", "after_start", "100",
			"after_end", "200", "host", strings.Repeat("a", 5000)), 400},

		{"nothing", "/", 404},
		{"slashes", "//api/v1/query", 404},
		{"slash at the end", "/api/v1/query/", 404},
		{"up", "/api/v1/../../etc/passwd", 404},
		{"admin", "/api/v1/admin/tsdb/delete_series", 404},
		{"write", "/api/v1/write", 404},
		{"profiles", "/debug/pprof/", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(h, "GET", c.target, nil)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %.500s", w.Code, c.want, w.Body)
			}
			if strings.Contains(w.Body.String(), "secret") && !strings.Contains(c.target, "secret") {
				t.Errorf("answer %.500s", w.Body)
			}
		})
	}
	for _, c := range []struct {
		name, method, target, contentType string
		body                              io.Reader
		want                              int
	}{
		{"large form", "POST", "/api/v1/query", form, strings.NewReader("query=" + strings.Repeat("a", 10<<20)), 413},
		{"form of many names", "POST", "/api/v1/query", form, strings.NewReader(strings.Repeat("a=&", 300_000)), 400},
		{"form with files", "POST", "/api/v1/query", "Content-Type: multipart/form-data; boundary=b",
			strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"query\"; " +
				"filename=\"x\"\r\n\r\n1\r\n--b--\r\n"), 400},
		{"form of no type", "POST", "/api/v1/query", "Content-Type: ;;;", strings.NewReader("query=1"), 400},
		{"form as JSON", "POST", "/api/v1/query", "Content-Type: application/json",
			strings.NewReader(`{"query":"1"}`), 400},
		{"form and query", "POST", "/api/v1/query?query=rate(", form, strings.NewReader("query=1"), 200},
		{"head", "HEAD", "/api/v1/query?query=1", "", nil, 200},
		{"put", "PUT", "/api/v1/query?query=1", "", nil, 405},
		{"delete", "DELETE", "/api/v1/series?match[]=up", "", nil, 405},
		{"post where nothing is taken", "POST", "/api/linerate/v1/status", form, nil, 405},
		{"post to metrics", "POST", "/metrics", form, nil, 405},
		{"trace", "TRACE", "/healthz", "", nil, 405},
		{"made up", "\xff", "/healthz", "", nil, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "http://localhost"+strings.ReplaceAll(c.target, "[]", "%5b%5d"), c.body)
			r.Method = c.method
			if c.contentType != "" {
				r.Header.Set("Content-Type", strings.TrimPrefix(c.contentType, "Content-Type: "))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %.500s", w.Code, c.want, w.Body)
			}
		})
	}
}

// TestDisconnectEndsTheQuery sends a request and disconnects.
func TestDisconnectEndsTheQuery(t *testing.T) {
	h := served(t)
	for _, target := range []string{"/api/v1/query?" + q("query", "sum(rate({__name__=~\".+\"}[1m]))"),
		"/api/v1/series?" + q("match[]", `{__name__=~".+"}`),
		"/api/linerate/v1/compare?" + q("before_start", "0", "before_end", "100", "after_start", "100",
			"after_end", "200")} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequest("GET", "http://localhost"+target, nil).WithContext(ctx)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != statusGone {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

// TestAnswersAreBounded requests the most points, many times over.
func TestAnswersAreBounded(t *testing.T) {
	h := served(t)
	var many []string
	for i := range 190 {
		many = append(many, fmt.Sprintf(`label_replace(vector(1),"l","%d","","")`, i))
	}
	w := ask(h, "POST", "/api/v1/query_range",
		strings.NewReader(q("query", strings.Join(many, " or "), "start", "0", "end", "10000", "step", "1")), form)
	if n := w.Body.Len(); n > maxBytes || w.Code != 200 && w.Code != 422 && w.Code != 503 {
		t.Errorf("%d with %d bytes", w.Code, n)
	}
}

// TestSubqueriesAreCounted checks which subqueries are refused before they run.
func TestSubqueriesAreCounted(t *testing.T) {
	a := New(Options{}).(*api)
	for query, fine := range map[string]bool{
		"max_over_time(up[30d:])": true, "max_over_time(up[10y:])": false, "max_over_time(up[11d:1s])": true,
		"max_over_time(up[12d:1s])":                       false,
		"max_over_time(max_over_time(up[1h:1s])[12d:1h])": false,
		"max_over_time(max_over_time(up[1h:1s])[11d:1h])": true,
	} {
		if err := a.bounded(query, 0); (err == nil) != fine {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestMomentsAreExact parses times as Prometheus does.
func TestMomentsAreExact(t *testing.T) {
	for text, want := range map[string]time.Time{
		"1.5": time.Unix(1, 500e6), "0": time.Unix(0, 0), "-1.25": time.Unix(-1, -250e6),
		"1793534400.001":              time.Unix(1793534400, 1e6),
		"2026-11-01T12:00:00.5+01:00": time.Date(2026, 11, 1, 11, 0, 0, 500e6, time.UTC),
	} {
		got, err := parseMoment(text)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "now", "NaN", "+Inf", fmt.Sprint(math.MaxFloat64), "-62135596801",
		"10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"} {
		if got, err := parseMoment(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
