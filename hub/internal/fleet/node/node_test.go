package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/lease"
)

// knobs are a backend of fixed values.
type knobs map[knob.ID]string

func (k knobs) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	v, ok := k[id]
	switch {
	case !ok:
		return "", fs.ErrNotExist
	case v == "secret":
		return "", fs.ErrPermission
	}
	return knob.Value(v), nil
}

func (k knobs) Write(context.Context, knob.ID, knob.Value) error { panic("a node writes nothing") }

// past is what an agent has to say.
type past []journal.Change

func (p past) History(context.Context) ([]journal.Change, error)      { return p, nil }
func (p past) Runs(context.Context, runs.Kind) ([]string, error)      { return []string{"r1"}, nil }
func (p past) Run(context.Context, runs.Kind, string) ([]byte, error) { return []byte(`{}`), nil }

// closed is an agent that this node may not ask.
type closed struct{ past }

func (closed) History(context.Context) ([]journal.Change, error) { return nil, fs.ErrPermission }

// TestJournalNotRead: a host whose journal a node cannot read does not claim that nothing drifted.
func TestJournalNotRead(t *testing.T) {
	h := NewHost(closed{}, knobs{}, "1.0", slog.New(slog.DiscardHandler))
	facts := inventory.Facts{Name: "here"}
	h.readKept(t.Context(), &facts)
	h.set(facts)
	a, err := h.Answer(t.Context(), VerbState, nil)
	if s, ok := a.(State); err != nil || !ok || s.Kept != nil || s.Drifted != nil || s.JournalNotRead == "" {
		t.Errorf("state %+v, %v", a, err)
	}
}

