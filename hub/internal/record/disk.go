package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"log/slog"
)

const (
	// reserveBytes is the size of a file that the store deletes to open or close the database on a
	// full disk: repairing a log rewrites a segment, and closing writes the head's chunks to a
	// file.
	reserveBytes = 16 << 20
	// keepAlways is the age up to which the store never deletes samples to make room for other
	// programs.
	keepAlways = 48 * time.Hour

	syncEvery  = 5 * time.Second
	lookEvery  = 10 * time.Second // sizes and rates
	pruneEvery = 5 * time.Minute
	retryEvery = 5 * time.Second // retries on a failing disk
	batch      = 30              // readings written from memory at a time
)

var errNoRoom = errors.New("no room on the disk")

// upkeep holds the times of maintenance.
type upkeep struct {
	synced, looked, pruned, retried, deleted time.Time
}

func (s *Store) run() {
	defer close(s.done)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			s.maintain(now)
		}
	}
}

// maintain does what the database would do at its own times: when there is room, it writes what
// waits, cuts blocks, merges and deletes them.
func (s *Store) maintain(now time.Time) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.resume(now)
	if h := s.head(); h.MaxTime()-h.MinTime() > blockRange.Milliseconds()*3/2 && h.NumSeries() > 0 {
		s.compact()
	}
	if now.Sub(s.upkeep.synced) >= syncEvery {
		s.upkeep.synced = now
		s.sync()
	}
	if now.Sub(s.upkeep.looked) >= lookEvery {
		s.upkeep.looked = now
		s.measure()
	}
	if now.Sub(s.upkeep.pruned) >= pruneEvery {
		s.upkeep.pruned = now
		s.prune()
	}
	if s.freeBytes() < s.o.MinFreeBytes && now.Sub(s.upkeep.deleted) >= time.Minute {
		s.upkeep.deleted = now
		s.reload()
	}
}

func (s *Store) head() *tsdb.Head {
	s.access.RLock()
	defer s.access.RUnlock()
	return s.db.Head()
}

// resume writes what waits once there is room.
func (s *Store) resume(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || (s.state == DiskOK && s.kept.len() == 0) {
		return
	}
	// A quarter more than the bound, so that the state does not change with every reading.
	if s.freeBytes() < s.o.MinFreeBytes+s.o.MinFreeBytes/4 {
		return
	}
	if s.torn {
		if now.Sub(s.upkeep.retried) < retryEvery {
			return
		}
		s.upkeep.retried = now
		// Readings stay in memory in the meantime.
		s.mu.Unlock()
		err := s.reopen()
		s.mu.Lock()
		if err != nil {
			s.enter(stateOf(err), err.Error())
			return
		}
		s.forgetIDs()
		s.torn = false
	}
	for n := 1; s.kept.len() > 0; n++ {
		if err := s.write(&s.kept.readings[0]); err != nil {
			s.failed(err)
			return
		}
		s.kept.drop(1)
		if n%batch == 0 { // lets new readings in, which queue up behind the others
			s.mu.Unlock()
			s.mu.Lock()
		}
	}
	s.o.Logger.Info("history is written again", "after", now.Sub(s.since))
	s.state, s.since, s.cause = DiskOK, time.Time{}, ""
}

// forgetIDs drops the ids of series after the database was reopened, which assigns new ones. The
// caller holds mu.
func (s *Store) forgetIDs() {
	for _, k := range s.refs {
		k.id = 0
	}
	for _, e := range s.kept.readings {
		for _, k := range e.series {
			k.id = 0
		}
	}
}

// reopen repairs the log behind a failed write, after running queries have ended. New queries get
// ErrLoading in the meantime.
func (s *Store) reopen() error {
	s.loading.Store(true) // until it is open again
	s.access.Lock()
	defer s.access.Unlock()
	if !s.roomToClose() {
		s.loading.Store(false)
		return errNoRoom
	}
	// Its errors are those of the broken log.
	_ = s.db.Close()
	if err := s.openDB(); err != nil {
		return err
	}
	s.loading.Store(false)
	return nil
}

