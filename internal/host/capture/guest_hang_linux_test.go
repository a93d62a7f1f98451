package capture

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// busMaster is the bit of a PCI device's command register (PCI Local Bus 3.0, 6.2.2) without which
// the device cannot read its rings: it takes packets from the driver and never sends one. Its link
// stays up.
const busMaster = 0x04

// TestGuestQueueHangs hangs the NICs of two real drivers until the kernel or the driver says so,
// and has the snapshot and the verdict name them: the e1000 finds its hang itself, the e1000e only
// when NETDEV WATCHDOG does, after five seconds.
func TestGuestQueueHangs(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	// A verdict names the NIC with the most events, which is the e1000 once it hangs.
	for _, driver := range []string{"e1000e", "e1000"} {
		kind := map[string]host.EventKind{"e1000": host.HardwareHang, "e1000e": host.QueueTimeout}[driver]
		t.Run(driver, func(t *testing.T) {
			name := guesttest.Interface(t, driver)
			ip(t, "link", "set", name, "up")
			defer ip(t, "link", "set", name, "down")
			carrier(t, name)
			ip(t, "addr", "add", "192.0.2.1/24", "dev", name)
			defer ip(t, "addr", "del", "192.0.2.1/24", "dev", name)
			ip(t, "neigh", "add", "192.0.2.2", "lladdr", "52:54:00:aa:00:01", "dev", name)
			before := timeouts(t, name)
			defer hang(t, name)()
			e := spokenOf(t, name, kind)
			t.Logf("note: %+v; watchdog %d → %d", e, before, timeouts(t, name))
			if strings.Contains(e.Text, `\x`) {
				t.Errorf("text %q has more than a line", e.Text)
			}
			if kind == host.QueueTimeout && timeouts(t, name) == before {
				t.Error("the kernel counted no timeout of the queue")
			}
			s, err := host.Root{}.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v := diagnose.Examine(evidence.Case{Watched: []evidence.Span{{Side: "near", Host: s, SinceBoot: true,
				Seconds: number(t, "/proc/uptime")}}})
			i := slices.IndexFunc(v.Findings, func(f evidence.Finding) bool {
				return f.Code == evidence.DriverFault && strings.Contains(f.Title, name)
			})
			if i < 0 {
				t.Errorf("no %s of %s in %+v", evidence.DriverFault, name, v.Findings)
				return
			}
			t.Logf("note: %s %s: %s", v.Findings[i].Severity, v.Findings[i].Code, v.Findings[i].Title)
		})
	}
}

// hang takes the bus from a NIC until the returned function is called.
func hang(t *testing.T, name string) (heal func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join("/sys/class/net", name, "device/config"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	const command = 4
	var was [1]byte
	if _, err := f.ReadAt(was[:], command); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{was[0] &^ busMaster}, command); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := f.WriteAt(was[:], command); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
}

// spokenOf sends packets by a NIC that hangs until the kernel's log has an event of it.
func spokenOf(t *testing.T, name string, kind host.EventKind) host.KernelEvent {
	t.Helper()
	c, err := net.Dial("udp", "192.0.2.2:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		// The packets stay in the ring, and with them the room of the socket: then writing waits.
		_ = c.SetWriteDeadline(time.Now().Add(pause))
		for range 20 {
			_, _ = c.Write(make([]byte, 1000))
		}
		time.Sleep(3 * time.Second) // a snapshot takes a while here
		s, err := host.Root{}.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.KernelLog {
			if e.Interface == name && e.Kind == kind {
				return e
			}
		}
	}
}

// timeouts reads how often the kernel found the first transmit queue of a NIC standing still.
func timeouts(t *testing.T, name string) int {
	t.Helper()
	return int(number(t, "/sys/class/net/"+name+"/queues/tx-0/tx_timeout"))
}