// TestHost: what a host says of its knobs and of kept changes.
func TestHost(t *testing.T) {
	h := NewHost(past{
		{ID: "c1", Knob: "sysctl:a", To: "1", State: journal.Committed},
		{ID: "c2", Knob: "sysctl:a", To: "2", State: journal.Persisted},
		{ID: "c3", Knob: "sysctl:b", To: "5", State: journal.Committed},
		{ID: "c4", Knob: "sysctl:c", To: "7", State: journal.Undone},
	}, knobs{"sysctl:a": "2", "sysctl:b": "6", "sysctl:s": "secret"}, "1.0", slog.New(slog.DiscardHandler))
	if _, err := h.Answer(t.Context(), VerbState, nil); !errors.Is(err, ErrNotReadYet) {
		t.Errorf("the state before the first reading: %v", err)
	}
	facts := inventory.Facts{Name: "here", Findings: []string{"rx-ring-overrun"}}
	h.readKept(t.Context(), &facts)
	kept := facts.Kept
	if len(kept) != 2 || kept[0].Change != "c2" || kept[0].Drifted() || !kept[1].Drifted() {
		t.Errorf("kept changes %+v", kept)
	}
	h.set(facts)
	b, hash, err := h.Facts(t.Context())
	if err != nil || inventory.Hash(b) != hash {
		t.Errorf("facts %s: hash %s, %v", b, hash, err)
	}
	a, err := h.Answer(t.Context(), VerbState, nil)
	if s, ok := a.(State); err != nil || !ok || *s.Kept != 2 || *s.Drifted != 1 || len(s.Findings) != 1 {
		t.Errorf("state %+v, %v", a, err)
	}
	a, err = h.Answer(t.Context(), VerbKnob, []string{"a", "sysctl:s", "z"})
	if m, ok := a.(map[string]string); err != nil || !ok || m["a"] != "2" ||
		m["sysctl:s"] != "not permitted" || m["z"] != "not there" {
		t.Errorf("knobs %+v, %v", a, err)
	}
	if _, err := h.Answer(t.Context(), VerbKnob, make([]string, mostKnobs+1)); err == nil {
		t.Error("nine knobs are read")
	}
	if _, err := h.Answer(t.Context(), "dance", nil); !errors.Is(err, ErrUnknownVerb) {
		t.Errorf("an unknown question: %v", err)
	}
	for name, want := range map[string]error{DocumentInspect: nil, "secrets": fs.ErrNotExist, DocumentRuns: nil,
		"run/r1": nil} {
		b, err := h.Document(t.Context(), name)
		if name == DocumentInspect { // it has not been read yet
			if err == nil {
				t.Errorf("%s: %s", name, b)
			}
			continue
		}
		if !errors.Is(err, want) || err == nil && !json.Valid(b) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
}

// prober returns one with a policy.
func prober(t *testing.T, policy string) *Prober {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if policy != "" {
		if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.Local)
	own := &lease.Lease{Name: fmt.Sprintf("linerate/test-%d", os.Getpid())}
	return &Prober{Policy: file, Lease: own, Now: func() time.Time { return now }}
}

// TestPolicy: the file of root decides what the fleet may measure from here, whatever the hub asks.
func TestPolicy(t *testing.T) {
	const load = string(traffic.Stream)
	for _, c := range []struct {
		policy, test, target, want string // want is a part of the refusal; empty: none
	}{
		{"", load, "192.0.2.1:5201", ""},
		{"", "ping", "192.0.2.1:5201", ""},
		{"version: 1\nkill_switch: true\n", "ping", "192.0.2.1:5201", "kill switch"},
		{"version: 1\ntests:\n  hours: 22:00-06:00\n", load, "192.0.2.1:5201", "hours"},
		{"version: 1\ntests:\n  hours: 22:00-06:00\n", "ping", "192.0.2.1:5201", ""},
		{"version: 1\ntests:\n  max_share_ratio: 0\n", load, "192.0.2.1:5201", "no load tests"},
		{"version: 1\ntests:\n  max_seconds_per_hour: 1\n", load, "192.0.2.1:5201", "an hour"},
		{"version: 1\ntests:\n  peers: [10.0.0.0/8]\n", "ping", "192.0.2.1:5201", "does not allow tests with"},
		{"version: 1\ntests:\n  peers: [10.0.0.0/8]\n", "ping", "10.1.1.1:5201", ""},
		{"version: 1\ntests:\n  peers: [10.0.0.0/8]\n", "ping", "db.example:5201", "peers"},
		{"nonsense", "ping", "192.0.2.1:5201", "not readable"},
		{"", "udp", "192.0.2.1:5201", "not one of a mesh"},
		{"", "ping", "ssh://root@192.0.2.1", "not HOST:PORT"},
		{"", "ping", "192.0.2.1", "not HOST:PORT"},
	} {
		p := prober(t, c.policy)
		q := message.Measure{Test: c.test, Target: c.target, DurationMS: 2000}
		var m message.Measured
		spec, err := p.spec(q)
		if err != nil {
			m.Refused = err.Error()
		} else {
			var done func()
			if done, m = p.admit(q, &spec); done != nil {
				done()
			}
		}
		if c.want == "" && m.Refused != "" || !strings.Contains(m.Refused, c.want) {
			t.Errorf("%q, %s to %s: %+v, want %q", c.policy, c.test, c.target, m, c.want)
		}
	}
}

// TestSpeedNotKnown: a share of a link whose speed is not known is one of what the policy states,
// or else of little, and never a rate without a limit.
func TestSpeedNotKnown(t *testing.T) {
	for _, c := range []struct {
		policy string
		speed  float64
		rate   float64
	}{
		{"", 1e9, 1e8},
		{"", 0, 1e7},
		{"version: 1\ntests:\n  link_rate: 10G\n", 0, 1e9},
		{"version: 1\ntests:\n  link_rate: 1G\n", 40e9, 1e8}, // the provider of a guest may allow less
		{"version: 1\ntests:\n  max_share_ratio: 1\n", 0, 0},
		{"version: 1\ntests:\n  max_share_ratio: 1\n", 1e9, 0},
	} {
		p := prober(t, c.policy)
		p.Speed = func() float64 { return c.speed }
		spec, err := p.spec(message.Measure{Test: string(traffic.Stream), Target: "192.0.2.1:5201", DurationMS: 2000})
		if err != nil {
			t.Fatal(err)
		}
		done, m := p.admit(message.Measure{Target: "192.0.2.1:5201"}, &spec)
		if done != nil {
			done()
		}
		if done == nil || spec.RateBitsPerSec != c.rate {
			t.Errorf("%q, %g bit/s: %+v, at %g", c.policy, c.speed, m, spec.RateBitsPerSec)
		}
	}
}

// TestBounds: the seconds of load tests in an hour are bounded, one load test has the host, and
// some pings.
func TestBounds(t *testing.T) {
	p := prober(t, "version: 1\ntests:\n  max_seconds_per_hour: 6\n  max_share_ratio: 0.5\n")
	p.Speed = func() float64 { return 10e9 }
	at := p.Now()
	p.Now = func() time.Time { return at }
	q := message.Measure{Test: string(traffic.Stream), Target: "192.0.2.1:5201", DurationMS: 2000}
	load := func() (func(), message.Measured) {
		t.Helper()
		spec, err := p.spec(q)
		if err != nil {
			t.Fatal(err)
		}
		done, m := p.admit(q, &spec)
		if done != nil && spec.RateBitsPerSec != 5e9 {
			t.Errorf("half of 10 Gb/s is %g", spec.RateBitsPerSec)
		}
		return done, m
	}
	done, m := load()
	if done == nil {
		t.Fatalf("%+v", m)
	}
	if again, m := load(); again != nil || m.Busy == "" || m.Refused != "" {
		t.Errorf("a second load test: %+v", m)
	}
	done()
	if done, m = load(); done == nil {
		t.Fatalf("%+v", m)
	}
	done()
	if again, m := load(); again != nil || m.Refused == "" {
		t.Errorf("the third test of 2.5 s within 6 s an hour: %+v", m)
	}
	at = at.Add(61 * time.Minute)
	if done, m = load(); done == nil {
		t.Errorf("an hour later: %+v", m)
	} else {
		done()
	}
	q.Test = "ping"
	for i := range mostPings + 1 {
		spec, _ := p.spec(q)
		if done, m := p.admit(q, &spec); (done != nil) != (i < mostPings) || i == mostPings && m.Busy == "" {
			t.Errorf("ping %d at once: %+v", i+1, m)
		}
	}
}

// TestFirstUse: measurements of a new prober are made side by side, and none of them writes to what
// another one reads. The race detector sees it too.
func TestFirstUse(t *testing.T) {
	p := prober(t, "version: 1\nkill_switch: true\n")
	p.Now = nil
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			q := message.Measure{Test: string(traffic.Ping), Target: "192.0.2.1:5201"}
			if m := p.Measure(t.Context(), q); !strings.Contains(m.Refused, "kill switch") {
				t.Errorf("%+v", m)
			}
		})
	}
	all.Wait()
	if p.Now != nil {
		t.Error("a measurement has filled in the clock")
	}
}

// TestVerdicts: whose fault it is that there is no result.
func TestVerdicts(t *testing.T) {
	if m := failed(traffic.ErrNoAnswer); m.Failed == "" || m.LossRatio == nil || *m.LossRatio != 1 {
		t.Errorf("no answer: %+v", m)
	}
	if m := failed(lease.ErrBusy); m.Busy == "" || m.Failed != "" {
		t.Errorf("busy: %+v", m)
	}
	if m := failed(traffic.ErrRefused); m.Refused == "" || m.Failed != "" {
		t.Errorf("refused: %+v", m)
	}
	if m := failed(errors.New("connection reset\nby peer")); m.Failed != "connection reset by peer" {
		t.Errorf("broken: %+v", m)
	}
}
