package loop_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/storage"
)

// stoppedDisk is a disk whose tests are stopped by the machine for most of their time.
type stoppedDisk struct {
	*simulatedDisk
	runs int
}

func (d *stoppedDisk) Run(ctx context.Context, s storage.Spec, p func(storage.Sample)) (*storage.Result, error) {
	d.runs++
	if err := exec.CommandContext(ctx, "sh", "-c", "kill -STOP $PPID; sleep 0.3; kill -CONT $PPID").Run(); err != nil {
		return nil, err
	}
	return d.simulatedDisk.Run(ctx, s, p)
}

// TestStoppedDiskIsNotJudged has a disk without a limit to find, measured by a process that stands
// still. Nothing shows that no setting limits it.
func TestStoppedDiskIsNotJudged(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	d := &stoppedDisk{simulatedDisk: newSimulatedDisk("4096", "64")}
	got, err := loop.TuneDisk(t.Context(), d, d, d.subject(), loop.DiskThroughput, loop.TuneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Outcome.Unreliable || !strings.Contains(got.Outcome.Reason, "too disturbed to judge") ||
		len(got.Before.Findings) != 0 {
		t.Errorf("%+v, findings %v", got.Outcome, got.Before.Findings)
	}
	if d.runs != 6 {
		t.Errorf("%d tests, want each of two made three times", d.runs)
	}
	// What the user named is tried all the same: the trials show their own noise.
	wide, named := knob.Catalogue().Widened("block:sda/nr_requests")
	got, err = loop.TuneDisk(t.Context(), d, d, d.subject(), loop.DiskThroughput,
		loop.TuneOptions{DryRun: true, Allow: knob.DisturbsNewSockets, Wide: wide, Knobs: named})
	if err != nil {
		t.Fatal(err)
	}
	if got.Plan == nil || got.Outcome.Unreliable {
		t.Errorf("a named knob: %+v", got.Outcome)
	}
}
