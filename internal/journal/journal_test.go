package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/durable"
	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/knob"
)

const (
	rmem = "sysctl:net.ipv4.tcp_rmem"
	mtu  = "link:eth0/mtu"
	ring = "ethtool:eth0/ring.rx"
)

func host() *knobs { return newKnobs(map[knob.ID]knob.Value{rmem: "A", mtu: "1500", ring: "256"}) }

func TestApplyCommitUndo(t *testing.T) {
	fsys, k := durable.NewMem(), host()
	j := open(t, options(fsys, k, &clock{}))
	changes := apply(t, j, journal.Request{Reason: "because"}, rmem, "B", mtu, "9000")
	want := []journal.Change{
		{ID: "0001", Time: dayOne(), Knob: rmem, Side: "near", From: "A", To: "B", Original: "A", State: journal.Trial, Reason: "because", BootID: "boot-1"},
		{ID: "0002", Time: dayOne(), Knob: mtu, Side: "near", From: "1500", To: "9000", Original: "1500", State: journal.Trial, Reason: "because", BootID: "boot-1"},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Fatal(diff)
	}
	if err := j.Commit(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), "0001"); err != nil {
		t.Fatalf("second commit: %v", err)
	}
	outcomes, err := j.Undo(t.Context(), "2", "1")
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 2 || outcomes[0].Change.ID != "0002" || !outcomes[0].Restored || !outcomes[1].Restored {
		t.Fatalf("outcomes %+v", outcomes)
	}
	if diff := cmp.Diff(host().values, k.values); diff != "" {
		t.Fatal(diff)
	}
	live := j.Changes()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	stored, err := journal.History(fsys, "/state")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, stored); diff != "" {
		t.Fatalf("memory and disk disagree: %s", diff)
	}
	for _, c := range stored {
		if c.State != journal.Undone || c.Note != "undone" {
			t.Errorf("change %+v", c)
		}
	}
}
