package alert

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// mostInMessage bounds a message; how many are left out stands in it.
const mostInMessage = 100

// message is what receivers get, in the form of Alertmanager's webhook of version 4. Its keys are
// theirs and not ours.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []messageAlert    `json:"alerts"`
}

// messageAlert is one alert of a message.
type messageAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // of one that fires: the zero time, as there
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// message makes the message about the alerts of one rule.
func (w *Watcher) message(r *rule, alerts []Active) ([]byte, error) {
	m := message{
		Version: "4", GroupKey: fmt.Sprintf("{}:{alertname=%q}", r.Name), Status: string(Resolved),
		Receiver:    "linerate",
		GroupLabels: map[string]string{"alertname": r.Name}, ExternalURL: w.o.URL, Alerts: []messageAlert{},
	}
	generator := w.o.URL
	if r.Query != "" {
		generator += "api/v1/query?query=" + url.QueryEscape(r.Query)
	}
	for _, a := range alerts {
		if a.State == Firing {
			m.Status = string(Firing)
		}
		if len(m.Alerts) == mostInMessage {
			m.TruncatedAlerts++
			continue
		}
		one := messageAlert{
			Status: string(a.State), Labels: a.Labels, StartsAt: a.FiredAt.UTC(), GeneratorURL: generator,
			Fingerprint: fingerprint(a.Labels),
			Annotations: map[string]string{"summary": a.Text, "value": strconv.FormatFloat(a.Value, 'g', -1, 64)},
		}
		if a.State == Resolved {
			one.EndsAt = a.EndedAt.UTC()
		}
		m.Alerts = append(m.Alerts, one)
	}
	m.CommonLabels, m.CommonAnnotations = maps.Clone(m.Alerts[0].Labels), maps.Clone(m.Alerts[0].Annotations)
	for _, a := range m.Alerts {
		common(m.CommonLabels, a.Labels)
		common(m.CommonAnnotations, a.Annotations)
	}
	return json.Marshal(m)
}

// common takes out of all what is not the same in one.
func common(all, one map[string]string) {
	maps.DeleteFunc(all, func(name, value string) bool { v, ok := one[name]; return !ok || v != value })
}

// fingerprint is the same for the same labels, on every host and at any time.
func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	for _, name := range sorted(labels) {
		// A byte that is in no text parts them, so that no two sets look alike.
		fmt.Fprintf(h, "%s\xff%s\xff", name, labels[name])
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// sorted gives the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
