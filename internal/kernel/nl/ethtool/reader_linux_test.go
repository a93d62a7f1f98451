package ethtool

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// A reader returns the same as a single request, and follows a driver that gains counters.
func TestNetnsStatisticsReader(t *testing.T) {
	inNetNS(t, func(c world) {
		if out, ok := nltest.OtherSays(t, "ip", "link", "add", "v0", "numtxqueues", "4", "numrxqueues", "4", "type",
			"veth", "peer", "name", "v1"); !ok {
			t.Fatal(out)
		}
		var r StatisticsReader
		compare := func(name string, again, wantChanged bool) {
			t.Helper()
			names, values, changed, err := r.Read(c.room, name, again)
			nltest.Must(t, err)
			want, err := c.Statistics(name)
			nltest.Must(t, err)
			if changed != wantChanged || len(names) != len(values) || len(names) < 4 {
				t.Errorf("%d names, %d values, changed: %v", len(names), len(values), changed)
			}
			for i, name := range names {
				if values[i] != want[name] {
					t.Errorf("%s is %d, want %d", name, values[i], want[name])
				}
			}
			for name := range want {
				if !slices.Contains(names, name) {
					t.Errorf("no %s", name)
				}
			}
		}
		compare("v0", false, true)
		compare("v0", false, false)
		compare("v0", true, false)
		nltest.Must(t, c.SetChannel("v0", "rx", 2))
		compare("v0", false, true)
		compare("v0", false, false)
		if n := testing.AllocsPerRun(10, func() { _, _, _, _ = r.Read(c.room, "v0", false) }); n > 2 {
			t.Errorf("%v allocations for known counters", n)
		}
		if _, _, _, err := r.Read(c.room, "nope", false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing link: %v", err)
		}
	})
}
