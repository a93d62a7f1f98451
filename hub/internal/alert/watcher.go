package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
)

const (
	queryBound = 10 * time.Second // of one rule
	// shareOfTime is how many times as long as its query took a rule waits at least: each rule then
	// costs at most a twentieth of a CPU.
	shareOfTime = 20
	// settleTime is how long after a start an alert that fired before the restart keeps firing
	// without being seen: rates need a few readings.
	settleTime = 2 * time.Minute
	// groupInterval lies between two messages about one rule, so that a hundred links that go down
	// one after the other are two messages and not a hundred.
	groupInterval = time.Minute
	// staleAfter is how old the newest sample may be before queries describe the past.
	staleAfter = time.Minute
)

// Options of a watcher.
type Options struct {
	Rules []Config // as [Rules] returns them
	// Vector of a [record.Store]
	Query func(ctx context.Context, query string, at time.Time) ([]record.Labelled, error)
	// the verdicts that hold now; nil: none
	Findings func() []Verdict
	// of the history; nil: always ok
	Status func() record.Status
	// Put of a [timeline.Store]; nil: no events
	Put func(e timeline.Event, document []byte) error
	// the events of alerts that have not ended; nil: none
	Open func() []timeline.Event
	// host label of alerts whose series have none
	Host string
	// of the hub's page, with a slash at its end, for messages
	URL string
	// where state survives a restart; empty: it does not
	Dir string
	// default the operating system
	FS durable.FS
	// default: silent
	Log *slog.Logger
	Now func() time.Time // default time.Now
	// tests put their own here
	sendHTTP func(w Webhook) func(ctx context.Context, body []byte) error
}

// Verdict is a finding as rules see it.
type Verdict struct {
	Code   string
	Title  string            // one sentence; $labels.title in the templates of a rule
	Labels map[string]string // distinguish it from others of its code: interface, where, …
}

// State is the state of an alert.
type State string

// The states.
const (
	Pending  State = "pending"
	Firing   State = "firing"
	Resolved State = "resolved"
)

// Active is one alert.
type Active struct {
	Rule        string            `json:"rule"`
	Labels      map[string]string `json:"labels"` // alertname and severity among them
	State       State             `json:"state"`
	Text        string            `json:"text"` // the annotation summary
	Annotations map[string]string `json:"annotations,omitempty"`
	Value       float64           `json:"-"`
	ActiveAt    time.Time         `json:"active_at"`         // since when it holds
	FiredAt     time.Time         `json:"fired_at,omitzero"` // since when it fires
	EndedAt     time.Time         `json:"ended_at,omitzero"`
}

// rule is a rule, its alerts by the fingerprint of their labels, and its receivers.
type rule struct {
	Config
	engine    *rules.AlertingRule
	alerts    map[string]Active
	restored  map[string]*restored // known from before the start, and not seen since
	receivers []*receiver
	due       time.Time
	problem   string // why the last evaluation failed
	over      int    // alerts beyond the bound at the last evaluation
}

// Watcher evaluates rules and notifies their receivers. Its methods may be called from several
// goroutines.
type Watcher struct {
	o       Options
	started time.Time
	url     *url.URL
	senders sync.WaitGroup
	places  map[bool]chan struct{} // bounds the messages under way; true: to programs

	looking sync.Mutex // one evaluation at a time

	mu    sync.Mutex // all below
	rules []*rule
	// of receivers that are no longer configured, one each, until they know that their alerts ended
	leaving []*rule
	dirty   bool      // there is something to save
	saved   time.Time // when the state was saved last
	notes   map[string]string
}

