package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/schedule"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
)

// everyMetric returns the metrics that a hub's store may have.
func everyMetric() []*sample.Metric {
	return slices.Concat(sample.Metrics(), schedule.Metrics())
}

// words are the label values that the queries of dist name, as in a real history. Any other label
// has one value.
var words = map[string][]string{
	"mode":      {"user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle"},
	"direction": {"receive", "transmit"}, "place": {"ring", "unwanted"}, "quantile": {"min", "0.5", "0.9", "0.99"},
}

// wordsOf returns the values of a label of a metric.
func wordsOf(m *sample.Metric, label string) []string {
	switch {
	case m.Name == "linerate_pressure_seconds_total" && label == "kind":
		return []string{"some", "full"}
	case words[label] != nil:
		return words[label]
	}
	return []string{label + "-1"}
}

// whole returns a history of ten minutes with every metric, all of which grow.
func whole(t *testing.T) *record.Store {
	t.Helper()
	s, err := record.Open(record.Options{Dir: t.TempDir(), Host: "here", Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var points []sample.Point
	for _, m := range everyMetric() {
		all := [][]string{nil}
		for _, label := range m.Labels {
			var longer [][]string
			for _, so := range all {
				for _, w := range wordsOf(m, label) {
					longer = append(longer, append(slices.Clone(so), w))
				}
			}
			all = longer
		}
		for _, values := range all {
			points = append(points, sample.Point{Series: &sample.Series{Metric: m, Values: values}})
		}
	}
	for i := range 600 {
		for j := range points {
			points[j].Value = float64(i + 1)
		}
		if err := s.Append(&sample.Reading{Time: noon.Add(time.Duration(i-599) * time.Second),
			Points: points}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// seen returns the number of series of a query at noon.
func seen(t *testing.T, h func(target string) (int, string), query string) int {
	t.Helper()
	code, body := h("/api/v1/query?" + url.Values{"query": {query}, "time": {fmt.Sprint(noon.Unix())}}.Encode())
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 {
		t.Errorf("%s: %d %s", query, code, body)
	}
	return len(answer.Data.Result)
}

// TestDashboardAndRulesFindTheirSeries runs all queries of the dashboard and the rules on a hub
// with every metric. A query with an outdated name or label finds nothing.
func TestDashboardAndRulesFindTheirSeries(t *testing.T) {
	store := whole(t)
	handler := New(Options{Host: "here", Store: store, now: func() time.Time { return noon }, maxTime: time.Hour})
	h := func(target string) (int, string) {
		w := ask(handler, "GET", target, nil)
		return w.Code, w.Body.String()
	}
	known := make(map[string]*sample.Metric)
	for _, m := range slices.Concat(everyMetric(), record.Metrics()) {
		known[m.Name] = m
	}
	p := parser.NewParser(parser.Options{})
	for from, queries := range map[string][]string{"dashboard": dashboard(t), "rules": rules(t)} {
		if len(queries) < 10 {
			t.Errorf("%s: only %d queries are found", from, len(queries))
		}
		for _, query := range queries {
			expr, err := p.ParseExpr(query)
			if err != nil {
				t.Errorf("%s: %s: %v", from, query, err)
				continue
			}
			// Each selector must find something, without its window and offset: the history of the
			// test is short.
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				v, ok := node.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				m := known[v.Name]
				if m == nil {
					t.Errorf("%s: %s: no metric %q exists", from, query, v.Name)
					return nil
				}
				for _, lm := range v.LabelMatchers {
					if lm.Name != "__name__" && lm.Name != "host" && !slices.Contains(m.Labels, lm.Name) {
						t.Errorf("%s: %s: %s has no label %q", from, query, v.Name, lm.Name)
					}
				}
				bare := *v
				bare.OriginalOffset, bare.Offset = 0, 0
				if seen(t, h, bare.String()) == 0 {
					t.Errorf("%s: %s: %s finds no series", from, query, &bare)
				}
				return nil
			})
			// Panels must return series; rules return series when they hold, which promtool tests.
			if n := seen(t, h, query); n == 0 && from == "dashboard" {
				t.Errorf("%s: %s gives no series", from, query)
			}
		}
	}
}

// dashboard returns the queries of all panels, for one time. Those of annotations hold only at what
// they mark.
func dashboard(t *testing.T) []string {
	b, err := os.ReadFile("../../../../dist/grafana/linerate.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$host", "here", "$interface", ".*", "$target", ".*")
	var all []string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, fill.Replace(q.Expr))
		}
	}
	values := regexp.MustCompile(`^label_values\((.*), [a-z]+\)$`)
	for _, v := range d.Templating.List {
		if m := values.FindStringSubmatch(v.Definition); m != nil {
			all = append(all, fill.Replace(m[1]))
		}
	}
	return all
}

// rules returns the queries of all alerts, and of the annotations of the dashboard.
func rules(t *testing.T) []string {
	b, err := os.ReadFile("../../../../dist/prometheus/linerate.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^ *expr: (.+)$`).FindAllStringSubmatch(string(b), -1) {
		all = append(all, m[1])
	}
	if b, err = os.ReadFile("../../../../dist/grafana/linerate.json"); err != nil {
		t.Fatal(err)
	}
	var notes struct {
		Annotations struct {
			List []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &notes); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$host", "here", "$interface", ".*", "$target", ".*")
	for _, n := range notes.Annotations.List {
		all = append(all, fill.Replace(n.Expr))
	}
	return all
}

// TestPromtoolTestsTheRules runs the unit tests of the rules: each alert fires for its fault and
// for nothing else.
func TestPromtoolTestsTheRules(t *testing.T) {
	promtool := testenv.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "linerate.rules.yml"},
		{"test", "rules", "linerate.rules.test.yml"}} {
		c := exec.Command(promtool, args...)
		c.Dir = "../../../../dist/prometheus"
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	tests, err := os.ReadFile("../../../../dist/prometheus/linerate.rules.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../../../dist/prometheus/linerate.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(file), -1) {
		if !strings.Contains(string(tests), "alertname: "+m[1]+"\n") {
			t.Errorf("%s has no test", m[1])
		}
	}
}
