package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/storage"
)

// diskFlags describe the tests of `linerate disk`.
type diskFlags struct {
	tests              []string
	block, size, rate  string
	depth              int
	ladder             bool
	engine, sync       string
	ways               []string
	duration, interval time.Duration
	overwrite          string
	yes                bool
}

// diskCommand measures a disk. A test lasts five seconds by default: a suite of four then ends in
// half a minute with the filling of its file.
func (a *app) diskCommand() *cobra.Command {
	var f diskFlags
	c := &cobra.Command{
		Use:         "disk PATH|DEVICE",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Measure a disk, and show whether the disk or a cache answered",
		Long: `Measure reads and writes of the disk below PATH, and show for each figure whose it is: the
disk's, or that of a cache that answered in its place.

PATH is a directory, a file or a block device. In a directory linerate fills a file of its own with
bytes that do not compress, and leaves free space: a twentieth of the file system, at most 4 GiB.
The file has no name, so it ends with the process, even with kill -9. (On a file system without such
files, as NFS, kill -9 in the first moment may leave a file .linerate-disk-*; remove it.) An existing
file or device is only read. --overwrite PATH together with --yes permits writes to it; its content
is lost.

Without --test these tests run, one after the other:

  sequential-read   128 KiB each, one in flight
  random-read       4 KiB each, one in flight
  sequential-write  128 KiB each
  random-write      4 KiB each

A figure is the disk's only when the bytes at the device are those at the file within 5 %. The
kernel's counters show it. Otherwise the result names what answered, and the exit status is 3.
Ways past the page cache:

  direct    O_DIRECT
  dropped   pages are dropped before the test and behind each read, and the result is checked
  group     linerate enters a memory control group of its own, with 16 MiB for pages (root)
  pinned    linerate locks memory until a twentieth is left, 32 to 256 MiB, and gives it back at the
            end; this slows other programs, and any end of linerate frees the memory (root)
  larger    --size is at least twice the memory
  buffered  none: the cache is measured too, as by dd
  auto      the first of direct, dropped and group that works (the default)

A virtual disk answers from its host's memory where the host likes, and no guest can see that: read
a part that was never read before, and again, and compare.

Without --rate the next operation starts when one ends. With --rate operations start on a schedule,
and each latency counts from the time when the operation was due.`,
		Example: "  linerate disk /srv\n" +
			"  linerate disk /srv --test random-read --ladder\n" +
			"  linerate disk /srv --test random-write --sync dsync --rate 200\n" +
			"  linerate disk /srv --test sequential-read --way buffered,pinned\n" +
			"  linerate disk /dev/sdb --test random-read --depth 32",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, specs, err := f.plan(cmd.Flags(), args[0])
			if err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			session, err := storage.Open(cmd.Context(), target, func(share float64) {
				p.Status("filling a file: %s", unit.FormatPercent(share))
			})
			if errors.Is(err, storage.ErrBadSpec) {
				return badDisk(err)
			}
			if err != nil {
				return fmt.Errorf("disk: %w", err)
			}
			defer session.Close() //nolint:errcheck // it is closed below; this one is for early ends
			var results []storage.Result
			var broken error
			for _, spec := range specs {
				if spec.Test.Writes() && session.Subject.Kind != "own-file" && !target.Overwrite && len(f.tests) == 0 {
					continue // the suite of an existing file or device reads
				}
				p.Status("%s", spec.Test)
				r, err := f.run(cmd, session, spec, p)
				if r != nil {
					results = append(results, *r)
				}
				if broken = err; err != nil {
					break
				}
			}
			if err := session.Close(); broken == nil && err != nil { // the file ends before the document is printed
				broken = fmt.Errorf("disk: %w", err)
			}
			p.Done()
			if len(results) == 0 {
				return overwriteHint(broken, args[0])
			}
			doc := report.NewDisk(a.envelope(""), session.Subject, results)
			if err := a.print(doc, func(s text.Style) error { return text.Disk(a.out, doc, s) }); err != nil {
				return err
			}
			if broken != nil {
				return overwriteHint(broken, args[0])
			}
			if slices.ContainsFunc(results, func(r storage.Result) bool { return r.Whose != storage.Device }) {
				return statusError{status: exitPartial}
			}
			return nil
		},
	}
	f.add(c)
	return c
}

func (f *diskFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.tests, "test", nil, "tests in place of the suite: "+words(storage.Tests()))
	flags.StringVar(&f.block, "block", "", "bytes of one operation, as in 64k (default 128k sequential, 4k random)")
	flags.IntVar(&f.depth, "depth", 0, "operations in flight (default 1)")
	flags.BoolVar(&f.ladder, "ladder", false,
		"find the knee first: 1, 2, 4 … operations in flight until more add nothing; then test at the knee")
	flags.StringVar(&f.engine, "engine", "",
		"psync (a thread for each operation in flight) or io_uring (default: io_uring above one in flight)")
	flags.StringSliceVar(&f.ways, "way", []string{"auto"},
		"ways past the page cache, each test with each way: "+words(storage.Ways()))
	flags.StringVar(&f.sync, "sync", "none", "how a write becomes durable: none, fdatasync or dsync")
	flags.StringVar(&f.rate, "rate", "",
		"operations per second as in 500 or 20k, or bytes per second as in 50MB/s (default: as fast as possible)")
	flags.StringVar(&f.size, "size", "",
		"size of the own file, or the part of an existing one to use (default 1G, or all)")
	flags.DurationVar(&f.duration, "duration", 5*time.Second, "length of each test")
	flags.DurationVar(&f.interval, "interval", time.Second, "time between interim results")
	flags.StringVar(&f.overwrite, "overwrite", "",
		"permit writes to this existing file or device, which lose its content; repeat PATH, and add --yes")
	flags.BoolVar(&f.yes, "yes", false, "confirm --overwrite")
}

