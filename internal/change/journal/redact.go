package journal

import (
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
)

// Redacted replaces a value that is not disclosed.
const Redacted = knob.Value("(not disclosed)")

// Redact returns changes as anyone but root may read them: without the values of knobs that the
// catalogue keeps secret, or does not know. The argument stays as it is.
func Redact(changes []Change, catalog *knob.Catalog) []Change {
	redacted := slices.Clone(changes)
	for i := range redacted {
		c := &redacted[i]
		if catalog.Discloses(c.Knob) {
			continue
		}
		// A note may name the values that were found.
		c.From, c.To, c.Asked, c.Original, c.Note = Redacted, Redacted, "", "", ""
	}
	return redacted
}
