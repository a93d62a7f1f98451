package follow

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/report"
)

const (
	lookEvery  = time.Second
	readEvery  = time.Minute      // at least this often
	retryAfter = 10 * time.Second // after a failure of a source or a store
	maxQueue   = 1000
)

// Source reads the journal, the runs and the measurements of a host: agent.Local and agent.Client.
type Source interface {
	// State returns the state directory of the host.
	State(ctx context.Context) (string, error)
	// Stamp returns a text that changes whenever any of them changes.
	Stamp(ctx context.Context) (string, error)
	// History returns all changes, oldest first.
	History(ctx context.Context) ([]journal.Change, error)
	// Runs returns the ids of the stored documents of a kind, newest first.
	Runs(ctx context.Context, kind runs.Kind) ([]string, error)
	// Run returns a stored document.
	Run(ctx context.Context, kind runs.Kind, id string) ([]byte, error)
}

// Options of a follower.
type Options struct {
	Host    string // name of the host in events
	Store   *timeline.Store
	Source  Source     // nil: the follower ignores changes, runs and measurements
	Dir     string     // where to record when the follower last ran; created if missing
	FS      durable.FS // nil: the operating system
	Version string     // of the program, for documents

	// Boot returns the id of the current boot and the time since it began, suspended time included.
	// nil: those of the running system.
	Boot func() (id string, ago time.Duration, err error)
	Now  func() time.Time // nil: time.Now
}

// Follower follows one host. Begin, Follow and Look belong to one goroutine. Happened belongs to
// another, which may be that of the sampler: it does not wait for the disk. Findings, Err and Lost
// may be called from any.
type Follower struct {
	o    Options
	boot string

	looked  lookedAt
	links   map[string]*flapping
	last    moment // the previous reading
	opened  map[key]*held
	changes map[string]string // document of each event, as it was put
	runs    map[string]seenRun

	measured map[string]bool // stored measurements that need no second read

	mu    sync.Mutex
	queue []func() error
	lost  int
	err   error
}

// lookedAt is the state of the latest look.
type lookedAt struct {
	stamp string
	read  time.Time // last time everything was read
	retry time.Time // earliest time of a retry
	noted time.Time // when the presence was last written
}

// New makes a follower. It reads and writes nothing before Begin.
func New(o Options) (*Follower, error) {
	if o.Store == nil || o.Dir == "" {
		return nil, errors.New("follow a host: needs a store and a directory")
	}
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boot == nil {
		o.Boot = func() (string, time.Duration, error) {
			id, err := sys.BootID()
			return id, sys.Boottime(), err
		}
	}
	return &Follower{
		o: o, links: make(map[string]*flapping), opened: make(map[key]*held), changes: make(map[string]string),
		runs: make(map[string]seenRun),
	}, nil
}

// Follow looks each second until ctx ends, after Begin. It retries what fails; Err reports it.
func (f *Follower) Follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		f.Look(ctx)
		select {
		case <-ctx.Done():
			err := errors.Join(f.drain(), f.remember(f.o.Now()))
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

// Look puts the new events: those reported since the last look, and those in journal, runs and
// measurements.
func (f *Follower) Look(ctx context.Context) {
	now := f.o.Now()
	err := f.drain()
	err = errors.Join(err, f.quietLinks(now), f.overFindings(now))
	if now.Sub(f.looked.noted).Abs() >= readEvery {
		f.looked.noted = now
		err = errors.Join(err, f.remember(now))
	}
	sourceErr, looked := f.lookAtSource(ctx, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if looked || err != nil {
		f.err = errors.Join(err, sourceErr)
	}
}

// Err returns what failed at the latest look, or nil.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// lookAtSource reads journal, runs and measurements, if they changed.
func (f *Follower) lookAtSource(ctx context.Context, now time.Time) (err error, looked bool) {
	l := &f.looked
	if f.o.Source == nil || now.Before(l.retry) && l.retry.Sub(now) <= retryAfter {
		return nil, false
	}
	defer func() {
		if err != nil {
			l.retry, l.stamp = now.Add(retryAfter), ""
		}
	}()
	// Read the stamp before the data: the next look then reads what changes in between.
	stamp, err := f.o.Source.Stamp(ctx)
	if err != nil {
		return fmt.Errorf("follow the journal: %w", err), true
	}
	if age := now.Sub(l.read); stamp == l.stamp && age >= 0 && age < readEvery {
		return nil, true
	}
	if err := errors.Join(f.lookAtChanges(ctx, now), f.lookAtRuns(ctx, now), f.lookAtMeasurements(ctx)); err != nil {
		return fmt.Errorf("follow journal, runs and measurements: %w", err), true
	}
	l.stamp, l.read = stamp, now
	return nil, true
}

// later queues work for the goroutine that may wait for the disk. It drops the oldest beyond the
// bound.
func (f *Follower) later(do func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) >= maxQueue {
		f.queue = f.queue[1:]
		f.lost++
	}
	f.queue = append(f.queue, do)
}

// drain does the queued work. A store that refuses an event keeps it in memory, so drain repeats
// nothing.
func (f *Follower) drain() error {
	f.mu.Lock()
	queue := f.queue
	f.queue = nil
	f.mu.Unlock()
	var errs []error
	for _, do := range queue {
		if err := do(); err != nil {
			errs = append(errs[:min(len(errs), 3)], err)
		}
	}
	return errors.Join(errs...)
}

// Lost returns the number of link events that were dropped because they came faster than the
// follower wrote them.
func (f *Follower) Lost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// putNew puts an event unless the store has the same one.
func (f *Follower) putNew(e timeline.Event, document []byte) error {
	e.Host = f.o.Host
	e, err := e.Normal()
	if err != nil {
		return err
	}
	have, ok := f.o.Store.Get(e.ID)
	e.Document = have.Document
	if ok && have == e && (have.Document || document == nil) {
		return nil
	}
	return f.o.Store.Put(e, document)
}

// envelope is the beginning of a document about this host, made at a time.
func (f *Follower) envelope(at time.Time) report.Envelope {
	e := report.NewEnvelope(f.o.Version, f.o.Host)
	e.Time = at.UTC().Truncate(time.Millisecond)
	e.Host.BootID = f.boot
	return e
}

func encoded(doc any) ([]byte, error) {
	var b strings.Builder
	err := report.Encode(&b, doc)
	return []byte(b.String()), err
}

// idOf joins parts to an id. One that is too long has a checksum in place of its middle: its end is
// often a time.
func idOf(parts ...string) string {
	whole := strings.Join(parts, "-")
	id := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, whole)
	if len(id) > 128 {
		return fmt.Sprintf("%s-%08x-%s", id[:96], crc32.ChecksumIEEE([]byte(whole)), id[len(id)-22:])
	}
	return id
}

// ms truncates a time to what the store keeps.
func ms(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// span formats a length of time for people.
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	}
	return fmt.Sprintf("%d days", d.Round(24*time.Hour)/(24*time.Hour))
}

func (f *Follower) path() string { return filepath.Join(f.o.Dir, "seen.json") }
