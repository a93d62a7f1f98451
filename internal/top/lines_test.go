package top_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/talkers"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/top"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC // times of day on the screen
	if os.Getenv("LINERATE_TEST_SCREEN") != "" {
		screenOfTest()
		return
	}
	os.Exit(m.Run())
}

// golden compares with a file below testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update accepts it:\n%s", file, diff)
	}
}

// busy is a state with an example of everything.
func busy(b top.Begin) *top.State {
	b.Host, b.Interval = "near", time.Second
	s := top.NewState(b)
	both := readings()
	for i := range 30 {
		r := both[min(i, 1)]
		r.Time = r.Time.Add(time.Duration(i) * time.Second)
		r.Interfaces = append([]top.Interface(nil), r.Interfaces...)
		r.Interfaces[0].Receive *= float64(i%10) / 9
		s.Reading(r)
	}
	s.Judged(top.Verdict{Time: reporttest.Noon.Add(17 * time.Second), Findings: findings()})
	changes := reporttest.Changes()
	s.Changed(top.Journal{Changes: []journal.Change{changes[2], changes[1], changes[0]}})
	s.Counted(top.Moved{Interface: "eth0", Counters: []top.Counter{{Name: "nic rx_bytes", Rate: 117e6},
		{Name: "ethtool rx_no_buffer_count", Rate: 120}, {Name: "qdisc overlimits", Rate: 3}}})
	s.Talked(top.Talk{Time: reporttest.Noon, Reading: talk()})
	return s
}

// talk is what moved over TCP on such a host: a web server with two connections, a client whose
// name contains terminal commands, and a socket of another user.
func talk() talkers.Reading {
	web := talkers.Process{PID: 812, Name: "nginx", Cgroup: "/system.slice/nginx.service"}
	return talkers.Reading{
		Connections: []talkers.Connection{
			{Process: web, Local: "192.0.2.1:443", Remote: "198.51.100.7:40112", RTT: 0.0213, Congestion: "cubic",
				Traffic: talkers.Traffic{Send: 11.8e6, Receive: 20e3, Again: 12e3}, SendQueue: 131072},
			{Process: web, Local: "[2001:db8::1]:443", Remote: "[2001:db8:ffff:ffff:ffff:ffff:ffff:2]:51412",
				RTT: 0.18, Congestion: "bbr", Traffic: talkers.Traffic{Send: 600e3}},
			{Process: talkers.Process{PID: 4194303, Name: "e\x1b[2Jvil", Cgroup: "/user.slice/\x1b]0;x\x07"},
				Local: "127.0.0.1:5000", Remote: "127.0.0.1:5001", Traffic: talkers.Traffic{Receive: 900}},
			{Local: "192.0.2.1:22", Remote: "203.0.113.9:50000", RTT: 0.00004,
				Traffic: talkers.Traffic{Send: 500, Receive: 100}},
		},
		Warnings: []string{"the names of other users' processes: only root may read them"},
	}
}

func text(lines []top.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

// TestScreens compares every page with its golden file at common terminal sizes.
func TestScreens(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		begin         top.Begin
		keys          []string
	}{
		{"overview-80x24", 80, 24, top.Begin{}, nil},
		{"overview-120x40", 120, 40, top.Begin{}, nil},
		{"overview-40x10", 40, 10, top.Begin{}, nil},
		{"overview-20x3", 20, 3, top.Begin{}, nil},
		{"overview-ascii-120x24", 120, 24, top.Begin{ASCII: true}, nil},
		{"overview-drops-80x12", 80, 12, top.Begin{Sort: "drops"}, []string{"down", "r"}},
		{"filter-80x12", 80, 12, top.Begin{}, []string{"/", "e", "t", "h", "x", "backspace"}},
		{"paused-80x12", 80, 12, top.Begin{}, []string{"space", "i"}},
		{"detail-80x24", 80, 24, top.Begin{Interface: "eth0"}, nil},
		{"detail-ascii-120x40", 120, 40, top.Begin{Interface: "eth0", ASCII: true}, nil},
		{"detail-gone-80x6", 80, 6, top.Begin{Interface: "eth7"}, nil},
		{"processors-80x24", 80, 24, top.Begin{}, []string{"c"}},
		{"connections-80x24", 80, 24, top.Begin{}, []string{"n"}},
		{"connections-ascii-120x24", 120, 24, top.Begin{ASCII: true}, []string{"n"}},
		{"connections-40x12", 40, 12, top.Begin{}, []string{"n"}},
		{"verdicts-80x24", 80, 24, top.Begin{}, []string{"f"}},
		{"help-80x24", 80, 24, top.Begin{}, []string{"?"}},
		{"help-end-80x24", 80, 24, top.Begin{}, []string{"?", "end"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := busy(c.begin)
			s.Lines(c.width, c.height)
			for _, k := range c.keys {
				s.Key(k)
				s.Lines(c.width, c.height)
			}
			if c.begin.Interface == "eth0" {
				s.Counted(top.Moved{Interface: "eth0", Counters: []top.Counter{{Name: "nic rx_bytes", Rate: 117e6},
					{Name: "ethtool rx_no_buffer_count", Rate: 120}},
					Interrupts: []top.Served{{Number: 45, Name: "eth0-rx-0", Rate: 20_000,
						CPUs: []top.OnCPU{{CPU: 0, Rate: 19_990}, {CPU: 1, Rate: 10}}}}})
			}
			golden(t, c.name+".txt", text(s.Lines(c.width, c.height)))
		})
	}
}

