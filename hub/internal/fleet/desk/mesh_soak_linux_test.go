//go:build soak

package desk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// faults are those that TestHundred plants, one at a time.
func faults(w *world) (ports, wants []string) {
	for _, i := range []int{0, 13, 37, 52, 68, 99} {
		ports, wants = append(ports, w.names[i]), append(wants, "host "+w.names[i])
	}
	for _, r := range []int{0, 2, 3, 5, 7, 9} {
		ports, wants = append(ports, fmt.Sprintf("r%d-up", r)), append(wants, fmt.Sprintf("rack here/r%d", r))
	}
	return ports, wants
}

// TestHundred plants twelve faults in a fleet of 100 real responders, in turn, and counts how many
// a mesh of five partners finds. It also looks for hosts in two load tests at once.
func TestHundred(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	if !inside(t) {
		return
	}
	begin := time.Now()
	w := build(t, 10, 10)
	t.Logf("100 hosts are there after %.1f s", time.Since(begin).Seconds())
	found, all := 0, 0
	ports, wants := faults(w)
	for i, port := range ports {
		percent := []int{30, 60}[i%2]
		w.drop(port, percent)
		doc := w.measure(MeshRequest{Partners: 5, Seed: uint64(i + 1)})
		all++
		if culprit(doc) == wants[i] {
			found++
		}
		t.Logf("%s loses %d %%: accused %s; %d tests in %.1f s", port, percent, culprit(doc), len(doc.Results), doc.Seconds)
		w.drop("", 0)
	}
	t.Logf("%d of %d faults are found", found, all)
	if found*100 < all*95 {
		t.Errorf("%d of %d faults are found, want 95 %%", found, all)
	}
	doc := w.measure(MeshRequest{Partners: 1, Loads: 2, MS: 300, Seed: 5, Uplink: 2, Site: 100})
	t.Logf("load tests: %d results, %d times busy, %d left, %.1f s", len(doc.Results), doc.Refused, doc.Left, doc.Seconds)
	if doc.Left > 0 || slices.ContainsFunc(doc.Results, func(r report.FleetMeasured) bool { return r.Error != "" }) {
		t.Errorf("load tests are missing: %d left", doc.Left)
	}
}

// TestInnocent measures 100 real responders without a fault, and prints why each test was bad.
func TestInnocent(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	if !inside(t) {
		return
	}
	w := build(t, 10, 10)
	accused := 0
	for trial := range 3 {
		doc := w.measure(MeshRequest{Partners: 5, Seed: uint64(9000 + trial)})
		reasons := make(map[string]int)
		for _, r := range doc.Results {
			if r.Bad {
				reasons[r.Reason]++
			}
		}
		accused += len(doc.Culprits)
		t.Logf("%d tests, bad ones by reason: %v; accused %+v", len(doc.Results), reasons, doc.Culprits)
	}
	if accused > 0 {
		t.Errorf("%d things are accused without a fault", accused)
	}
}
