package api

import (
	"cmp"
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
	"github.com/linerate/linerate/internal/report"
)

// Options are the sources of answers. A nil func answers with an empty list.
type Options struct {
	Host    string // label host of this host's own readings
	Version string // of this program
	Store   *record.Store
	// Metrics are those that the store may have, for their help.
	Metrics []*sample.Metric
	// Readings returns the last reading of each source (this host, its measurements, the hub
	// itself). They must not change afterwards.
	Readings func() []*sample.Reading
	// Every is the time between two readings; 0: a second.
	Every time.Duration
	// Timeline has the events and their documents; may be nil.
	Timeline *timeline.Store
	Status   func() Status
	Hosts    func() []Host
	Findings func() Findings
	Switches func() []report.Switch
	Matrix   func() []Cell
	// Alerts returns the pending and firing alerts.
	Alerts func() []alert.Active
	// Fleet is nil for a hub without other hosts.
	Fleet Fleet
	Log   *slog.Logger

	now     func() time.Time // tests set it
	maxTime time.Duration    // of a query; tests set it; 0: maxTime
}

// The bounds of every answer.
const (
	maxPoints      = 11_000           // of a series, as Prometheus has it
	maxBytes       = 64 << 20         // of an answer
	maxQuery       = 32 << 10         // bytes of PromQL
	maxDepth       = 200              // of an expression
	maxEvaluations = 1_000_000        // of one subquery, for each series
	maxSelectors   = 64               // match[] of one request
	maxSeries      = 10_000           // in a list of series
	maxNames       = 50_000           // in a list of labels or label values
	maxTime        = 10 * time.Second // of a query
	maxCompare     = 30 * time.Second // of a comparison
	maxForm        = 1 << 20          // bytes of a request's body
	maxName        = 1 << 10          // bytes of a host's or an interface's name
)

// api serves requests.
type api struct {
	Options
	parser    parser.Parser
	routes    map[string]route
	comparing chan struct{} // held by the one comparison that runs
}

// route answers one path.
type route struct {
	post bool // besides GET
	do   func(w http.ResponseWriter, r *http.Request) error
}

// New returns the handler of /api/, /metrics and /healthz. It answers 404 to every other path.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.maxTime = cmp.Or(o.maxTime, maxTime)
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
	maps.Copy(a.routes, a.fleet())
	return a
}

// routed returns the route of a path.
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
		a.fail(w, r, &problem{http.StatusNotFound, "not_found", "this path does not exist"})
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

// problem is an error with the text for the client.
type problem struct {
	code   int
	kind   string
	reason string
}

func (p *problem) Error() string { return p.reason }

// bad returns a mistake of the client.
func bad(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "bad_data", fmt.Sprintf(format, args...)}
}

// invalid returns the error of an invalid parameter, in Prometheus's words.
func invalid(name string, err error) error { return bad("invalid parameter %q: %s", name, err) }

// tooMuch returns the error of a valid request that costs too much.
func tooMuch(format string, args ...any) error {
	return &problem{http.StatusUnprocessableEntity, "execution", fmt.Sprintf(format, args...)}
}

// statusGone is what Prometheus answers to a client that disconnected. Only logs show it.
const statusGone = 499

// known returns the problem for a known error, or nil.
func known(err error) *problem {
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
	p := known(err)
	if p == nil {
		// Most likely the disk: the client did nothing wrong, and a retry may succeed.
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

// fixed answers requests for what the hub does not have.
func fixed(data string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":` + data + `}`))
		return nil
	}
}

// alerts answers in Prometheus's form (its documentation, "Querying the HTTP API", alerts).
// Resolved alerts are events of the timeline.
func (a *api) alerts(w http.ResponseWriter, _ *http.Request) error {
	type shown struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		State       alert.State       `json:"state"`
		ActiveAt    time.Time         `json:"activeAt"`
		Value       string            `json:"value"`
	}
	all := []shown{}
	if a.Alerts != nil {
		for _, active := range a.Alerts() {
			if active.State == alert.Resolved {
				continue
			}
			annotations := map[string]string{"summary": active.Text}
			maps.Copy(annotations, active.Annotations)
			all = append(all, shown{active.Labels, annotations, active.State,
				active.ActiveAt, strconv.FormatFloat(active.Value, 'e', -1, 64)})
		}
	}
	return success(w, map[string]any{"alerts": all}, nil)
}

// success answers with a small value.
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

// first cuts a list to a limit; 0 means the bound of this API.
func first[T any](all []T, limit, bound int) ([]T, []string) {
	if limit == 0 || limit > bound {
		limit = bound
	}
	if len(all) <= limit {
		return all, nil
	}
	return slices.Clip(all[:limit]), []string{"results truncated due to limit"}
}
