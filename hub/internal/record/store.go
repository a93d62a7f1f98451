package record

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/linerate/linerate/internal/host/sample"
)

// Options of a store. The zero value of each field but Dir has the meaning given beside it.
type Options struct {
	Dir       string
	Host      string        // label host of all samples
	Retention time.Duration // 0: 15 days
	MaxBytes  int64         // of blocks and log together; 0: unbounded
	// MinFreeBytes stays free on the file system: with less, the store writes nothing and keeps
	// readings in memory. 0: 128 MiB; negative: all space may be used.
	MinFreeBytes int64
	// KeptBytes is the memory for readings that wait for room on the disk; beyond it the store
	// drops the oldest. 0: 24 MiB, which is 26 minutes of 2 000 series.
	KeptBytes int64
	Queries   Bounds
	Logger    *slog.Logger // nil: silent
}

// Bounds of a query. 0 is the default given beside a field.
type Bounds struct {
	Samples int           // of one query in memory at a time: 5 million, which take 80 MB
	Points  int           // of one series in an answer: 11 000, as in Prometheus
	Time    time.Duration // 10 s
	// at a time; others wait for as long as one may take; default the number of CPUs, at least 2
	Concurrent int
}

const (
	// blockRange is the time span of the smallest block. Up to one and a half of it is in memory,
	// and a start reads that from the log: with two hours, as in Prometheus, a start would take
	// seconds.
	blockRange = 20 * time.Minute
	// maxBlockRange is 27 hours: retention deletes whole blocks, and merging them needs their size
	// again.
	maxBlockRange = 81 * blockRange
	// chunkSamples at one a second is two minutes. More is worse: an encoder whose window has
	// widened keeps it until the next chunk.
	chunkSamples = 120
	logSegment   = 4 << 20
	// blockFile is the largest size of block files, which the database preallocates.
	blockFile = 8 << 20
	// clockMayErr is how far back in time samples may come: hosts without a clock battery start at
	// any time.
	clockMayErr = 100 * 365 * 24 * time.Hour
)

// Store keeps series. All methods may be called concurrently.
type Store struct {
	o      Options
	engine *promql.Engine
	parser parser.Parser
	asking chan struct{} // one place for each concurrent query
	// reserved is a place for the hub's own queries: slow queries of users keep no alert from firing.
	reserved chan struct{}

	// access is held for reading by users of db, and for writing while it is closed and reopened.
	access  sync.RWMutex
	db      *tsdb.DB
	loading atomic.Bool // it is being reopened

	mu       sync.Mutex // guards all that follows
	closed   bool
	refs     map[*sample.Series]*known
	scratch  reading
	kept     kept
	state    DiskState
	since    time.Time
	cause    string
	torn     bool // a write to the log failed: nothing may follow it before reopening repairs the log
	newestMS int64
	own      own

	keeping sync.Mutex // held during maintenance
	upkeep  upkeep
	stop    chan struct{}
	done    chan struct{}
}

// Open opens the directory, or makes it, reads its log and repairs what a crash has left. The log
// holds at most half an hour.
func Open(o Options) (*Store, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Retention = cmp.Or(o.Retention, 15*24*time.Hour)
	o.MinFreeBytes = cmp.Or(o.MinFreeBytes, 128<<20)
	o.KeptBytes = cmp.Or(o.KeptBytes, 24<<20)
	o.Queries.Samples = cmp.Or(o.Queries.Samples, 5_000_000)
	o.Queries.Points = cmp.Or(o.Queries.Points, 11_000)
	o.Queries.Time = cmp.Or(o.Queries.Time, 10*time.Second)
	o.Queries.Concurrent = cmp.Or(o.Queries.Concurrent, max(2, runtime.GOMAXPROCS(0)))
	s := &Store{
		o:      o,
		parser: parser.NewParser(parser.Options{}),
		asking: make(chan struct{}, o.Queries.Concurrent), reserved: make(chan struct{}, 1),
		refs:  make(map[*sample.Series]*known),
		state: DiskOK,
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	s.kept.limit = o.KeptBytes
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger:                   o.Logger,
		MaxSamples:               o.Queries.Samples,
		Timeout:                  o.Queries.Time,
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		Parser:                   s.parser,
	})
	if err := s.openDB(); err != nil {
		return nil, err
	}
	s.newestMS = s.newest()
	s.own.init()
	s.measure()
	go s.run()
	return s, nil
}

// openDB opens the database, after making room for what opening writes.
func (s *Store) openDB() error {
	if err := s.freeForOpening(); err != nil {
		return fmt.Errorf("open history %s: %w", s.o.Dir, err)
	}
	o := tsdb.DefaultOptions()
	o.MinBlockDuration, o.MaxBlockDuration = blockRange.Milliseconds(), maxBlockRange.Milliseconds()
	o.RetentionDuration = s.o.Retention.Milliseconds()
	o.SamplesPerChunk = chunkSamples
	o.FloatChunkEncoding = chunkenc.EncXOR2
	o.MaxBlockChunkSegmentSize = blockFile
	o.WALSegmentSize, o.WALCompression = logSegment, compression.Zstd
	o.OutOfOrderTimeWindow = clockMayErr.Milliseconds()
	o.StripeSize = 512
	// The database must not choose when it writes: see maintain.
	o.BlockReloadInterval = clockMayErr
	o.BlocksToDelete = s.blocksToDelete
	o.NewCompactorFunc = s.newCompactor
	db, err := tsdb.Open(filepath.Join(s.o.Dir, "series"), s.o.Logger, nil, o, nil)
	if err != nil {
		return fmt.Errorf("open history %s: %w", s.o.Dir, err)
	}
	db.DisableCompactions()
	s.db = db
	return nil
}

// Close closes the store. It loses readings that wait in memory for room.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	<-s.done
	s.access.Lock()
	defer s.access.Unlock()
	if !s.roomToClose() {
		return errors.New("close history: no room on the disk to close it in order; nothing that it holds is lost")
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close history: %w", err)
	}
	return nil
}

// newest returns the time of the newest sample in the database, in milliseconds; 0: no samples.
func (s *Store) newest() int64 {
	var newest int64
	for _, b := range s.db.Blocks() {
		newest = max(newest, b.Meta().MaxTime-1)
	}
	if h := s.db.Head(); h.NumSeries() > 0 {
		newest = max(newest, h.MaxTime())
	}
	return newest
}
