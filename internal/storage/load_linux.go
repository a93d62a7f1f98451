package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/kernel/uring"
)

// load is one running test: the workers share a schedule and a stop flag, and nothing else.
type load struct {
	spec Spec
	fd   int
	size int64 // used part of the file, a multiple of the block
	drop bool  // drop pages behind each read

	base     time.Time     // the clock of the test
	monotone time.Duration // the same moment on CLOCK_MONOTONIC, for sleeps
	begun    atomic.Bool
	stop     atomic.Bool

	next    atomic.Int64 // number of the next operation
	workers []*worker
}

// batchOps is the number of operations that a thread makes before it counts them.
const batchOps = 256

// worker is one thread. Only the thread itself writes to it; the counters are read meanwhile.
type worker struct {
	ops, nanoseconds atomic.Uint64
	_                [48]byte // the next worker's counters are on another cache line
	count, sum       uint64
	latency          *stats.Histogram
	random           *rand.Rand
	cpu              time.Duration // of the thread, in its loop
	err              error

	offsets [batchOps]int64
	took    [batchOps]time.Duration
	done    int // operations of the batch
}

// dropBytes is how far behind a sequential reader pages are dropped: more than any read-ahead
// window, so that dropping does not discard what is about to be read.
const dropBytes = 8 << 20

// now is the time of the test's clock.
func (l *load) now() time.Duration { return time.Since(l.base) }

// offset returns where the operation of that number goes.
func (l *load) offset(w *worker, number int64) int64 {
	blocks := l.size / int64(l.spec.BlockBytes)
	if l.spec.Test.Random() {
		return int64(w.random.Uint64N(uint64(blocks))) * int64(l.spec.BlockBytes)
	}
	return number % blocks * int64(l.spec.BlockBytes)
}

// due returns when the operation of that number is due with a rate.
func (l *load) due(number int64) time.Duration {
	return time.Duration(float64(number) / l.spec.Rate * 1e9)
}

// gap is the longest time between two operations that are due.
func (l *load) gap() time.Duration {
	if l.spec.Rate == 0 {
		return 0
	}
	return min(l.due(1), l.spec.Duration)
}

// sleepUntil sleeps until a time of the test's clock, and lends the logical processor meanwhile.
func (l *load) sleepUntil(t time.Duration) {
	sys.ReleaseProcessor()
	defer sys.HoldProcessor()
	ts := unix.NsecToTimespec(int64(l.monotone + t))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
}

// record counts one operation.
func (w *worker) record(latency time.Duration) {
	w.latency.Record(int64(latency))
	w.count++
	w.sum += uint64(latency)
	w.ops.Store(w.count)
	w.nanoseconds.Store(w.sum)
}

// behind drops pages after a read at an offset. To drop the pages of many random reads at once
// costs more: pages that other threads are about to copy make the kernel wait for all processors.
func (l *load) behind(offset int64) {
	if !l.drop {
		return
	}
	sys.ReleaseProcessor()
	defer sys.HoldProcessor()
	// An error leaves pages in memory, which the verdict sees.
	switch block := int64(l.spec.BlockBytes); {
	case l.spec.Test.Random():
		_ = sys.DropPages(l.fd, offset, block)
	case offset%dropBytes < block && offset >= 2*dropBytes:
		_ = sys.DropPages(l.fd, offset-2*dropBytes, dropBytes)
	case offset < block && l.next.Load() > int64(l.spec.Depth): // the end of the pass before
		_ = sys.DropPages(l.fd, max(2*dropBytes, l.size-2*dropBytes), 0)
	}
}

