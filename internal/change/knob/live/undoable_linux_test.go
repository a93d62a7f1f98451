package live_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// What the kernel changes beside a knob, and does not change back with it, is a reason to refuse
// the write; and a write that is accepted can be undone.
func TestNetnsUndoable(t *testing.T) {
	testenv.Need(t, testenv.Peers) // ip
	ns := world(t)
	b := live.New()
	size := func(which nl.SizeLimit, bytes int) func(*nl.Client) error {
		return func(c *nl.Client) error { return c.SetSizeLimit("v1", which, bytes) }
	}
	for i, step := range []struct {
		other func(*nl.Client) error // what another program does before
		knob  knob.ID
		value knob.Value
		fits  bool
	}{
		{nil, "link:v1/mtu", "1400", true},
		{nil, "link:v1/mtu", "1279", false}, // IPv6 would go
		{macvlan, "link:v1/mtu", "1400", false},
		{nil, "link:v1/mtu", "9000", true},
		{func(c *nl.Client) error { return c.SetMTU("upper", 1400) }, "link:v1/mtu", "1400", true},
		{nil, "link:v1/gso_max_size", "60000", true},
		{nil, "link:v1/gso_max_size", "100000", true},
		{size(nl.LimitGSOIPv4, 30000), "link:v1/gso_max_size", "60000", false},
		{nil, "link:v1/gso_max_size", "100000", false},
		{size(nl.LimitGSO, 100000), "link:v1/gso_max_size", "90000", true},
		{nil, "link:v1/gso_max_size", "60000", false},
		{nil, "link:v1/gso_max_size", "30000", true},
	} {
		ns.Do(t, func() {
			if step.other != nil {
				client(t, step.other)
			}
			err := b.CheckWrite(t.Context(), step.knob, step.value)
			if (err == nil) != step.fits || err != nil && !errors.Is(err, knob.ErrNotSupported) {
				t.Errorf("step %d, %s=%s: %v", i, step.knob, step.value, err)
			}
		})
	}
}

// macvlan puts an interface on top of v1.
func macvlan(*nl.Client) error {
	return exec.Command("ip", "link", "add", "link", "v1", "name", "upper", "type", "macvlan").Run()
}

// Another root may not take the place of mq, but what stood there before mq comes back.
func TestNetnsUndoToBeforeMQ(t *testing.T) {
	ns := world(t)
	if err := put(t, ns, "v1", nl.QdiscNode{Kind: "pfifo", Handle: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	b := live.New()
	const id = knob.ID("qdisc:v1/root")
	ns.Do(t, func() {
		if err := errors.Join(b.CheckWrite(t.Context(), id, "mq"), b.Write(t.Context(), id, "mq")); err != nil {
			t.Errorf("mq in the place of pfifo: %v", err) // a veth has as many queues as there are CPUs
			return
		}
		if err := b.CheckWrite(t.Context(), id, "pfifo"); !errors.Is(err, knob.ErrNotSupported) {
			t.Errorf("pfifo in the place of mq: %v", err)
		}
		err := b.Write(t.Context(), id, "pfifo")
		if v, readErr := b.Read(t.Context(), id); err != nil || readErr != nil || v != "pfifo" {
			t.Errorf("undo: %v; it reads %q, %v", err, v, readErr)
		}
	})
}