// New makes a watcher, with its state from before a restart. Errors are those of [Validate], and
// queries that are not PromQL.
func New(o Options) (*Watcher, error) {
	if err := validateAll(o.Rules, slices.Concat(o.Rules, Defaults())); err != nil {
		return nil, err
	}
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.sendHTTP == nil {
		o.sendHTTP = Webhook.sender
	}
	page, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	w := &Watcher{o: o, started: o.Now(), url: page, notes: make(map[string]string),
		places: map[bool]chan struct{}{false: make(chan struct{}, webhooksAtOnce),
			true: make(chan struct{}, programsAtOnce)}}
	var bad []error
	for _, c := range o.Rules {
		r, err := w.rule(c)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		w.rules = append(w.rules, r)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	w.load()
	return w, nil
}

// rule makes the alerting rule and the receivers of a configuration.
func (w *Watcher) rule(c Config) (*rule, error) {
	expr, err := c.expression()
	if err != nil {
		return nil, err
	}
	// The empty title takes the label out of the alert after the templates have used it.
	own := map[string]string{"severity": string(c.Severity), "title": ""}
	for name, value := range c.Labels {
		own[name] = value
	}
	r := &rule{Config: c, alerts: make(map[string]Active), restored: make(map[string]*restored), due: w.started,
		engine: rules.NewAlertingRule(c.Name, expr, c.For.Duration(), c.KeepFiringFor.Duration(), labels.FromMap(own),
			labels.FromMap(c.annotations()), labels.EmptyLabels(), w.o.URL, false, w.o.Log)}
	for _, hook := range c.Webhooks {
		r.receivers = append(r.receivers, w.webhook(hook))
	}
	for _, hook := range c.Alertmanagers {
		hook.URL = alertmanagerURL(hook.URL)
		r.receivers = append(r.receivers,
			newReceiver("alertmanager", hook.URL, hook.Timeout.Duration(), w.o.sendHTTP(hook)))
	}
	if len(c.Exec) > 0 {
		r.receivers = append(r.receivers,
			newReceiver("exec", fmt.Sprintf("%q", c.Exec), c.ExecTimeout.Duration(), program(c.Exec, w.o.Log)))
	}
	return r, nil
}

func (w *Watcher) webhook(hook Webhook) *receiver {
	to := newReceiver("webhook", hook.URL, hook.Timeout.Duration(), w.o.sendHTTP(hook))
	to.hook = &hook
	return to
}

// receiving returns the rules whose receivers get messages. The caller holds mu.
func (w *Watcher) receiving() []*rule { return slices.Concat(w.rules, w.leaving) }

// Run evaluates rules as they are due, until the context ends. It then gives up messages under way,
// and sends them after the next start.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.Evaluate(ctx)
		timer := time.NewTimer(w.wait())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	w.senders.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true // how long pending alerts have held
	w.save(w.o.Now())
}

// wait returns the time until the next rule is due or a message is retried.
func (w *Watcher) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Now()
	next := defaultEvery
	for _, r := range w.rules {
		next = min(next, r.due.Sub(now))
	}
	for _, r := range w.receiving() {
		for _, to := range r.receivers {
			if to.failures > 0 && !to.busy {
				next = min(next, to.notBefore.Sub(now))
			}
		}
	}
	return max(next, 100*time.Millisecond)
}