// TestLooks checks that colour only adds to other marks: without it the text is the same, and bold,
// dim and reverse stay.
func TestLooks(t *testing.T) {
	lines := busy(top.Begin{}).Lines(80, 24)
	var plain, coloured strings.Builder
	for _, l := range lines {
		plain.WriteString(l.ANSI(false) + "\n")
		coloured.WriteString(l.ANSI(true) + "\n")
	}
	golden(t, "looks-80x24.txt", strings.ReplaceAll(plain.String(), "\x1b", "^["))
	for _, code := range []string{"31m", "32m", "33m"} {
		if strings.Contains(plain.String(), code) {
			t.Errorf("a screen without colours has %s", code)
		}
	}
	if !strings.Contains(coloured.String(), "\x1b[1;31m!120\x1b[0m") &&
		!strings.Contains(coloured.String(), "!120\x1b[0m") {
		t.Error("drops do not stand out")
	}
	if !strings.Contains(text(lines), "!120") {
		t.Error("without any look, drops do not stand out")
	}
}

// TestNothingCommandsTheTerminal checks that for any names the drawn text has no character that a
// terminal obeys or that is wider than one column.
func TestNothingCommandsTheTerminal(t *testing.T) {
	for _, name := range []string{"e\x1b[2Jvil", "\x9b2J", "a\rb\nc\td", "\u202egnp", "日本", "e\u0301\u200d", "\xff\xfe",
		"\x00", strings.Repeat("x", 300)} {
		for _, ascii := range []bool{false, true} {
			b := top.Begin{Host: name, Interval: time.Second, ASCII: ascii, Interface: name, Filter: name}
			s := top.NewState(b)
			r := readings()[0]
			r.Interfaces[0].Name, r.Interfaces[0].Driver, r.Interfaces[0].Parent = name, name, name
			r.Interfaces[0].Queues[0].Queue, r.Interfaces[0].Drops[0].Place = name, name
			r.Warnings, r.Drops[0].Place, r.Events[0].Text, r.Events[0].Interface = []string{name}, name, name, name
			s.Reading(r)
			s.Judged(top.Verdict{Time: r.Time,
				Findings: []evidence.Finding{{Code: "x", Title: name, Severity: evidence.Warning}},
				Err:      fmt.Errorf("%s", name)})
			s.Changed(top.Journal{Changes: []journal.Change{{ID: "1", To: "\x1b[2J", From: "1"}},
				Err: fmt.Errorf("%s", name)})
			s.Counted(top.Moved{Interface: name, Counters: []top.Counter{{Name: name, Rate: 1}},
				Interrupts: []top.Served{{Name: name, Rate: 1}}})
			s.Talked(top.Talk{Time: r.Time, Reading: talkers.Reading{Warnings: []string{name},
				Connections: []talkers.Connection{{Process: talkers.Process{Name: name, Cgroup: name}, Congestion: name}}}})
			for _, key := range []string{"", "esc", "n", "c", "f", "?"} {
				s.Key(key)
				for _, l := range s.Lines(100, 40) {
					for _, r := range l.String() {
						if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r > 0xff &&
							!strings.ContainsRune("…→←–—≤≥≈−“”’▁▂▃▄▅▆▇█▲▼", r) || ascii && r > '~' {
							t.Fatalf("%q: after %q the screen has %q in %q", name, key, r, l.String())
						}
					}
				}
			}
		}
	}
}

