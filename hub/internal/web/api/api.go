package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/host/sample"
)

// Options are where answers come from. A func that is nil answers nothing: its list is empty.
type Options struct {
	Host    string // the label host of this host's own readings
	Version string // of this program
	Store   *record.Store
	// Metrics are those that may be in the store, for their help.
	Metrics []*sample.Metric
	// Readings are the last of each source (this host, its measurements, the hub itself). Nobody
	// may change them after.
	Readings func() []*sample.Reading
	// Every is the time from one reading to the next; 0: a second.
	Every time.Duration
	// Timeline has the events and their documents. Nil: there are none.
	Timeline *timeline.Store
	Status   func() Status
	Hosts    func() []Host
	Findings func() Findings
	Matrix   func() []Cell
	// Alerts are those that are pending or fire.
	Alerts func() []alert.Active
	Log    *slog.Logger

	now func() time.Time // of tests
}

// The bounds of every answer.
const (
	maxPoints      = 11_000           // of a series, as Prometheus has it
	maxBytes       = 64 << 20         // of an answer
	maxQuery       = 32 << 10         // bytes of PromQL
	maxDepth       = 200              // of an expression
	maxEvaluations = 1_000_000        // of one subquery, for each series
	maxSelectors   = 64               // match[] of one request
	maxSeries      = 10_000           // that series may list
	maxNames       = 50_000           // that labels and label values may list
	maxTime        = 10 * time.Second // of a query
	maxCompare     = 30 * time.Second // of a comparison
	maxForm        = 1 << 20          // bytes of a request's body
	maxName        = 1 << 10          // bytes of a host's or an interface's name
)

// api answers.
type api struct {
	Options
	parser    parser.Parser
	routes    map[string]route
	comparing chan struct{} // held by the one comparison that runs
}

// route is what is below one path.
type route struct {
	post bool // besides GET
	do   func(w http.ResponseWriter, r *http.Request) error
}

// New gives the handler of /api/, /metrics and /healthz. It answers 404 to every other path.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	a := &api{Options: o, parser: parser.NewParser(parser.Options{}), comparing: make(chan struct{}, 1)}
	a.routes = map[string]route{
		"/api/v1/query":            {true, a.query},
		"/api/v1/query_range":      {true, a.queryRange},
		"/api/v1/query_exemplars":  {true, fixed("[]")},
		"/api/v1/format_query":     {true, a.formatQuery},
		"/api/v1/series":           {true, a.series},
		"/api/v1/labels":           {true, a.labelNames},
		"/api/v1/metadata":         {false, a.metadata},
		"/api/v1/rules":            {false, fixed(`{"groups":[]}`)},
		"/api/v1/alerts":           {false, a.alerts},
		"/api/v1/status/buildinfo": {false, a.buildInfo},
		"/metrics":                 {false, a.metrics},
		"/healthz":                 {false, healthy},
	}
	maps.Copy(a.routes, a.own())
	return a
}

// routed finds what a path is answered by.
func (a *api) routed(path string) (route, bool) {
	if rt, ok := a.routes[path]; ok {
		return rt, true
	}
	if rest, ok := strings.CutPrefix(path, "/api/v1/label/"); ok {
		if name, ok := strings.CutSuffix(rest, "/values"); ok && name != "" && !strings.Contains(name, "/") {
			return route{false, func(w http.ResponseWriter,
				r *http.Request) error {
				return a.labelValues(w, r, name)
			}}, true
		}
	}
	if id, ok := strings.CutPrefix(path, "/api/linerate/v1/documents/"); ok {
		return route{false, func(w http.ResponseWriter, _ *http.Request) error { return a.stored(w, id) }}, true
	}
	return route{}, false
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, ok := a.routed(r.URL.Path)
	if !ok {
		a.fail(w, r, &problem{http.StatusNotFound, "not_found", "there is nothing at this path"})
		return
	}
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead, r.Method == http.MethodPost && rt.post:
	default:
		allow := "GET, HEAD"
		if rt.post {
			allow += ", POST"
		}
		w.Header().Set("Allow", allow)
		a.fail(w, r, &problem{http.StatusMethodNotAllowed, "bad_data", "method is not allowed here"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	// Not FormValue, which would read forms in parts: those can come with files.
	if err := r.ParseForm(); err != nil {
		code := http.StatusBadRequest
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			code = http.StatusRequestEntityTooLarge
		}
		a.fail(w, r, &problem{code, "bad_data", "error parsing form values: " + err.Error()})
		return
	}
	if err := rt.do(w, r); err != nil {
		a.fail(w, r, err)
	}
}

// problem is an error with what a client is told.
type problem struct {
	code   int
	kind   string
	reason string
}

func (p *problem) Error() string { return p.reason }

// bad is the client's mistake.
func bad(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "bad_data", fmt.Sprintf(format, args...)}
}