// newLoad makes a test on the first bytes of a file.
func newLoad(spec Spec, fd int, size int64) *load {
	l := &load{spec: spec, fd: fd, size: size, base: time.Now(), drop: spec.Way == Dropped && !spec.Test.Writes()}
	threads := 1
	if spec.Engine == Psync {
		threads = spec.Depth
	}
	for range threads {
		l.workers = append(l.workers, &worker{latency: stats.NewHistogram(),
			random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
	}
	return l
}

// run runs the test until its end, the end of the context, or the first error.
func (l *load) run(ctx context.Context) error {
	buffers, release, err := alignedBuffers(l.spec.Depth, l.spec.BlockBytes)
	if err != nil {
		return err
	}
	defer release()
	// A thread that sleeps in an operation keeps its logical processor (sys.HeldRead). With one for
	// each thread none waits for another, and the sampler has its own. A garbage collection would wait
	// for the slowest operation; the loops allocate nothing.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), len(l.workers)+1)))
	halt := context.AfterFunc(ctx, func() { l.stop.Store(true) })
	defer halt()
	var all, ready sync.WaitGroup
	ready.Add(len(l.workers))
	for i, w := range l.workers {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its timer slack
			// The kernel delays a sleep by up to 50 µs otherwise (prctl(2) PR_SET_TIMERSLACK).
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
			w.err = sys.HoldThread()
			ready.Done()
			// Each thread waits with its logical processor: to be given one takes a busy host milliseconds.
			for !l.begun.Load() {
				sys.SleepUntilKept(sys.Monotonic() + 50*time.Microsecond)
			}
			thread := sys.ThreadID()
			before, _ := sys.ThreadTime(thread) // of this thread, so it is there
			switch {
			case w.err != nil:
			case l.spec.Engine == IOUring:
				w.err = l.queueing(w, buffers)
			case l.bursts():
				w.err = l.bursting(w, buffers[i])
			default:
				sys.HoldProcessor()
				f := l.calling(w, buffers[i])
				sys.ReleaseProcessor()
				w.err = l.failed(f)
			}
			after, _ := sys.ThreadTime(thread)
			w.cpu = after - before
			if w.err != nil {
				l.stop.Store(true)
			}
		})
	}
	// The time begins when all threads are there: to start 64 of them takes a busy host a tenth of a
	// second.
	ready.Wait()
	l.base, l.monotone = time.Now(), sys.Monotonic()
	l.begun.Store(true)
	all.Wait()
	for _, w := range l.workers {
		if w.err != nil {
			return w.err // one reason is enough: the others fail alike
		}
	}
	return nil
}

// turn is the longest time in which a thread does not make way for the runtime, which stops the
// world for nothing while a test runs.
const turn = 10 * time.Second

// failure is an operation that failed, or moved fewer bytes than it should.
type failure struct {
	buffer []byte
	offset int64
	n      int
	err    error
}

// calling is a thread with one operation in flight. It returns the operation that failed; nil:
// none.
func (l *load) calling(w *worker, buffer []byte) *failure {
	if l.spec.Rate > 0 {
		return l.paced(w, buffer)
	}
	step := turn
	if l.spec.Interval > 0 {
		step = min(step, l.spec.Interval/2)
	}
	used := len(w.offsets) // of the offsets
	for way := l.now() + turn; !l.stop.Load(); {
		now := l.now()
		if now >= l.spec.Duration {
			break
		}
		if now >= way {
			sys.MakeWay()
			way = l.now() + turn
		}
		if l.spec.Test.Random() {
			for i := range used {
				w.offsets[i] = l.offset(w, 0)
			}
		}
		f := l.batch(w, buffer, min(now+step, l.spec.Duration))
		for _, took := range w.took[:w.done] {
			w.record(took)
		}
		used = w.done
		if f != nil {
			return f
		}
	}
	return nil
}

// largeBlock is a block whose stamps take time.
const largeBlock = 64 << 10

// batch is a number of operations in a row, until a time of the test's clock. The loop touches
// little memory, because 64 threads share the cache of a processor, and calls nothing that looks at
// the runtime's request to make way.
func (l *load) batch(w *worker, buffer []byte, until time.Duration) *failure {
	writes, random := l.spec.Test.Writes(), l.spec.Test.Random()
	until += l.monotone
	began := sys.HeldClock()
	for w.done = 0; w.done < batchOps && began < until && !l.stop.Load(); w.done++ {
		offset, number := w.offsets[w.done], int64(0)
		if writes || !random {
			number = l.next.Add(1) - 1
		}
		if !random {
			offset = l.offset(w, number)
		}
		if writes {
			stamp(buffer, number)
			if len(buffer) > largeBlock {
				began = sys.HeldClock()
			}
		}
		n, err := l.call(buffer, offset)
		if err != nil || n != len(buffer) {
			return &failure{buffer, offset, n, err}
		}
		now := sys.HeldClock()
		w.took[w.done] = now - began
		began = now
		if l.drop {
			l.behind(offset)
			began = sys.HeldClock()
		}
	}
	return nil
}

// paced is calling with a rate.
func (l *load) paced(w *worker, buffer []byte) *failure {
	for way := l.now() + turn; !l.stop.Load(); {
		number := l.next.Add(1) - 1
		due, now := l.due(number), l.now()
		if now >= l.spec.Duration || due >= l.spec.Duration {
			break
		}
		if now >= way {
			sys.MakeWay()
			way = l.now() + turn
		}
		if due > now {
			l.sleepUntil(due)
		}
		offset := l.offset(w, number)
		if l.spec.Test.Writes() {
			stamp(buffer, number)
		}
		n, err := l.call(buffer, offset)
		if err != nil || n != len(buffer) {
			return &failure{buffer, offset, n, err}
		}
		w.record(l.now() - due)
		l.behind(offset)
	}
	return nil
}

