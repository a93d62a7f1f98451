package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/uring"
)

// scratch returns an open file of that many bytes.
func scratch(t *testing.T, size int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	return f
}

func engines(t *testing.T) []Engine {
	if err := uring.Available(); err != nil {
		t.Logf("without io_uring: %v", err)
		return []Engine{Psync}
	}
	return []Engine{Psync, IOUring}
}

// TestLoadWrites checks that every engine writes each block of a sequential pass, whole and unlike
// the others, with every kind of sync.
func TestLoadWrites(t *testing.T) {
	const block, blocks = 4096, 64
	for _, engine := range engines(t) {
		for _, sync := range []Sync{NoSync, Fdatasync, Dsync} {
			f := scratch(t, block*blocks)
			// The end is an amount and not a time: the context ends when the file was passed once.
			ctx, cancel := context.WithCancel(context.Background())
			// With an interval a thread counts its operations before it has made a whole batch of them.
			l := newLoad(Spec{Test: SequentialWrite, Engine: engine, Sync: sync, BlockBytes: block, Depth: 4,
				Duration: time.Hour, Interval: 10 * time.Millisecond}, int(f.Fd()), block*blocks)
			go func() {
				for ops, _ := l.sums(); ops < 2*blocks; ops, _ = l.sums() {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			if err := l.run(ctx); err != nil {
				t.Fatalf("%s, %s: %v", engine, sync, err)
			}
			r := l.result(time.Second, nil, false)
			if r.Operations < 2*blocks || r.Bytes != int64(r.Operations)*block || r.Latency == nil || r.Latency.P50 <= 0 {
				t.Errorf("%s, %s: %d operations, %d bytes, %+v", engine, sync, r.Operations, r.Bytes, r.Latency)
			}
			seen := make(map[[16]byte]bool)
			b := make([]byte, block)
			for i := range int64(blocks) {
				if _, err := f.ReadAt(b, i*block); err != nil {
					t.Fatal(err)
				}
				seen[[16]byte(b[:16])] = true
			}
			if len(seen) != blocks {
				t.Errorf("%s, %s: %d different blocks of %d", engine, sync, len(seen), blocks)
			}
		}
	}
}

// TestLoadFails checks that a failed operation ends the test with its reason.
func TestLoadFails(t *testing.T) {
	for _, engine := range engines(t) {
		f := scratch(t, 4096)
		l := newLoad(Spec{Test: RandomRead, Engine: engine, BlockBytes: 4096, Depth: 4, Duration: time.Hour}, int(f.Fd()),
			1<<20)
		err := l.run(context.Background())
		if err == nil || l.result(time.Second, nil, false).Operations > 1000 {
			t.Errorf("%s: reads beyond the end: %v", engine, err)
		}
		closed := scratch(t, 4096)
		fd := int(closed.Fd())
		closed.Close()
		l = newLoad(Spec{Test: RandomRead, Engine: engine, BlockBytes: 4096, Depth: 1, Duration: time.Hour}, fd, 4096)
		if err := l.run(context.Background()); !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: a closed file: %v", engine, err)
		}
	}
}

// TestOpenLoop checks that operations keep their schedule, and that each latency counts from when
// it was due: with a schedule that lies in the past at once, all are late.
func TestOpenLoop(t *testing.T) {
	for _, engine := range engines(t) {
		f := scratch(t, 1<<20)
		l := newLoad(Spec{Test: RandomRead, Engine: engine, BlockBytes: 4096, Depth: 2, Duration: 100 * time.Millisecond,
			Rate: 1000}, int(f.Fd()), 1<<20)
		if err := l.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := l.result(100*time.Millisecond, nil, false)
		if r.Operations > 100 || r.Operations+r.Missed != 100 {
			t.Errorf("%s: %d done, %d missed of 100", engine, r.Operations, r.Missed)
		}
		// A rate that nothing carries: what was done was late, the rest is missed, and it is said.
		// A busy host may give its threads no processor for the most of the test.
		r = &Result{}
		for d := 50 * time.Millisecond; (r.Operations < 100 || r.Latency.Max < 0.01) && d < time.Minute; d *= 2 {
			l = newLoad(Spec{Test: RandomRead, Engine: engine, BlockBytes: 4096, Depth: 2, Duration: d, Rate: 1e8},
				int(f.Fd()), 1<<20)
			if err := l.run(context.Background()); err != nil {
				t.Fatal(err)
			}
			r = l.result(d, nil, false)
		}
		if r.Missed == 0 || len(r.Warnings) != 1 || r.Latency.Max < 0.01 {
			t.Errorf("%s: %d missed, slowest %g s, warnings %q", engine, r.Missed, r.Latency.Max, r.Warnings)
		}
	}
}
