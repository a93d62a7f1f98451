package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
)

const (
	queryBound = 10 * time.Second // of one rule
	// shareOfTime is how many times as long as its query took a rule waits at least: all rules
	// together then cost a twentieth of a processor each.
	shareOfTime = 20
	// settleTime is how long after a start an alert that is known from before counts as firing
	// without being seen: rates need a few readings.
	settleTime = 2 * time.Minute
	// groupInterval lies between two messages about one rule, so that a hundred links that go down
	// one after the other are two messages and not a hundred.
	groupInterval = time.Minute
	// staleAfter is how old the newest figure may be before queries tell of the past.
	staleAfter = time.Minute
)

// Options of a watcher.
type Options struct {
	Rules []Config // as [Rules] gives them
	// of a [record.Store]: Vector
	Query func(ctx context.Context, query string, at time.Time) ([]record.Labelled, error)
	// that hold now; nil: none
	Findings func() []Verdict
	// of the history; nil: always well
	Status func() record.Status
	// of a [timeline.Store]; nil: nothing is put
	Put func(e timeline.Event, document []byte) error
	// of alerts whose series name none
	Host string
	// of the hub's page, with a slash at its end, for messages
	URL string
	// where what is known survives a restart; empty: it does not
	Dir string
	// default the operating system
	FS durable.FS
	// default: nothing is told
	Log *slog.Logger
	Now func() time.Time // default time.Now
	// tests put their own here
	sendHTTP func(w Webhook) func(ctx context.Context, body []byte) error
}

// Verdict is a finding as rules see it.
type Verdict struct {
	Code   string
	Title  string            // one sentence; {{title}} in the text of a rule
	Labels map[string]string // what tells it from others of its code: interface, where, …
}

// State is how far an alert is.
type State string

// The states.
const (
	Pending  State = "pending"
	Firing   State = "firing"
	Resolved State = "resolved"
)

// Active is one alert.
type Active struct {
	Rule     string            `json:"rule"`
	Labels   map[string]string `json:"labels"` // alertname and severity among them
	State    State             `json:"state"`
	Text     string            `json:"text"`
	Value    float64           `json:"-"`
	ActiveAt time.Time         `json:"active_at"`         // since when it holds
	FiredAt  time.Time         `json:"fired_at,omitzero"` // since when it fires
	EndedAt  time.Time         `json:"ended_at,omitzero"`
}

// alert is one with what the watcher keeps beside it.
type alert struct {
	Active
	lastSeen time.Time
	restored bool // known from before the start, and not seen since
}

// rule is a rule and its alerts by the fingerprint of their labels.
type rule struct {
	Config
	alerts    map[string]*alert
	receivers []*receiver
	due       time.Time
	problem   string // why the last look gave nothing
	over      int    // alerts beyond the bound at the last look
}

// Watcher looks at rules and tells their receivers. Its methods may be called from several
// goroutines.
type Watcher struct {
	o       Options
	started time.Time
	senders sync.WaitGroup
	places  map[bool]chan struct{} // who may send at once, by whether it is a program

	looking sync.Mutex // one look at a time

	mu    sync.Mutex // all below
	rules []*rule
	dirty bool      // there is something to save
	saved time.Time // when that was done last
	notes map[string]string
}

