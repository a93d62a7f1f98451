package record

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"github.com/linerate/linerate/internal/host/sample"
)

// known is a series that is being appended to.
type known struct {
	labels labels.Labels
	id     storage.SeriesRef // in the database that is open now; 0: not known there yet
	seenMS int64
}

// reading is a sample.Reading with its series looked up. What ended in it has a marker as its
// value.
type reading struct {
	timeMS int64
	series []*known
	values []float64
}

// nameLabel has the name of the metric.
const nameLabel = "__name__"

var stale = math.Float64frombits(value.StaleNaN)

// Append stores a reading, and marks what ended in it: no query sees the series of things that are
// gone after their end. A reading of a time that was there already adds only series that have no
// sample at it. While the disk has no room the reading is kept in memory, which is no error:
// [Store.Status] says so. Many may append at a time.
func (s *Store) Append(r *sample.Reading) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("append to history: %w", ErrClosed)
	}
	s.look(r)
	if s.state == DiskOK && s.freeBytes() < s.o.MinFreeBytes {
		s.enter(DiskFull, fmt.Sprintf("less than %d MB are free", s.o.MinFreeBytes/1e6))
	}
	if s.state != DiskOK || s.kept.len() > 0 {
		s.kept.push(&s.scratch)
		return nil
	}
	if err := s.write(&s.scratch); err != nil {
		s.failed(err)
		s.kept.push(&s.scratch)
	}
	return nil
}

// look fills the scratch reading.
func (s *Store) look(r *sample.Reading) {
	e := &s.scratch
	e.timeMS, e.series, e.values = r.Time.UnixMilli(), e.series[:0], e.values[:0]
	add := func(p sample.Point) {
		k := s.refs[p.Series]
		if k == nil {
			k = &known{labels: s.labels(p.Series)}
			s.refs[p.Series] = k
		}
		k.seenMS = e.timeMS
		e.series, e.values = append(e.series, k), append(e.values, p.Value)
	}
	for _, p := range r.Points {
		add(p)
	}
	for _, ended := range r.Ended {
		k := s.refs[ended]
		if k == nil {
			continue
		}
		delete(s.refs, ended)
		// Another under the same name may have begun in the same reading: its sample says that this
		// one ended.
		if !slices.ContainsFunc(e.series, func(o *known) bool { return labels.Equal(o.labels, k.labels) }) {
			e.series, e.values = append(e.series, k), append(e.values, stale)
		}
	}
	s.own.took(len(r.Points))
	for _, p := range s.ownPoints(r.Time) {
		add(p)
	}
}

func (s *Store) labels(of *sample.Series) labels.Labels {
	b := labels.NewScratchBuilder(len(of.Values) + 2)
	b.Add(nameLabel, of.Metric.Name)
	b.Add("host", s.o.Host)
	for i, name := range of.Metric.Labels {
		if of.Values[i] != "" { // as Prometheus has it: empty is absent
			b.Add(name, of.Values[i])
		}
	}
	b.Sort()
	return b.Labels()
}

// write gives a reading to the database. An error says that all of it is missing there.
func (s *Store) write(e *reading) error {
	app := s.db.Appender(context.Background())
	for i, k := range e.series {
		id, err := app.Append(k.id, k.labels, e.timeMS, e.values[i])
		switch {
		case err == nil:
			k.id = id
		case errors.Is(err, storage.ErrDuplicateSampleForTimestamp), errors.Is(err, storage.ErrOutOfOrderSample),
			errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds):
			// The second of a restart: there is a sample of this time already, and it stands.
			s.own.refused++
		default:
			return errors.Join(fmt.Errorf("append to history: %w", err), app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("append to history: %w", err)
	}
	s.newestMS = max(s.newestMS, e.timeMS)
	if s.own.oldestMS == 0 {
		s.own.oldestMS = e.timeMS
	}
	return nil
}

// failed takes note of a failed write. The log may end in the middle of a record, and what is
// written behind that is lost at the next start.
func (s *Store) failed(err error) {
	s.torn = true
	s.own.errors++
	s.enter(stateOf(err), err.Error())
}

func stateOf(err error) DiskState {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errNoRoom) {
		return DiskFull
	}
	return DiskFailing
}

// enter begins a state; the same again keeps its beginning.
func (s *Store) enter(state DiskState, cause string) {
	if s.state != state {
		s.since = time.Now()
		s.o.Logger.Warn("history cannot be written: readings are kept in memory", "state", state, "cause", cause)
	}
	s.state, s.cause = state, cause
}
