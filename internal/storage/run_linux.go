package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/storage/layers"
)

// Run runs one test. Progress, if not nil, gets each interim result. When the context ends or an
// operation fails, Run returns what it has measured until then, together with the error.
func (s *Session) Run(ctx context.Context, spec Spec, progress func(Sample)) (*Result, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	if s.held {
		return nil, fmt.Errorf("%s on %s: %w", spec.Test, s.Subject.Path, ErrSilent)
	}
	if spec.Test.Writes() && !s.writes {
		return nil, fmt.Errorf("%s on %s: %w", spec.Test, s.Subject.Path, ErrOverwrite)
	}
	size := s.Subject.SizeBytes / int64(spec.BlockBytes) * int64(spec.BlockBytes)
	if size == 0 {
		return nil, fmt.Errorf("%w: %s has %s, less than one block of %s", ErrBadSpec, s.Subject.Path,
			unit.Bytes(s.Subject.SizeBytes), unit.Bytes(spec.BlockBytes))
	}
	var notes []string
	note := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	way, file, why, err := s.way(spec)
	if err != nil {
		return nil, err
	}
	note(why)
	spec.Way = way
	spec.Engine, why = engine(spec)
	note(why)
	l := newLoad(spec, int(file.Fd()), size)
	err = s.await(ctx, 0, s.moved, func() error { return s.clear(spec) })
	if s.held {
		return nil, fmt.Errorf("%s on %s: %w", spec.Test, s.Subject.Path, err)
	}
	if err != nil {
		return nil, err
	}
	room, err := s.squeeze(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer room.release()
	e := Evidence{Spec: spec, Stack: s.Subject.Stack, ResidentBefore: s.resident(), BackingBefore: s.backing(),
		HoleRatio: s.holes, UnwrittenRatio: s.unwritten, EncodedRatio: s.encoded}

	before := s.counters()
	watching := make(chan []Sample)
	done := make(chan struct{})
	go func() { watching <- l.watch(done, progress) }()
	work := func() uint64 {
		ops, _ := l.sums()
		return ops + s.moved()
	}
	broken := s.await(ctx, l.gap(), work, func() error {
		err := l.run(ctx)
		// Buffered writes are not at the device before they are flushed: the flush is a part of the
		// test's time, unless the cache itself is measured.
		if spec.Test.Writes() && way.past() && spec.Sync == NoSync {
			err = errors.Join(err, unix.Fdatasync(l.fd))
		}
		return err
	})
	elapsed := time.Duration(0)
	if l.begun.Load() {
		elapsed = l.now()
	}
	close(done)
	samples := <-watching
	after := s.counters()

	r := l.result(elapsed, samples, s.held)
	note(room.release())
	note(s.replaced())
	r.PinnedBytes, r.GroupBytes = room.pinned, room.limit
	r.Warnings = append(r.Warnings, notes...)
	r.Layers = s.counted(before, after, elapsed)
	e.ResidentAfter = s.resident()
	e.FileBytes, e.OwnBytes = r.Bytes, -1
	if before.read >= 0 && after.read >= 0 {
		e.OwnBytes = after.own(spec.Test.Writes()) - before.own(spec.Test.Writes())
	}
	e.Bottom, e.BottomName = bottom(r.Layers, spec.Test.Writes())
	e.Limit = layers.LimitOf(s.tree, s.devices(), spec.Test.Writes())
	e.BytesPerSec, e.OperationsPerSec = r.ThroughputBytesPerSec, r.OperationsPerSec
	if r.Latency != nil {
		e.P50Seconds = r.Latency.P50
	}
	r.Verdict = Judge(e)
	if broken != nil && (ctx.Err() == nil || s.held) {
		r.Errors++
		return r, fmt.Errorf("%s on %s: %w", spec.Test, s.Subject.Path, broken)
	}
	return r, ctx.Err()
}

// await is [await] of this session: once storage is silent, its files are left to the kernel. The
// gap is the longest time between two operations that are due.
func (s *Session) await(ctx context.Context, gap time.Duration, beat func() uint64, f func() error) error {
	err := await(ctx, patience+gap, beat, f)
	s.held = errors.Is(err, ErrSilent)
	return err
}

// clear drops the file's pages where the way needs that, and switches read-ahead off for random
// reads.
func (s *Session) clear(spec Spec) error {
	if spec.Way == Direct {
		return nil
	}
	if spec.Way == Buffered { // as any program reads
		return s.advise(unix.FADV_NORMAL)
	}
	if s.writes {
		if err := unix.Fdatasync(s.fd()); err != nil {
			return fmt.Errorf("flush %s: %w", s.Subject.Path, err)
		}
	}
	if err := sys.DropPages(s.fd(), 0, 0); err != nil {
		return fmt.Errorf("drop pages of %s: %w", s.Subject.Path, err)
	}
	if spec.Test.Random() {
		return s.advise(unix.FADV_RANDOM)
	}
	return s.advise(unix.FADV_NORMAL)
}

func (s *Session) advise(advice int) error {
	if err := unix.Fadvise(s.fd(), 0, 0, advice); err != nil {
		return fmt.Errorf("set read-ahead of %s: %w", s.Subject.Path, err)
	}
	return nil
}

// resident returns the share of the file in memory; -1: unknown.
func (s *Session) resident() float64 {
	if s.Subject.Kind == "device" { // cachestat is for files; the pages of a device are its buffers
		return -1
	}
	n, err := sys.Resident(s.fd(), s.Subject.SizeBytes)
	if err != nil {
		return -1
	}
	return float64(n) / float64(s.Subject.SizeBytes)
}

// backing returns the share of the file behind a loop device in memory; -1: none, or unknown.
func (s *Session) backing() float64 {
	if s.Subject.Stack.Backing == "" {
		return -1
	}
	f, err := os.Open(s.Subject.Stack.Backing)
	if err != nil {
		return -1
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return -1
	}
	n, err := sys.Resident(int(f.Fd()), info.Size())
	if err != nil {
		return -1
	}
	return float64(n) / float64(info.Size())
}

// counters is what is read before and after a test.
type counters struct {
	disks         []procfs.DiskStat
	read, written int64 // by this process at the storage layer; -1: unknown
}

// own returns what this process caused at the storage layer.
func (c counters) own(writes bool) int64 {
	if writes {
		return c.written
	}
	return c.read
}

func (s *Session) counters() counters {
	c := counters{written: -1, read: -1}
	if b, err := s.tree.Read("proc/diskstats"); err == nil {
		// A line of a strange form ends the list; the devices before it are right.
		c.disks, _ = procfs.ParseDiskStats(b)
	}
	if b, err := s.tree.Read("proc/self/io"); err == nil {
		if read, written, err := procfs.ParseIO(b); err == nil {
			c.read, c.written = int64(read), int64(written)
		}
	}
	return c
}

func (c counters) disk(device string) (procfs.DiskStat, bool) {
	i := slices.IndexFunc(c.disks, func(d procfs.DiskStat) bool {
		return fmt.Sprintf("%d:%d", d.Major, d.Minor) == device
	})
	if i < 0 {
		return procfs.DiskStat{}, false
	}
	return c.disks[i], true
}

// devices returns the block devices of the stack.
func (s *Session) devices() []string {
	var all []string
	for _, l := range s.Subject.Stack.Layers {
		if l.Device != "" && l.Kind != layers.FileSystem && l.Kind != layers.Overlay {
			all = append(all, l.Device)
		}
	}
	return all
}

// counted returns what each device of the stack did between two readings.
func (s *Session) counted(before, after counters, elapsed time.Duration) []Counted {
	bottom := s.Subject.Stack.Counted()
	var all []Counted
	for _, l := range s.Subject.Stack.Layers {
		if l.Kind == layers.FileSystem || l.Kind == layers.Overlay {
			continue
		}
		a, okA := before.disk(l.Device)
		b, okB := after.disk(l.Device)
		if !okA || !okB {
			continue
		}
		c := Counted{Name: l.Name, Device: l.Device, ReadBytes: b.ReadBytes - a.ReadBytes,
			WriteBytes: b.WriteBytes - a.WriteBytes, Flushes: b.Flushes - a.Flushes,
			Bottom: slices.Contains(bottom, l.Device)}
		if elapsed > 0 {
			c.BusyRatio = min(1, float64(b.Busy-a.Busy)/float64(elapsed))
		}
		all = append(all, c)
	}
	return all
}

// bottom sums the bytes at the devices that count each byte once; -1: none is visible.
func bottom(all []Counted, writes bool) (bytes int64, name string) {
	bytes = -1
	for _, c := range all {
		if !c.Bottom {
			continue
		}
		if bytes < 0 {
			bytes = 0
		} else {
			name += ", "
		}
		name += c.Name
		if writes {
			bytes += int64(c.WriteBytes)
		} else {
			bytes += int64(c.ReadBytes)
		}
	}
	return bytes, name
}

// watch takes a sample at each interval until done is closed.
func (l *load) watch(done <-chan struct{}, progress func(Sample)) []Sample {
	var all []Sample
	tick := time.NewTicker(l.spec.Interval)
	defer tick.Stop()
	began := time.Now()
	var ops, nanoseconds uint64
	last := time.Duration(0)
	take := func() {
		at := time.Since(began)
		if at-last < l.spec.Interval/2 { // a rest at the end says little
			return
		}
		nowOps, nowNanoseconds := l.sums()
		x := Sample{StartSeconds: last.Seconds(), DurationSeconds: (at - last).Seconds()}
		n := nowOps - ops
		x.OperationsPerSec = float64(n) / x.DurationSeconds
		x.ThroughputBytesPerSec = x.OperationsPerSec * float64(l.spec.BlockBytes)
		if n > 0 {
			x.MeanSeconds = float64(nowNanoseconds-nanoseconds) / float64(n) / 1e9
		}
		ops, nanoseconds, last = nowOps, nowNanoseconds, at
		all = append(all, x)
		if progress != nil {
			progress(x)
		}
	}
	for {
		select {
		case <-tick.C:
			take()
		case <-done:
			take()
			return all
		}
	}
}
