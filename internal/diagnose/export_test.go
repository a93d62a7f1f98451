package diagnose

import (
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// Ordered reports whether a code has a place in the order of certainty.
func Ordered(code evidence.Code) bool { return slices.Contains(certainty, code) }
