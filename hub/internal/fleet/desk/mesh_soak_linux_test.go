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

// accuses measures a mesh and reports whether its first culprit is the wanted one, and how many
// others are accused. A mesh that is wrong, or of which too few tests are judged, says nothing
// where a host had no CPU time meanwhile; it is measured again.
func (w *world) accuses(m MeshRequest, want string) (found bool, others int) {
	w.t.Helper()
	for again := 3; ; again-- {
		w.late()
		doc := w.measure(m)
		late, unjudged, reasons := w.late(), 0, make(map[string]int)
		for _, r := range doc.Results {
			switch {
			case r.Bad:
				reasons[r.Reason]++
			case r.Error != "":
				unjudged++
			}
		}
		others, found = len(doc.Culprits), culprit(doc) == want
		if found && others > 0 {
			others--
		}
		enough := len(doc.Results) >= len(w.names)*m.Partners/2 && unjudged*10 <= len(doc.Results)
		w.t.Logf("%s is wanted, %s is accused, and %d others; %d tests, %d not judged, bad by reason: %v; %.1f s, %v late",
			want, culprit(doc), others, len(doc.Results), unjudged, reasons, doc.Seconds, late)
		switch {
		case found && others == 0 && enough:
			return true, 0
		case late < 100*time.Millisecond: // see TestMesh
			return found && enough, others
		case again == 0:
			w.t.Errorf("%s: not judged, because a host was %v late", want, late)
			return found && enough, others
		}
	}
}

// TestHundred plants twelve faults in a fleet of 100 real responders, one after the other, and
// counts how many a mesh of five partners finds, and what else it accuses. Then every load test
// that was planned has to be made.
func TestHundred(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	if !inside(t) {
		return
	}
	begin := time.Now()
	w := build(t, 10, 10)
	t.Logf("100 hosts are there after %.1f s", time.Since(begin).Seconds())
	found, accused := 0, 0
	ports, wants := faults(w)
	for i, port := range ports {
		percent := []int{30, 60}[i%2]
		w.drop(port, percent)
		t.Logf("%s loses %d %%", port, percent)
		right, others := w.accuses(MeshRequest{Partners: 5, Seed: uint64(i + 1)}, wants[i])
		if accused += others; right {
			found++
		}
		w.drop("", 0)
	}
	t.Logf("%d of %d faults are found, %d other things are accused", found, len(ports), accused)
	if found*100 < len(ports)*95 || accused > 0 {
		t.Errorf("%d of %d faults are found, want 95 %%; %d other things are accused", found, len(ports), accused)
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
	for trial := range 3 {
		right, others := w.accuses(MeshRequest{Partners: 5, Seed: uint64(9000 + trial)}, "nothing")
		if !right {
			t.Errorf("%d things are accused without a fault, or too few tests were made", others)
		}
	}
}
