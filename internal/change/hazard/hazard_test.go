package hazard

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

var (
	alone   = []Port{{Device: "eth0", Driver: "e1000", PCIID: "8086:1075", Slot: "0000:02:01.0"}} // 82547
	several = []Port{
		{Device: "eth0", Driver: "e1000", PCIID: "8086:100e", Slot: "0000:02:01.0"}, // 82540
		{Device: "eth1", Driver: "e1000", PCIID: "8086:1075", Slot: "0000:02:02.0"}, // 82547
		{Device: "eth2", Driver: "e1000", PCIID: "8086:100e", Slot: "0000:02:03.0"},
		{Device: "wlan0", Driver: "iwlwifi", PCIID: "8086:2725", Slot: "0000:03:00.0"},
	}
)

func TestHazards(t *testing.T) {
	t.Parallel()
	const list = knob.ID("module:e1000/InterruptThrottleRate")
	for _, tc := range []struct {
		name  string
		ports []Port
		knob  knob.ID
		value knob.Value
		stops string // device of the first hazard that refuses; empty: none does
		warns string // part of a warning; empty: there is none
	}{
		{"82547 above 75 000", alone, list, "80000", "eth0", ""},
		{"82547 at 75 000", alone, list, "75000", "", ""},
		{"82547 without a throttle", alone, list, "0", "eth0", "not suited to bulk"},
		{"82547, 13 µs are 76 923", alone, "ethtool:eth0/coalesce.rx-usecs", "13", "eth0", ""},
		{"82547, 14 µs are 71 428", alone, "ethtool:eth0/coalesce.rx-usecs", "14", "", ""},
		{"82547, off by ethtool", alone, "ethtool:eth0/coalesce.rx-usecs", "0", "eth0", "not suited to bulk"},
		{"another card", alone, "ethtool:eth1/coalesce.rx-usecs", "0", "", ""},
		{"receive delay", alone, "module:e1000/RxIntDelay", "32", "eth0", ""},
		{"three at 3000 each", several, list, "3000,3000,3000", "", ""},
		{"one value for three", several, list, "3000", "", "with 3 active ports"},
		{"three dynamic", several, list, "1,1,1", "", "recommends 3000 for each"},
		{"the second is an 82547", several, list, "3000,90000,3000", "eth1", "with 3 active ports"},
		{"dynamic on one of three", several, "ethtool:eth2/coalesce.rx-usecs", "1", "", "with 3 active ports"},
		{"refused by the module", several, list, "3000,2,3000", "eth1", ""},
		{"another knob", several, "ethtool:eth1/ring.rx", "0", "", ""},
		{"no number", several, list, "x", "", ""},
	} {
		stops, warns := "", ""
		for _, h := range Of(tc.ports, knob.Setting{Knob: tc.knob, Value: tc.value}) {
			switch {
			case !h.Stops:
				warns += h.String() + "\n"
			case stops == "":
				stops = h.Device
			}
		}
		if stops != tc.stops || (warns == "") != (tc.warns == "") || !strings.Contains(warns, tc.warns) {
			t.Errorf("%s: stops %q, warns %q", tc.name, stops, warns)
		}
	}
}

// TestJournalAsks checks that a hazard is asked where every writer passes, and that restoring an
// old value is not.
func TestIgnoredByWindows(t *testing.T) {
	const key = `registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\`
	for s, want := range map[knob.Setting]int{
		{Knob: key + "TcpWindowSize", Value: "131400"}:    1,
		{Knob: key + "TcpWindowSize", Value: knob.Absent}: 0,
		{Knob: key + "TcpTimedWaitDelay", Value: "30"}:    0,
	} {
		got := Of(nil, s)
		if len(got) != want || want == 1 && got[0].Stops {
			t.Errorf("%v: %v", s, got)
		}
	}
}

func TestJournalAsks(t *testing.T) {
	t.Parallel()
	const id = knob.ID("ethtool:eth0/coalesce.rx-usecs")
	memory := knob.NewMemory(map[knob.ID]knob.Value{id: "0"}) // hazardous, and in force already
	var warned []Hazard
	b := Backend{Backend: memory, Ports: func() []Port { return alone },
		Warn: func(h Hazard) { warned = append(warned, h) }}
	j, err := journal.Open(journal.Options{Dir: "/state", FS: durable.NewMem(), Backend: b, Unguarded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ctx := t.Context()
	if _, err := j.Apply(ctx, journal.Request{}, knob.Setting{Knob: id, Value: "10"}); !errors.Is(err, ErrHazard) ||
		!errors.Is(err, fs.ErrPermission) || memory.Values()[id] != "0" {
		t.Fatalf("100 000 interrupts on an 82547: %v", err)
	}
	if _, err := j.Apply(ctx, journal.Request{}, knob.Setting{Knob: id, Value: "333"}); err != nil {
		t.Fatal(err)
	}
	if out, err := j.Undo(ctx, "0001"); err != nil || !out[0].Restored || memory.Values()[id] != "0" {
		t.Errorf("undone to the old value: %+v, %v", out, err)
	}
	b.Accept = true
	if err := b.CheckWrite(ctx, id, "10"); err != nil || len(warned) == 0 {
		t.Errorf("accepted: %v, warned %v", err, warned)
	}
}

// TestChecksBelow checks that the backend below is still asked.
func TestChecksBelow(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused below")
	b := Backend{Backend: checking{refused}, Ports: func() []Port { return nil }}
	if err := b.CheckWrite(t.Context(), "link:eth0/mtu", "9000"); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

type checking struct{ err error }

func (c checking) Read(context.Context, knob.ID) (knob.Value, error)     { return "", nil }
func (c checking) Write(context.Context, knob.ID, knob.Value) error      { return nil }
func (c checking) CheckWrite(context.Context, knob.ID, knob.Value) error { return c.err }

func TestPortsOfSysfs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	make := func(name, slot, driver, vendor, device string) {
		t.Helper()
		dir := filepath.Join(root, "devices", slot)
		class := filepath.Join(root, "class", "net", name)
		for _, d := range []string{dir, class, filepath.Join(root, "drivers", driver)} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{"vendor": vendor, "device": device} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range map[string]string{filepath.Join(class, "device"): dir,
			filepath.Join(dir, "driver"): filepath.Join(root, "drivers", driver)} {
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
		}
	}
	make("eth1", "0000:02:01.0", "e1000", "0x8086", "0x1075")
	make("eth0", "0000:02:02.0", "e1000", "0x8086", "0x100e")
	if err := os.MkdirAll(filepath.Join(root, "class/net/lo"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []Port{{"eth1", "e1000", "8086:1075", "0000:02:01.0"}, {"eth0", "e1000", "8086:100e", "0000:02:02.0"}}
	if diff := cmp.Diff(want, in(filepath.Join(root, "class/net"))); diff != "" {
		t.Error(diff)
	}
	if got := in(filepath.Join(root, "nosuch")); got != nil {
		t.Errorf("got %v", got)
	}
}
