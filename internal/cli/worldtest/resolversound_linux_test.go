package worldtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// go test ends no children of a test that times out, and runs no cleanup: this one ends before,
	// by an interrupt, after which it takes its trials back.
	ctx := t.Context()
	if end, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*9/10)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, self) // which is linerate by this name
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Args = append([]string{"linerate", "resolver", "tune", "--lab", string(kind), "--budget", "30m",
		"--json"}, args...)
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	var ended *exec.ExitError // its status says how sure the verdict is
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if err := reporttest.Validate(out.Bytes()); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errw)
	}
	var d report.ResolverTuneDocument
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d trials, %s: %s", kind, len(d.Trials), d.State, d.Reason)
	return d
}