// invalid is a parameter that says nothing useful, in Prometheus's words.
func invalid(name string, err error) error { return bad("invalid parameter %q: %s", name, err) }

// tooMuch is a question that is understood and costs too much.
func tooMuch(format string, args ...any) error {
	return &problem{http.StatusUnprocessableEntity, "execution", fmt.Sprintf(format, args...)}
}

// statusGone is what Prometheus answers to a client that has gone away: nobody reads it, but logs
// do.
const statusGone = 499

// told makes a problem of what is known to go wrong; nil: it is not known.
func told(err error) *problem {
	var (
		p        *problem
		canceled promql.ErrQueryCanceled
		late     promql.ErrQueryTimeout
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, record.ErrBadQuery):
		return &problem{http.StatusBadRequest, "bad_data", `invalid parameter "query": ` +
			strings.TrimPrefix(err.Error(), record.ErrBadQuery.Error()+": ")}
	case errors.Is(err, record.ErrTooMuch):
		return &problem{http.StatusUnprocessableEntity, "execution", err.Error()}
	case errors.Is(err, record.ErrTimeout), errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return &problem{http.StatusServiceUnavailable, "timeout", err.Error()}
	case errors.Is(err, record.ErrCanceled), errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &problem{statusGone, "canceled", err.Error()}
	case errors.Is(err, record.ErrBusy), errors.Is(err, record.ErrLoading), errors.Is(err, record.ErrClosed):
		return &problem{http.StatusServiceUnavailable, "unavailable", err.Error()}
	}
	return nil
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := told(err)
	if p == nil {
		// The disk, most likely: not the client's doing, and perhaps over soon.
		a.Log.Error("cannot answer", "path", r.URL.Path, "error", err)
		p = &problem{http.StatusServiceUnavailable, "unavailable", err.Error()}
	}
	b, _ := json.Marshal(struct {
		Status string `json:"status"`
		Type   string `json:"errorType"`
		Error  string `json:"error"`
	}{"error", p.kind, p.reason})
	if p.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.code)
	_, _ = w.Write(b)
}

// fixed is the answer to what this hub has none of.
func fixed(data string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":` + data + `}`))
		return nil
	}
}

// alerts are told in Prometheus's form (its documentation, "Querying the HTTP API", alerts), for
// programs that show them. What has ended is an event of the timeline.
func (a *api) alerts(w http.ResponseWriter, _ *http.Request) error {
	type told struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		State       alert.State       `json:"state"`
		ActiveAt    time.Time         `json:"activeAt"`
		Value       string            `json:"value"`
	}
	all := []told{}
	if a.Alerts != nil {
		for _, active := range a.Alerts() {
			if active.State == alert.Resolved {
				continue
			}
			all = append(all, told{active.Labels, map[string]string{"summary": active.Text}, active.State,
				active.ActiveAt, strconv.FormatFloat(active.Value, 'e', -1, 64)})
		}
	}
	return success(w, map[string]any{"alerts": all}, nil)
}

// success answers with a value that is small.
func success(w http.ResponseWriter, data any, warnings []string) error {
	b, err := json.Marshal(struct {
		Status   string   `json:"status"`
		Data     any      `json:"data"`
		Warnings []string `json:"warnings,omitempty"`
	}{"success", data, warnings})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
	return nil
}

func healthy(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
	return nil
}

// first cuts a list to a limit; 0 is none but the bound of this API.
func first[T any](all []T, limit, bound int) ([]T, []string) {
	if limit == 0 || limit > bound {
		limit = bound
	}
	if len(all) <= limit {
		return all, nil
	}
	return slices.Clip(all[:limit]), []string{"results truncated due to limit"}
}
