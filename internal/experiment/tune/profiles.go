package tune

import "github.com/linerate/linerate/internal/profile"

// ArmProfile says where the processor time of one side went: what differs between the two arms of a
// comparison, over all their segments. Before is arm A, After arm B.
type ArmProfile struct {
	Side Side `json:"side"`
	// busy samples of each arm
	SamplesBefore uint64 `json:"before_samples_total"`
	SamplesAfter  uint64 `json:"after_samples_total"`
	profile.Comparison
}

// armProfiles are the profiles of the segments of two arms, by side and arm.
type armProfiles map[Side]*[2][]*profile.Profile

// add adds the profiles of one segment.
func (a *armProfiles) add(arm int, of map[Side]*profile.Profile) {
	for side, p := range of {
		if *a == nil {
			*a = armProfiles{}
		}
		if (*a)[side] == nil {
			(*a)[side] = &[2][]*profile.Profile{}
		}
		(*a)[side][arm] = append((*a)[side][arm], p)
	}
}

// compared returns what differs between the arms, near side first. A side with fewer than two
// segments of an arm has no interval and is left out.
func (a armProfiles) compared() []ArmProfile {
	var all []ArmProfile
	for _, side := range []Side{Near, Far} {
		arms := a[side]
		if arms == nil || len(arms[0]) < 2 || len(arms[1]) < 2 {
			continue
		}
		before, after := profile.Merge(arms[0]), profile.Merge(arms[1])
		all = append(all, ArmProfile{Side: side, SamplesBefore: before.Busy, SamplesAfter: after.Busy,
			Comparison: *profile.Compare(before, after)})
	}
	return all
}
