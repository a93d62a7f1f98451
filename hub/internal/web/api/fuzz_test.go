package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sound checks what holds for every answer: it is not an internal error, it is not long, and it is
// JSON if its type says so.
func sound(t *testing.T, h http.Handler, r *http.Request) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	switch w.Code {
	case 200, 400, 404, 405, 413, 422:
	default:
		t.Fatalf("%s %q: status %d: %.500s", r.Method, r.URL, w.Code, w.Body)
	}
	if w.Body.Len() > 8<<20 {
		t.Fatalf("%s %q: %d bytes", r.Method, r.URL, w.Body.Len())
	}
	if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
		t.Fatalf("%s %q: no JSON: %.500s", r.Method, r.URL, w.Body)
	}
	if r.URL.Path != "/api/linerate/v1/documents/c1" && strings.Contains(w.Body.String(), "linerate.history/1") {
		t.Fatalf("%s %q: a document by another name", r.Method, r.URL)
	}
}

func request(method, path, query, body string) *http.Request {
	r := httptest.NewRequest("POST", "http://localhost/", strings.NewReader(body))
	r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// FuzzQuery tries PromQL with times of every kind. Its cost is bounded before it runs (TestAttacks
// has the bounds), so the test needs no clock.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"up", "1+1", `"text"`, `rate(linerate_interface_receive_bytes_total{interface=~"eth.*"}[30s])`,
		`sum by (interface) ({__name__=~".+"})`, "max_over_time(vector(1)[10m:1s])",
		`label_replace({__name__=~".+"}, "a", "$1", "interface", "(.*)")`,
		"topk(1, {__name__=~\".+\"}) offset 1m @ end()", "histogram_quantile(0.9, {__name__=~\".+\"})", "absent(none)",
		"count_values(\"v\", {__name__=~\".+\"})", "predict_linear(linerate_interface_receive_bytes_total[1m], 1e300)",
		"holt_winters(a[1m],0.5,0.5)", "time() % 0", "(-1) ^ 0.5", "limitk(1, up)",
	} {
		f.Add(query, "1793534400", "1793534300", "1", "")
	}
	f.Add("up", "NaN", "1e308", "0x1p-3", "9999999999999999999")
	f.Add("vector(1)", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "366d", "-1")
	h := served(f, func(o *Options) { o.Timeline = happened(f) })
	f.Fuzz(func(t *testing.T, query, end, start, step, limit string) {
		if len(query) > 4096 {
			return
		}
		sound(t, h, request("GET", "/api/v1/query", q("query", query, "time", end, "limit", limit), ""))
		sound(t, h, request("POST", "/api/v1/query_range", "",
			q("query", query, "start", start, "end", end, "step", step, "limit", limit)))
		sound(t, h, request("GET", "/api/v1/format_query", q("query", query), ""))
		sound(t, h, request("GET", "/api/v1/series", q("match[]", query, "start", start, "end", end, "limit", limit),
			""))
		sound(t, h, request("GET", "/api/v1/label/interface/values", q("match[]", query, "limit", limit), ""))
	})
}

// FuzzPath tries any paths and queries.
func FuzzPath(f *testing.F) {
	a := New(Options{}).(*api)
	for path := range a.routes {
		f.Add("GET", path, "start=0&end=1&limit=1&match[]=up&query=1")
	}
	for _, path := range []string{"/api/v1/label/__name__/values", "/api/v1/label/U__a_2e_/values",
		"/api/linerate/v1/documents/c1", "/api/linerate/v1/documents/../secret", "/api/linerate/v1/documents/%2e%2e",
		"//", "/\x00", "/api/v1/label/\xff/values"} {
		f.Add("HEAD", path, "")
	}
	f.Add("GET", "/api/linerate/v1/compare",
		"before_start=1793534280&before_end=1793534330&after_start=1793534340&after_end=1793534400&interface=eth0&host=here")
	h := served(f, func(o *Options) { o.Timeline = happened(f) })
	f.Fuzz(func(t *testing.T, method, path, query string) { sound(t, h, request(method, path, query, "")) })
}

// FuzzForm tries bodies of every declared type.
func FuzzForm(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", "query=up&time=1&timeout=1s&lookback_delta=5m&limit=1&stats=all")
	f.Add("application/x-www-form-urlencoded; charset=utf-16", "query=%ff&query=up&start=1&end=2&step=1")
	f.Add("multipart/form-data; boundary=b",
		"--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\n1\r\n--b--\r\n")
	f.Add("application/json", `{"query":"up"}`)
	f.Add(";", "match[]=up&match[]={a=~\".+\"}")
	h := served(f, func(o *Options) { o.Timeline = happened(f) })
	f.Fuzz(func(t *testing.T, contentType, body string) {
		for _, path := range []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/series", "/api/v1/labels",
			"/api/v1/format_query", "/api/v1/query_exemplars"} {
			r := request("POST", path, "", body)
			r.Header.Set("Content-Type", contentType)
			sound(t, h, r)
		}
	})
}
