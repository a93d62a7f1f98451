package top_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/top"
)

// order returns the names of the table's rows, with their marks.
func order(s *top.State) string {
	var rows []string
	inTable := false
	for _, l := range s.Lines(80, 40) {
		line := l.String()
		if inTable && line == "" {
			break
		}
		if inTable {
			rows = append(rows, strings.TrimSpace(line[:12]))
		}
		inTable = inTable || strings.Contains(line, "INTERFACE")
	}
	return strings.Join(rows, ",")
}

// four are interfaces that each column sorts differently.
func four() top.Reading {
	speed := 1e9
	share := 0.5
	return top.Reading{Time: reporttest.Noon, Seconds: 1, Interfaces: []top.Interface{
		{Name: "a", Up: true, Receive: 1, Transmit: 30, ReceivePackets: 2},
		{Name: "b", Up: true, Receive: 20, Transmit: 2, Speed: &speed, Share: &share, TransmitPackets: 9},
		{Name: "c10", Up: true, Receive: 3, Transmit: 3, ReceivePackets: 1,
			Drops: []top.Drop{{Place: "ring", Rate: 2}}},
		{Name: "c9", Drops: []top.Drop{{Place: "unwanted", Rate: 9}}},
	}}
}

// TestKeys checks the effect of each key on the table.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"", "> a,b,c10,c9"}, // 31, 22, 6, 0
		{"down", "a,> b,c10,c9"},
		{"end up", "a,b,> c10,c9"},
		{"end j j", "a,b,c10,> c9"},
		{"r", "> c9,c10,b,a"},
		{">", "> a,b,c9,c10"},        // name, with numbers as numbers
		{"> >", "> b,c10,a,c9"},      // in
		{"> > >", "> a,c10,b,c9"},    // out
		{"> > > >", "> b,a,c9,c10"},  // link
		{"> > <", "> a,b,c9,c10"},    // back
		{"< < <", "> c10,a,b,c9"},    // drops; an unwanted packet does not count
		{"down > >", "> b,c10,a,c9"}, // the selection stays on its interface
		{"r > >", "> b,c10,a,c9"},    // another column starts in its own order
		{"i", "> a,b,c10"},           // c9 is at rest
		{"/ c", "> c10,c9"},          // at once
		{"/ c enter", "> c10,c9"},    // kept
		{"/ c esc", "> a,b,c10,c9"},  // cancelled
		{"/ C 9 enter", "> c9"},      // case does not matter
		{"/ c enter esc", "> a,b,c10,c9"},
		{"/ c ctrl+u b enter", "> b"},
		{"/ q r i enter", "no interfa"},
		{"? ?", "> a,b,c10,c9"},
		{"tab tab tab tab", "> a,b,c10,c9"},
		{"end enter esc", "a,b,c10,> c9"},
	} {
		s := top.NewState(top.Begin{Interval: time.Second})
		s.Reading(four())
		for key := range strings.FieldsSeq(c.keys) {
			if s.Key(key) {
				t.Errorf("%q: %s leaves", c.keys, key)
			}
		}
		if got := order(s); got != c.want {
			t.Errorf("%q: %s, want %s", c.keys, got, c.want)
		}
	}
	for keys, leaves := range map[string]bool{"q": true, "ctrl+c": true, "/ q": false, "/ ctrl+c": true,
		"enter q": true, "? q": true, "x": false} {
		s, left := top.NewState(top.Begin{}), false
		s.Reading(four())
		for key := range strings.FieldsSeq(keys) {
			left = s.Key(key)
		}
		if left != leaves {
			t.Errorf("%q leaves: %v", keys, left)
		}
	}
}

