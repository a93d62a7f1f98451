package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

// asked holds the parameters that query and query_range share.
type asked struct {
	text     string
	limit    int
	timeout  time.Duration
	warnings []string
}

func (a *api) asked(form url.Values) (asked, error) {
	q := asked{text: form.Get("query"), timeout: a.maxTime}
	var err error
	if q.limit, err = count(form, "limit"); err != nil {
		return q, err
	}
	if form.Get("timeout") != "" {
		d, err := span(form, "timeout")
		if err != nil {
			return q, err
		}
		if d <= 0 {
			return q, invalid("timeout", fmt.Errorf("timeout must be positive, got %s", d))
		}
		q.timeout = min(q.timeout, d)
	}
	if form.Get("lookback_delta") != "" {
		if _, err := span(form, "lookback_delta"); err != nil {
			return q, err
		}
		q.warnings = append(q.warnings, "lookback_delta is ignored: this hub has one for all queries")
	}
	return q, nil
}

func (a *api) query(w http.ResponseWriter, r *http.Request) error {
	q, err := a.asked(r.Form)
	if err != nil {
		return err
	}
	at, err := moment(r.Form, "time", a.now())
	if err != nil {
		return err
	}
	if err := a.bounded(q.text, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout)
	defer cancel()
	result, err := a.Store.Instant(ctx, q.text, at)
	return a.answer(w, q, result, err)
}

