//go:build linux && soak

package live_test

import (
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// reloadSteps are the steps of a reload at which a process can die.
var reloadSteps = []string{"noted", "unloaded", "loaded", "loaded and noted", "named", "dressed", "up", "returned",
	"tuned", "done"}

// TestGuestReloadKills kills the writer of a reload, its guard, and a writer without a guard, after
// each step.
func TestGuestReloadKills(t *testing.T) {
	if !guest.Inside() {
		testenv.Need(t, testenv.Soak)
	}
	for _, step := range reloadSteps {
		t.Run(step, func(t *testing.T) {
			if !guesttest.In(t) {
				return
			}
			before := reloadedHost(t)
			for _, part := range []string{"WRITER", "GUARD", "UNGUARDED"} {
				t.Run(part, func(t *testing.T) { killReload(t, part, step, before) })
			}
		})
	}
}
