package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/sample"
)

var update = flag.Bool("update", false, "write the files that are generated")

// happened is a timeline with an event of two kinds and a document. It opens nothing outside its
// directory, and fails the test when it is made to.
func happened(t testing.TB) *timeline.Store {
	t.Helper()
	dir := t.TempDir()
	inside := filepath.Join(dir, "timeline")
	opened := false // before that its parent is synced
	disk := durable.NewFaulty(durable.OS(), func(op durable.Op) error {
		if rel, err := filepath.Rel(inside, op.Path); opened && (err != nil || !filepath.IsLocal(rel)) {
			t.Errorf("%s %s: outside the data directory", op.Kind, op.Path)
		}
		return nil
	})
	// The target of a path that leads out of the directory.
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := timeline.Open(timeline.Options{Dir: inside, FS: disk, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	opened = true
	t.Cleanup(func() { _ = s.Close() })
	for _, e := range []timeline.Event{
		{ID: "c1", Kind: timeline.Change, Time: noon.Add(-time.Hour), Host: "here", Subject: "net.core.rmem_max",
			Title: "net.core.rmem_max to 16 MiB", State: "committed", Undo: "linerate undo c1"},
		{ID: "m1", Kind: timeline.Measurement, Time: noon.Add(-time.Minute), Host: "here", Subject: "far",
			Title: "940 Mbit/s to far"},
	} {
		var doc []byte
		if e.Kind == timeline.Change {
			doc = []byte(`{"schema":"linerate.history/1"}`)
		}
		if err := s.Put(e, doc); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestOwnAnswers(t *testing.T) {
	rate := 940e6
	h := served(t, func(o *Options) {
		o.Timeline = happened(t)
		o.Status = func() Status {
			return Status{Host: "here", Started: noon, Now: noon, RetentionSeconds: 86400,
				Disk:   DiskOf(record.Status{State: record.DiskFull, Since: noon, FreeBytes: 5, Cause: "no room"}),
				Series: 4}
		}
		o.Hosts = func() []Host {
			return []Host{{Host: "here",
				Interfaces: []Interface{{Name: "eth0", Kind: "ethernet", Up: true, Speed: 1e9, MTU: 1500}}},
				{Host: "other"}}
		}
		o.Findings = func() Findings {
			return Findings{Time: noon, Findings: []evidence.Finding{{Code: "drops.ring", Title: "drops"}}}
		}
		o.Matrix = func() []Cell {
			return []Cell{{From: "here", To: "far", Test: "stream", Direction: "up", Time: noon, Throughput: &rate,
				Event: "m1"}, {From: "here", To: "off", Test: "ping", Direction: "up", Time: noon, Error: "no answer"}}
		}
	})
	change := `{"id":"c1","kind":"change","time":"2026-11-01T11:00:00Z","host":"here",` +
		`"subject":"net.core.rmem_max","title":"net.core.rmem_max to 16 MiB","state":"committed",` +
		`"undo":"linerate undo c1","has_document":true}`
	run := `{"id":"m1","kind":"measurement","time":"2026-11-01T11:59:00Z","host":"here","subject":"far",` +
		`"title":"940 Mbit/s to far"}`
	events := func(truncated string, list ...string) string {
		return `{"schema":"linerate.hub.events/1","linerate":"1.2.3","events":[` + strings.Join(list, ",") +
			`],"truncated":` + truncated + "}\n"
	}
	const root = "/api/linerate/v1/"
	for _, c := range []struct {
		target string
		code   int
		want   string
	}{
		{"status", 200, `{"schema":"linerate.hub.status/1","linerate":"1.2.3","host":"here",` +
			`"started":"2026-11-01T12:00:00Z","now":"2026-11-01T12:00:00Z","retention_seconds":86400,` +
			`"disk":{"bytes":0,"free_bytes":5,"state":"full","since":"2026-11-01T12:00:00Z","cause":"no room",` +
			`"kept_in_memory_seconds":0},"series":4,"samples_per_second":0,"loading":false,"warnings":[]}` + "\n"},
		{"hosts", 200, `{"schema":"linerate.hub.hosts/1","linerate":"1.2.3","hosts":[{"host":"here",` +
			`"interfaces":[{"name":"eth0","kind":"ethernet","driver":"","parent":"","up":true,` +
			`"speed_bits_per_second":1000000000,"mtu_bytes":1500}]},{"host":"other","interfaces":[]}]}` + "\n"},
		{"matrix", 200, `{"schema":"linerate.hub.matrix/1","linerate":"1.2.3","from":["here"],"to":["far",` +
			`"off"],"cells":[` +
			`{"from":"here","to":"far","test":"stream","direction":"up","time":"2026-11-01T12:00:00Z",` +
			`"throughput_bits_per_second":940000000,"event":"m1"},` +
			`{"from":"here","to":"off","test":"ping","direction":"up","time":"2026-11-01T12:00:00Z","error":"no ` +
			`answer"}]}` + "\n"},
		{"findings", 200, ""},
		{"switches", 200, ""},
		{"events", 200, events("false", change, run)},
		{"events?" + q("kind", "change,reboot"), 200, events("false", change)},
		{"events?" + q("kind", "change", "kind", "measurement", "host", "here"), 200, events("false", change, run)},
		{"events?" + q("limit", "1"), 200, events("true", run)},
		{"events?" + q("subject", "far", "limit", "999999999"), 200, events("false", run)},
		{"events?" + q("host", "other"), 200, events("false")},
		{"events?" + q("start", "2026-11-01T11:30:00Z", "end", "2026-11-01T12:00:00Z"), 200, events("false", run)},
		{"events?" + q("limit_per_kind", "1"), 200, events("false", change, run)},
		{"events?" + q("limit_per_kind", "1", "limit", "1"), 200, events("true", run)},
		{"events?" + q("limit_per_kind", "-1"), 400, ""},
		{"events?" + q("kind", "chance"), 400, ""},
		{"events?" + q("start", "2", "end", "1"), 400, ""},
		{"documents/c1", 200, `{"schema":"linerate.history/1"}`},
		{"documents/m1", 404, ""},
		{"documents/", 404, ""},
		{"compare", 400, ""},
		{"compare?" + q("before_start", "1", "before_end", "2", "after_start", "3", "after_end", "4"), 400, ""},
	} {
		w := ask(h, "GET", root+c.target, nil)
		if w.Code != c.code || c.want != "" && w.Body.String() != c.want {
			t.Errorf("%s: status %d, want %d\n got %s\nwant %s", c.target, w.Code, c.code, w.Body, c.want)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: type %q", c.target, got)
		}
	}
	if w := ask(h, "GET", root+"findings", nil); !strings.HasPrefix(w.Body.String(),
		`{"schema":"linerate.hub.findings/1","linerate":"1.2.3","time":"2026-11-01T12:00:00Z",`+
			`"findings":[{"code":"drops.ring",`) {
		t.Errorf("findings: %s", w.Body)
	}
}

// TestNothingIsThere sends requests to a hub without sources.
func TestNothingIsThere(t *testing.T) {
	h := served(t)
	for path, want := range map[string]string{"hosts": `"hosts":[]`, "events": `"events":[]`,
		"findings": `"findings":[]`, "matrix": `"cells":[]`, "switches": `"switches":[]`, "status": `"warnings":[]`} {
		if w := ask(h, "GET", "/api/linerate/v1/"+path, nil); w.Code != 200 ||
			!strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestCompareAnswers(t *testing.T) {
	store, err := record.Open(record.Options{Dir: t.TempDir(), Host: "here", Queries: record.Bounds{Time: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p := []sample.Point{{Series: &sample.Series{Metric: bytesTotal, Values: []string{"eth0"}}}}
	source := rand.New(rand.NewPCG(1, 1))
	for i := -399; i <= 0; i++ {
		grow := 1000.0
		if i > -200 {
			grow = 500
		}
		p[0].Value += grow + float64(source.IntN(10))
		if err := store.Append(&sample.Reading{Time: noon.Add(time.Duration(i) * time.Second), Points: p}); err != nil {
			t.Fatal(err)
		}
	}
	h := served(t, func(o *Options) { o.Store = store })
	at := func(s int) string { return noon.Add(time.Duration(s) * time.Second).Format(time.RFC3339) }
	w := ask(h, "GET", "/api/linerate/v1/compare?"+q("before_start", at(-390), "before_end", at(-200), "after_start",
		at(-190), "after_end", at(0), "interface", "eth0"), nil)
	var d struct {
		Schema string
		Rows   []struct {
			Metric string
			Ratio  float64
			Moved  bool
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	if d.Schema != "linerate.compare/1" || len(d.Rows) != 1 || !d.Rows[0].Moved || d.Rows[0].Ratio < 0.49 ||
		d.Rows[0].Ratio > 0.52 {
		t.Errorf("%+v", d)
	}
}

// TestGeneratedDescription compares the copy of the description in docs with openapi.json, and the
// description with the routes.
func TestGeneratedDescription(t *testing.T) {
	const copied = "../../../../docs/hub-api.json"
	if *update {
		if err := os.WriteFile(copied, openapi, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(copied); err != nil || !bytes.Equal(b, openapi) {
		t.Errorf("%s is not openapi.json: %v; run go test ./hub/internal/web/api -run Generated -update", copied, err)
	}
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi, &d); err != nil {
		t.Fatal(err)
	}
	a := New(Options{}).(*api)
	var want, got []string
	for path, r := range a.routes {
		want = append(want, "get "+path)
		if r.post {
			want = append(want, "post "+path)
		}
	}
	want = append(want, "get /api/v1/label/{name}/values", "get /api/linerate/v1/documents/{id}")
	for path, methods := range d.Paths {
		for m := range methods {
			got = append(got, m+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("described: %q\nrouted: %q", got, want)
	}
	if w := ask(served(t), "GET", "/api/linerate/v1/openapi.json", nil); w.Code != http.StatusOK ||
		!bytes.Equal(w.Body.Bytes(), openapi) {
		t.Errorf("served: %d", w.Code)
	}
}

// TestMetrics counts the metrics of /metrics, and runs promtool check metrics on them.
func TestMetrics(t *testing.T) {
	h := served(t, func(o *Options) {
		o.Readings = func() []*sample.Reading {
			r := &sample.Reading{}
			for _, m := range sample.Metrics() {
				s := &sample.Series{Metric: m}
				for range m.Labels {
					s.Values = append(s.Values, `odd "name" \`)
				}
				r.Points = append(r.Points, sample.Point{Series: s, Value: 0.5})
			}
			return []*sample.Reading{r}
		}
	})
	w := ask(h, "GET", "/metrics", nil)
	if n := strings.Count(w.Body.String(), "# TYPE "); n != len(sample.Metrics()) || n < 20 {
		t.Errorf("%d metrics of %d are in the answer", n, len(sample.Metrics()))
	}
	t.Run("promtool", func(t *testing.T) {
		check := exec.Command(testenv.Program(t, "promtool"), "check", "metrics")
		check.Stdin = w.Body
		out, err := check.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			// Network speeds are in bits per second by convention; promtool suggests bytes.
			if !strings.HasSuffix(strings.TrimSpace(line), `_bits_per_second use base unit "bytes" instead of "bits"`) {
				t.Errorf("promtool check metrics: %s", line)
			}
		}
		if err != nil && len(out) == 0 {
			t.Errorf("promtool check metrics: %v", err)
		}
	})
}
