package live_test

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// The kernel keeps whether a table was set by a program (IFF_RXFH_CONFIGURED), and then refuses
// fewer channels than the table names. A table that goes back to the driver's own loses that.
func TestGuestRSSIsTheDriversAgain(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	name := guesttest.Plug(t, "virtio-net-pci")
	defer guesttest.Unplug(t, name)
	client(t, func(k *nl.Client) error { return k.SetUp(name) })
	b := live.New()
	table, channels := on(name, "rss.indirection"), on(name, "channels.combined")
	for _, step := range []struct {
		id     knob.ID
		value  knob.Value
		refuse bool
	}{
		{channels, "2", false},
		{table, "equal 1 start 1", false},
		{channels, "1", true}, // the kernel is as described
		{table, "equal 2", false},
		{channels, "1", false},
	} {
		if err := b.Write(t.Context(), step.id, step.value); (err != nil) != step.refuse {
			t.Fatalf("%s=%s: %v", step.id, step.value, err)
		}
		if v, err := b.Read(t.Context(), step.id); err != nil || !step.refuse && v != step.value {
			t.Fatalf("%s: %s, %v", step.id, v, err)
		}
	}
}
