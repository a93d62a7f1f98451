package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/linerate/linerate/internal/lab/work"
)

// Level is how gross a fault is.
type Level string

// The levels. A gross fault costs most of the rate or happens all the time, a plain one costs some
// of it, and a verdict may miss a mild one.
const (
	Mild  Level = "mild"
	Plain Level = "plain"
	Gross Level = "gross"
)

// Levels lists all levels, the mildest first.
var Levels = []Level{Mild, Plain, Gross}

// Ground is the kind of machine that a world is made on.
type Ground string

// The grounds. A namespace has no real cards, no global settings, and no qdiscs that this kernel
// lacks. Scenarios that need them make the same world in a guest with a kernel of its own.
const (
	Namespace Ground = "namespace"
	Guest     Ground = "guest"
)

// Mode is where a world is diagnosed from.
type Mode string

// The modes. A passive mode watches one host for some seconds while the background work runs,
// without a load of its own.
const (
	Target      Mode = "target" // near against far
	PassiveNear Mode = "passive-near"
	PassiveFar  Mode = "passive-far"
	// A guest itself, outside of its worlds: only there does a verdict cover the kernel as a whole.
	PassiveMachine Mode = "passive-machine"
)

// Fault is what is wrong with a world: settings, the link, rules, and what other programs do.
type Fault struct {
	// Settings by host name, "all" for every host. "machine" is the machine on which the world is
	// made. Its settings hold in all namespaces, so only a guest's may be changed.
	Settings map[string][]Setting `json:"settings,omitempty"`
	Link     *Link                `json:"link,omitempty"`     // in place of the world's
	Firewall map[string]Firewall  `json:"firewall,omitempty"` // by host name
	// TC has lines for tc(8) by host name, after those of the world. They run before Settings, so
	// that a setting can change what they made.
	TC   map[string][]string `json:"tc,omitempty"`
	Work []work.Work         `json:"work,omitempty"`
}

// Firewall is a rule set of one host. It needs the program nft(8).
type Firewall struct {
	// Rules is the number of rules that every incoming packet is compared with, one after the
	// other, and that never match.
	Rules int `json:"rules,omitempty"`
	// Conntrack adds a rule that matches connection state, which makes the kernel track all
	// connections.
	Conntrack bool `json:"conntrack,omitempty"`
}

// AllOfMachine is the name by which a fault sets what is outside of namespaces.
const AllOfMachine = "machine"

// maxRules bounds a rule set: nft(8) takes some seconds to load this many rules.
const maxRules = 20_000

// check returns the first error of a fault of a world on a ground, or nil.
func (f Fault) check(w World, g Ground) error {
	settings := maps.Clone(f.Settings)
	if _, ok := settings[AllOfMachine]; ok && g != Guest {
		return errors.New("settings of the machine itself are possible only in a guest")
	}
	delete(settings, AllOfMachine)
	if err := (World{Topology: w.Topology, Link: f.Link, TC: f.TC, Settings: settings}).Check(); err != nil {
		return err
	}
	hosts, err := w.hosts()
	if err != nil {
		return err
	}
	known := func(name string) bool { return slices.Contains(hosts, name) }
	for name, rules := range f.Firewall {
		if !known(name) || rules.Rules < 0 || rules.Rules > maxRules {
			return fmt.Errorf("firewall of host %q with %d rules: want a host of the world, and at most %d rules", name,
				rules.Rules, maxRules)
		}
	}
	for _, k := range f.Work {
		if err := k.Check(); err != nil {
			return err
		}
		if !known(k.Host) {
			return fmt.Errorf("work %s on host %q: the world has no such host", k.Kind, k.Host)
		}
	}
	return nil
}

// Fault returns the fault of a level: the one in levels or, for the gross level of a practice
// scenario, its faults. The scenario's own work precedes that of the fault. ok is false if the
// scenario does not have the level.
func (s Scenario) Fault(l Level) (f Fault, ok bool) {
	f, ok = s.Levels[l]
	if !ok && l == Gross && len(s.Faults) > 0 {
		f, ok = Fault{Settings: s.Faults}, true
	}
	f.Work = append(slices.Clone(s.Work), f.Work...)
	return f, ok
}

