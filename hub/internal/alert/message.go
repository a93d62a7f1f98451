package alert

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// mostInMessage bounds the alerts of a message; the message has the number of the rest.
	mostInMessage = 100
	// alertmanagerKeeps is how long an Alertmanager keeps an alert that the hub does not send
	// again: four times the interval of repeats, as Prometheus has it.
	alertmanagerKeeps = 4 * groupInterval
)

// message is Alertmanager's webhook message of version 4. Its keys are Alertmanager's.
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
	Status string `json:"status"`
	postableAlert
	Fingerprint string `json:"fingerprint"`
}

// postableAlert is one alert as Alertmanager's API v2 takes it (POST /api/v2/alerts).
type postableAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // of a firing alert in a webhook message: the zero time
	GeneratorURL string            `json:"generatorURL"`
}

// alertmanagerURL returns the address at which an Alertmanager takes alerts.
func alertmanagerURL(base string) string { return strings.TrimSuffix(base, "/") + "/api/v2/alerts" }

// message returns the message to a receiver about the alerts of one rule.
func (w *Watcher) message(r *rule, to *receiver, alerts []Active, now time.Time) ([]byte, error) {
	if to.kind == "alertmanager" {
		all := make([]postableAlert, len(alerts))
		for i, a := range alerts {
			if all[i] = w.postable(r, a); a.State == Firing {
				all[i].EndsAt = now.Add(alertmanagerKeeps).UTC()
			}
		}
		return json.Marshal(all)
	}
	m := message{
		Version: "4", GroupKey: fmt.Sprintf("{}:{alertname=%q}", r.Name), Status: string(Resolved),
		Receiver:    "linerate",
		GroupLabels: map[string]string{"alertname": r.Name}, ExternalURL: w.o.URL, Alerts: []messageAlert{},
	}
	for _, a := range alerts {
		if a.State == Firing {
			m.Status = string(Firing)
		}
		if len(m.Alerts) == mostInMessage {
			m.TruncatedAlerts++
			continue
		}
		m.Alerts = append(m.Alerts, messageAlert{string(a.State), w.postable(r, a), fingerprint(a.Labels)})
	}
	m.CommonLabels, m.CommonAnnotations = maps.Clone(m.Alerts[0].Labels), maps.Clone(m.Alerts[0].Annotations)
	for _, a := range m.Alerts {
		common(m.CommonLabels, a.Labels)
		common(m.CommonAnnotations, a.Annotations)
	}
	return json.Marshal(m)
}

// postable returns an alert as messages have it.
func (w *Watcher) postable(r *rule, a Active) postableAlert {
	one := postableAlert{Labels: a.Labels, StartsAt: a.FiredAt.UTC(), GeneratorURL: w.link(r, a),
		Annotations: map[string]string{"summary": a.Text, "value": strconv.FormatFloat(a.Value, 'g', -1, 64)}}
	maps.Copy(one.Annotations, a.Annotations)
	if a.State == Resolved {
		one.EndsAt = a.EndedAt.UTC()
	}
	return one
}

// link returns the address of the page that shows an alert. It is a page and not the query: the hub
// refuses links of other sites to its data.
func (w *Watcher) link(r *rule, a Active) string {
	return w.o.URL + "#/findings?event=" + url.QueryEscape(eventID(r, fingerprint(a.Labels), a))
}

// common deletes from all the entries that one does not have.
func common(all, one map[string]string) {
	maps.DeleteFunc(all, func(name, value string) bool { v, ok := one[name]; return !ok || v != value })
}

// fingerprint returns the same text for the same labels, on every host and at any time.
func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	for _, name := range sorted(labels) {
		// A byte that occurs in no text separates them, so that no two sets have the same form.
		fmt.Fprintf(h, "%s\xff%s\xff", name, labels[name])
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
