package diagnose

import (
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// symptomsOf returns the symptoms that each code explains, from [evidence.Rule.Explains].
func symptomsOf(rules []evidence.Rule) map[evidence.Code][]evidence.Code {
	explains := make(map[evidence.Code][]evidence.Code)
	for _, r := range rules {
		explains[r.Code] = append(explains[r.Code], r.Explains...)
	}
	return explains
}

// ofHost are symptoms inside one host, which only a cause in the same host explains: a busy CPU,
// and the queues in front of it. The others are of the flow, which has both ends.
var ofHost = []evidence.Code{evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
	evidence.SoftnetBacklogDrops, evidence.RXRingOverrun, evidence.InterruptStorm}

// mute removes the findings that another finding explains, and lists their codes there. It follows
// the order of findings; a muted finding mutes no other.
func mute(found []evidence.Finding, explains map[evidence.Code][]evidence.Code) []evidence.Finding {
	muted := make([]bool, len(found))
	for i := range found {
		if muted[i] {
			continue
		}
		for j := range found {
			if muted[j] || !slices.Contains(explains[found[i].Code], found[j].Code) || !explainsIt(found[i], found[j]) {
				continue
			}
			muted[j] = true
			if !slices.Contains(found[i].Causes, found[j].Code) {
				found[i].Causes = append(found[i].Causes, found[j].Code)
			}
		}
	}
	kept := make([]evidence.Finding, 0, len(found))
	for i, x := range found {
		if !muted[i] {
			kept = append(kept, x)
		}
	}
	return kept
}

// explainsIt reports whether a finding is cause enough for a symptom of its own: a notice does not
// explain a warning, and a CPU of one host no queue of the other. Single segments are the
// exception: they keep the CPUs of both hosts busy, wherever the feature is off that would bundle
// them.
func explainsIt(cause, symptom evidence.Finding) bool {
	if cause.Aside || severe(symptom) < severe(cause) {
		return false
	}
	return cause.Where == symptom.Where || !slices.Contains(ofHost, symptom.Code) ||
		cause.Code == evidence.OffloadsOff && symptom.Code != evidence.CPUSaturated
}
