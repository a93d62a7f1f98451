package scenario

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/lab/work"
)

//go:embed scenarios/*.json scenarios/matrix/*.json
var scenarioFiles embed.FS

// Scenario is a world with a known fault and the result that linerate must reach. Scenarios in the
// directory scenarios are played whole: diagnosed, tuned and undone. The matrix judges these and
// the ones in scenarios/matrix, level by level.
type Scenario struct {
	Name   string               `json:"name"`
	Title  string               `json:"title"`            // one line, plain words
	About  string               `json:"about"`            // why it is slow, with the arithmetic
	World  World                `json:"world"`            // healthy
	Faults map[string][]Setting `json:"faults,omitempty"` // also the gross level, unless levels has one
	Levels map[Level]Fault      `json:"levels,omitempty"`
	Work   []work.Work          `json:"work,omitempty"`   // at every level, and in a sound world
	Ground Ground               `json:"ground,omitempty"` // absent: namespace
	Guest  Machine              `json:"guest,omitzero"`   // where ground is guest
	Mode   Mode                 `json:"mode,omitempty"`   // absent: target
	Flags  []string             `json:"flags,omitempty"`  // further flags of diagnose, measure and tune
	Tuning Tuning               `json:"tuning,omitzero"`  // how it is tuned; absent: by default
	Expect Expectation          `json:"expect"`
	Needs  Needs                `json:"needs,omitzero"`
	Replay *Replay              `json:"replay,omitempty"` // the write-up that it recreates, if any
	Short  bool                 `json:"short,omitempty"`  // belongs to the short form of the matrix
}

// Expectation is the result that passes.
type Expectation struct {
	Finding string   `json:"finding"`         // code of the first finding
	Also    []string `json:"also,omitempty"`  // other codes that are equally right
	Why     string   `json:"why,omitempty"`   // why they are right
	Both    []string `json:"both,omitempty"`  // two faults at once: both must be among the findings
	Tunable bool     `json:"tunable"`         // whether tuning has a remedy; if not, it may keep nothing
	Knobs   []string `json:"knobs,omitempty"` // tuning must keep at least one of them

	// HealthyBitsPerSec is the healthy rate where the world without its faults does not show it; 0:
	// that world is measured.
	HealthyBitsPerSec float64 `json:"healthy_bits_per_second,omitempty"`
	// Ratio is the share of the healthy rate that tuning must reach; 0: 0.9.
	Ratio float64 `json:"healthy_ratio,omitempty"`
}

// Needs are what the machine must provide for the scenario to make sense.
type Needs struct {
	CongestionControl string `json:"congestion_control,omitempty"`
}

// ErrNoScenario reports a name that no scenario has.
var ErrNoScenario = errors.New("no such scenario")

// order is the order of the list: by the limit, from the hosts to the path, and at the end the
// scenarios with nothing to tune.
var order = []string{"receive-window", "send-buffer", "window-scaling-off", "route-window", "offloads-off", "path-loss",
	"link-rate", "healthy"}

// The directories of scenarios: those that are played whole, and those that only the matrix uses.
const (
	practice   = "scenarios"
	matrixOnly = "scenarios/matrix"
)

