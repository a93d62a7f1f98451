package cards

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.OffloadsOff, Flow: offloadsOff},
	}
}
