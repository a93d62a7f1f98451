package alert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// sighting is one set of labels for which a rule holds.
type sighting struct {
	labels map[string]string
	value  float64
	title  string
}

// evaluate runs the alerting rule once. What the rule asks for is answered here: with the result of
// its query or with verdicts, within the bound of alerts, and with alerts from before a restart
// that have not been seen again yet.
func (w *Watcher) evaluate(ctx context.Context, r *rule, verdicts []Verdict, blind string) error {
	ctx, cancel := context.WithTimeout(ctx, queryBound)
	defer cancel()
	own := r.engine.Query().String()
	ask := func(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
		if query != own { // a template asks
			return w.vector(ctx, query, at)
		}
		seen, err := w.look(ctx, r, verdicts, blind)
		if err != nil {
			return nil, err
		}
		return w.bounded(r, seen), nil
	}
	_, err := r.engine.Eval(ctx, 0, w.o.Now(), ask, w.url, 0)
	return err
}

// look returns what a rule holds for.
func (w *Watcher) look(ctx context.Context, r *rule, verdicts []Verdict, blind string) ([]sighting, error) {
	var seen []sighting
	if r.Query == "" {
		for _, v := range verdicts {
			if v.Code == r.Finding {
				seen = append(seen, sighting{v.Labels, 1, v.Title})
			}
		}
		return seen, nil
	}
	if blind != "" {
		return nil, fmt.Errorf("not evaluated: %s", blind)
	}
	all, err := w.o.Query(ctx, r.Query, w.o.Now())
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		seen = append(seen, sighting{labels: l.Labels, value: l.Value})
	}
	return seen, nil
}

// vector answers a query of a template.
func (w *Watcher) vector(ctx context.Context, query string, at time.Time) (promql.Vector, error) {
	all, err := w.o.Query(ctx, query, at)
	if err != nil {
		return nil, err
	}
	var v promql.Vector
	for _, l := range all {
		v = append(v, promql.Sample{T: l.Time.UnixMilli(), F: l.Value, Metric: labels.FromMap(l.Labels)})
	}
	return v, nil
}

// labelled returns the labels of an alert.
func (w *Watcher) labelled(r *rule, s sighting) map[string]string {
	all := make(map[string]string, len(s.labels)+len(r.Labels)+4)
	all["host"] = w.o.Host
	if r.Finding != "" {
		all["finding"] = r.Finding
	}
	for name, value := range s.labels {
		if name != model.MetricNameLabel {
			all[name] = value
		}
	}
	for name, value := range r.Labels {
		if !strings.Contains(value, "{{") { // the rule expands a template itself
			all[name] = value
		}
	}
	all[labels.AlertName], all["severity"] = r.Name, string(r.Severity)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// bounded returns what was seen as samples, each set of labels once, at most as many as the rule
// may have alerts. Known alerts keep their places; among new ones the order is arbitrary and the
// same every time. Alerts that fired before a restart are seen until the settle time is over.
func (w *Watcher) bounded(r *rule, seen []sighting) promql.Vector {
	w.mu.Lock()
	defer w.mu.Unlock()
	sightings := make(map[string]sighting)
	for _, s := range seen {
		s.labels = w.labelled(r, s)
		// Two series may differ in their metric's name alone.
		if print := fingerprint(s.labels); !has(sightings, print) {
			sightings[print] = s
		}
	}
	settled := w.o.Now().Sub(w.started) >= settleTime
	for print, was := range r.restored {
		switch was.assumed = false; {
		case has(sightings, print):
		case settled:
			delete(r.restored, print)
		case was.State == Firing && !r.templated():
			was.assumed = true
			sightings[print] = sighting{labels: was.Labels}
		}
	}
	known := func(print string) bool { return has(r.alerts, print) || has(r.restored, print) }
	prints := sorted(sightings)
	slices.SortStableFunc(prints, func(a, b string) int {
		switch {
		case known(a) && !known(b):
			return -1
		case known(b) && !known(a):
			return 1
		}
		return 0
	})
	kept := 0 // alerts that keep_firing_for keeps in their places
	for print, a := range r.alerts {
		if r.KeepFiringFor > 0 && a.State == Firing && !has(sightings, print) {
			kept++
		}
	}
	r.over = min(max(0, len(prints)+kept-r.MaxAlerts), len(prints))
	var v promql.Vector
	for _, print := range prints[:len(prints)-r.over] {
		s := sightings[print]
		b := labels.NewBuilder(labels.FromMap(s.labels))
		if s.title != "" {
			b.Set("title", s.title)
		}
		v = append(v, promql.Sample{F: s.value, Metric: b.Labels()})
	}
	return v
}

func has[V any](m map[string]V, key string) bool { _, ok := m[key]; return ok }

// restored is an alert from before a restart.
type restored struct {
	Active
	assumed bool // firing without having been seen
	entered bool // its times are in the alerting rule
}

// active returns the alerts of a rule after an evaluation. An alert that was known before the start
// goes on where it was, from when it is seen again.
func (w *Watcher) active(r *rule) map[string]Active {
	all := make(map[string]Active)
	r.engine.ForEachActiveAlert(func(a *rules.Alert) {
		if a.State != rules.StatePending && a.State != rules.StateFiring {
			return
		}
		print := fingerprint(a.Labels.Map())
		was := r.restored[print]
		if was != nil && !was.entered {
			was.entered, a.ActiveAt = true, was.ActiveAt
			if was.State == Firing {
				a.State, a.FiredAt = rules.StateFiring, was.FiredAt
			}
		}
		one := Active{Rule: r.Name, Labels: a.Labels.Map(), State: Pending, Annotations: a.Annotations.Map(),
			Value: a.Value, ActiveAt: a.ActiveAt, FiredAt: a.FiredAt}
		if a.State == rules.StateFiring {
			one.State = Firing
		}
		for name, text := range one.Annotations {
			one.Annotations[name] = oneLine(text)
		}
		one.Text = one.Annotations["summary"]
		delete(one.Annotations, "summary")
		if was != nil && was.assumed {
			one.Text, one.Annotations = was.Text, was.Annotations
		} else {
			delete(r.restored, print)
		}
		all[print] = one
	})
	return all
}