func shows(s *top.State, text string) bool {
	for _, l := range s.Lines(120, 40) {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}

// TestPause checks that the display stands still while recording continues.
func TestPause(t *testing.T) {
	s := top.NewState(top.Begin{Interval: time.Second, Interface: "a"})
	s.Reading(four())
	s.Key("space")
	for n := range 5 {
		r := four()
		r.Time = r.Time.Add(time.Duration(n+1) * time.Second)
		r.Interfaces[0].Receive = 777
		s.Reading(r)
	}
	if shows(s, "777 b/s  ") || !shows(s, "PAUSED 5 s ago") || !shows(s, "the last 6.00 s; most in 777 b/s") {
		t.Errorf("paused:\n%s", text(s.Lines(120, 40)))
	}
	s.Key("space")
	if !shows(s, "777 b/s") || shows(s, "PAUSED") {
		t.Errorf("goes on:\n%s", text(s.Lines(120, 40)))
	}
}

// TestVerdicts checks that the screen shows the age of a verdict, and that a failed verdict does
// not replace an earlier one.
func TestVerdicts(t *testing.T) {
	s := top.NewState(top.Begin{Interval: time.Second})
	s.Reading(four())
	if !shows(s, "a verdict comes in a few seconds") {
		t.Error("the screen does not show that a verdict is missing")
	}
	s.Judged(top.Verdict{Err: errors.New("no /proc")})
	if !shows(s, "this host cannot be judged: no /proc") {
		t.Error("a host that cannot be judged")
	}
	s.Judged(top.Verdict{Time: reporttest.Noon.Add(-30 * time.Second),
		Findings: []evidence.Finding{{Code: "crc-errors", Severity: evidence.Critical, Title: "The cable is broken."}}})
	if !shows(s, "FINDINGS  30 s ago") || !shows(s, "!! crc-errors  The cable is broken.") {
		t.Errorf("a verdict:\n%s", text(s.Lines(120, 40)))
	}
	s.Judged(top.Verdict{Err: errors.New("no /proc")})
	if !shows(s, "FINDINGS  30 s ago; the last check failed: no /proc") || !shows(s, "crc-errors") {
		t.Errorf("a verdict after another:\n%s", text(s.Lines(120, 40)))
	}
	s.Changed(top.Journal{Err: errors.New("the journal in /x may not be read by this user")})
	if !shows(s, "CHANGES  the journal in /x may not be read") {
		t.Error("a journal that may not be read")
	}
	s.Changed(top.Journal{Changes: []journal.Change{
		{ID: "0002", Knob: "link:eth0/mtu", From: "1500", To: "1400", State: journal.Trial, Note: "past its deadline"},
		{ID: "0001", Knob: "link:eth1/mtu", From: "1500", To: "1400", State: journal.Trial, Unguarded: true}}})
	if !shows(s, "(trial, past its deadline)") || !shows(s, "(trial, unguarded)") {
		t.Errorf("trials that are not plain ones:\n%s", text(s.Lines(120, 40)))
	}
}

// TestSelectionStays checks that the selection stays in sight in a table longer than the screen,
// and moves to the first row when its interface is gone.
func TestSelectionStays(t *testing.T) {
	s := top.NewState(top.Begin{Interval: time.Second, Sort: "name"})
	r := top.Reading{Time: reporttest.Noon}
	for n := range 200 {
		r.Interfaces = append(r.Interfaces,
			top.Interface{Name: "eth" + string(rune('0'+n/100)) + string(rune('0'+n/10%10)) +
				string(rune('0'+n%10)), Up: true})
	}
	s.Reading(r)
	s.Lines(80, 24)
	for _, key := range []string{"end", "pgup", "pgup", "up", "home", "pgdown", "down", "end"} {
		s.Key(key)
		if !shows24(s, "> eth") {
			t.Errorf("after %s the selected row is out of sight:\n%s", key, text(s.Lines(80, 24)))
		}
	}
	if !shows24(s, "> eth199") {
		t.Error("the end is not the last interface")
	}
	r.Interfaces = r.Interfaces[:50]
	s.Reading(r)
	if !shows24(s, "> eth000") {
		t.Errorf("the selected interface is gone:\n%s", text(s.Lines(80, 24)))
	}
}

func shows24(s *top.State, text string) bool {
	for _, l := range s.Lines(80, 24) {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}