// Evaluate evaluates every rule that is due, and hands messages to receivers without waiting for
// them.
func (w *Watcher) Evaluate(ctx context.Context) {
	w.looking.Lock()
	defer w.looking.Unlock()
	var verdicts []Verdict
	if w.o.Findings != nil {
		verdicts = w.o.Findings()
	}
	blind := ""
	if w.o.Status != nil {
		s := w.o.Status()
		verdicts = append(verdicts, ofStatus(s)...)
		blind = blindness(s, w.o.Now())
	}
	for _, r := range w.rules {
		now := w.o.Now()
		if now.Before(r.due) || ctx.Err() != nil {
			continue
		}
		err := w.evaluate(ctx, r, verdicts, blind)
		took := w.o.Now().Sub(now)
		w.mu.Lock()
		r.due = now.Add(max(r.Every.Duration(), shareOfTime*took))
		if err == nil {
			w.update(r, w.o.Now())
		}
		w.noteError(r, err)
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dispatch(ctx, w.o.Now())
	w.save(w.o.Now())
}

// ofStatus returns the findings of the state of the history.
func ofStatus(s record.Status) []Verdict {
	if s.State == record.DiskOK || s.State == "" {
		return nil
	}
	return []Verdict{{Code: DiskFull, Title: cmp.Or(s.Cause, "the disk is "+string(s.State))}}
}

// blindness returns why queries say nothing about the present, or "". Alerts then stay as they are.
func blindness(s record.Status, now time.Time) string {
	switch {
	case s.Loading:
		return "the history is loading"
	case s.State != record.DiskOK && s.State != "" && now.Sub(s.Newest) > staleAfter:
		return "the history cannot be written, and its newest sample is old"
	}
	return ""
}

// update takes over the alerts of a rule after an evaluation, and puts events for those that began
// or ceased to fire. The caller holds mu.
func (w *Watcher) update(r *rule, now time.Time) {
	before := r.alerts
	r.alerts = w.active(r)
	for print, a := range r.alerts {
		was, known := before[print]
		began := a.State == Firing && (was.State != Firing || !was.FiredAt.Equal(a.FiredAt))
		w.dirty = w.dirty || !known || began
		if began {
			w.put(r, print, a)
		}
	}
	for print, was := range before {
		if a, still := r.alerts[print]; !still || was.State == Firing && a.State != Firing {
			w.dirty = true
			if was.State == Firing {
				was.State, was.EndedAt = Resolved, now
				w.put(r, print, was)
			}
		}
	}
	for _, to := range r.receivers {
		to.resolve(r, now)
	}
}

// eventID returns the id of an alert in the timeline.
func eventID(r *rule, print string, a Active) string {
	return fmt.Sprintf("alert-%s-%s-%d", r.Name, print, a.FiredAt.Unix())
}

// put writes an alert into the timeline.
func (w *Watcher) put(r *rule, print string, a Active) {
	if w.o.Put == nil {
		return
	}
	e := timeline.Event{
		ID: eventID(r, print, a), Kind: timeline.Alert, Time: a.FiredAt.UTC(),
		End:  a.EndedAt.UTC(),
		Open: a.State == Firing, Host: a.Labels["host"],
		Subject: cmp.Or(a.Labels["interface"], a.Labels["target"], a.Labels["cpu"]),
		Title:   a.Text, Severity: r.eventSeverity(), State: string(a.State),
	}
	if a.EndedAt.IsZero() {
		e.End = time.Time{}
	}
	w.putEvent(e)
}

func (w *Watcher) putEvent(e timeline.Event) {
	if !e.End.IsZero() && e.End.Before(e.Time) {
		e.End = e.Time // the clock was set back in the meantime
	}
	if err := w.o.Put(e, nil); err != nil {
		w.o.Log.Warn("an alert is missing from the timeline", "event", e.ID, "error", err)
	}
}

// noteError remembers why a rule could not be evaluated, and logs a change.
func (w *Watcher) noteError(r *rule, err error) {
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case r.over > 0:
		problem = fmt.Sprintf("%d alerts are more than the %d it may have: the hub leaves out the rest; make the "+
			"query narrower, or raise max_alerts", r.over+r.MaxAlerts, r.MaxAlerts)
	}
	if problem != "" && problem != r.problem {
		w.o.Log.Warn("alert rule", "rule", r.Name, "problem", problem)
	}
	r.problem = problem
}

// Active returns the alerts that are pending or firing; firing ones first, oldest first.
func (w *Watcher) Active() []Active {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Active{}
	for _, r := range w.rules {
		for _, a := range r.alerts {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Active) int {
		return cmp.Or(cmp.Compare(a.State, b.State), a.FiredAt.Compare(b.FiredAt), a.ActiveAt.Compare(b.ActiveAt),
			cmp.Compare(fingerprint(a.Labels), fingerprint(b.Labels)))
	})
	return all
}

// Warnings returns what does not work, one sentence each: queries that fail, bounds that are
// reached, receivers that take no messages.
func (w *Watcher) Warnings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{}
	for _, r := range w.receiving() {
		if r.problem != "" {
			all = append(all, fmt.Sprintf("alert %s: %s", r.Name, r.problem))
		}
		for _, to := range r.receivers {
			if to.problem != "" {
				all = append(all, fmt.Sprintf("alert %s: %s takes no messages: %s", r.Name, to.name(), to.problem))
			}
		}
	}
	if note := w.notes["state"]; note != "" {
		all = append(all, note)
	}
	return all
}
