package alert

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReceiverLeaves takes a webhook out of the configuration while an alert fires: the hub says
// once that the alert ended, also where the webhook takes the message late or after another start.
// The receiver that stays hears nothing of it.
func TestReceiverLeaves(t *testing.T) {
	w := newWorld(t)
	left, stays := Webhook{URL: "https://left.example.org/secret"}, Webhook{URL: "https://stays.example.org/"}
	w.start(Config{Name: "r", Query: "q", Webhooks: []Webhook{left, stays}})
	w.series["q"] = map[string]float64{"eth0": 1}
	w.expect(w.look(0), "12:00:00 firing eth0", "12:00:00 firing eth0")

	now := Config{Name: "r", Query: "q", Webhooks: []Webhook{stays}}
	var asked []string
	again := func(refuse bool) {
		w.now = w.now.Add(time.Hour)
		w.start(now)
		for _, r := range w.w.receiving() {
			to := r.receivers[0]
			send := to.send
			to.send = func(ctx context.Context, body []byte) error {
				w.mu.Lock()
				asked = append(asked, to.name())
				w.mu.Unlock()
				if refuse {
					return errors.New("not now")
				}
				return send(ctx, body)
			}
		}
	}
	again(true)
	w.expect(w.look(time.Minute))
	if len(asked) < 2 || strings.Contains(strings.Join(asked, " "), "stays") {
		t.Errorf("asked: %q", asked)
	}
	if all := w.w.Warnings(); len(all) != 1 || !strings.Contains(all[0], "https://left.example.org takes no messages") {
		t.Errorf("warnings %q", all)
	}
	asked = nil
	again(false)
	w.expect(w.look(time.Minute), "14:01:00 resolved eth0")
	if len(asked) != 1 || asked[0] != "webhook https://left.example.org" {
		t.Errorf("asked: %q", asked)
	}
	again(false)
	w.expect(w.look(time.Minute))
	state, err := w.fs.ReadFile("/var/state/alerts.json")
	if err != nil || strings.Contains(string(state), "left.example.org") {
		t.Errorf("what is remembered: %s, %v", state, err)
	}
}

// TestReceiverLeavesForGood: one that takes no message for a day is forgotten.
func TestReceiverLeavesForGood(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q"})
	w.series["q"] = map[string]float64{"eth0": 1}
	w.look(0)
	w.refuse = errors.New("gone")
	w.start(Config{Name: "other", Query: "nothing"})
	w.look(time.Minute)
	if len(w.w.leaving) != 1 {
		t.Fatalf("%d receivers leave", len(w.w.leaving))
	}
	w.now = w.now.Add(25 * time.Hour)
	w.look(0)
	if len(w.w.leaving) != 0 || len(w.w.Warnings()) != 0 {
		t.Errorf("%d receivers leave, warnings %q", len(w.w.leaving), w.w.Warnings())
	}
}