// call is one system call, or two with an fdatasync.
//
//go:nosplit
func (l *load) call(buffer []byte, offset int64) (n int, err error) {
	for {
		switch {
		case !l.spec.Test.Writes():
			n, err = sys.HeldRead(l.fd, buffer, offset)
		case l.spec.Sync == Dsync:
			n, err = sys.HeldWrite(l.fd, buffer, offset, unix.RWF_DSYNC)
		default:
			n, err = sys.HeldWrite(l.fd, buffer, offset, 0)
			if err == nil && l.spec.Sync == Fdatasync {
				err = sys.HeldSync(l.fd)
			}
		}
		if err != unix.EINTR {
			return n, err
		}
	}
}

// failed says which operation failed. A short one ended where the next byte fails: that has the
// cause.
func (l *load) failed(f *failure) error {
	if f == nil {
		return nil
	}
	err := f.err
	if err == nil {
		step := unix.Pread
		if l.spec.Test.Writes() {
			step = unix.Pwrite
		}
		if _, err = step(l.fd, f.buffer[f.n:], f.offset+int64(f.n)); err == unix.EINVAL {
			err = nil // direct I/O from a place between two blocks says nothing
		}
	}
	if err == nil && vanished(l.fd) {
		err = unix.ENODEV
	}
	return operationError(l.spec.Test, f.offset, f.n, len(f.buffer), err)
}

// vanished reports a device that was unplugged: its capacity becomes zero (blk_mark_disk_dead in
// block/genhd.c), and reads find its end there.
func vanished(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return false
	}
	end, err := unix.Seek(fd, 0, unix.SEEK_END)
	return err != nil || end == 0
}

// operationError says which operation failed.
func operationError(t Test, offset int64, n, want int, err error) error {
	verb := "read"
	if t.Writes() {
		verb = "write"
	}
	if err == nil && !t.Writes() {
		return fmt.Errorf("read at byte %d: %w after %d of %d bytes: the file became shorter", offset,
			io.ErrUnexpectedEOF, n, want)
	}
	if err == nil {
		return fmt.Errorf("write at byte %d: %w: %d of %d bytes", offset, io.ErrShortWrite, n, want)
	}
	return fmt.Errorf("%s at byte %d: %w", verb, offset, err)
}

// queueing is one thread with all operations in flight, through io_uring.
func (l *load) queueing(w *worker, buffers [][]byte) error {
	ring, err := uring.Open(len(buffers), l.fd, buffers)
	if err != nil {
		return err
	}
	defer ring.Close()
	q := &queue{load: l, w: w, ring: ring, buffers: buffers, began: make([]time.Duration, len(buffers)),
		at: make([]int64, len(buffers)), free: make([]int, 0, len(buffers))}
	for i := range buffers {
		q.free = append(q.free, i)
	}
	op := uring.Read
	switch {
	case l.spec.Test.Writes() && l.spec.Sync == Fdatasync:
		op = uring.WriteThenSync
	case l.spec.Test.Writes():
		op = uring.Write
	}
	if l.spec.Sync == Dsync {
		q.flags = unix.RWF_DSYNC
	}
	sys.HoldProcessor()
	err = q.run(op)
	sys.ReleaseProcessor()
	return errors.Join(err, l.failed(q.failure))
}

// queue is the state of one thread with an io_uring.
type queue struct {
	*load
	w       *worker
	ring    *uring.Ring
	buffers [][]byte
	flags   uint32
	began   []time.Duration // of each buffer's operation
	at      []int64
	free    []int
	failure *failure // the first one
}

// run returns an error of the ring; that of an operation is the failure.
func (q *queue) run(op uring.Operation) error {
	ended, way := false, q.now()+turn
	for {
		wait, now := time.Duration(0), q.now()
		if now >= way {
			sys.MakeWay()
			now = q.now()
			way = now + turn
		}
		if q.failure != nil || q.stop.Load() || now >= q.spec.Duration {
			ended = true
		} else if !ended {
			var err error
			if ended, wait, err = q.fill(op, now); err != nil {
				return err
			}
		}
		inFlight := len(q.buffers) - len(q.free)
		if inFlight == 0 {
			if ended {
				return nil
			}
			q.sleepUntil(q.now() + wait)
			continue
		}
		// A signal does not end an operation, so those in flight are always waited for: the kernel
		// writes to the buffers until they have completed.
		if err := q.ring.Enter(1, wait); err != nil {
			return err
		}
		q.reap()
	}
}

