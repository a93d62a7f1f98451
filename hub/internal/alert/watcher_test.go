package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
)

// world is the environment of a watcher: a clock that the test sets, series, a receiver, a timeline
// and a disk.
type world struct {
	t      *testing.T
	fs     durable.FS
	now    time.Time
	series map[string]map[string]float64 // query → interface → value
	fails  error                         // of queries
	status record.Status
	found  []Verdict
	events map[string]timeline.Event
	w      *Watcher

	mu     sync.Mutex
	got    []message
	refuse error // of the receiver
	gate   chan struct{}
	asked  int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, fs: durable.NewMem(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		series: make(map[string]map[string]float64), events: make(map[string]timeline.Event)}
}

// start makes a watcher of the rules, as after a restart of the hub.
func (w *world) start(rules ...Config) {
	w.t.Helper()
	for i := range rules {
		if rules[i].Webhooks == nil {
			rules[i].Webhooks = []Webhook{{URL: "https://hook.example.org/secret"}}
		}
		rules[i] = rules[i].complete(Defaults()).filled(Config{})
	}
	var err error
	w.w, err = New(Options{
		Rules: rules, Host: "near", URL: "https://hub.example.org/", Dir: "/var/state", FS: w.fs,
		Now: func() time.Time { return w.now },
		Query: func(_ context.Context, query string, _ time.Time) ([]record.Labelled, error) {
			var all []record.Labelled
			for name, value := range w.series[query] {
				all = append(all, record.Labelled{Labels: map[string]string{"__name__": query, "interface": name},
					Value: value})
			}
			return all, w.fails
		},
		Status:   func() record.Status { return w.status },
		Findings: func() []Verdict { return w.found },
		Put:      func(e timeline.Event, _ []byte) error { w.events[e.ID] = e; return nil },
		Open:     func() []timeline.Event { return slices.Collect(maps.Values(w.events)) },
		sendHTTP: func(Webhook) func(context.Context, []byte) error { return w.receive },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) receive(ctx context.Context, body []byte) error {
	w.mu.Lock()
	gate, refuse := w.gate, w.refuse
	w.asked++
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse != nil {
		return refuse
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, m)
	return nil
}

// look advances the time in steps of 15 s and returns the messages, as "12:00:15 firing eth0".
func (w *world) look(passing time.Duration) []string {
	w.t.Helper()
	var sent []string
	for end := w.now.Add(passing); ; w.now = w.now.Add(15 * time.Second) {
		w.w.Evaluate(w.t.Context())
		w.w.senders.Wait()
		for _, m := range w.got {
			var parts []string
			for _, a := range m.Alerts {
				parts = append(parts, a.Status+" "+a.Labels["interface"])
			}
			slices.Sort(parts)
			sent = append(sent, w.now.Format("15:04:05 ")+strings.Join(parts, ", "))
		}
		w.got = nil
		if !w.now.Before(end) {
			return sent
		}
	}
}

func (w *world) expect(sent []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(sent, want) {
		w.t.Errorf("(-want +got):\n%s", cmp.Diff(want, sent))
	}
}

func minutes(n float64) unit.Span { return unit.Span(n * float64(time.Minute)) }

func TestAlertLives(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q", For: minutes(1), KeepFiringFor: minutes(2),
		Text: "{{interface}} at {{value}}", Severity: "critical"})
	w.expect(w.look(time.Minute))
	w.series["q"] = map[string]float64{"eth0": 7}
	w.expect(w.look(45 * time.Second)) // 12:01:15 to 12:01:45: pending
	if a := w.w.Active(); len(a) != 1 || a[0].State != Pending {
		t.Errorf("active: %+v", a)
	}
	w.expect(w.look(time.Minute), "12:02:15 firing eth0")
	// A short absence does not count.
	w.series["q"] = nil
	w.expect(w.look(time.Minute))
	w.series["q"] = map[string]float64{"eth0": 8}
	w.expect(w.look(time.Minute))
	w.series["q"] = nil
	w.expect(w.look(3*time.Minute), "12:07:00 resolved eth0")
	if a := w.w.Active(); len(a) != 0 {
		t.Errorf("active: %+v", a)
	}
	var want timeline.Event
	for id, e := range w.events {
		want = timeline.Event{
			ID: id, Kind: timeline.Alert, Time: time.Date(2026, 3, 1, 12, 2, 15, 0, time.UTC),
			End:  time.Date(2026, 3, 1, 12, 7, 0, 0, time.UTC),
			Host: "near", Subject: "eth0", Title: "eth0 at 8", Severity: "critical", State: "resolved",
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
	if len(w.events) != 1 {
		t.Errorf("%d events", len(w.events))
	}
}

// TestPendingStartsAnew checks that an alert which holds only now and then never fires.
func TestPendingStartsAnew(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q", For: minutes(1)})
	for range 5 {
		w.series["q"] = map[string]float64{"eth0": 1}
		w.expect(w.look(45 * time.Second))
		w.now = w.now.Add(15 * time.Second)
		w.series["q"] = nil
		w.expect(w.look(0))
	}
}

// TestOneMessageForAll checks that many alerts of a rule are few messages, and that these have all
// news.
func TestOneMessageForAll(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q", RepeatEvery: minutes(10)})
	w.series["q"] = map[string]float64{"eth0": 1, "eth1": 1}
	w.look(0)
	w.series["q"]["eth2"] = 1
	w.now = w.now.Add(15 * time.Second)
	w.expect(w.look(15 * time.Second))
	delete(w.series["q"], "eth0")
	w.now = w.now.Add(15 * time.Second)
	sent := w.look(12 * time.Minute)
	w.expect(sent, "12:01:00 firing eth1, firing eth2, resolved eth0", "12:11:00 firing eth1, firing eth2")
}

func TestRestart(t *testing.T) {
	rule := Config{Name: "r", Query: "q", For: minutes(5)}
	w := newWorld(t)
	w.start(rule)
	w.series["q"] = map[string]float64{"eth0": 1, "eth1": 1}
	if sent := w.look(5 * time.Minute); len(sent) != 1 {
		t.Fatalf("sent %q", sent)
	}
	w.series["q"]["eth2"] = 1
	w.expect(w.look(4 * time.Minute)) // pending
	// The hub is away for an hour. After the start there is no sample for a while, and then eth0
	// still holds.
	w.now = w.now.Add(time.Hour)
	seen := w.series["q"]
	w.series["q"] = nil
	w.start(rule)
	w.expect(w.look(time.Minute))
	delete(seen, "eth1")
	w.series["q"] = seen
	// Before the restart eth2 had held for three minutes of five; the hour does not count. eth1 is
	// over, and the receiver gets no second message about eth0.
	w.expect(w.look(15*time.Minute), "13:11:00 firing eth0, firing eth2, resolved eth1")
	for _, e := range w.events {
		if e.Open == (e.Subject == "eth1") {
			t.Errorf("event %+v", e)
		}
	}
	// Another start, without the rule in the configuration.
	w.start(Config{Name: "other", Query: "nothing"})
	w.expect(w.look(time.Hour), "13:25:00 resolved eth0, resolved eth2")
	for _, e := range w.events {
		if e.Open || e.State != string(Resolved) {
			t.Errorf("event of a rule that no longer exists: %+v", e)
		}
	}
}

// TestNothingIsKnownMeanwhile checks that a failed query is not the answer that nothing holds.
func TestNothingIsKnownMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(*world)
		want string
	}{
		{"query fails", func(w *world) { w.fails = errors.New("query took too long") }, "alert r: query took too long"},
		{"loading", func(w *world) { w.status.Loading = true }, "alert r: not evaluated: the history is loading"},
		{"full for long", func(
			w *world) {
			w.status = record.Status{State: record.DiskFull, Newest: w.now.Add(-2 * time.Minute)}
		}, "cannot be written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.start(Config{Name: "r", Query: "q"})
			w.series["q"] = map[string]float64{"eth0": 1}
			w.expect(w.look(0), "12:00:00 firing eth0")
			w.series["q"] = nil
			c.harm(w)
			w.expect(w.look(10 * time.Minute))
			if all := w.w.Warnings(); len(all) != 1 || !strings.Contains(all[0], c.want) {
				t.Errorf("warnings %q, want %q", all, c.want)
			}
			w.fails, w.status = nil, record.Status{}
			w.expect(w.look(15*time.Second), "12:10:15 resolved eth0")
		})
	}
}

