package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/storage"
)

// slowDisk takes the time that its tests last.
type slowDisk struct {
	*simulatedDisk
	longest time.Duration // of one test
	judged  int           // times that it was read directly, which only a verdict does
}

func (d *slowDisk) Run(ctx context.Context, s storage.Spec, f func(storage.Sample)) (*storage.Result, error) {
	if s.Way != storage.Dropped {
		d.judged++
	}
	d.longest = max(d.longest, s.Duration)
	select {
	case <-time.After(s.Duration):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return d.simulatedDisk.Run(ctx, s, f)
}

// TestTuneDiskEndsWithinItsBudget checks that what is measured after a keep, to judge the disk
// again, does not take the time of the confirmation: what was proven would be undone.
func TestTuneDiskEndsWithinItsBudget(t *testing.T) {
	again, kept := 0, 0
	for budget := 25 * time.Second; budget <= 2*time.Minute; budget += time.Duration(testenv.Sample(3, 9)) * time.Second {
		synctest.Test(t, func(t *testing.T) {
			d := &slowDisk{simulatedDisk: newSimulatedDisk("4", "256")}
			subject := d.subject()
			subject.Stack.Layers[0].Queue.ReadAheadBytes = 4096
			began := time.Now()
			got, err := loop.TuneDisk(t.Context(), d, d, subject, loop.DiskThroughput,
				loop.TuneOptions{Budget: budget, Allow: knob.DisturbsNewSockets, Seed: 1})
			if err != nil {
				t.Fatalf("%v: %v", budget, err)
			}
			if took := time.Since(began); took > budget+d.longest {
				t.Errorf("a budget of %v: %v, with a test of %v", budget, took, d.longest)
			}
			if got.Outcome.RolledBack {
				t.Errorf("a budget of %v: what was kept could not be confirmed any more: %s", budget, got.Outcome.Reason)
			}
			if got.Outcome.State == tune.StateCommitted {
				kept++
			}
			if d.judged > 1 {
				again++
			}
		})
	}
	if again == 0 || kept == 0 {
		t.Errorf("judged again in %d, kept in %d: the test shows nothing", again, kept)
	}
	t.Logf("judged again in %d, kept in %d", again, kept)
}
