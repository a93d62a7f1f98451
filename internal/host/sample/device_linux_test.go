package sample

import (
	"os"
	"testing"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// What is below an interface may sleep, and a bridge above the card.
func TestAsleep(t *testing.T) {
	file := func(content string) string {
		name := t.TempDir() + "/runtime_status"
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	awake, sleeping, falling := file("active\n"), file("suspended\n"), file("suspending\n")
	for _, c := range []struct {
		name        string
		vlan        string // its kind
		above, card []string
		want        bool
	}{
		{"awake", "vlan", nil, []string{awake, awake}, false},
		{"the card sleeps", "vlan", nil, []string{sleeping, awake}, true},
		{"a bridge sleeps", "vlan", nil, []string{awake, falling}, true},
		{"gone", "vlan", nil, []string{"/nowhere"}, false},
		{"the other end of a veth carries nothing", "veth", nil, []string{sleeping}, false},
		{"itself", "vlan", []string{sleeping}, []string{awake}, true},
	} {
		s := &Sampler{buf: make([]byte, 1<<10)}
		s.links.now = []nl.LinkCounters{{Index: 2, Name: "eth0"},
			{Index: 3, Name: "vlan1", Kind: c.vlan, ParentIndex: 2}}
		s.links.byIndex = map[int]*link{2: {powerKnown: true, power: c.card}, 3: {powerKnown: true, power: c.above}}
		if got := s.asleep(&s.links.now[1]); got != c.want {
			t.Errorf("%s: asleep: %v", c.name, got)
		}
	}
}