// fill starts operations in the free buffers. With a rate it starts those that are due, and returns
// how long the next one has time. It hands each to the kernel at once, except for the last, which
// goes with the wait: a device with a short queue would otherwise be idle while the others are
// prepared.
func (q *queue) fill(op uring.Operation, now time.Duration) (ended bool, wait time.Duration, err error) {
	for first := true; len(q.free) > 0; first = false {
		if !first {
			if err := q.ring.Submit(); err != nil {
				return true, 0, err
			}
			now = q.now()
		}
		began := now
		if q.spec.Rate > 0 {
			due := q.due(q.next.Load())
			if due >= q.spec.Duration {
				return true, 0, nil
			}
			if due > now {
				return false, due - now, nil
			}
			began = due
		}
		number := q.next.Add(1) - 1
		i := q.free[len(q.free)-1]
		q.free = q.free[:len(q.free)-1]
		q.began[i], q.at[i] = began, q.offset(q.w, number)
		if op != uring.Read {
			stamp(q.buffers[i], number)
		}
		q.ring.Queue(op, i, q.at[i], q.flags, uint64(i))
	}
	return false, 0, nil
}

// reap records what has completed.
func (q *queue) reap() {
	now := q.now()
	for {
		c, ok := q.ring.Next()
		if !ok {
			return
		}
		i := int(c.User)
		q.free = append(q.free, i)
		if int(c.Result) != len(q.buffers[i]) {
			if q.failure == nil {
				q.failure = &failure{buffer: q.buffers[i], offset: q.at[i], n: int(c.Result)}
				if c.Result < 0 {
					q.failure.err = unix.Errno(-c.Result)
				}
			}
			continue
		}
		q.w.record(now - q.began[i])
		q.behind(q.at[i])
	}
}

// alignedBuffers returns n buffers with bytes that do not compress, each on pages of its own.
func alignedBuffers(n, size int) (buffers [][]byte, release func(), err error) {
	page := unix.Getpagesize()
	stride := (size + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, n*stride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("reserve %d bytes of memory: %w", n*stride, err)
	}
	var seed [32]byte
	binary.NativeEndian.PutUint64(seed[:], rand.Uint64())
	source := rand.NewChaCha8(seed)
	for i := range n {
		b := m[i*stride : i*stride+size : i*stride+size]
		_, _ = source.Read(b) // never fails
		buffers = append(buffers, b)
	}
	return buffers, func() { _ = unix.Munmap(m) }, nil
}

// stampBytes is the distance of the stamps: file systems and drives that store equal blocks once
// compare blocks of this size or larger ones.
const stampBytes = 4096

// stamp makes the content of a block unlike all others of this process.
func stamp(b []byte, number int64) {
	for i := 0; i+8 <= len(b); i += stampBytes {
		binary.NativeEndian.PutUint64(b[i:], uint64(number)<<16^uint64(i))
	}
}

// sums returns the operations so far and the sum of their latencies.
func (l *load) sums() (ops, nanoseconds uint64) {
	for _, w := range l.workers {
		ops += w.ops.Load()
		nanoseconds += w.nanoseconds.Load()
	}
	return ops, nanoseconds
}

// result sums the workers. Those that the kernel holds may still write to their histograms: then
// only the counters are read.
func (l *load) result(elapsed time.Duration, samples []Sample, held bool) *Result {
	s := l.spec
	r := &Result{Test: s.Test, Engine: s.Engine, Way: s.Way, Sync: s.Sync, BlockBytes: s.BlockBytes, Depth: s.Depth,
		RateOperationsPerSec: s.Rate, DurationSeconds: elapsed.Seconds(), Intervals: samples}
	all := stats.NewHistogram()
	r.Operations, _ = l.sums()
	for _, w := range l.workers {
		if held {
			break
		}
		all.Merge(w.latency)
		r.CPUSeconds += w.cpu.Seconds()
	}
	r.Bytes = int64(r.Operations) * int64(s.BlockBytes)
	if elapsed > 0 {
		r.OperationsPerSec = float64(r.Operations) / elapsed.Seconds()
		r.ThroughputBytesPerSec = float64(r.Bytes) / elapsed.Seconds()
	}
	if all.Count() > 0 {
		r.Latency = latencyOf(all)
		r.CPUSecondsPerOp = r.CPUSeconds / float64(r.Operations)
	}
	if s.Rate > 0 {
		due := uint64(s.Rate * min(elapsed, s.Duration).Seconds())
		r.Missed = due - min(due, r.Operations)
		if r.Missed > 0 && float64(r.Missed) > 0.01*float64(due) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d operations were due and did not start before the end: "+
				"the rate is more than the target carries with %d in flight", r.Missed, due, s.Depth))
		}
	}
	return r
}
