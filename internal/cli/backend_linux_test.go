package cli

import (
	"testing"

	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// TestJournalReachesTheHost checks that a journal, as commands open it, finds what only the host
// below all other backends knows.
func TestJournalReachesTheHost(t *testing.T) {
	backend := journalOptions(t.TempDir(), hazard.Backend{Backend: live.New()}, journal.Deadline, "near").Backend
	if _, ok := knob.As[knob.Displacer](backend); !ok {
		t.Error("a reload does not show which interfaces it makes anew")
	}
	if _, ok := knob.As[knob.Keeper](backend); !ok {
		t.Error("a value that only a file shows is not kept")
	}
	if _, ok := backend.(knob.Checker); !ok {
		t.Error("nothing checks a value before it is written")
	}
	if _, ok := backend.(knob.Carrier); !ok {
		t.Error("a guard does not get the rules of a table")
	}
}
