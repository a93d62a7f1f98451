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

// mute removes the findings that another finding explains, and lists their codes there. It follows
// the order of findings; a muted finding mutes no other.
func mute(found []evidence.Finding, explains map[evidence.Code][]evidence.Code) []evidence.Finding {
	muted := make(map[evidence.Code]bool)
	for i := range found {
		for _, symptom := range explains[found[i].Code] {
			if muted[found[i].Code] || muted[symptom] {
				continue
			}
			// The symptom must not be more severe than the cause at any place: a notice does not
			// explain a warning.
			present, heavier := false, false
			for _, x := range found {
				if x.Code == symptom {
					present, heavier = true, heavier || severe(x) < severe(found[i])
				}
			}
			if present && !heavier {
				muted[symptom] = true
				found[i].Causes = append(found[i].Causes, symptom)
			}
		}
	}
	return slices.DeleteFunc(found, func(x evidence.Finding) bool { return muted[x.Code] })
}
