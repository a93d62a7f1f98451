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

// known is a series that the store appends to.
type known struct {
	labels labels.Labels
	id     storage.SeriesRef // id in the open database; 0: unknown there
	seenMS int64
}

// reading is a sample.Reading with its series looked up. An ended series has a staleness marker as
// its value.
type reading struct {
	timeMS int64
	series []*known
	values []float64
}

// nameLabel is the label of a metric's name.
const nameLabel = "__name__"

var stale = math.Float64frombits(value.StaleNaN)

// Append stores a reading, and marks the series that ended: queries do not see a series after its
// end. A reading with the time of an earlier one adds only series without a sample at that time.
// While the disk is full, Append keeps the reading in memory, which is not an error: [Store.Status]
// reports it. Append may be called concurrently.
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
		// A new series of the same name may have begun in the same reading: its sample shows that
		// the old one ended.
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
		if of.Values[i] != "" { // as in Prometheus, an empty label is an absent one
			b.Add(name, of.Values[i])
		}
	}
	b.Sort()
	return b.Labels()
}

// write appends a reading to the database. After an error the database has none of it.
func (s *Store) write(e *reading) error {
	app := s.db.Appender(context.Background())
	for i, k := range e.series {
		id, err := app.Append(k.id, k.labels, e.timeMS, e.values[i])
		switch {
		case err == nil:
			k.id = id
		case errors.Is(err, storage.ErrDuplicateSampleForTimestamp), errors.Is(err, storage.ErrOutOfOrderSample),
			errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds):
			// A restart within a second: the database has a sample of this time, which stays.
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

// failed records a failed write. The log may end in the middle of a record, and the next start
// would lose what follows it.
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

// enter begins a state; the same state again keeps its start.
func (s *Store) enter(state DiskState, cause string) {
	if s.state != state {
		s.since = time.Now()
		s.o.Logger.Warn("history cannot be written: readings are kept in memory", "state", state, "cause", cause)
	}
	s.state, s.cause = state, cause
}
