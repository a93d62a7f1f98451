package capture

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// TestGuestLinkFlaps takes the link of a NIC down several times and reads what its real driver and
// the kernel left of that: lines of the kernel's log, and the counter of carrier changes.
func TestGuestLinkFlaps(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	// Links that come and go while a machine starts do not count: the first two minutes.
	for !upFor(t, 125*time.Second) {
		time.Sleep(time.Second)
	}
	const times = 4
	name := guesttest.Interface(t, "e1000e")
	ip(t, "link", "set", name, "up")
	carrier(t, name)
	before := counter(t, name)
	for range times {
		ip(t, "link", "set", name, "down")
		ip(t, "link", "set", name, "up")
		carrier(t, name)
	}
	if n := counter(t, name) - before; n < times {
		t.Errorf("the kernel counted %d changes of the carrier, want %d at least", n, times)
	}
	s, err := host.Root{}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen []host.KernelEvent
	for _, e := range s.KernelLog {
		if e.Interface == name {
			seen = append(seen, e)
		}
	}
	t.Logf("note: %s: %+v", name, seen)
	for _, kind := range []host.EventKind{host.LinkDown, host.LinkUp} {
		if !slices.ContainsFunc(seen, func(e host.KernelEvent) bool { return e.Kind == kind && e.Total >= times }) {
			t.Errorf("no %s of %s for each time: %+v", kind, name, s.KernelLog)
		}
	}
}

// upFor reports whether the machine started that long ago, or longer.
func upFor(t *testing.T, d time.Duration) bool {
	t.Helper()
	return number(t, "/proc/uptime") >= d.Seconds()
}

// counter reads how often the carrier of a NIC came or went.
func counter(t *testing.T, name string) int {
	t.Helper()
	return int(number(t, "/sys/class/net/"+name+"/carrier_changes"))
}

// number reads the first number of a file.
func number(t *testing.T, file string) float64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b))
	if len(f) == 0 {
		t.Fatalf("%s is empty", file)
	}
	n, err := strconv.ParseFloat(f[0], 64)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return n
}