// freeBytes returns what can be written, without the reserve. After an error it assumes room: the
// write will report the error.
func (s *Store) freeBytes() int64 {
	free, err := freeBytes(s.o.Dir)
	if err != nil {
		return math.MaxInt64
	}
	return free
}

func (s *Store) reserve() string { return filepath.Join(s.o.Dir, "reserve") }

// freeForOpening makes sure that the directory exists, and that the log in it can be repaired. The
// store takes the reserve again when there is room.
func (s *Store) freeForOpening() error {
	if err := os.MkdirAll(s.o.Dir, 0o750); err != nil {
		return err
	}
	free := s.freeBytes()
	if free < 2*reserveBytes {
		if err := os.Remove(s.reserve()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// roomToClose frees the reserve if necessary. Closing writes the head's chunks, and does not report
// a full disk.
func (s *Store) roomToClose() bool {
	if s.freeBytes() < reserveBytes {
		_ = os.Remove(s.reserve())
	}
	return s.freeBytes() >= reserveBytes/2
}

// takeReserve makes the reserve when there is room for it beyond what stays free.
func (s *Store) takeReserve() {
	if _, err := os.Stat(s.reserve()); err == nil || s.freeBytes() < s.o.MinFreeBytes+s.o.MinFreeBytes/4+reserveBytes {
		return
	}
	f, err := os.OpenFile(s.reserve(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	if errors.Join(allocate(f, reserveBytes), f.Close()) != nil {
		_ = os.Remove(s.reserve())
	}
}

// compact cuts blocks from the head, merges blocks and deletes old ones.
func (s *Store) compact() {
	s.access.RLock()
	defer s.access.RUnlock()
	s.mu.Lock()
	torn := s.torn
	s.mu.Unlock()
	if torn {
		return // the log has the head up to the tear: repair it before moving anything
	}
	err := s.db.Compact(context.Background())
	if err == nil {
		// Blocks of samples that came late, and expired blocks.
		err = s.db.CompactOOOHead(context.Background())
	}
	s.compacted(err)
}

func (s *Store) reload() {
	s.access.RLock()
	defer s.access.RUnlock()
	s.compacted(s.db.CompactOOOHead(context.Background()))
}

func (s *Store) compacted(err error) {
	if err != nil && !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
		s.o.Logger.Warn("history: cannot cut or merge blocks; retrying", "error", err)
		s.mu.Lock()
		s.own.errors++
		s.mu.Unlock()
	}
}

// sync makes the system write the log to the disk: a power failure costs at most syncEvery.
func (s *Store) sync() {
	s.access.RLock()
	defer s.access.RUnlock()
	for _, log := range []string{"wal", "wbl"} {
		dir := filepath.Join(s.db.Dir(), log)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		// The newest segment, and the one before, which may have ended a moment ago.
		var segments []string
		for _, e := range entries {
			if e.Type().IsRegular() && strings.Trim(e.Name(), "0123456789") == "" {
				segments = append(segments, filepath.Join(dir, e.Name()))
			}
		}
		for _, name := range segments[max(0, len(segments)-2):] {
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				continue
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				s.mu.Lock()
				s.failed(fmt.Errorf("sync %s: %w", name, err))
				s.mu.Unlock()
			}
		}
	}
}

// prune drops series that have not been seen for a while, and whose end was not reported.
func (s *Store) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for series, k := range s.refs {
		if s.newestMS-k.seenMS > pruneEvery.Milliseconds() {
			delete(s.refs, series)
		}
	}
}

// compactor merges and writes only what there is room for: half a block is useless.
type compactor struct {
	tsdb.Compactor
	s *Store
}

func (s *Store) newCompactor(ctx context.Context, r prometheus.Registerer, l *slog.Logger, ranges []int64,
	pool chunkenc.Pool, o *tsdb.Options) (tsdb.Compactor, error) {
	c, err := tsdb.NewLeveledCompactorWithOptions(ctx, r, l, ranges, pool, tsdb.LeveledCompactorOptions{
		MaxBlockChunkSegmentSize:    o.MaxBlockChunkSegmentSize,
		EnableOverlappingCompaction: true,
		FloatChunkEncoding:          func() chunkenc.Encoding { return chunkenc.EncXOR2 },
	})
	if err != nil {
		return nil, err
	}
	return &compactor{c, s}, nil
}

func (c *compactor) Plan(dir string) ([]string, error) {
	dirs, err := c.Compactor.Plan(dir)
	if err != nil {
		return nil, err
	}
	var need int64
	for _, d := range dirs {
		n, err := size(d)
		if err != nil {
			return nil, err
		}
		need += n
	}
	if c.s.freeBytes() < need+blockFile+c.s.o.MinFreeBytes {
		return nil, nil
	}
	return dirs, nil
}

func (c *compactor) Write(dest string, b tsdb.BlockReader, mint, maxt int64,
	base *tsdb.BlockMeta) ([]ulid.ULID, error) {
	// A block takes less than half of the log that it replaces, and both exist while it is written.
	log, err := size(filepath.Join(dest, "wal"))
	if err != nil {
		return nil, err
	}
	if c.s.freeBytes() < log/2+blockFile+c.s.o.MinFreeBytes/8 {
		return nil, errNoRoom
	}
	return c.Compactor.Write(dest, b, mint, maxt, base)
}

// size returns the size of the files under a directory.
func size(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted in the meantime
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n, err
}

// blocksToDelete chooses the blocks that are too old or too large in sum.
func (s *Store) blocksToDelete(blocks []*tsdb.Block) map[ulid.ULID]struct{} {
	about := make([]block, len(blocks))
	for i, b := range blocks {
		m := b.Meta()
		about[i] = block{m.ULID, m.MinTime, m.MaxTime, b.Size(), m.Compaction.Deletable}
	}
	log, err := size(filepath.Join(s.o.Dir, "series", "wal"))
	if err != nil {
		log = 0
	}
	return toDelete(about, s.o, log, s.freeBytes(), time.Now().UnixMilli())
}

type block struct {
	id             ulid.ULID
	from, to, size int64 // milliseconds, bytes
	replaced       bool
}

// toDelete is blocksToDelete as pure arithmetic.
func toDelete(blocks []block, o Options, log, free, now int64) map[ulid.ULID]struct{} {
	out := make(map[ulid.ULID]struct{})
	slices.SortFunc(blocks, func(a, b block) int { return int(b.to/1000 - a.to/1000) }) // newest first
	newest := trusted(blocks, now, o.Retention.Milliseconds())
	total := log
	for _, b := range blocks {
		total += b.size
		switch {
		case b.replaced, b.to <= newest-o.Retention.Milliseconds(), o.MaxBytes > 0 && total > o.MaxBytes:
			out[b.id] = struct{}{}
		}
	}
	if free >= o.MinFreeBytes {
		return out
	}
	// The disk is full. Delete the oldest blocks if that makes enough room, but not the last days:
	// another program would fill that room too.
	var early []ulid.ULID
	want := o.MinFreeBytes + o.MinFreeBytes/2 - free
	for _, b := range slices.Backward(blocks) {
		if _, gone := out[b.id]; gone {
			want -= b.size
			continue
		}
		if want <= 0 || b.to > newest-keepAlways.Milliseconds() {
			break
		}
		early = append(early, b.id)
		want -= b.size
	}
	if want <= 0 {
		for _, id := range early {
			out[id] = struct{}{}
		}
	}
	return out
}

// trusted returns the time from which age counts, in milliseconds: that of the newest block, unless
// a clock was wrong. A host whose clock was in 2036 for a while must not lose its history: a block
// counts as new only if the days before it have two hours of other blocks, and never more than the
// clock says.
func trusted(newestFirst []block, now, retention int64) int64 {
	const enough = 2 * int64(time.Hour/time.Millisecond)
	for i, b := range newestFirst {
		if b.from > now {
			continue
		}
		var covered int64
		for _, older := range newestFirst[i:] {
			covered += max(0, older.to-max(older.from, b.to-max(retention/2, 12*enough)))
		}
		if covered >= enough {
			return min(b.to, now)
		}
	}
	return math.MinInt64 / 2
}
