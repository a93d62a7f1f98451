package capture

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/host"
)

// TestLive: of the running system the capture has what the system says of itself, but for what
// changes while one looks.
func TestLive(t *testing.T) {
	s := testScrubber()
	snapshot := func() *host.Snapshot {
		snapshot, err := host.Root{}.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snapshot
	}
	// A capture between two equal readings is of the same host.
	var c *Capture
	before, standing := snapshot(), false
	for tries := 0; tries < 200 && !standing; tries++ {
		var err error
		if c, err = take(t.Context(), host.Root{}, s); err != nil {
			t.Fatal(err)
		}
		now := snapshot()
		standing = cmp.Equal(steady(before), steady(now)) && len(before.Warnings) == len(now.Warnings)
		before = now
	}
	if !standing {
		t.Fatal("the host never stood still")
	}
	after, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before.Name = s.hostName(before.Name)
	want, got := steady(before), steady(after)
	if diff := cmp.Diff(string(sorted(t, s.document(indented(t, want)))),
		string(sorted(t, indented(t, got)))); diff != "" {
		t.Errorf("scrubbed document, document of the capture (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(len(before.Warnings), len(after.Warnings), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("warnings %q, then %q", before.Warnings, after.Warnings)
	}
}

// steady leaves of a snapshot what two readings in a row agree about.
func steady(s *host.Snapshot) *host.Snapshot {
	c := *s
	c.CPUs, c.Interfaces = slices.Clone(c.CPUs), slices.Clone(c.Interfaces)
	c.Time, c.Warnings, c.Platform = time.Time{}, nil, host.Platform{Mounts: c.Mounts, Owners: c.Owners}
	for i := range c.CPUs {
		c.CPUs[i].CurrentMHz, c.CPUs[i].StealRatio = 0, 0
	}
	for i := range c.Interfaces {
		dev := &c.Interfaces[i]
		dev.Counters, dev.Symptoms = nil, nil
		dev.Queues, dev.Interrupts = slices.Clone(dev.Queues), slices.Clone(dev.Interrupts)
		for j := range dev.Queues {
			dev.Queues[j].Counters = nil
		}
		for j := range dev.Interrupts {
			dev.Interrupts[j].Counts = nil
		}
	}
	return &c
}
