package sosreport

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// captures are the fixture hosts of package capture.
func captures(t testing.TB) map[string]host.Root {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "capture", "testdata", "hosts", "*.capture"))
	if err != nil || len(files) < 9 {
		t.Fatalf("fixture hosts: %v %v", files, err)
	}
	all := make(map[string]host.Root)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := capture.Read(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".capture")] = c.Root()
	}
	return all
}

// collected makes a report of files, as if they had been read from a tar file.
func collected(t testing.TB, entries []hostfs.Entry) *Report {
	t.Helper()
	c := newCollector()
	for _, e := range entries {
		var err error
		switch {
		case !wanted(e.Name):
		case e.Target != "":
			err = c.link(e.Name, e.Target)
		default:
			err = c.file(e.Name, int64(len(e.Content)), bytes.NewReader(e.Content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.report(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A report of any host shows the same as the host's own capture, as far as the texts contain it.
func TestReportIsTheHost(t *testing.T) {
	for name, root := range captures(t) {
		for a, ageName := range map[age]string{sos4: "sos4", sos3: "sos3"} {
			t.Run(name+"/"+ageName, func(t *testing.T) {
				want, err := root.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				report := collected(t, render(t, root.FS.(fs.ReadLinkFS), a))
				got, err := report.Root().Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				untold(want)
				untold(got)
				unknown(want, got, a)
				if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-capture +report):\n%s", diff)
				}
				for _, w := range report.Warnings {
					// What the capture has not the report cannot have.
					table, isTable := strings.CutPrefix(strings.TrimSuffix(w, ": not there"), "counters of /")
					if _, err := fs.Stat(root.FS, table); !isTable || err == nil {
						t.Errorf("a whole report lacks nothing: %q", w)
					}
				}

				wantCounters, err := root.Counters()
				if err != nil {
					t.Fatal(err)
				}
				gotCounters, err := report.Root().Counters()
				if err != nil {
					t.Fatal(err)
				}
				for name := range wantCounters.Values {
					if uncounted(name, a) {
						delete(wantCounters.Values, name)
						delete(gotCounters.Values, name)
					}
				}
				if diff := gocmp.Diff(wantCounters.Values, gotCounters.Values); diff != "" {
					t.Errorf("counters (-capture +report):\n%s", diff)
				}
				for name, driver := range wantCounters.Drivers {
					if got := gotCounters.Drivers[name]; got != driver {
						t.Errorf("the counters of %s are those of %q, want %q", name, got, driver)
					}
				}
				if diff := gocmp.Diff(wantCounters.CPUs, gotCounters.CPUs); diff != "" {
					t.Errorf("processors (-capture +report):\n%s", diff)
				}
			})
		}
	}
}

// untold takes out of a snapshot what no report says.
func untold(s *host.Snapshot) {
	s.Warnings = nil
	// sos leaves the environment of processes alone.
	s.Virtualization = strings.TrimSuffix(s.Virtualization, "+container")
	for i := range s.Interfaces {
		dev := &s.Interfaces[i]
		dev.NAPI = nil
		if dev.Virtual {
			dev.Queues = nil // ethtool -l has no word on them.
		}
		for j := range dev.Queues {
			q := &dev.Queues[j]
			q.RPSCPUs, q.XPSCPUs, q.XPSRxQueues, q.RFSEntries = "", "", "", 0
		}
		if c := dev.Card; c != nil {
			c.RSS, c.FEC, c.AER, c.ASPM = nil, nil, nil, nil
			c.PayloadBytes, c.PayloadSupportedBytes, c.ReadRequestBytes = 0, 0, 0
		}
	}
	for i := range s.Routes {
		// Captures older than the field lack it; ip always prints it.
		s.Routes[i].Protocol = cmp.Or(s.Routes[i].Protocol, "boot")
	}
	slices.SortFunc(s.Routes, func(a, b host.Route) int { return strings.Compare(a.Destination, b.Destination) })
}

// unknown takes out of a host what this report of it cannot say.
func unknown(want, got *host.Snapshot, a age) {
	for i := range want.Interfaces {
		w, g := &want.Interfaces[i], &got.Interfaces[min(i, len(got.Interfaces)-1)]
		if w.Channels == nil && g.Queues == nil {
			w.Queues = nil // A driver that has no word on its queues, and no counters of them.
		}
		if w.Interrupts == nil && w.Bus != nil && w.Bus.Kind == "virtio" {
			g.Interrupts = nil // Virtio without PCI lists no interrupts in sysfs; here they are found by their names.
		}
		if a != sos3 {
			continue
		}
		// Without /sys the counters are those of /proc/net/dev, some of which are sums of what
		// sysfs separates; their names are their own.
		for name := range w.Counters {
			if _, ok := g.Counters[name]; !ok {
				delete(w.Counters, name)
			}
		}
		delete(g.Counters, "rx_frame_all_errors")
		delete(g.Counters, "tx_carrier_all_errors")
		// Without /sys nothing says which virtio device a card is, and its interrupts bear that
		// name alone.
		if w.Driver == "virtio_net" {
			w.Interrupts = nil
		}
	}
}

// uncounted reports whether no file of such a report has a counter of a capture.
func uncounted(name string, a age) bool {
	if a != sos3 {
		return strings.HasSuffix(name, ".carrier_changes")
	}
	if _, statistic, ok := strings.Cut(strings.TrimPrefix(name, "nic."), "."); ok &&
		slices.Contains(sysfsOnly, statistic) {
		return true
	}
	return name == "Tcp.CurrEstab" // A level, which nstat leaves out.
}

// sysfsOnly are the counters of cards that /proc/net/dev has not, or not alone.
var sysfsOnly = []string{
	"carrier_changes", "rx_crc_errors", "rx_frame_errors", "rx_length_errors", "rx_nohandler", "rx_over_errors",
	"tx_aborted_errors", "tx_heartbeat_errors", "tx_window_errors",
}
