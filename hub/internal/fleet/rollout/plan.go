package rollout

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Host is one host of a rollout. Hosts with equal, non-empty Rack or Quorum are never in trial
// together.
type Host struct {
	ID     string `json:"id"`
	Class  string `json:"class"` // hash of NIC, driver, kernel, CPU, role, present value of the knob
	Rack   string `json:"rack,omitempty"`
	Quorum string `json:"quorum,omitempty"` // replica set whose other members must be up
	Site   string `json:"site,omitempty"`
}

// Timing is how a rollout waits.
type Timing struct {
	Deadline time.Duration `json:"deadline_ns"`  // of a trial at the host
	Settle   time.Duration `json:"settle_ns"`    // from the start of a trial to its confirmation
	Soak     time.Duration `json:"soak_ns"`      // from the last confirmation of a stage to its measurements
	LongSoak time.Duration `json:"long_soak_ns"` // the same before the wave of 50 % and the last: a daily peak
	Collect  time.Duration `json:"collect_ns"`   // for the measurements to arrive
}

// DefaultTiming has trials of five minutes and a day before half of the fleet.
func DefaultTiming() Timing {
	return Timing{Deadline: 5 * time.Minute, Settle: time.Minute, Soak: time.Hour, LongSoak: 24 * time.Hour,
		Collect: 10 * time.Minute}
}

// The stages.
const (
	Experiment = iota
	Pairs
	Wave1
	Wave10
	Wave50
	WaveAll
	stages
)

// StageNames are the names of the stages, in order.
var StageNames = [stages]string{"experiment", "pairs", "wave 1 %", "wave 10 %", "wave 50 %", "wave 100 %"}

// shares are the parts of each class that are changed after a stage, before rounding up.
var shares = [stages]float64{0, 0.005, 0.01, 0.10, 0.50, 1}

// Limits of a plan.
const (
	// perClass is how many hosts of a class experiment first: three, or one in a class of up to
	// ten.
	perClass = 3
	// pairsPerClass is the least number of matched pairs of a class with enough hosts. Three make a
	// harm of four times the noise visible before the first wave.
	pairsPerClass = 3
	// minClass is the size of a class below which every host needs a proof of its own.
	minClass = 5
	// labelled is the share above which hosts must have the labels of their fault domains.
	labelled = 0.10
	maxHosts = 100_000
)

// Plan is a rollout, decided before its first order.
type Plan struct {
	ID     string   `json:"id"`
	Seed   uint64   `json:"seed"`
	Hosts  []Host   `json:"hosts"`
	Timing Timing   `json:"timing"`
	Stage  []int    `json:"stage"`   // of each host
	Mate   []int    `json:"mate"`    // in Pairs: index of the like host that is not changed; -1: none
	ByHost []bool   `json:"by_host"` // the host is of a small class and experiments alone
	Names  []string `json:"classes"`
	class  []int
}

// ErrLabels reports hosts without the labels of their fault domains.
var ErrLabels = errors.New("more than a tenth of the hosts have no rack")

// NewPlan divides hosts into stages. The same seed gives the same plan, whatever the order of the
// hosts.
func NewPlan(id string, seed uint64, hosts []Host, timing Timing) (*Plan, error) {
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("plan rollout %s: %d hosts, want 1 to %d", id, len(hosts), maxHosts)
	}
	if timing.Settle >= timing.Deadline || timing.Settle <= 0 || timing.Collect <= 0 {
		return nil, fmt.Errorf("plan rollout %s: a trial of %v cannot settle for %v", id, timing.Deadline, timing.Settle)
	}
	p := &Plan{ID: id, Seed: seed, Hosts: slices.Clone(hosts), Timing: timing}
	sorting.StableFunc(p.Hosts, func(a, b Host) int { return compare(a.ID, b.ID) })
	unlabelled := 0
	for i, h := range p.Hosts {
		if i > 0 && p.Hosts[i-1].ID == h.ID {
			return nil, fmt.Errorf("plan rollout %s: host %s twice", id, h.ID)
		}
		if h.Rack == "" {
			unlabelled++
		}
	}
	if float64(unlabelled) > labelled*float64(len(p.Hosts)) {
		return nil, fmt.Errorf("plan rollout %s: %w", id, ErrLabels)
	}
	p.divide()
	return p, nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// index fills in what is not stored.
func (p *Plan) index() {
	number := make(map[string]int)
	p.Names, p.class = nil, make([]int, len(p.Hosts))
	for i, h := range p.Hosts {
		n, ok := number[h.Class]
		if !ok {
			n = len(p.Names)
			number[h.Class] = n
			p.Names = append(p.Names, h.Class)
		}
		p.class[i] = n
	}
}

func (p *Plan) divide() {
	p.index()
	rng := rand.New(rand.NewPCG(p.Seed, 0x726f6c6c6f7574))
	n := len(p.Hosts)
	p.Stage, p.Mate, p.ByHost = make([]int, n), make([]int, n), make([]bool, n)
	for i := range p.Mate {
		p.Mate[i] = -1
	}
	for c := range p.Names {
		var members []int
		for i := range p.Hosts {
			if p.class[i] == c {
				members = append(members, i)
			}
		}
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		first := perClass
		if len(members) <= 10 {
			first = 1
		}
		if len(members) < minClass {
			for _, i := range members {
				p.ByHost[i] = true
			}
		}
		pairs := min(pairsPerClass, (len(members)-first)/2)
		for k, i := range members {
			p.Stage[i] = WaveAll
			for s := Pairs; s < stages; s++ {
				if k < first {
					p.Stage[i] = Experiment
				} else if k < first+max(pairs, int(math.Ceil(shares[s]*float64(len(members))))) {
					p.Stage[i] = s
				} else {
					continue
				}
				break
			}
		}
		p.match(members)
	}
}

// match gives each host of the pairs a like one that is changed in the last wave, if possible of
// the same site. The coin has been tossed: the order of the members is random.
func (p *Plan) match(members []int) {
	used := make(map[int]bool)
	for _, i := range members {
		if p.Stage[i] != Pairs {
			continue
		}
		for _, same := range []bool{true, false} {
			for _, j := range slices.Backward(members) {
				if p.Mate[i] < 0 && p.Stage[j] > Wave10 && !used[j] && (!same || p.Hosts[j].Site == p.Hosts[i].Site) {
					p.Mate[i], used[j] = j, true
				}
			}
		}
	}
}

// Share returns how many hosts are changed when a stage is complete.
func (p *Plan) Share(stage int) int {
	n := 0
	for _, s := range p.Stage {
		if s <= stage {
			n++
		}
	}
	return n
}
