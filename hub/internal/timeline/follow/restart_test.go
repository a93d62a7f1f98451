package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// TestOpenForEver restarts after a run was skipped and after the clock was ahead: their events
// stayed open for ever.
func TestOpenForEver(t *testing.T) {
	h := newHost(t)
	h.now = noon.Add(24 * time.Hour)
	h.f.Findings(h.now, []evidence.Finding{finding("cpu-steal", evidence.Warning, "stolen")})
	h.look(0)
	h.now = noon
	skipped := timeline.Event{ID: "skipped-x-1", Kind: timeline.Measurement, Time: noon, Open: true, Host: "a", Title: "x"}
	if err := h.store.Put(skipped, nil); err != nil {
		t.Fatal(err)
	}
	h.look(time.Minute)
	h.now = h.now.Add(time.Hour)
	h.start(time.Time{})
	for _, kind := range []timeline.Kind{timeline.Finding, timeline.Measurement} {
		if all := h.events(kind); len(all) != 1 || strings.Contains(all[0], "-open") {
			t.Errorf("%q", all)
		}
	}
}

// TestLongPlaces reports the same verdict at two ports with long names, twice: they had one id.
func TestLongPlaces(t *testing.T) {
	h := newHost(t)
	for range 2 {
		var both []evidence.Finding
		for _, port := range []string{"1", "2"} {
			f := finding("switch-port-errors", evidence.Warning, "damaged")
			f.Where = "switch " + strings.Repeat("s", 64) + " " + strings.Repeat("p", 58) + port
			both = append(both, f)
		}
		h.f.Findings(h.now, both)
		h.look(time.Hour)
	}
	if all := h.events(timeline.Finding); len(all) != 4 {
		t.Errorf("%q", all)
	}
}