// Tuning is how a scenario is tuned. The zero value is `linerate tune far` for throughput.
type Tuning struct {
	Goal  string   `json:"goal,omitempty"`  // of tune; absent: throughput
	Flags []string `json:"flags,omitempty"` // further flags of tune: what it may disturb
	// Machine is the host that stays in the guest's own network namespace, where settings of the
	// whole machine can be changed.
	Machine string `json:"machine,omitempty"`
}

// MeasuredBy returns the goal of the tune, which is also the figure that counts.
func (t Tuning) MeasuredBy() string { return cmp.Or(t.Goal, Throughput) }

// The goals that scenarios are measured by.
const (
	Throughput = "throughput"
	Latency    = "latency"
	Packets    = "packets"
)

// Repairable reports whether tuning can repair something that its own load shows. It cannot repair
// a fault that costs only other programs, such as a full table.
func (s Scenario) Repairable() bool { return s.Expect.Tunable && s.From() == Target && !s.Sound() }

// Twin returns the fault without everything that tuning could change at the two ends. A scenario's
// healthy figure is that of the same path, because tuning cannot change the router. A fault of the
// path alone leaves the sound path.
func (f Fault) Twin() Fault {
	left := maps.Clone(f.Settings)
	maps.DeleteFunc(left, func(host string, _ []Setting) bool {
		return slices.Contains([]string{"all", "near", "far", AllOfMachine}, host)
	})
	if len(left) == len(f.Settings) {
		f.Link, f.TC = nil, nil
	}
	f.Settings = left
	return f
}

// Sound reports whether the world has no fault, so that every warning there is false.
func (s Scenario) Sound() bool { return len(s.Levels) == 0 && len(s.Faults) == 0 }

// checkMatrix returns the first error in the part of a scenario that the matrix reads, or nil.
func (s Scenario) checkMatrix() error {
	if s.Ground != "" && s.Ground != Namespace && s.Ground != Guest {
		return fmt.Errorf("ground %q: want %s or %s", s.Ground, Namespace, Guest)
	}
	if s.World.Card != "" && s.Ground != Guest {
		return errors.New("a world with cards is possible only in a guest")
	}
	if !slices.Contains([]Mode{"", Target, PassiveNear, PassiveFar, PassiveMachine}, s.Mode) {
		return fmt.Errorf("mode %q: want %s, %s, %s or %s", s.Mode, Target, PassiveNear, PassiveFar, PassiveMachine)
	}
	if s.Mode == PassiveMachine && s.Ground != Guest {
		return fmt.Errorf("mode %s is possible only in a guest", s.Mode)
	}
	if !slices.Contains([]string{Throughput, Latency, Packets}, s.Tuning.MeasuredBy()) {
		return fmt.Errorf("goal %q: want %s, %s or %s", s.Tuning.Goal, Throughput, Latency, Packets)
	}
	if m := s.Tuning.Machine; m != "" && (s.Ground != Guest || m != "near" && m != "far") {
		return fmt.Errorf("host %q in the machine's own network: want near or far, in a guest", m)
	}
	if err := (Fault{Work: s.Work}).check(s.World, s.Ground); err != nil {
		return err
	}
	for l, f := range s.Levels {
		if !slices.Contains(Levels, l) {
			return fmt.Errorf("level %q: want one of %v", l, Levels)
		}
		if err := f.check(s.World, s.Ground); err != nil {
			return fmt.Errorf("level %s: %w", l, err)
		}
	}
	switch e := s.Expect; {
	case len(e.Also) > 0 && e.Why == "":
		return errors.New("another finding counts as right, but the reason is missing")
	case len(e.Both) != 0 && (len(e.Both) != 2 || e.Both[0] != e.Finding):
		return errors.New("two faults at once: both must be named, the expected first finding first")
	}
	return nil
}

// Machine is the guest in which a scenario is played.
type Machine struct {
	CPUs        int      `json:"cpus,omitempty"` // 0: 2, one for each host
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	Counted     bool     `json:"counted,omitempty"` // the guest's clock counts instructions
	Cards       []Card   `json:"cards,omitempty"`
	Modules     []string `json:"modules,omitempty"`  // each with its parameters, after blanks
	Programs    []string `json:"programs,omitempty"` // of this machine
}

// Card is a card of a guest, as in package guest.
type Card struct {
	Model  string `json:"model"`
	Queues int    `json:"queues,omitempty"`
	Wire   int    `json:"wire,omitempty"`
}