// TestTooMany checks that a rule which fires for everything stays within its bound, reports it, and
// keeps the alerts that it had first.
func TestTooMany(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q", MaxAlerts: 3})
	w.series["q"] = map[string]float64{"first": 1}
	w.expect(w.look(0), "12:00:00 firing first")
	for i := range 500 {
		w.series["q"][fmt.Sprint("eth", i)] = 1
	}
	w.look(5 * time.Minute)
	all := w.w.Active()
	if len(all) != 3 || !slices.ContainsFunc(all, func(a Active) bool { return a.Labels["interface"] == "first" }) {
		t.Errorf("active: %+v", all)
	}
	if warnings := w.w.Warnings(); len(warnings) != 1 ||
		!strings.Contains(warnings[0], "501 alerts are more than the 3") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestKeptAlertsCount checks that alerts which only keep_firing_for keeps count towards the bound.
func TestKeptAlertsCount(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q", MaxAlerts: 3, KeepFiringFor: minutes(5)})
	for i := range 10 {
		w.series["q"] = map[string]float64{fmt.Sprint("eth", i): 1}
		w.look(0)
		w.now = w.now.Add(15 * time.Second)
	}
	if all := w.w.Active(); len(all) != 3 {
		t.Errorf("%d alerts, the bound is 3: %+v", len(all), all)
	}
}

// TestReceiverThatHangs checks that evaluation goes on beside a receiver that hangs, with one
// message under way at a time.
func TestReceiverThatHangs(t *testing.T) {
	w := newWorld(t)
	w.gate = make(chan struct{})
	w.start(Config{Name: "r", Query: "q", Every: minutes(5)})
	w.series["q"] = map[string]float64{"eth0": 1}
	for range 20 {
		w.w.Evaluate(t.Context()) // would block if it waited
		w.now = w.now.Add(5 * time.Minute)
	}
	w.series["q"] = nil
	w.w.Evaluate(t.Context())
	if len(w.w.Active()) != 0 {
		t.Error("still active")
	}
	close(w.gate)
	w.w.senders.Wait()
	if w.asked != 1 {
		t.Errorf("asked %d times while it hung", w.asked)
	}
	// An alert that ended while its message was under way is reported afterwards, although no
	// evaluation followed.
	w.now = w.now.Add(time.Minute)
	if sent := w.look(0); len(sent) != 2 || !strings.HasSuffix(sent[1], "resolved eth0") {
		t.Errorf("sent %q", sent)
	}
}

func TestReceiverThatRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		asked int // in half an hour: after 5, 10, 20, 40, 80, 160, 300, 300, … seconds, in steps of 15
	}{
		{"for now", errors.New("answered 503"), 11},
		{"for good", fmt.Errorf("answered 404: %w", errPermanent), 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.refuse = c.err
			w.start(Config{Name: "r", Query: "q"})
			w.series["q"] = map[string]float64{"eth0": 1}
			w.expect(w.look(30 * time.Minute))
			if w.asked < c.asked-1 || w.asked > c.asked+1 {
				t.Errorf("asked %d times in half an hour, want about %d", w.asked, c.asked)
			}
			warnings := w.w.Warnings()
			if len(warnings) != 1 ||
				!strings.Contains(warnings[0], "webhook https://hook.example.org takes no messages: answered") ||
				strings.Contains(warnings[0], "secret") {
				t.Errorf("warnings %q", warnings)
			}
			// Nothing is lost: the receiver gets the message when it takes one again, even after a
			// restart.
			w.refuse = nil
			w.start(Config{Name: "r", Query: "q"})
			if sent := w.look(0); len(sent) != 1 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

// TestResolvedIsSentLate checks that a receiver which knows an alert as firing learns of its end,
// after any time and any events in between.
func TestResolvedIsSentLate(t *testing.T) {
	rule := Config{Name: "r", Query: "q", For: minutes(1)}
	w := newWorld(t)
	w.start(rule)
	w.series["q"] = map[string]float64{"eth0": 1}
	w.expect(w.look(time.Minute), "12:01:00 firing eth0")
	w.refuse = errors.New("answered 500")
	w.series["q"] = nil
	w.look(10 * time.Minute)
	w.series["q"] = map[string]float64{"eth0": 1} // pending again, when it listens again after a restart
	w.look(15 * time.Second)
	w.refuse = nil
	w.start(rule)
	w.expect(w.look(0), w.now.Format("15:04:05 ")+"resolved eth0")
}

func TestFindings(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "slow-link", Finding: "link-negotiated-low", Text: "{{interface}}: {{title}}"},
		Config{Name: "history-disk-full"})
	w.found = []Verdict{{Code: "link-negotiated-low", Title: "the link runs at 100 Mb/s",
		Labels: map[string]string{"interface": "eth0"}}, {Code: "mtu-small"}}
	w.expect(w.look(0), "12:00:00 firing eth0")
	if a := w.w.Active(); len(a) != 1 || a[0].Text != "eth0: the link runs at 100 Mb/s" ||
		a[0].Labels["finding"] != "link-negotiated-low" || a[0].Labels["host"] != "near" {
		t.Errorf("active: %+v", a)
	}
	w.found = nil
	w.expect(w.look(time.Minute), "12:01:00 resolved eth0")
	// Findings of the history: none while it is well, and its cause when it is not.
	w.status = record.Status{State: record.DiskFull, Cause: "no space left on device", Newest: w.now}
	w.look(15 * time.Second)
	if a := w.w.Active(); len(a) != 1 || a[0].Text != "the history of near cannot be written: no space left on device" {
		t.Errorf("active: %+v", a)
	}
	w.status = record.Status{State: record.DiskOK, Newest: w.now}
	w.look(6 * time.Minute)
	if a := w.w.Active(); len(a) != 0 {
		t.Errorf("active: %+v", a)
	}
}

