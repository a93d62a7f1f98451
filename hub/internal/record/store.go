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

// Options of a store. The zero value of each but Dir has the meaning that stands beside it.
type Options struct {
	Dir       string
	Host      string        // the label host of all that is appended
	Retention time.Duration // 0: 15 days
	MaxBytes  int64         // of blocks and log together; 0: no bound
	// MinFreeBytes is how much of the file system stays free: with less, nothing is written and
	// readings are kept in memory. 0: 128 MiB; negative: whatever there is may be used.
	MinFreeBytes int64
	// KeptBytes is how much memory readings may take that wait for room on the disk; the oldest are
	// dropped beyond it. 0: 24 MiB, which is 26 minutes of 2 000 series.
	KeptBytes int64
	Queries   Bounds
	Logger    *slog.Logger // nil: silent
}

// Bounds of a query. 0 is the default that stands beside a field.
type Bounds struct {
	Samples int           // in memory at a time, of one query: 5 million, which take 80 MB
	Points  int           // of one series in an answer: 11 000, as Prometheus has it
	Time    time.Duration // 10 s
	// at a time, others wait for as long as one may take: as many as there are processors, 2 or
	// more
	Concurrent int
}

const (
	// blockRange is how much time the smallest block holds. Up to one and a half of it is in memory
	// and has to be read from the log at a start: with two hours, as Prometheus has it, a start
	// would take seconds.
	blockRange = 20 * time.Minute
	// maxBlockRange is 27 hours: retention works by blocks, and merging them needs as much room
	// again.
	maxBlockRange = 81 * blockRange
	// chunkSamples at one a second is two minutes. More is worse: an encoder whose window has
	// become wide keeps it until the next chunk.
	chunkSamples = 120
	logSegment   = 4 << 20
	// blockFile is how big files of blocks are at most, and how much is taken from the disk at once
	// for each.
	blockFile = 8 << 20
	// clockMayErr is how far back in time samples may come: clocks of hosts without a battery begin
	// anywhere.
	clockMayErr = 100 * 365 * 24 * time.Hour
)

// Store keeps series. All methods may be called at a time.
type Store struct {
	o      Options
	engine *promql.Engine
	parser parser.Parser
	asking chan struct{} // as many places as queries may run at a time

	// access is held for reading by whoever uses db, and for writing while it is closed and opened
	// again.
	access  sync.RWMutex
	db      *tsdb.DB
	loading atomic.Bool // it is being opened again

	mu       sync.Mutex // of all that follows
	closed   bool
	refs     map[*sample.Series]*known
	scratch  reading
	kept     kept
	state    DiskState
	since    time.Time
	cause    string
	torn     bool // a write to the log failed: nothing may follow it before the log is repaired, which opening it does
	newestMS int64
	own      own

	keeping sync.Mutex // held by whoever maintains
	upkeep  upkeep
	stop    chan struct{}
	done    chan struct{}
}

// Open opens the directory, or makes it, reads its log and repairs what a crash has left. The log
// holds half an hour at most.
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
		asking: make(chan struct{}, o.Queries.Concurrent),
		refs:   make(map[*sample.Series]*known),
		state:  DiskOK,
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
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

// openDB opens the database with what it takes from the disk freed first.
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
	// The database must not choose the moments at which it writes: see maintain.
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

// Close ends it. What waits in memory for room on the disk is lost.
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

// newest is the time of the newest sample in the database, in milliseconds; 0: there is none.
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
