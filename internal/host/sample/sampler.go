package sample

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// DefaultTolerance is how far from its tick a reading may be and still be filed under it: at a
// reading each second a rate is then wrong by a twentieth at worst.
const DefaultTolerance = 25 * time.Millisecond

// DefaultMaxInterfaces is how many interfaces are followed at most if nothing else is said.
const DefaultMaxInterfaces = 256

// Options of a sampler. The zero value samples the running system.
type Options struct {
	Root      host.Root     // the running system; an archive is one moment and is refused
	Tolerance time.Duration // 0: DefaultTolerance; below 0: every reading has its own time
	// MaxInterfaces bounds how many interfaces are followed, with some 15 series each; 0:
	// DefaultMaxInterfaces. All cards are, and what is left out is told as a warning: a host of
	// containers may have thousands.
	MaxInterfaces int
}

// Sampler reads a host again and again. It belongs to one goroutine at a time. It stays in the
// network namespace of the thread that made it, whichever thread reads later.
type Sampler struct {
	tolerance     time.Duration
	maxInterfaces int
	closed        bool

	client *nl.Client

	buf      []byte
	readings [2]Reading // in turn, so that two in a row can be compared
	turn     int
	last     time.Duration // since boot, of the reading before
	took     time.Duration // of the reading before
	count    int           // readings so far

	links      links
	interrupts interrupts
	processors processors
	protocols  protocols
	self       [2]*Series
}

// New opens what is read. What a kernel lacks is left out; the error is for a host that cannot be
// sampled at all.
func New(o Options) (*Sampler, error) {
	if o.Root.Dir != "" || o.Root.FS != nil {
		return nil, fmt.Errorf("sample an archived host, which is one moment: %w", errors.ErrUnsupported)
	}
	if !hostfs.LiveSupported {
		return nil, fmt.Errorf("sample this host: %w", errors.ErrUnsupported)
	}
	s := &Sampler{tolerance: o.Tolerance, maxInterfaces: o.MaxInterfaces, buf: make([]byte, 64<<10)}
	if s.tolerance == 0 {
		s.tolerance = DefaultTolerance
	}
	if s.maxInterfaces <= 0 {
		s.maxInterfaces = DefaultMaxInterfaces
	}
	// All sockets and files are opened by one thread, and are then of its network namespace.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	client, err := nl.Dial()
	if err != nil {
		return nil, fmt.Errorf("sample this host: %w", err)
	}
	s.client = client
	s.processors.open()
	s.protocols.open()
	s.self = [2]*Series{{Metric: sampleSeconds}, {Metric: sampleSeries}}
	return s, nil
}

// Close gives back sockets and files.
func (s *Sampler) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.processors.close()
	s.protocols.close()
	return s.client.Close()
}

// Read takes a reading. tick is the moment it is for, a full second most often; the zero time
// stands for now. The reading and its points are the caller's until the next but one is taken.
// Parts that could not be read are missing in it and have a sentence in Warnings; the error is for
// a host of which nothing can be read, and for a closed sampler.
func (s *Sampler) Read(tick time.Time) (*Reading, error) {
	if s.closed {
		return nil, fmt.Errorf("sample this host: %w", os.ErrClosed)
	}
	r := &s.readings[s.turn]
	s.turn = 1 - s.turn
	now, up := time.Now(), sys.Boottime()
	*r = Reading{
		Time: align(tick, now, s.tolerance), SinceBoot: up,
		Points: r.Points[:0], Ended: r.Ended[:0], Happened: r.Happened[:0], Warnings: r.Warnings[:0],
	}
	elapsed := up - s.last
	if s.count == 0 {
		elapsed = 0
	}
	s.last = up
	s.count++

	s.readLinks(r, elapsed)
	s.processors.read(s, r)
	s.readInterrupts(r)
	s.protocols.read(s, r)
	if len(r.Points) == 0 {
		return nil, fmt.Errorf("sample this host: %s", strings.Join(r.Warnings, "; "))
	}
	r.put(s.self[0], s.took.Seconds())
	r.put(s.self[1], float64(len(r.Points)+1))
	s.took = sys.Boottime() - up
	return r, nil
}

// align gives the time that a reading is filed under.
func align(tick, now time.Time, tolerance time.Duration) time.Time {
	if d := now.Sub(tick); !tick.IsZero() && tolerance >= 0 && d <= tolerance && d >= -tolerance {
		return tick.Round(0)
	}
	// Without the monotonic part, which stands still while the host sleeps and would come into
	// differences of times.
	return now.Round(0)
}

func (r *Reading) put(s *Series, v float64) { r.Points = append(r.Points, Point{s, v}) }

// warn adds a sentence about a part that could not be read.
func (r *Reading) warn(what string, err error) {
	r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %v", what, err))
}

// owned is a list of series that come and go together.
type owned []*Series

// add makes a series of a metric.
func (o *owned) add(m *Metric, values ...string) *Series {
	s := &Series{Metric: m, Values: values}
	*o = append(*o, s)
	return s
}

// end tells that all of them are over.
func (o *owned) end(r *Reading) {
	r.Ended = append(r.Ended, *o...)
	*o = nil
}

// drop ends one of them; nil is none. It gives nil, for the place that held it.
func (o *owned) drop(r *Reading, s *Series) *Series {
	if s != nil {
		*o = slices.DeleteFunc(*o, func(other *Series) bool { return other == s })
		r.Ended = append(r.Ended, s)
	}
	return nil
}
