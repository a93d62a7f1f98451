package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Test is one of the four basic tests.
type Test string

// The tests.
const (
	SequentialRead  Test = "sequential-read"
	SequentialWrite Test = "sequential-write"
	RandomRead      Test = "random-read"
	RandomWrite     Test = "random-write"
)

// Tests returns all tests, in the order of a suite.
func Tests() []Test { return []Test{SequentialRead, RandomRead, SequentialWrite, RandomWrite} }

// Writes reports whether the test writes.
func (t Test) Writes() bool { return t == SequentialWrite || t == RandomWrite }

// Random reports whether the test chooses offsets at random.
func (t Test) Random() bool { return t == RandomRead || t == RandomWrite }

// Engine is how operations reach the kernel.
type Engine string

// The engines. Psync is one thread for each operation in flight, in pread(2) and pwritev2(2).
const (
	Psync   Engine = "psync"
	IOUring Engine = "io_uring"
)

// Sync is how a write becomes durable.
type Sync string

// The kinds. Fdatasync flushes after each write, Dsync makes each write durable (RWF_DSYNC).
const (
	NoSync    Sync = "none"
	Fdatasync Sync = "fdatasync"
	Dsync     Sync = "dsync"
)

// Way is a way past the page cache.
type Way string

// The ways, in the order of the ladder.
const (
	Auto     Way = "auto" // the first of direct, dropped and group that works
	Direct   Way = "direct"
	Dropped  Way = "dropped"
	Grouped  Way = "group"  // this process has a memory control group with little room for pages
	Pinned   Way = "pinned" // this process locks memory until little is left for pages
	Larger   Way = "larger" // the file is at least twice as large as the memory
	Buffered Way = "buffered"
)

// Ways returns all ways.
func Ways() []Way { return []Way{Auto, Direct, Dropped, Grouped, Pinned, Larger, Buffered} }

// listed joins names for a sentence.
func listed[T ~string](all []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

// past reports whether buffered operations of this way are to go past the page cache.
func (w Way) past() bool { return w == Dropped || w == Grouped || w == Pinned || w == Larger }

// Bounds of a Spec.
const (
	MaxBlockBytes = 16 << 20
	MaxDepth      = 1024
	MaxDuration   = time.Hour

	sequentialBlock = 128 << 10
	randomBlock     = 4 << 10
)

// Spec describes one test. Zero values are defaults, which [Spec.Normalize] fills in.
type Spec struct {
	Test       Test
	Engine     Engine // empty: io_uring for more than one operation in flight, where it works
	Way        Way
	Sync       Sync
	BlockBytes int // of one operation; default 128 KiB sequential, 4 KiB random
	Depth      int // operations in flight; default 1
	Duration   time.Duration
	Interval   time.Duration // of the interim results
	// Rate is operations per second of the whole test; 0: as fast as possible.
	Rate float64
}

// ErrBadSpec reports a test that cannot be.
var ErrBadSpec = errors.New("not a test")

// Normalize returns the spec with its defaults, or an [ErrBadSpec] that says what is wrong.
func (s Spec) Normalize() (Spec, error) {
	bad := func(format string, args ...any) (Spec, error) {
		return s, fmt.Errorf("%w: %s", ErrBadSpec, fmt.Sprintf(format, args...))
	}
	switch s.Test {
	case SequentialRead, SequentialWrite, RandomRead, RandomWrite:
	default:
		return bad("no test %q; choose from %s", s.Test, listed(Tests()))
	}
	if s.BlockBytes == 0 {
		s.BlockBytes = sequentialBlock
		if s.Test.Random() {
			s.BlockBytes = randomBlock
		}
	}
	if s.Depth == 0 {
		s.Depth = 1
	}
	if s.Duration == 0 {
		s.Duration = 5 * time.Second
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	if s.Way == "" {
		s.Way = Auto
	}
	if s.Sync == "" {
		s.Sync = NoSync
	}
	switch {
	case s.BlockBytes < 512 || s.BlockBytes > MaxBlockBytes || s.BlockBytes%512 != 0:
		return bad("a block of %d bytes is not a multiple of 512 up to %d", s.BlockBytes, MaxBlockBytes)
	case s.Depth < 1 || s.Depth > MaxDepth:
		return bad("%d operations in flight are not within 1 and %d", s.Depth, MaxDepth)
	case s.Duration < 10*time.Millisecond || s.Duration > MaxDuration:
		return bad("a duration of %v is not within 10ms and %v", s.Duration, MaxDuration)
	case s.Interval < 10*time.Millisecond:
		return bad("an interval of %v is shorter than 10ms", s.Interval)
	case s.Rate < 0 || s.Rate > 1e8:
		return bad("a rate of %g operations per second is not within 0 and 1e8", s.Rate)
	case s.Sync != NoSync && !s.Test.Writes():
		return bad("%s has nothing to make durable; --sync is for writes", s.Test)
	case s.Engine != "" && s.Engine != Psync && s.Engine != IOUring:
		return bad("no engine %q; choose from %s, %s", s.Engine, Psync, IOUring)
	case s.Sync != NoSync && s.Sync != Fdatasync && s.Sync != Dsync:
		return bad("no sync %q; choose from %s, %s, %s", s.Sync, NoSync, Fdatasync, Dsync)
	case !slices.Contains(Ways(), s.Way):
		return bad("no way %q; choose from %s", s.Way, listed(Ways()))
	}
	return s, nil
}

// Target says what to measure and what may be done to it.
type Target struct {
	Path string
	// SizeBytes is the size of the session's own file; 0: 1 GiB, or less where the file system has
	// less space above its floor. Of an existing file or device it is the part that is used, from its
	// start; 0: all.
	SizeBytes int64
	// Overwrite permits writes to an existing file or device, which lose its content.
	Overwrite bool
}

// FloorBytes returns the free space that a session leaves on a file system: a twentieth of it, but
// never more than 4 GiB and never less than 16 MiB.
func FloorBytes(total int64) int64 { return max(16<<20, min(total/20, 4<<30)) }

// defaultSize is the size of the session's own file.
const defaultSize = 1 << 30

// leastSize is the smallest file that a test runs on. Below it a drive's own cache answers.
const leastSize = 1 << 20

// ErrSilent reports storage that does not answer: a frozen file system, a suspended or lost device.
// The kernel may hold the process until the storage answers.
var ErrSilent = errors.New("the file system is frozen, or its device does not answer: nothing has ended")

// ErrReplaced reports a path that names another file than a moment before.
var ErrReplaced = errors.New("another file has this name now")

// ErrOverwrite reports a write test on an existing file or device without permission to overwrite.
var ErrOverwrite = errors.New("its content would be lost")
