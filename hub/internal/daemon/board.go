package daemon

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/sample"
)

// board holds the current state: the last values of each source, and the last verdict.
type board struct {
	mu       sync.RWMutex
	sources  map[string]*latest
	findings []evidence.Finding
	judged   time.Time
	problems map[string]string // of parts of the hub, one line each, by the part
}

// latest is the last value of each series of a source.
type latest struct {
	time     time.Time
	values   map[*sample.Series]float64
	warnings []string
}

func (l *latest) reading() *sample.Reading {
	r := &sample.Reading{Time: l.time, Points: make([]sample.Point, 0, len(l.values)), Warnings: l.warnings}
	for s, v := range l.values {
		r.Points = append(r.Points, sample.Point{Series: s, Value: v})
	}
	return r
}

func newBoard() *board {
	return &board{sources: make(map[string]*latest), problems: make(map[string]string)}
}

// put takes a reading. Series that are too costly to read each second are missing in most readings;
// they keep their last values until they are read again or end.
func (b *board) put(source string, r *sample.Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.sources[source]
	if known == nil {
		known = &latest{values: make(map[*sample.Series]float64)}
		b.sources[source] = known
	}
	for _, s := range r.Ended {
		delete(known.values, s)
	}
	for _, p := range r.Points {
		known.values[p.Series] = p.Value
	}
	known.time, known.warnings = r.Time, slices.Clone(r.Warnings)
}

// readings returns the last value of all series of each source, sorted by source and unsorted
// within.
func (b *board) readings() []*sample.Reading {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []*sample.Reading
	for _, name := range slices.Sorted(maps.Keys(b.sources)) {
		out = append(out, b.sources[name].reading())
	}
	return out
}

// last returns the last value of all series of a source, or nil before its first reading.
func (b *board) last(source string) *sample.Reading {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if known := b.sources[source]; known != nil {
		return known.reading()
	}
	return nil
}

func (b *board) judge(at time.Time, findings []evidence.Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judged, b.findings = at, findings
}

func (b *board) verdict() (time.Time, []evidence.Finding) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.judged, b.findings
}

// problem records the error of a part of the hub; nil means that the part works. It reports whether
// the state of the part changed.
func (b *board) problem(part string, err error) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, had := b.problems[part]
	if err == nil {
		delete(b.problems, part)
		return had
	}
	b.problems[part] = err.Error()
	return !had || before != err.Error()
}

// warnings returns the problems, and what the last reading could not read.
func (b *board) warnings() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []string
	for part, why := range b.problems {
		out = append(out, part+": "+why)
	}
	if known := b.sources[sourceHost]; known != nil {
		out = append(out, known.warnings...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
