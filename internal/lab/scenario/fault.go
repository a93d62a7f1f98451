package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/linerate/linerate/internal/lab/work"
)

// Level says how gross a fault is.
type Level string

// The levels. A gross fault costs most of the rate or happens all the time, a plain one some of it,
// a mild one may be left unseen.
const (
	Mild  Level = "mild"
	Plain Level = "plain"
	Gross Level = "gross"
)

// Levels are all of them, the mildest first.
var Levels = []Level{Mild, Plain, Gross}

// Ground says what a world is made on.
type Ground string

// The grounds. What a namespace cannot hold — real cards, global settings, qdiscs that this kernel
// has not — needs a guest with a kernel of its own, in which the same world is made.
const (
	Namespace Ground = "namespace"
	Guest     Ground = "guest"
)

// Mode says from where a world is diagnosed.
type Mode string

// The modes. Passive ones look at one host for some seconds while the background work runs and put
// no load of their own on it.
const (
	Target      Mode = "target" // near against far
	PassiveNear Mode = "passive-near"
	PassiveFar  Mode = "passive-far"
	// a guest itself, outside of its worlds: what belongs to the kernel as a whole is told there
	// alone
	PassiveMachine Mode = "passive-machine"
)

// Fault is what is wrong with a world: settings, the link, rules, and what other programs do.
type Fault struct {
	// Settings by host name, "all" for every host. "machine" is the machine on which the world is
	// made, whose settings hold in all namespaces: only a guest may be changed so.
	Settings map[string][]Setting `json:"settings,omitempty"`
	Link     *Link                `json:"link,omitempty"`     // in place of the world's
	Firewall map[string]Firewall  `json:"firewall,omitempty"` // by host name
	// TC are lines for tc(8) by host name, behind those of the world. They come before Settings, so
	// that a setting can change what they made.
	TC   map[string][]string `json:"tc,omitempty"`
	Work []work.Work         `json:"work,omitempty"`
}

// Firewall is a rule set of one host. It needs the program nft(8).
type Firewall struct {
	Rules     int  `json:"rules,omitempty"`     // that every incoming packet is compared with, one after the other, and none of which fits
	Conntrack bool `json:"conntrack,omitempty"` // a rule that asks for the state of connections, which makes the kernel track all of them
}

// AllOfMachine is the name under which a fault sets what is outside of namespaces.
const AllOfMachine = "machine"

// maxRules bounds a rule set: nft(8) takes some seconds to load so many.
const maxRules = 20_000

// check says what is wrong with a fault of a world on a ground.
func (f Fault) check(w World, g Ground) error {
	settings := maps.Clone(f.Settings)
	if _, ok := settings[AllOfMachine]; ok && g != Guest {
		return errors.New("settings of the machine itself: only in a guest")
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

// Fault gives what is wrong at a level: the one of the file, or for the gross one of a practice
// scenario its faults. The scenario's own work goes before that of the fault. False: the scenario
// has no such level.
func (s Scenario) Fault(l Level) (Fault, bool) {
	f, ok := s.Levels[l]
	if !ok && l == Gross && len(s.Faults) > 0 {
		f, ok = Fault{Settings: s.Faults}, true
	}
	f.Work = append(slices.Clone(s.Work), f.Work...)
	return f, ok
}

// Tuning says how a scenario is tuned. The zero value is `linerate tune far` for throughput.
type Tuning struct {
	Goal  string   `json:"goal,omitempty"`  // of tune; absent: throughput
	Flags []string `json:"flags,omitempty"` // further ones of tune: what it may disturb
	// Machine is the host that stays in the guest's own network namespace, from where settings of
	// the whole machine can be turned.
	Machine string `json:"machine,omitempty"`
}

// MeasuredBy is the goal that is tuned for, and the figure that counts.
func (t Tuning) MeasuredBy() string { return cmp.Or(t.Goal, Throughput) }

// The goals that scenarios are measured by.
const (
	Throughput = "throughput"
	Latency    = "latency"
	Packets    = "packets"
)

// Repairable tells whether tuning has something to repair here that its own load can show. What
// costs only others, as a full table does, cannot be tuned for.
func (s Scenario) Repairable() bool { return s.Expect.Tunable && s.From() == Target && !s.Sound() }

// Twin is what stays of a fault when everything that tuning could turn at the two ends is as in the
// sound world: the healthy figure of a scenario is that of the same path, and what sits in the
// router is nobody's to tune. A fault of the path alone leaves the sound path.
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

// Sound tells whether nothing is wrong in the world: every warning there is a false one.
func (s Scenario) Sound() bool { return len(s.Levels) == 0 && len(s.Faults) == 0 }

// checkMatrix says what is wrong with the part of a scenario that the matrix reads.
func (s Scenario) checkMatrix() error {
	if s.Ground != "" && s.Ground != Namespace && s.Ground != Guest {
		return fmt.Errorf("ground %q: want %s or %s", s.Ground, Namespace, Guest)
	}
	if s.World.Card != "" && s.Ground != Guest {
		return errors.New("a world with cards: only in a guest")
	}
	if !slices.Contains([]Mode{"", Target, PassiveNear, PassiveFar, PassiveMachine}, s.Mode) {
		return fmt.Errorf("mode %q: want %s, %s, %s or %s", s.Mode, Target, PassiveNear, PassiveFar, PassiveMachine)
	}
	if s.Mode == PassiveMachine && s.Ground != Guest {
		return fmt.Errorf("mode %s: only in a guest", s.Mode)
	}
	if !slices.Contains([]string{Throughput, Latency, Packets}, s.Tuning.MeasuredBy()) {
		return fmt.Errorf("goal %q: want %s, %s or %s", s.Tuning.Goal, Throughput, Latency, Packets)
	}
	if m := s.Tuning.Machine; m != "" && (s.Ground != Guest || m != "near" && m != "far") {
		return fmt.Errorf("host %q in the machine's own network: near or far, and only in a guest", m)
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
		return errors.New("another finding is as right, but it is not said why")
	case len(e.Both) != 0 && (len(e.Both) != 2 || e.Both[0] != e.Finding):
		return errors.New("two faults at once: both are named, the expected first finding first")
	}
	return nil
}

// Machine is the guest in which a scenario is played.
type Machine struct {
	CPUs        int      `json:"cpus,omitempty"` // 0: 2, one for each host
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	Counted     bool     `json:"counted,omitempty"` // time is counted in instructions
	Cards       []Card   `json:"cards,omitempty"`
	Modules     []string `json:"modules,omitempty"`  // each with parameters behind blanks
	Programs    []string `json:"programs,omitempty"` // of this machine
}

// Card is a card of a guest, as package guest has it.
type Card struct {
	Model  string `json:"model"`
	Queues int    `json:"queues,omitempty"`
	Wire   int    `json:"wire,omitempty"`
}