// TestMessageForm checks the form of the message against what receivers of Alertmanager read.
func TestMessageForm(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q > 1", Severity: "notice", Labels: map[string]string{"team": "network"},
		Text: "{{interface}}"})
	w.series["q > 1"] = map[string]float64{"eth0": 2.5}
	w.w.Evaluate(t.Context())
	w.w.senders.Wait()
	if len(w.got) != 1 {
		t.Fatalf("%d messages", len(w.got))
	}
	got, err := json.Marshal(w.got[0])
	if err != nil {
		t.Fatal(err)
	}
	labels := `{"alertname":"r","host":"near","interface":"eth0","severity":"notice","team":"network"}`
	want := `{"version":"4","groupKey":"{}:{alertname=\"r\"}","truncatedAlerts":0,"status":"firing",` +
		`"receiver":"linerate","groupLabels":{"alertname":"r"},` +
		`"commonLabels":` + labels +
		`,"commonAnnotations":{"summary":"eth0","value":"2.5"},"externalURL":"https://hub.example.org/",` +
		`"alerts":[{"status":"firing","labels":` + labels +
		`,"annotations":{"summary":"eth0","value":"2.5"},"startsAt":"2026-03-01T12:00:00Z",` +
		`"endsAt":"0001-01-01T00:00:00Z",` +
		`"generatorURL":"https://hub.example.org/#/findings?event=` + only(t, w.events) + `","fingerprint":"` +
		w.got[0].Alerts[0].Fingerprint + `"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// only returns the id of the only event: a link to an alert must lead to it.
func only(t *testing.T, events map[string]timeline.Event) string {
	t.Helper()
	if len(events) != 1 {
		t.Fatalf("events: %v", events)
	}
	return slices.Collect(maps.Keys(events))[0]
}

// TestAlertmanagerForm checks what an Alertmanager gets: every minute while an alert fires, with an
// end that the next message moves on, and once when it is resolved.
func TestAlertmanagerForm(t *testing.T) {
	w := newWorld(t)
	var bodies []string
	w.start(Config{Name: "r", Query: "q", Text: "{{interface}}", Webhooks: []Webhook{},
		Alertmanagers: []Webhook{{URL: "https://am.example.org/"}}})
	to := w.w.rules[0].receivers[0]
	if to.to != "https://am.example.org/api/v2/alerts" {
		t.Errorf("address %s", to.to)
	}
	to.send = func(_ context.Context, body []byte) error { bodies = append(bodies, string(body)); return nil }
	w.series["q"] = map[string]float64{"eth0": 2.5}
	w.look(time.Minute)
	w.series["q"] = nil
	w.look(2 * time.Minute)
	want := func(ends string) string {
		return `[{"labels":{"alertname":"r","host":"near","interface":"eth0","severity":"warning"},` +
			`"annotations":{"summary":"eth0","value":"2.5"},"startsAt":"2026-03-01T12:00:00Z",` +
			`"endsAt":"` + ends + `",` +
			`"generatorURL":"https://hub.example.org/#/findings?event=` + only(t, w.events) + `"}]`
	}
	if diff := cmp.Diff([]string{want("2026-03-01T12:04:00Z"), want("2026-03-01T12:05:00Z"),
		want("2026-03-01T12:01:15Z")}, bodies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStateIsUnreadable checks that a broken file suppresses no message.
func TestStateIsUnreadable(t *testing.T) {
	w := newWorld(t)
	err := durable.MkdirAll(w.fs, "/var/state", 0o755)
	if err == nil {
		err = durable.Replace(w.fs, "/var/state/alerts.json", []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.start(Config{Name: "r", Query: "q"})
	w.series["q"] = map[string]float64{"eth0": 1}
	w.expect(w.look(0), "12:00:00 firing eth0")
	w.start(Config{Name: "r", Query: "q"})
	w.expect(w.look(time.Hour))
}

// TestFullDisk checks that messages go out when the state cannot be saved.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.fs = durable.NewFaulty(w.fs, durable.FullFrom(0))
	w.start(Config{Name: "r", Query: "q"})
	w.series["q"] = map[string]float64{"eth0": 1}
	w.expect(w.look(time.Hour), "12:00:00 firing eth0")
	if all := w.w.Warnings(); len(all) != 1 || !strings.Contains(all[0], "would not survive a restart") {
		t.Errorf("warnings %q", all)
	}
}

// TestSlowQuery checks that the watcher evaluates a slow rule less often.
func TestSlowQuery(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q"})
	asked := 0
	w.w.o.Query = func(context.Context, string, time.Time) ([]record.Labelled, error) {
		asked++
		w.now = w.now.Add(3 * time.Second)
		return nil, nil
	}
	w.look(10 * time.Minute)
	if asked > 11 {
		t.Errorf("asked %d times in ten minutes, each taking three seconds", asked)
	}
}

// TestRun checks that each rule is evaluated at its interval, and that the end is prompt although a
// receiver hangs.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(map[string]int)
		w, err := New(Options{
			Rules: []Config{
				{Name: "often", Query: "a", Every: minutes(0.25), MaxAlerts: 1,
					Webhooks: []Webhook{{URL: "https://hook.example.org", Timeout: minutes(5)}}},
				{Name: "seldom", Query: "b", Every: minutes(10), MaxAlerts: 1},
			},
			Query: func(_ context.Context, query string, at time.Time) ([]record.Labelled, error) {
				if at.Unix() == 0 {
					return nil, nil // only parsed
				}
				asked[query]++
				return []record.Labelled{{Value: 1}}, nil
			},
			sendHTTP: func(Webhook) func(context.Context, []byte) error {
				return func(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() }
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.Run(ctx); close(ended) }()
		time.Sleep(time.Hour - time.Second) // of the bubble
		cancel()
		<-ended
		if asked["a"] != 240 || asked["b"] != 6 {
			t.Errorf("asked %v times in an hour, want 240 and 6", asked)
		}
	})
}

// TestRetryIsPrompt checks that a retry happens at its time, and not only when a rule is due.
func TestRetryIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		w, err := New(Options{
			Rules: []Config{{Name: "r", Query: "q", Every: minutes(10), MaxAlerts: 1,
				Webhooks: []Webhook{{URL: "https://hook.example.org"}}}},
			Query: func(context.Context, string, time.Time) ([]record.Labelled, error) {
				return []record.Labelled{{Value: 1}}, nil
			},
			sendHTTP: func(Webhook) func(context.Context, []byte) error {
				return func(context.Context, []byte) error {
					at = append(at, time.Since(began))
					return errors.New("answered 500")
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.Run(ctx); close(ended) }()
		time.Sleep(time.Minute) // of the bubble
		cancel()
		<-ended
		want := []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("tried at %v, want about %v", at, want)
		}
		for i := range at {
			if at[i] < want[i] || at[i] > want[i]+15*time.Second {
				t.Errorf("tried at %v, want about %v", at, want)
			}
		}
	})
}