// New makes a watcher, with what it knew before a restart. Errors are those of [Validate], and
// queries that are not PromQL.
func New(o Options) (*Watcher, error) {
	if err := Validate(o.Rules); err != nil {
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
	w := &Watcher{o: o, started: o.Now(), notes: make(map[string]string),
		places: map[bool]chan struct{}{false: make(chan struct{}, webhooksAtOnce),
			true: make(chan struct{}, programsAtOnce)}}
	for _, c := range o.Rules {
		r := &rule{Config: c, alerts: make(map[string]*alert), due: w.started}
		for _, hook := range c.Webhooks {
			r.receivers = append(r.receivers,
				newReceiver("webhook", hook.URL, cmp.Or(hook.Timeout.Duration(), defaultTimeout), o.sendHTTP(hook)))
		}
		if len(c.Exec) > 0 {
			r.receivers = append(r.receivers,
				newReceiver("exec", fmt.Sprintf("%q", c.Exec), cmp.Or(c.ExecTimeout.Duration(), defaultTimeout),
					program(c.Exec, o.Log)))
		}
		w.rules = append(w.rules, r)
	}
	if err := w.parse(); err != nil {
		return nil, err
	}
	w.load()
	return w, nil
}

// parse has every query read once, at a time of which there is no history, so that a mistake in one
// is told at the start.
func (w *Watcher) parse() error {
	ctx, cancel := context.WithTimeout(context.Background(), queryBound)
	defer cancel()
	var all []error
	for _, r := range w.rules {
		if r.Query == "" {
			continue
		}
		if _, err := w.o.Query(ctx, r.Query, time.Unix(0, 0)); errors.Is(err, record.ErrBadQuery) {
			all = append(all, fmt.Errorf("alert %s: query: %w", r.Name, err))
		}
	}
	return errors.Join(all...)
}

// Run looks at rules as they are due, until the context ends. Messages under way are given up then;
// they are sent again after the next start.
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
	w.dirty = true // how long what is pending has held
	w.save(w.o.Now())
}

// wait is the time until the next rule is due or a message is tried again.
func (w *Watcher) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Now()
	next := defaultEvery
	for _, r := range w.rules {
		next = min(next, r.due.Sub(now))
		for _, to := range r.receivers {
			if to.failures > 0 && !to.busy {
				next = min(next, to.notBefore.Sub(now))
			}
		}
	}
	return max(next, 100*time.Millisecond)
}

// Evaluate looks at every rule that is due, and hands messages to receivers without waiting for
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
		seen, err := w.look(ctx, r, verdicts, blind)
		took := w.o.Now().Sub(now)
		w.mu.Lock()
		r.due = now.Add(max(r.Every.Duration(), shareOfTime*took))
		if err == nil {
			w.update(r, seen, w.o.Now())
		}
		w.noteError(r, err)
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dispatch(ctx, w.o.Now())
	w.save(w.o.Now())
}

// ofStatus makes findings of the state of the history.
func ofStatus(s record.Status) []Verdict {
	if s.State == record.DiskOK || s.State == "" {
		return nil
	}
	return []Verdict{{Code: DiskFull, Title: cmp.Or(s.Cause, "the disk is "+string(s.State))}}
}

// blindness tells why queries say nothing of the present; empty: they do. What was known then stays
// as it was.
func blindness(s record.Status, now time.Time) string {
	switch {
	case s.Loading:
		return "the history is loading"
	case s.State != record.DiskOK && s.State != "" && now.Sub(s.Newest) > staleAfter:
		return "the history cannot be written, and its newest figure is old"
	}
	return ""
}

// sighting is one set of labels for which a rule holds.
type sighting struct {
	labels map[string]string
	value  float64
	title  string
}

// look asks what a rule holds for.
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
		return nil, fmt.Errorf("not asked: %s", blind)
	}
	ctx, cancel := context.WithTimeout(ctx, queryBound)
	defer cancel()
	all, err := w.o.Query(ctx, r.Query, w.o.Now())
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		seen = append(seen, sighting{labels: l.Labels, value: l.Value})
	}
	return seen, nil
}

// labelled gives the labels of an alert.
func (w *Watcher) labelled(r *rule, s sighting) map[string]string {
	all := make(map[string]string, len(s.labels)+len(r.Labels)+3)
	all["host"] = w.o.Host
	if r.Finding != "" {
		all["finding"] = r.Finding
	}
	for name, value := range s.labels {
		if name != "__name__" {
			all[name] = value
		}
	}
	for name, value := range r.Labels {
		all[name] = value
	}
	all["alertname"], all["severity"] = r.Name, string(r.Severity)
	return all
}

