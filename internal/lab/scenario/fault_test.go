package scenario

import (
	"testing"

	"github.com/linerate/linerate/internal/lab/work"
)

func TestFaultOfALevel(t *testing.T) {
	s := Scenario{
		Faults: map[string][]Setting{"far": {{"sysctl:x", "1"}}},
		Work:   []work.Work{{Kind: work.UDPSink, Host: "far"}},
		Levels: map[Level]Fault{Mild: {Work: []work.Work{{Kind: work.CPUHog, Host: "near"}}}},
	}
	if f, ok := s.Fault(Gross); !ok || f.Settings["far"][0].Knob != "sysctl:x" || len(f.Work) != 1 {
		t.Errorf("gross: %v %+v", ok, f)
	}
	if f, ok := s.Fault(Mild); !ok || len(f.Work) != 2 || f.Work[0].Kind != work.UDPSink {
		t.Errorf("mild: %v %+v, want the scenario's work before the fault's", ok, f)
	}
	if len(s.Work) != 1 {
		t.Error("the scenario itself was changed")
	}
	if _, ok := s.Fault(Plain); ok {
		t.Error("a missing level has a fault")
	}
	if s.Sound() || !(Scenario{Work: s.Work}).Sound() {
		t.Error("Sound is wrong for a scenario with or without a fault")
	}
}

func TestMatrixPartRefuses(t *testing.T) {
	good := Scenario{
		Name: "x", Title: "x", About: "x", World: World{Topology: Pair}, Expect: Expectation{Finding: "healthy"},
		Levels: map[Level]Fault{Gross: {Work: []work.Work{{Kind: work.TCPSource, Host: "near", To: "far"}}}},
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(s *Scenario){
		"ground": func(s *Scenario) { s.Ground = "moon" },
		"mode":   func(s *Scenario) { s.Mode = "active" },
		"level":  func(s *Scenario) { s.Levels = map[Level]Fault{"heavy": {}} },
		"machine outside": func(s *Scenario) {
			s.Levels = map[Level]Fault{Gross: {Settings: map[string][]Setting{AllOfMachine: {}}}}
		},
		"card outside": func(s *Scenario) { s.World.Card = "e1000" },
		"unknown host": func(
			s *Scenario) {
			s.Levels = map[Level]Fault{Gross: {Firewall: map[string]Firewall{"router": {}}}}
		},
		"many rules": func(s *Scenario) {
			s.Levels = map[Level]Fault{Gross: {Firewall: map[string]Firewall{"far": {Rules: 1 << 20}}}}
		},
		"work from nowhere": func(s *Scenario) { s.Work = []work.Work{{Kind: work.UDPSink, Host: "moon"}} },
		"unknown work":      func(s *Scenario) { s.Work = []work.Work{{Kind: "nap", Host: "near"}} },
		"also without why":  func(s *Scenario) { s.Expect.Also = []string{"path-loss"} },
		"both of others":    func(s *Scenario) { s.Expect.Both = []string{"path-loss", "policer"} },
		"link and card":     func(s *Scenario) { s.Ground, s.World.Card, s.World.Link = Guest, "e1000", &Link{} },
	} {
		s := good
		spoil(&s)
		if s.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