// List returns all scenarios that are played whole, in their fixed order. Scenarios that the order
// does not name follow by name.
func List() ([]Scenario, error) {
	all, err := list(practice)
	if err != nil {
		return nil, err
	}
	rank := func(s Scenario) int {
		if i := slices.Index(order, s.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	sorting.StableFunc(all, func(a, b Scenario) int { return rank(a) - rank(b) })
	return all, nil
}

// Matrix returns all scenarios that can be judged: those of List, then by name those that only the
// matrix uses.
func Matrix() ([]Scenario, error) {
	all, err := List()
	if err != nil {
		return nil, err
	}
	more, err := list(matrixOnly)
	if err != nil {
		return nil, err
	}
	return append(all, more...), nil
}

// list reads one directory, by name.
func list(dir string) ([]Scenario, error) {
	entries, err := fs.ReadDir(scenarioFiles, dir)
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	var all []Scenario
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		s, err := load(dir, strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Load returns one scenario of List or Replays. An unknown name is ErrNoScenario.
func Load(name string) (Scenario, error) {
	s, err := load(practice, name)
	if errors.Is(err, ErrNoScenario) {
		return loadFrom(replayFiles, replays, name)
	}
	return s, err
}

func load(dir, name string) (Scenario, error) { return loadFrom(scenarioFiles, dir, name) }

func loadFrom(files embed.FS, dir, name string) (Scenario, error) {
	if strings.ContainsAny(name, `/\`) {
		return Scenario{}, fmt.Errorf("scenario %q: %w", name, ErrNoScenario)
	}
	b, err := files.ReadFile(path.Join(dir, name+".json"))
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %q: %w", name, ErrNoScenario)
	}
	s, err := Parse(b)
	if err == nil && s.Name != name {
		err = fmt.Errorf("its file is named %s.json", name)
	}
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %q: %w", name, err)
	}
	return s, nil
}

// Parse reads a scenario file and checks it. Unknown keys are an error, because a misspelt fault
// would plant no fault.
func Parse(b []byte) (Scenario, error) {
	var s Scenario
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Scenario{}, err
	}
	return s, s.Check()
}

// Check returns the first error of a scenario, or nil.
func (s Scenario) Check() error {
	if err := s.World.Check(); err != nil {
		return err
	}
	// Faults go to hosts of the world, by the same rule as settings.
	if err := (World{Topology: s.World.Topology, Settings: s.Faults}).Check(); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	switch {
	case s.Name == "" || s.Title == "" || s.About == "":
		return errors.New("name, title and about are required")
	case s.Expect.Finding == "":
		return errors.New("the expected finding is missing")
	case s.Expect.Tunable != (len(s.Expect.Knobs) > 0):
		return errors.New("a tunable scenario must name the knobs that help, and other scenarios none")
	case s.Expect.Ratio < 0 || s.Expect.Ratio > 1:
		return fmt.Errorf("healthy ratio %v: want 0 to 1", s.Expect.Ratio)
	}
	if s.Replay != nil {
		if err := s.Replay.check(s); err != nil {
			return err
		}
	}
	return s.checkMatrix()
}

// On returns the ground on which the scenario is played.
func (s Scenario) On() Ground { return cmp.Or(s.Ground, Namespace) }

// From returns the mode in which the scenario is diagnosed.
func (s Scenario) From() Mode { return cmp.Or(s.Mode, Target) }

// Passing returns the share of the healthy rate that passes. Nine tenths leave room for the noise
// of a busy machine.
func (e Expectation) Passing() float64 {
	if e.Ratio == 0 {
		return 0.9
	}
	return e.Ratio
}

// pins are applied in every host of a scenario before the scenario's own settings. A new network
// namespace starts with the machine's TCP settings; the pins make a scenario play the same way on
// machines with different settings. Values are the defaults of Linux 6.16.
var pins = []Setting{
	{"sysctl:net.ipv4.tcp_rmem", "4096 131072 33554432"},
	{"sysctl:net.ipv4.tcp_wmem", "4096 16384 4194304"},
	{"sysctl:net.ipv4.tcp_window_scaling", "1"},
	{"sysctl:net.ipv4.tcp_timestamps", "1"},
	{"sysctl:net.ipv4.tcp_sack", "1"},
	{"sysctl:net.ipv4.tcp_moderate_rcvbuf", "1"},
	// Reno is the one congestion control that every kernel has and allows everywhere.
	{"sysctl:net.ipv4.tcp_congestion_control", "reno"},
	// Not a default: a connection must not inherit what an earlier one learnt about the path, or
	// one arm of an experiment sets the slow-start threshold of another.
	{"sysctl:net.ipv4.tcp_no_metrics_save", "1"},
}

// Pinned returns the world with the pins before its own settings.
func (w World) Pinned() World {
	settings := map[string][]Setting{"all": append(slices.Clone(pins), w.Settings["all"]...)}
	for name, s := range w.Settings {
		if name != "all" {
			settings[name] = s
		}
	}
	w.Settings = settings
	return w
}
