package alert

import (
	"testing"
	"time"
)

// TestKilledBeforeItSaved ends the hub between the event of an alert and the file with its state:
// the event stayed open for ever.
func TestKilledBeforeItSaved(t *testing.T) {
	w := newWorld(t)
	w.start(Config{Name: "r", Query: "q"})
	w.series["q"] = map[string]float64{"eth0": 1}
	w.look(0)
	if err := w.fs.Remove("/var/state/alerts.json"); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	w.start(Config{Name: "r", Query: "q"})
	w.look(0)
	ended := 0
	for _, e := range w.events {
		if !e.Open {
			ended++
		}
	}
	if len(w.events) != 2 || ended != 1 {
		t.Errorf("%+v", w.events)
	}
}