// TestNeverTooLarge checks that no state, size or order of keys gives too wide a line or too many
// lines.
func TestNeverTooLarge(t *testing.T) {
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "esc", "/", "a", "é", "<", ">", "r", "i",
		"space", "n", "c", "f", "?", "tab", "backspace", "x"}
	rng := rand.New(rand.NewPCG(7, 11))
	number := func() float64 {
		switch rng.IntN(6) {
		case 0:
			return 0
		case 1:
			return rng.Float64()
		case 2:
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5, math.MaxFloat64,
				math.SmallestNonzeroFloat64}[rng.IntN(6)]
		}
		return math.Pow(10, rng.Float64()*20)
	}
	name := func() string {
		return strings.Repeat(string(rune('a'+rng.IntN(26))), 1+rng.IntN(40)) + fmt.Sprint(rng.IntN(99))
	}
	for range 80 {
		s := top.NewState(top.Begin{Host: name(), Interval: time.Second, ASCII: rng.IntN(2) == 0})
		at := reporttest.Noon
		for range rng.IntN(4) {
			at = at.Add(time.Duration(rng.Int64N(int64(time.Hour))))
			r := top.Reading{Time: at, Seconds: 1}
			for range rng.IntN(60) {
				i := top.Interface{Name: name(), Kind: name(), Up: rng.IntN(2) == 0, Receive: number(),
					Transmit: number(), ReceivePackets: number(), CarrierChanges: number(), MTU: 1500}
				for range rng.IntN(3) {
					x := number()
					i.Speed, i.Share = &x, &x
					i.Drops = append(i.Drops, top.Drop{Place: name(), Direction: name(), Rate: number(),
						Total: number()})
					i.Errors = append(i.Errors, top.Drop{Place: name(), Rate: number(), Total: number()})
					i.Queues = append(i.Queues, top.Queue{Queue: name(), Packets: &x})
					i.Qdisc = &top.Qdisc{Backlog: number(), Drops: number()}
				}
				r.Interfaces = append(r.Interfaces, i)
			}
			for n := range rng.IntN(70) {
				r.CPUs = append(r.CPUs, top.CPU{CPU: n, Busy: number(), Softirq: number(), Squeezes: number(),
					Packets: number()})
			}
			for range rng.IntN(3) {
				r.Drops = append(r.Drops, top.Drop{Place: name(), Rate: number()})
				r.Events = append(r.Events, top.Event{Time: at, Text: strings.Repeat(name()+" ", 9),
					Interface: name()})
				r.Warnings = append(r.Warnings, strings.Repeat(name()+" ", 9))
			}
			r.TCP.Retransmits, r.TCP.Sent = number(), number()
			s.Reading(r)
		}
		if rng.IntN(2) == 0 {
			v := top.Verdict{Time: at}
			for range rng.IntN(9) {
				v.Findings = append(v.Findings, evidence.Finding{Code: "some-code", Severity: evidence.Warning,
					Title:  strings.Repeat(name()+" ", 9),
					Remedy: evidence.Remedy{Text: strings.Repeat(name()+" ", 30)}})
			}
			s.Judged(v)
			var changes []journal.Change
			for range rng.IntN(20) {
				changes = append(changes, journal.Change{ID: name(), Time: at, Knob: "sysctl:x", From: "1", To: "2",
					State: journal.Trial})
			}
			s.Changed(top.Journal{Changes: changes})
		}
		moved := talkers.Reading{Warnings: []string{strings.Repeat(name()+" ", 9)}}
		for range rng.IntN(120) {
			moved.Connections = append(moved.Connections, talkers.Connection{
				Process: talkers.Process{PID: rng.IntN(1 << 22), Name: name(), Cgroup: name()},
				Local:   name(), Remote: name(), RTT: number(), Congestion: name(),
				Traffic: talkers.Traffic{Send: number(), Receive: number(), Again: number()}})
		}
		s.Talked(top.Talk{Time: at, Reading: moved})
		for range 40 {
			width, height := rng.IntN(200)-2, rng.IntN(70)-2
			key := keys[rng.IntN(len(keys))]
			s.Key(key)
			lines := s.Lines(width, height)
			if len(lines) > max(height, 0) {
				t.Fatalf("%d×%d after %q: %d lines\n%s", width, height, key, len(lines), text(lines))
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l.String()); n > max(width, 0) {
					t.Fatalf("%d×%d after %q: a line of %d columns: %q", width, height, key, n, l.String())
				}
			}
		}
	}
}
