package schedule

import (
	"path/filepath"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

// memoryVersion is the version of the format of memory.
const memoryVersion = 1

// memory is the state that survives a restart: a hub that restarts often must not measure more
// often, nor send more.
type memory struct {
	Time  time.Time             `json:"time"`
	Plans map[string]planMemory `json:"plans"`
	Cells []Cell                `json:"cells"`
}

type planMemory struct {
	Last     time.Time       `json:"last"` // start of the last run
	Failures int             `json:"failures"`
	Spent    map[int64]int64 `json:"spent_bytes"` // by hours before Time
}

func (s *Scheduler) path() string { return filepath.Join(s.o.Dir, "schedules.json") }

// save writes the state. Without it measurements continue, and a warning reports what that means.
func (s *Scheduler) save() {
	if s.o.Dir == "" {
		return
	}
	now, clock := time.Now(), s.clock()
	m := memory{Time: now.UTC(), Plans: make(map[string]planMemory), Cells: s.Matrix()}
	for _, p := range s.plans {
		if !p.ran {
			continue
		}
		pm := planMemory{Last: now.Add(p.last - clock).UTC(), Failures: p.failures, Spent: make(map[int64]int64)}
		for h, bytes := range p.spent.hours {
			pm.Spent[hour(clock)-h] += bytes
		}
		m.Plans[p.Name] = pm
	}
	if err := durable.Remember(s.o.FS, s.path(), memoryVersion, m); err != nil {
		s.o.Log.Warn("the state of measurements is not saved", "error", err)
	}
}

// load reads the state from before a restart.
func (s *Scheduler) load() {
	if s.o.Dir == "" {
		return
	}
	var m memory
	known, err := durable.Recall(s.o.FS, s.path(), memoryVersion, &m)
	if err != nil {
		s.o.Log.Warn("the state of measurements cannot be read", "error", err)
	}
	if !known {
		return
	}
	targets := make(map[string]bool)
	for _, p := range s.plans {
		targets[p.Target] = true
		pm, planned := m.Plans[p.Name]
		if !planned {
			continue
		}
		// If the clock was set back, the last run counts as just now: too seldom is better than too
		// often.
		p.ran, p.last, p.failures = true, -max(s.started.Sub(pm.Last), 0), max(pm.Failures, 0)
		away := max(int64(s.started.Sub(m.Time)/time.Hour), 0)
		for ago, bytes := range pm.Spent {
			// The hours of the old and the new count begin at different minutes: assume the later
			// one.
			if h := -max(ago, 1) - away; ago >= 0 && bytes > 0 && h >= -hoursOfDay {
				p.spent.add(time.Duration(h)*time.Hour, bytes)
			}
		}
	}
	for _, c := range m.Cells {
		if targets[c.To] {
			s.cells[c.id()] = c
		}
	}
}
