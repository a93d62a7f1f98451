package api

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

// noon is the last second of every test's history.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// filled returns a history with growing values of each series, a second apart, the last at noon.
func filled(t testing.TB, seconds int, metrics ...*sample.Metric) *record.Store {
	t.Helper()
	s, err := record.Open(record.Options{Dir: t.TempDir(), Host: "here", Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var points []sample.Point
	for _, m := range metrics {
		for _, thing := range []string{"eth0", "eth1"} {
			series := &sample.Series{Metric: m}
			for range m.Labels {
				series.Values = append(series.Values, thing)
			}
			points = append(points, sample.Point{Series: series})
			if len(m.Labels) == 0 {
				break
			}
		}
	}
	for i := range seconds {
		for j := range points {
			points[j].Value = float64(i * (j + 1))
		}
		if err := s.Append(&sample.Reading{Time: noon.Add(time.Duration(i-seconds+1) * time.Second),
			Points: points}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var (
	bytesTotal = &sample.Metric{Name: "linerate_interface_receive_bytes_total", Kind: sample.Counter,
		Help: "Bytes that came.", Labels: []string{"interface"}}
	speed = &sample.Metric{Name: "linerate_interface_speed_bits_per_second", Kind: sample.Gauge,
		Help: "Speed of the link, with a \\ in it.", Labels: []string{"interface"}}
)

func served(t testing.TB, change ...func(*Options)) http.Handler {
	t.Helper()
	o := Options{Host: "here", Version: "1.2.3", Store: filled(t, 120, bytesTotal, speed),
		Metrics: []*sample.Metric{bytesTotal, speed}, now: func() time.Time { return noon },
		maxTime: time.Hour}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

// ask sends a request with path and query unchanged.
func ask(h http.Handler, method, target string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/", body)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawQuery = path, query
	if p, err := url.PathUnescape(path); err == nil {
		r.URL.Path = p
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const form = "Content-Type: application/x-www-form-urlencoded"

// q returns a URL query of names and values.
func q(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func TestPrometheusAnswers(t *testing.T) {
	h := served(t)
	at := "1793534400" // noon
	for _, c := range []struct {
		name, target string
		code         int
		want         string
	}{
		{"scalar", "/api/v1/query?" + q("query", "1+1", "time", at), 200,
			`{"status":"success","data":{"resultType":"scalar","result":[1793534400,"2"]}}`},
		{"default time", "/api/v1/query?" + q("query", "time()"), 200,
			`{"status":"success","data":{"resultType":"scalar","result":[1793534400,"1793534400"]}}`},
		{"text", "/api/v1/query?" + q("query", `"a<b"`, "time", at), 200,
			`{"status":"success","data":{"resultType":"string","result":[1793534400,"a\u003cb"]}}`},
		{"vector", "/api/v1/query?" + q("query", `linerate_interface_receive_bytes_total`, "time", at), 200,
			`{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth0"},"value":[1793534400,"119"]},` +
				`{"metric":{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth1"},"value":[1793534400,"238"]}]}}`},
		{"limit", "/api/v1/query?" + q("query", `linerate_interface_receive_bytes_total`, "time", at, "limit", "1"),
			200,
			`{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth0"},"value":[1793534400,"119"]}]},` +
				`"warnings":["results truncated due to limit"]}`},
		{"nothing", "/api/v1/query?" + q("query", `no_such_metric`, "time", at), 200,
			`{"status":"success","data":{"resultType":"vector","result":[]}}`},
		{"NaN and infinities",
			"/api/v1/query?" + q("query",
				`label_replace(vector(0/0),"l","a\"b\\c\n","","") or label_replace(vector(1/0),"l","i","","") `+
					`or label_replace(vector(-1/0),"l","j","","")`, "time", "1.5"), 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"l":"a\"b\\c\n"},` +
				`"value":[1.500,"NaN"]},{"metric":{"l":"i"},"value":[1.500,"+Inf"]},{"metric":{"l":"j"},` +
				`"value":[1.500,"-Inf"]}]}}`},
		{"before 1970", "/api/v1/query?" + q("query", `vector(1)`, "time", "-1.25"), 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[-1.250,"1"]}]}}`},
		{"range", "/api/v1/query_range?" + q("query", `rate(linerate_interface_receive_bytes_total[10s])`, "start",
			"2026-11-01T11:59:50Z", "end", at, "step", "5s"), 200,
			`{"status":"success","data":{"resultType":"matrix","result":[` +
				`{"metric":{"host":"here","interface":"eth0"},"values":[[1793534390,"1"],[1793534395,"1"],` +
				`[1793534400,"1"]]},` +
				`{"metric":{"host":"here","interface":"eth1"},"values":[[1793534390,"2"],[1793534395,"2"],` +
				`[1793534400,"2"]]}]}}`},
		{"large and small", "/api/v1/query_range?" +
			q("query", `vector(1e21) or label_replace(vector(1e-7),"l","a","","")`, "start", "0", "end", "0.5", "step",
				"0.5"), 200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1e+21"],` +
				`[0.500,"1e+21"]]},{"metric":{"l":"a"},"values":[[0,"1e-07"],[0.500,"1e-07"]]}]}}`},
		{"samples", "/api/v1/query?" + q("query", `linerate_interface_receive_bytes_total{interface="eth0"}[2s]`,
			"time", at), 200,
			`{"status":"success","data":{"resultType":"matrix",` +
				`"result":[{"metric":{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth0"},"values":[[1793534399,"118"],[1793534400,"119"]]}]}}`},
		{"series", "/api/v1/series?" + q("match[]", `{interface="eth1",__name__=~".*bytes.*"}`), 200,
			`{"status":"success","data":[{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth1"}]}`},
		{"series, twice", "/api/v1/series?" + q("match[]", `{interface="eth1",__name__=~".*bytes.*"}`, "match[]",
			`{__name__=~".*receive_bytes.*"}`), 200,
			`{"status":"success","data":[{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth0"},{"__name__":"linerate_interface_receive_bytes_total","host":"here",` +
				`"interface":"eth1"}]}`},
		{"series, then", "/api/v1/series?" + q("match[]", `{interface="eth1"}`, "start", "0", "end", "1"), 200,
			`{"status":"success","data":[]}`},
		{"labels", "/api/v1/labels?" + q("match[]", `{interface!=""}`), 200,
			`{"status":"success","data":["__name__","host","interface"]}`},
		{"labels of", "/api/v1/labels?" + q("match[]", "none", "match[]", "linerate_interface_speed_bits_per_second"),
			200, `{"status":"success","data":["__name__","host","interface"]}`},
		{"values", "/api/v1/label/interface/values?" + q("match[]", "linerate_interface_speed_bits_per_second"), 200,
			`{"status":"success","data":["eth0","eth1"]}`},
		{"values, limit", "/api/v1/label/interface/values?limit=1", 200,
			`{"status":"success","data":["eth0"],"warnings":["results truncated due to limit"]}`},
		{"values of names", "/api/v1/label/__name__/values?" + q("match[]", `{interface!=""}`), 200,
			`{"status":"success","data":["linerate_interface_receive_bytes_total",` +
				`"linerate_interface_speed_bits_per_second"]}`},
		{"values of none", "/api/v1/label/none/values", 200, `{"status":"success","data":[]}`},
		{"metadata", "/api/v1/metadata?limit=1", 200,
			`{"status":"success","data":{"linerate_interface_receive_bytes_total":[{"type":"counter",` +
				`"help":"Bytes that came.","unit":""}]}}`},
		{"metadata of", "/api/v1/metadata?metric=linerate_interface_speed_bits_per_second", 200,
			`{"status":"success","data":{"linerate_interface_speed_bits_per_second":[{"type":"gauge",` +
				`"help":"Speed of the link, with a \\ in it.","unit":""}]}}`},
		{"rules", "/api/v1/rules?type=alert", 200, `{"status":"success","data":{"groups":[]}}`},
		{"exemplars", "/api/v1/query_exemplars?query=up", 200, `{"status":"success","data":[]}`},
		{"format", "/api/v1/format_query?" + q("query", "foo/bar"), 200, `{"status":"success","data":"foo / bar"}`},
		{"health", "/healthz", 200, "ok\n"},

		{"no query", "/api/v1/query", 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": unknown position: ` +
				`parse error: no expression found in input"}`},
		{"no PromQL", "/api/v1/query?" + q("query", "sum("), 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:5: parse error: ` +
				`unclosed left parenthesis"}`},
		{"end before start", "/api/v1/query_range?" + q("query", "up", "start", "2", "end", "1", "step", "1"), 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"end\": end timestamp must ` +
				`not be before start time"}`},
		{"too many points", "/api/v1/query_range?" + q("query", "up", "start", "0", "end", "11001", "step", "1"), 400,
			`{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per ` +
				`timeseries. Try decreasing the query resolution (?step=XX)"}`},
		{"no match", "/api/v1/series", 400,
			`{"status":"error","errorType":"bad_data","error":"no match[] parameter provided"}`},
		{"match all", "/api/v1/series?" + q("match[]", `{interface=~".*"}`), 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": match[] must ` +
				`contain at least one non-empty matcher"}`},
		{"ambiguous", "/api/v1/query?" +
			q("query", `linerate_interface_receive_bytes_total + on(host) linerate_interface_speed_bits_per_second`,
				"time", at), 422, ""},
		{"unknown", "/api/v1/targets", 404,
			`{"status":"error","errorType":"not_found","error":"this path does not exist"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(h, "GET", c.target, nil)
			if w.Code != c.code || c.want != "" && w.Body.String() != c.want {
				t.Errorf("status %d, want %d\n got %s\nwant %s", w.Code, c.code, w.Body, c.want)
			}
			if c.name == "health" {
				return
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("type %q", got)
			}
			// Grafana sends forms.
			path, query, _ := strings.Cut(c.target, "?")
			if post := ask(h, "POST", path, strings.NewReader(query), form); post.Code != 405 &&
				post.Body.String() != w.Body.String() {
				t.Errorf("as a form: %d %s", post.Code, post.Body)
			}
		})
	}
}

func TestBuildInfoIsAPrometheus(t *testing.T) {
	w := ask(served(t), "GET", "/api/v1/status/buildinfo", nil)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"version":"3.`) ||
		!strings.Contains(body, `"buildUser":"linerate-hub 1.2.3"`) {
		t.Errorf("%d %s", w.Code, body)
	}
}

func TestMetricsText(t *testing.T) {
	hostile := &sample.Series{Metric: bytesTotal, Values: []string{"a\"b\\c\nd\xff\x1b[31m\u202e"}}
	h := served(t, func(o *Options) {
		o.Readings = func() []*sample.Reading {
			return []*sample.Reading{nil, {Points: []sample.Point{
				{Series: hostile, Value: 1e21}, {Series: &sample.Series{Metric: speed, Values: []string{"eth0"}},
					Value: math.NaN()},
			}}, {Points: []sample.Point{{Series: &sample.Series{Metric: bytesTotal, Values: []string{"eth1"}},
				Value: 12345678}}}}
		}
	})
	want := `# HELP linerate_interface_receive_bytes_total Bytes that came.
# TYPE linerate_interface_receive_bytes_total counter
linerate_interface_receive_bytes_total{host="here",interface="a\"b\\c\nd` + "\ufffd\ufffd[31m\ufffd" + `"} 1e+21
linerate_interface_receive_bytes_total{host="here",interface="eth1"} 12345678
# HELP linerate_interface_speed_bits_per_second Speed of the link, with a \\ in it.
# TYPE linerate_interface_speed_bits_per_second gauge
linerate_interface_speed_bits_per_second{host="here",interface="eth0"} NaN
`
	if w := ask(h, "GET", "/metrics", nil); w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d\n got %s\nwant %s", w.Code, w.Body, want)
	}
}

func TestAppendPoint(t *testing.T) {
	for _, c := range []struct {
		ms    int64
		value float64
		want  string
	}{
		{0, 0, `[0,"0"]`}, {1, -0.5, `[0.001,"-0.5"]`}, {-1, 1, `[-0.001,"1"]`},
		{1010, math.Copysign(0, -1), `[1.010,"-0"]`}, {1435781451781, 1e20, `[1435781451.781,"100000000000000000000"]`},
		{5, math.MaxFloat64, fmt.Sprintf(`[0.005,"%s"]`, "1.7976931348623157e+308")}, {100, 1e-6, `[0.100,"0.000001"]`},
	} {
		if got := string(appendPoint(nil, c.ms, c.value)); got != c.want {
			t.Errorf("%d %v: %s, want %s", c.ms, c.value, got, c.want)
		}
	}
}

// Active alerts have Prometheus's form, also with values that are no numbers; resolved ones are
// left out.
func TestAlerts(t *testing.T) {
	h := served(t, func(o *Options) {
		o.Alerts = func() []alert.Active {
			return []alert.Active{
				{State: alert.Firing, Labels: map[string]string{"alertname": "drops"}, Text: "eth0 drops", Value: 2.5,
					ActiveAt: noon},
				{State: alert.Pending, Labels: map[string]string{"alertname": "ratio"}, Value: math.Inf(1),
					ActiveAt: noon},
				{State: alert.Resolved, Labels: map[string]string{"alertname": "gone"}},
			}
		}
	})
	const want = `{"status":"success","data":{"alerts":[` +
		`{"labels":{"alertname":"drops"},"annotations":{"summary":"eth0 drops"},"state":"firing","activeAt":"` +
		"NOON" + `","value":"2.5e+00"},` +
		`{"labels":{"alertname":"ratio"},"annotations":{"summary":""},"state":"pending","activeAt":"` + "NOON" +
		`","value":"+Inf"}]}}`
	if got := ask(h, "GET", "/api/v1/alerts", nil).Body.String(); got != strings.ReplaceAll(want, "NOON",
		noon.Format(time.RFC3339)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