// update moves the alerts of a rule to their next states.
func (w *Watcher) update(r *rule, seen []sighting, now time.Time) {
	type found struct {
		print  string
		labels map[string]string
		sighting
	}
	all := make([]found, 0, len(seen))
	for _, s := range seen {
		labels := w.labelled(r, s)
		all = append(all, found{fingerprint(labels), labels, s})
	}
	// Alerts that are known keep their places when there are too many; among the others the order
	// is any, but the same every time.
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.print, b.print) })
	here := make(map[string]bool)
	r.over = 0
	for _, f := range all {
		if here[f.print] {
			continue // two series that differ in their metric's name alone
		}
		a := r.alerts[f.print]
		if a == nil {
			if len(r.alerts) >= r.MaxAlerts {
				r.over++
				continue
			}
			a = &alert{Active: Active{Rule: r.Name, Labels: f.labels, State: Pending, ActiveAt: now}}
			r.alerts[f.print] = a
			w.dirty = true
		}
		here[f.print] = true
		a.lastSeen, a.restored, a.Value = now, false, f.value
		inText := f.labels
		if f.title != "" {
			inText = map[string]string{"title": f.title}
			for name, value := range f.labels {
				inText[name] = value
			}
		}
		a.Text = render(r.Text, inText, f.value)
		if a.State == Pending && now.Sub(a.ActiveAt) >= r.For.Duration() {
			a.State, a.FiredAt = Firing, now
			w.dirty = true
			w.put(r, f.print, a)
		}
	}
	settled := now.Sub(w.started) >= settleTime
	for print, a := range r.alerts {
		if here[print] || a.restored && !settled || a.State == Firing &&
			now.Sub(a.lastSeen) < r.KeepFiringFor.Duration() {
			continue
		}
		delete(r.alerts, print)
		w.dirty = true
		if a.State == Firing {
			a.State, a.EndedAt = Resolved, now
			w.put(r, print, a)
		}
	}
	for _, to := range r.receivers {
		to.resolve(r, now)
	}
}

// put writes an alert into the timeline.
func (w *Watcher) put(r *rule, print string, a *alert) {
	if w.o.Put == nil {
		return
	}
	e := timeline.Event{
		ID: fmt.Sprintf("alert-%s-%s-%d", r.Name, print, a.FiredAt.Unix()), Kind: timeline.Alert, Time: a.FiredAt.UTC(),
		End:  a.EndedAt.UTC(),
		Open: a.State == Firing, Host: a.Labels["host"],
		Subject: cmp.Or(a.Labels["interface"], a.Labels["target"], a.Labels["cpu"]),
		Title:   a.Text, Severity: r.Severity, State: string(a.State),
	}
	switch {
	case a.EndedAt.IsZero():
		e.End = time.Time{}
	case e.End.Before(e.Time):
		e.End = e.Time // the clock was set back meanwhile
	}
	if err := w.o.Put(e, nil); err != nil {
		w.o.Log.Warn("an alert is not in the timeline", "rule", r.Name, "error", err)
	}
}

// noteError remembers what keeps a rule from being looked at, and logs when that changes.
func (w *Watcher) noteError(r *rule, err error) {
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case r.over > 0:
		problem = fmt.Sprintf(
			"%d alerts are more than the %d it may have: the others are not told; make the query narrower, or raise max_alerts", r.over+r.MaxAlerts, r.MaxAlerts)
	}
	if problem != "" && problem != r.problem {
		w.o.Log.Warn("alert rule", "rule", r.Name, "problem", problem)
	}
	r.problem = problem
}

// Active gives the alerts that are pending or fire, those that fire longest first.
func (w *Watcher) Active() []Active {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Active{}
	for _, r := range w.rules {
		for _, a := range r.alerts {
			all = append(all, a.Active)
		}
	}
	slices.SortFunc(all, func(a, b Active) int {
		return cmp.Or(cmp.Compare(a.State, b.State), a.FiredAt.Compare(b.FiredAt), a.ActiveAt.Compare(b.ActiveAt),
			cmp.Compare(fingerprint(a.Labels), fingerprint(b.Labels)))
	})
	return all
}

// Warnings tells what does not work, one sentence each: queries that fail, bounds that are reached,
// receivers that take nothing.
func (w *Watcher) Warnings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{}
	for _, r := range w.rules {
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
