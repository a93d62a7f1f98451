package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/internal/durable"
)

// memory is what survives a restart: a hub that restarts often must not measure more often, nor send more.
type memory struct {
	Version int                   `json:"version"`
	Time    time.Time             `json:"time"`
	Plans   map[string]planMemory `json:"plans"`
	Cells   []Cell                `json:"cells"`
}

type planMemory struct {
	Last     time.Time       `json:"last"` // start of the last run
	Failures int             `json:"failures"`
	Spent    map[int64]int64 `json:"spent_bytes"` // by how many hours before Time
}

func (s *Scheduler) path() string { return filepath.Join(s.o.Dir, "schedules.json") }

// save writes what is known. When it cannot, measurements go on, and a warning tells what that means.
func (s *Scheduler) save() {
	if s.o.Dir == "" {
		return
	}
	now, clock := time.Now(), s.clock()
	m := memory{Version: 1, Time: now.UTC(), Plans: make(map[string]planMemory), Cells: s.Matrix()}
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
	data, err := json.Marshal(m)
	if err == nil {
		err = durable.Replace(s.o.FS, s.path(), data, 0o600)
	}
	if err != nil {
		s.o.Log.Warn("what is known of measurements is not saved", "error", err)
	}
}

// load reads what was known before a restart.
func (s *Scheduler) load() {
	if s.o.Dir == "" {
		return
	}
	if err := durable.MkdirAll(s.o.FS, s.o.Dir, 0o700); err != nil {
		s.o.Log.Warn("what is known of measurements is not saved", "error", err) // each time that there is something to save, it is tried
	}
	data, err := s.o.FS.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var m memory
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && m.Version != 1 {
		err = fmt.Errorf("version %d is not known", m.Version)
	}
	if err != nil {
		s.o.Log.Warn("what was known of measurements cannot be read", "file", s.path(), "error", err)
		return
	}
	targets := make(map[string]bool)
	for _, p := range s.plans {
		targets[p.Target] = true
		pm, known := m.Plans[p.Name]
		if !known {
			continue
		}
		// A clock that was set back makes it as if it had been just now: too seldom is better than too often.
		p.ran, p.last, p.failures = true, -max(s.started.Sub(pm.Last), 0), max(pm.Failures, 0)
		away := max(int64(s.started.Sub(m.Time)/time.Hour), 0)
		for ago, bytes := range pm.Spent {
			// The hours of the old count and of the new one do not begin at the same minute: the later of both that it may have been.
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