// plan turns flags into tests.
func (f *diskFlags) plan(flags *pflag.FlagSet, path string) (storage.Target, []storage.Spec, error) {
	target := storage.Target{Path: path}
	if err := given(flags, "test", "block", "depth", "engine", "way", "sync", "rate", "size", "duration", "interval",
		"overwrite"); err != nil {
		return target, nil, err
	}
	switch {
	case f.overwrite == "" && f.yes:
		return target, nil, usagef("--yes confirms --overwrite PATH, which is not there")
	case f.overwrite != "" && f.overwrite != path:
		return target, nil, usagef("--overwrite %s: repeat the path to measure, %s", f.overwrite, path)
	case f.overwrite != "" && !f.yes:
		return target, nil, usagef("--overwrite %s: the content is lost; add --yes to confirm", path)
	}
	target.Overwrite = f.overwrite != ""
	var err error
	if target.SizeBytes, err = amount("--size", f.size); err != nil {
		return target, nil, err
	}
	block, err := amount("--block", f.block)
	if err != nil {
		return target, nil, err
	}
	tests := storage.Tests()
	if len(f.tests) > 0 {
		tests = nil
		for _, t := range f.tests {
			tests = append(tests, storage.Test(t))
		}
	}
	if f.ladder && f.depth > 0 {
		return target, nil, usagef("--ladder finds the depth: leave --depth out")
	}
	if f.ladder && f.rate != "" {
		return target, nil, usagef("--ladder runs as fast as possible: leave --rate out")
	}
	var specs []storage.Spec
	for i := range len(tests) * len(f.ways) {
		t, way := tests[i/len(f.ways)], storage.Way(f.ways[i%len(f.ways)])
		spec := storage.Spec{Test: t, Engine: storage.Engine(f.engine), Way: way, Sync: storage.Sync(f.sync),
			BlockBytes: int(min(block, 1<<30)), Depth: f.depth, Duration: f.duration, Interval: f.interval}
		if len(f.tests) == 0 && !t.Writes() {
			spec.Sync = storage.NoSync // of a suite only the writes have one
		}
		if spec, err = spec.Normalize(); err != nil {
			return target, nil, badDisk(err)
		}
		if spec.Rate, err = diskRate(f.rate, spec.BlockBytes); err != nil {
			return target, nil, err
		}
		if spec, err = spec.Normalize(); err != nil {
			return target, nil, badDisk(err)
		}
		specs = append(specs, spec)
	}
	return target, specs, nil
}

// badDisk makes an error of usage of an impossible test. The mark is for errors.Is; the user needs
// only the reason.
func badDisk(err error) error {
	return usageError{errors.New(strings.TrimPrefix(err.Error(), storage.ErrBadSpec.Error()+": "))}
}

// diskRate reads operations per second, or bytes per second and divides by the block.
func diskRate(rate string, block int) (float64, error) {
	if rate == "" {
		return 0, nil
	}
	if amount, ok := strings.CutSuffix(rate, "B/s"); ok {
		n, err := unit.ParseBytes(amount + "B")
		if err != nil {
			return 0, usagef("--rate: %w", err)
		}
		if n <= 0 {
			return 0, usagef("--rate %s: must be more than 0", rate)
		}
		return float64(n) / float64(block), nil
	}
	n, err := unit.ParseCount(rate)
	if err != nil || n <= 0 {
		return 0, usagef("--rate %s: write operations per second as in 500 or 20k, or bytes per second as in 50MB/s", rate)
	}
	return n, nil
}

// run runs one test, with its ladder.
func (f *diskFlags) run(cmd *cobra.Command, s *storage.Session, spec storage.Spec, p *progress.Line) (*storage.Result,
	error) {
	interim := func(x storage.Sample) {
		show := p.Step
		if p.Mode() != progress.Lines {
			show = p.Status
		}
		show("%s  %s to %s  %s/s  %s operations/s  mean %s", spec.Test, unit.FormatSeconds(x.StartSeconds),
			unit.FormatSeconds(x.StartSeconds+x.DurationSeconds), unit.Bytes(x.ThroughputBytesPerSec),
			unit.FormatCount(x.OperationsPerSec), unit.FormatSeconds(x.MeanSeconds))
	}
	if !f.ladder {
		return s.Run(cmd.Context(), spec, interim)
	}
	return s.Climb(cmd.Context(), spec, func(r storage.Rung) {
		p.Step("%s  %d in flight  %s operations/s  p50 %s", spec.Test, r.Depth, unit.FormatCount(r.OperationsPerSec),
			unit.FormatSeconds(r.P50))
	}, interim)
}

// overwriteHint says how writes to an existing target are permitted, and makes an impossible test
// an error of usage.
func overwriteHint(err error, path string) error {
	if errors.Is(err, storage.ErrOverwrite) {
		return statusError{status: exitNotPermitted, message: err.Error(),
			hint: fmt.Sprintf("--overwrite %s --yes permits it", path)}
	}
	if errors.Is(err, storage.ErrBadSpec) { // a test that this file cannot have
		return badDisk(err)
	}
	return err
}
