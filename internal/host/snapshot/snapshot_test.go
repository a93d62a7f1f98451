package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/capture"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/sosreport"
)

// the moment of the first report, and when its host was started
var (
	boot = time.Unix(1700000000, 0).UTC()
	noon = time.Date(2023, 12, 25, 12, 0, 0, 0, time.UTC)
)

// moment is what changes from one report to the next.
type moment struct {
	at, boot   time.Time
	name, id   string
	model, bus string
	retrans    int
	dropped    uint32
	sockets    string // what ss printed
}

func first() moment {
	return moment{at: noon, boot: boot, name: "web1", id: "0001", model: "Xeon", bus: "0000:03:00.0", retrans: 100,
		dropped: 0xfffffff0}
}

// report writes an unpacked sosreport.
func (m moment) report(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"sos_commands/date/date_--utc": m.at.Format("Mon Jan _2 15:04:05 MST 2006") + "\n",
		"sos_commands/host/hostname":   m.name + "\n",
		"sos_commands/networking/ip_-d_address": "2: eth0: <UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000\n" +
			"    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet 192.0.2.1/24 scope global eth0\n",
		"sos_commands/networking/ethtool_-i_eth0": "driver: e1000e\nversion: 1\nfirmware-version: 2\nbus-info: " +
			m.bus + "\n",
		"sos_commands/pci/lspci_-nnvv": strings.TrimPrefix(m.bus, "0000:") +
			" Ethernet controller [0200]: Maker Card [8086:10d3]\n",
		"sos_commands/networking/ss_-peaonmi": m.sockets,
		"proc/stat":                           fmt.Sprintf("cpu0 100 0 0 100\nbtime %d\n", m.boot.Unix()),
		"proc/cpuinfo":                        "processor\t: 0\nmodel name\t: " + m.model + "\n",
		"proc/sys/kernel/random/boot_id":      m.id + "\n",
		"proc/net/snmp":                       fmt.Sprintf("Tcp: OutSegs RetransSegs\nTcp: 10000 %d\n", m.retrans),
		"proc/net/softnet_stat":               fmt.Sprintf("00000000 %08x 00000000\n", m.dropped),
	} {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755),
			os.WriteFile(to, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (m moment) read(t *testing.T) *snapshot.Moment {
	t.Helper()
	return read(t, m.report(t))
}

func read(t *testing.T, name string) *snapshot.Moment {
	t.Helper()
	f, err := snapshot.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Moment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const fixtures = "../capture/testdata/hosts"

// The content of a file decides its kind.
func TestOpen(t *testing.T) {
	archive := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(archive, "proc"), 0o755),
		os.WriteFile(filepath.Join(archive, "proc", "cpuinfo"), []byte("processor : 0\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]snapshot.Kind{
		filepath.Join(fixtures, "i40e-x710.capture"): snapshot.Capture, first().report(t): snapshot.Sosreport,
		archive: snapshot.Archive,
	} {
		f, err := snapshot.Open(t.Context(), name)
		if err != nil || f.Kind != want || f.Name != name {
			t.Errorf("%s: %+v, %v; want a %s", name, f, err, want)
			continue
		}
		s, err := f.Snapshot(t.Context())
		if err != nil || len(s.CPUs) == 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if want != snapshot.Sosreport {
			continue
		}
		if !slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.HasPrefix(w, "queueing disciplines: not there") }) {
			t.Errorf("what the report lacks is not said: %q", s.Warnings)
		}
	}
	b, err := os.ReadFile(filepath.Join(fixtures, "qemu-e1000.capture"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := snapshot.Read(t.Context(), "-", bytes.NewReader(b)); err != nil || f.Kind != snapshot.Capture {
		t.Errorf("standard input: %+v %v", f, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	empty := t.TempDir()
	garbage := filepath.Join(empty, "garbage")
	packed := filepath.Join(empty, "sosreport.tar.xz")
	for name, content := range map[string]string{garbage: "hello\n", packed: "\xfd7zXZ\x00rest"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		is   error
	}{
		{filepath.Join(empty, "nowhere"), fs.ErrNotExist}, {empty, sosreport.ErrFormat}, {garbage, capture.ErrFormat},
		{packed, sosreport.ErrFormat},
	} {
		f, err := snapshot.Open(t.Context(), c.name)
		if !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "read ") {
			t.Errorf("%s: %+v %v", c.name, f, err)
		}
	}
}

// One moment has the counts since the start of the host, and the time since then.
func TestSinceBoot(t *testing.T) {
	m := first().read(t)
	s := m.SinceBoot()
	if up := noon.Sub(boot).Seconds(); s.Seconds != up || s.Counters.Values["Tcp.RetransSegs"] != 100 {
		t.Errorf("%v seconds, want %v: %v", s.Seconds, up, s.Counters.Values)
	}
	if !slices.ContainsFunc(s.Warnings,
		func(w string) bool { return strings.Contains(w, "32 bits") && strings.Contains(w, "41 days") }) {
		t.Errorf("nothing is said of counters that wrap: %q", s.Warnings)
	}
	unknown := first()
	unknown.boot = noon.Add(time.Hour) // A clock that was set: started after it was looked at.
	if s := unknown.read(t).SinceBoot(); s.Seconds != 0 || s.Counters.Values["Tcp.RetransSegs"] != 100 ||
		!strings.Contains(strings.Join(s.Warnings, "\n"), "no rates") {
		t.Errorf("%+v", s)
	}
}

// Two moments of one boot have what happened between them, in either order.
func TestBetween(t *testing.T) {
	later := first()
	later.at, later.retrans, later.dropped = noon.Add(10*time.Minute), 130, 16
	a, b := first().read(t), later.read(t)
	for _, order := range [][2]*snapshot.Moment{{a, b}, {b, a}} {
		earlier, last, s, err := snapshot.Between(order[0], order[1])
		if err != nil {
			t.Fatal(err)
		}
		if earlier != a || last != b || s.Seconds != 600 || s.Counters.Values["Tcp.RetransSegs"] != 30 ||
			s.Counters.Values["softnet.0.dropped"] != 32 {
			t.Errorf("%v seconds: %v", s.Seconds, s.Counters.Values)
		}
		if strings.Contains(strings.Join(s.Warnings, "\n"), "32 bits") {
			t.Errorf("ten minutes are no time to wrap twice: %q", s.Warnings)
		}
	}
}

// Of a report it is known which sockets refused connections and dropped datagrams: since they were
// made, or between two reports.
func TestSockets(t *testing.T) {
	const form = "tcp LISTEN 3 2 127.0.0.1:80 0.0.0.0:* sk:1\n\t skmem:(r0,d%d)\n" +
		"tcp LISTEN 0 128 *:22 *:* sk:2\n\t skmem:(r0,d0)\nudp UNCONN 0 0 127.0.0.1:53 0.0.0.0:* sk:3\n\t skmem:(r0,d0)\n" +
		"udp UNCONN 99 0 127.0.0.1:54 0.0.0.0:* sk:4\n\t skmem:(r99,d%d)\ntcp ESTAB 0 0 127.0.0.1:80 127.0.0.1:9 sk:5\n"
	a, b := first(), first()
	a.sockets = fmt.Sprintf(form, 5, uint32(1<<32-3))
	b.at, b.sockets = noon.Add(10*time.Minute), fmt.Sprintf(form, 7, 4)
	s := a.read(t).SinceBoot().Sockets
	if len(s.Listeners) != 2 || s.Listeners[0].Drops != 5 || s.Listeners[0].Queued != 3 || s.Listeners[0].Limit != 2 ||
		s.Seconds != 0 || s.ConnectionsSeen != 1 || s.DatagramsSeen != 2 {
		t.Errorf("since boot: %+v", s)
	}
	_, _, span, err := snapshot.Between(a.read(t), b.read(t))
	if err != nil {
		t.Fatal(err)
	}
	s = span.Sockets
	if s.Seconds != 600 || s.Listeners[0].Drops != 2 || len(s.Datagrams) != 1 || s.Datagrams[0].Memory.Drops != 7 ||
		s.Datagrams[0].New {
		t.Errorf("between: %+v", s)
	}
	if s := first().read(t).SinceBoot().Sockets; s != nil {
		t.Errorf("a report without sockets has %+v", s)
	}
	if _, _, span, err = snapshot.Between(first().read(t), b.read(t)); err != nil || span.Sockets != nil {
		t.Errorf("sockets without a beginning: %+v %v", span, err)
	}
}

func TestBetweenRefuses(t *testing.T) {
	for name, change := range map[string]func(*moment){
		"another host: name":       func(m *moment) { m.name = "web2" },
		"another host: processors": func(m *moment) { m.model = "EPYC" },
		"another host: cards":      func(m *moment) { m.bus = "0000:05:00.0" },
		"restarted between":        func(m *moment) { m.boot = noon.Add(5 * time.Minute) },
		"boot id":                  func(m *moment) { m.id = "0002" },
		"both were taken at":       func(m *moment) { m.at = noon },
	} {
		other := first()
		other.at = noon.Add(10 * time.Minute)
		change(&other)
		_, _, _, err := snapshot.Between(first().read(t), other.read(t))
		says, rest, _ := strings.Cut(name, ": ")
		if !errors.Is(err, snapshot.ErrNotTogether) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), rest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	timeless := first().read(t)
	timeless.Host = &host.Snapshot{}
	if _, _, _, err := snapshot.Between(first().read(t), timeless); !errors.Is(err, snapshot.ErrNotTogether) ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("a moment that is not known: %v", err)
	}
	if _, _, _, err := snapshot.Between(read(t, fixtures+"/i40e-x710.capture"),
		read(t, fixtures+"/qemu-e1000.capture")); !errors.Is(err, snapshot.ErrNotTogether) {
		t.Errorf("two captures of different hosts: %v", err)
	}
}