func (a *api) queryRange(w http.ResponseWriter, r *http.Request) error {
	q, err := a.asked(r.Form)
	if err != nil {
		return err
	}
	start, err := moment(r.Form, "start", time.Time{})
	if err != nil {
		return err
	}
	end, err := moment(r.Form, "end", time.Time{})
	if err != nil {
		return err
	}
	if end.Before(start) {
		return invalid("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := span(r.Form, "step")
	if err != nil {
		return err
	}
	if step < time.Millisecond {
		return invalid("step",
			errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	// In milliseconds, because a difference of thousands of years overflows time.Duration.
	length := end.UnixMilli() - start.UnixMilli()
	if length/step.Milliseconds() > maxPoints {
		return bad("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query " +
			"resolution (?step=XX)")
	}
	if err := a.bounded(q.text, length); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout)
	defer cancel()
	result, err := a.Store.Range(ctx, q.text, start, end, step)
	return a.answer(w, q, result, err)
}

// bounded refuses a query that would cost too much with any data. length is that of the range in
// milliseconds.
func (a *api) bounded(query string, length int64) error {
	if len(query) > maxQuery {
		return invalid("query", fmt.Errorf("it has %d bytes, at most %d are allowed", len(query), maxQuery))
	}
	if err := record.BoundedRepeats(query); err != nil {
		return err
	}
	expr, err := a.parser.ParseExpr(query)
	if err != nil {
		return invalid("query", err)
	}
	return within(expr, length, 0)
}

// within walks an expression. The engine evaluates a subquery at every step of its own, from the
// first to the last time that the outer query needs, once for each of its series.
func within(node parser.Node, length int64, depth int) error {
	if depth > maxDepth {
		return invalid("query", fmt.Errorf("it is nested deeper than %d", maxDepth))
	}
	if sub, ok := node.(*parser.SubqueryExpr); ok {
		length += sub.Range.Milliseconds()
		step := sub.Step.Milliseconds()
		if step <= 0 {
			step = time.Minute.Milliseconds() // the step of the store, which is Prometheus's
		}
		if n := length / step; n > maxEvaluations {
			return tooMuch("the subquery %.200s has %d evaluations, at most %d are allowed; make its range "+
				"shorter or its step longer", sub, n, maxEvaluations)
		}
	}
	for child := range parser.ChildrenIter(node) {
		if err := within(child, length, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// answer writes a result. Errors that the engine finds in the query itself are the client's.
func (a *api) answer(w http.ResponseWriter, q asked, result *promql.Result, err error) error {
	if err == nil {
		err = result.Err
	}
	if err != nil {
		var disk promql.ErrStorage
		if known(err) != nil || errors.As(err, &disk) {
			return err
		}
		return &problem{http.StatusUnprocessableEntity, "execution", err.Error()}
	}
	warnings, infos := result.Warnings.AsStrings(q.text, 10, 10)
	warnings = append(warnings, q.warnings...)
	value := result.Value
	if q.limit > 0 {
		switch v := value.(type) {
		case promql.Matrix:
			if len(v) > q.limit {
				value = v[:q.limit]
				warnings = append(warnings, "results truncated due to limit")
			}
		case promql.Vector:
			if len(v) > q.limit {
				value = v[:q.limit]
				warnings = append(warnings, "results truncated due to limit")
			}
		}
	}
	if n := size(value); n > maxBytes {
		return tooMuch("the answer would have about %d MiB, at most %d are allowed; ask for fewer series or a "+
			"longer step", n>>20, maxBytes>>20)
	}
	return stream(w, value, warnings, infos)
}

func (a *api) formatQuery(w http.ResponseWriter, r *http.Request) error {
	text := r.Form.Get("query")
	if err := a.bounded(text, 0); err != nil {
		return err
	}
	expr, err := a.parser.ParseExpr(text)
	if err != nil {
		return invalid("query", err)
	}
	return success(w, expr.Pretty(0), nil)
}

// selection holds the parameters that series, labels and label values share.
type selection struct {
	matchers   [][]*labels.Matcher
	limit      int
	start, end time.Time
}

func (a *api) selection(r *http.Request) (selection, error) {
	var s selection
	var err error
	if s.limit, err = count(r.Form, "limit"); err != nil {
		return s, err
	}
	if s.start, err = moment(r.Form, "start", earliest.Add(1)); err != nil {
		return s, err
	}
	if s.end, err = moment(r.Form, "end", latest); err != nil {
		return s, err
	}
	if s.end.Before(s.start) {
		return s, invalid("end", errors.New("end timestamp must not be before start time"))
	}
	texts := r.Form["match[]"]
	if len(texts) > maxSelectors {
		return s, invalid("match[]", fmt.Errorf("there are %d, at most %d are allowed", len(texts), maxSelectors))
	}
	for _, t := range texts {
		if len(t) > maxQuery {
			return s, invalid("match[]", fmt.Errorf("it has %d bytes, at most %d are allowed", len(t), maxQuery))
		}
	}
	if err := record.BoundedRepeats(strings.Join(texts, "\n")); err != nil {
		return s, err
	}
	if s.matchers, err = a.parser.ParseMetricSelectors(texts); err != nil {
		return s, invalid("match[]", err)
	}
	if err := record.BoundedMatchers(slices.Concat(s.matchers...)...); err != nil {
		return s, err
	}
	for _, set := range s.matchers {
		if !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return m != nil && !m.Matches("") }) {
			return s, invalid("match[]", errors.New("match[] must contain at least one non-empty matcher"))
		}
	}
	return s, nil
}

// querier opens the store for a selection, for as long as a request may take. It returns how many
// results may be listed. done closes both.
func (a *api) querier(r *http.Request, s selection, most int) (ctx context.Context, q storage.Querier, limit int,
	done func(), err error) {
	if q, err = a.Store.Querier(s.start, s.end); err != nil {
		return nil, nil, 0, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.maxTime)
	if limit = s.limit; limit == 0 || limit > most {
		limit = most
	}
	return ctx, q, limit, func() {
		_ = q.Close()
		cancel()
	}, nil
}

func (a *api) series(w http.ResponseWriter, r *http.Request) error {
	s, err := a.selection(r)
	if err != nil {
		return err
	}
	if len(s.matchers) == 0 {
		return bad("no match[] parameter provided")
	}
	ctx, q, limit, done, err := a.querier(r, s, maxSeries)
	if err != nil {
		return err
	}
	defer done()
	// PromQL has no function of this name: the store sees that the caller needs no samples.
	hints := &storage.SelectHints{Start: s.start.UnixMilli(), End: s.end.UnixMilli(), Func: "series", Limit: limit + 1}
	var sets []storage.SeriesSet
	for _, m := range s.matchers {
		sets = append(sets, q.Select(ctx, len(s.matchers) > 1, hints, m...))
	}
	set := sets[0]
	if len(sets) > 1 {
		set = storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
	}
	var found []labels.Labels
	for set.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		found = append(found, set.At().Labels())
		if len(found) > limit {
			break
		}
	}
	if err := set.Err(); err != nil {
		return err
	}
	found, warnings := first(found, limit, maxSeries)
	return streamLabels(w, found, warnings)
}

func (a *api) labelNames(w http.ResponseWriter, r *http.Request) error {
	return a.listed(w, r, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints,
		m ...*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(ctx, hints, m...)
		return names, err
	})
}

func (a *api) labelValues(w http.ResponseWriter, r *http.Request, name string) error {
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return bad("invalid label name: %q", name)
	}
	return a.listed(w, r, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints,
		m ...*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(ctx, name, hints, m...)
		return values, err
	})
}

