package tables

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return nil
}
