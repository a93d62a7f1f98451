package worldtest_test

import (
	"encoding/json"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/resolver/world"
)

// TestSoundResolver tunes BIND with nothing to tune, one option of it.
func TestSoundResolver(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers, testenv.Long)
	t.Parallel()
	tuneSound(t, world.BIND, "--knobs", "udp-receive-buffer", "--name-count", "100")
}

// tuneSound runs `linerate resolver tune --lab` in a world without a fault: nothing may stay. A run
// without a verdict, as on a busy machine, keeps nothing either.
func tuneSound(t *testing.T, kind world.Recursor, args ...string) {
	t.Helper()
	if kept := tuneWorld(t, kind, args...).Kept; len(kept) > 0 {
		t.Errorf("%s has nothing to tune, and keeps %+v", kind, kept)
	}
}

// tuneWorld runs `linerate resolver tune --lab`.
func tuneWorld(t *testing.T, kind world.Recursor, args ...string) report.ResolverTuneDocument {
	t.Helper()
	if _, err := kind.Find(); err != nil {
		testenv.Missing(t, testenv.Peers, err)
	}
	out, _ := play(t, append([]string{"resolver", "tune", "--lab", string(kind), "--budget", "30m", "--json"}, args...)...)
	var d report.ResolverTuneDocument
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d trials, %s: %s", kind, len(d.Trials), d.State, d.Reason)
	return d
}