func (a *api) listed(w http.ResponseWriter, r *http.Request,
	ask func(context.Context, storage.Querier, *storage.LabelHints, ...*labels.Matcher) ([]string, error)) error {
	s, err := a.selection(r)
	if err != nil {
		return err
	}
	ctx, q, limit, done, err := a.querier(r, s, maxNames)
	if err != nil {
		return err
	}
	defer done()
	sets := s.matchers
	if len(sets) == 0 {
		sets = [][]*labels.Matcher{nil}
	}
	all := []string{}
	for _, m := range sets {
		some, err := ask(ctx, q, &storage.LabelHints{Limit: limit + 1}, m...)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	all, warnings := first(slices.Compact(all), limit, maxNames)
	return success(w, all, warnings)
}

func (a *api) metadata(w http.ResponseWriter, r *http.Request) error {
	type about struct {
		Type string `json:"type"`
		Help string `json:"help"`
		Unit string `json:"unit"`
	}
	limit := -1
	if r.Form.Get("limit") != "" {
		n, err := count(r.Form, "limit")
		if err != nil {
			return err
		}
		limit = n
	}
	if _, err := count(r.Form, "limit_per_metric"); err != nil {
		return err // each metric has one entry
	}
	only := r.Form.Get("metric")
	all := make(map[string][]about)
	for _, m := range a.Metrics {
		if only != "" && m.Name != only {
			continue
		}
		if limit > 0 && len(all) >= limit {
			break
		}
		all[m.Name] = []about{{Type: kind(m), Help: m.Help}}
	}
	return success(w, all, nil)
}

func kind(m *sample.Metric) string {
	if m.Kind == sample.Counter {
		return "counter"
	}
	return "gauge"
}

// buildInfo names the version of Prometheus whose query language and API this is. Grafana chooses
// its requests by it.
func (a *api) buildInfo(w http.ResponseWriter, _ *http.Request) error {
	return success(w, struct {
		Version   string `json:"version"`
		Revision  string `json:"revision"`
		Branch    string `json:"branch"`
		BuildUser string `json:"buildUser"`
		BuildDate string `json:"buildDate"`
		GoVersion string `json:"goVersion"`
	}{Version: engineVersion(), BuildUser: "linerate-hub " + a.Version, GoVersion: runtime.Version()}, nil)
}

// engineVersion is that of Prometheus's module in this program: its v0.316.2 is Prometheus 3.16.2.
func engineVersion() string {
	const atLeast = "3.0.0"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return atLeast
	}
	for _, m := range info.Deps {
		var minor, patch int
		if m.Path != "github.com/prometheus/prometheus" {
			continue
		}
		if n, err := fmt.Sscanf(m.Version, "v0.%d.%d", &minor, &patch); err == nil && n == 2 && minor >= 300 {
			return fmt.Sprintf("%d.%d.%d", minor/100, minor%100, patch)
		}
	}
	return atLeast
}
