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

// DefaultTolerance is how far from its tick a reading may be and still be filed under it: with a
// reading each second a rate is then off by at most a twentieth.
const DefaultTolerance = 25 * time.Millisecond

// DefaultMaxInterfaces is the default limit for the number of sampled interfaces.
const DefaultMaxInterfaces = 256

// Options of a sampler. The zero value samples the running system.
type Options struct {
	Root      host.Root     // the running system; an archive is one moment and is refused
	Tolerance time.Duration // 0: DefaultTolerance; below 0: every reading has its own time
	// MaxInterfaces limits the number of sampled interfaces, with some 15 series each; 0:
	// DefaultMaxInterfaces. All NICs are sampled. A warning gives the number left out: a host of
	// containers may have thousands.
	MaxInterfaces int
}

// Sampler reads a host repeatedly. One goroutine at a time may use it. It stays in the network
// namespace of the thread that made it, for reads from any thread.
type Sampler struct {
	tolerance     time.Duration
	maxInterfaces int
	closed        bool

	client *nl.Client

	buf      []byte
	readings [2]Reading // used alternately, so that two in a row can be compared
	turn     int
	last     time.Duration // since boot, of the previous reading
	took     time.Duration // of the previous reading
	count    int           // readings so far

	links      links
	interrupts interrupts
	processors processors
	protocols  protocols
	self       [2]*Series
}

// New opens the sources. It skips those that a kernel lacks; it fails for a host that cannot be
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
	// One thread opens all sockets and files, which then belong to its network namespace.
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

// Close releases sockets and files.
func (s *Sampler) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.processors.close()
	s.protocols.close()
	return s.client.Close()
}

// Read takes a reading. tick is the moment that it is for, usually a full second; zero means now.
// The caller may use the reading and its points until the next but one is taken. Unreadable parts
// are missing and have a sentence in Warnings. Read fails for a host without any readable part, and
// for a closed sampler.
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

// align returns the time under which a reading is filed.
func align(tick, now time.Time, tolerance time.Duration) time.Time {
	if d := now.Sub(tick); !tick.IsZero() && tolerance >= 0 && d <= tolerance && d >= -tolerance {
		return tick.Round(0)
	}
	// Without the monotonic part, which stands still while the host sleeps and would distort
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

// end ends all of them.
func (o *owned) end(r *Reading) {
	r.Ended = append(r.Ended, *o...)
	*o = nil
}

// drop ends one of them, unless it is nil. It returns nil, for the place that held it.
func (o *owned) drop(r *Reading, s *Series) *Series {
	if s != nil {
		*o = slices.DeleteFunc(*o, func(other *Series) bool { return other == s })
		r.Ended = append(r.Ended, s)
	}
	return nil
}
