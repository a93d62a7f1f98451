package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/transfer"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// nfsTuneFlags describe a sweep.
type nfsTuneFlags struct {
	operation, file, version, options, at string
	factors, sizes                        []string
	size                                  string
	direct                                bool
	budget, duration, warmUp, patience    time.Duration
	seed                                  uint64
	port                                  uint16
}

// nfsTuneCommand finds mount options by experiment.
func (a *app) nfsTuneCommand() *cobra.Command {
	var f nfsTuneFlags
	c := &cobra.Command{
		Use:         "tune SERVER:/EXPORT",
		Annotations: exits(exitPartial, exitRolledBack, exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Find the mount options of an NFS export by experiment",
		Long: `Try rsize, wsize, read-ahead, nconnect and the protocol of an export, one after the other, and
keep only what is proven to help. The result is lines for fstab, autofs and systemd.

Each segment makes a mount of its own in a private mount namespace, reads and writes, and unmounts.
No other mount is touched, and no other program sees these. When the process ends, even with
kill -9, the kernel removes the mounts. Segments are compared in pairs in random order, as in
` + "`linerate tune`" + `, and the kept options are confirmed as a whole with fresh pairs.

A new mount has an empty cache on this host; the bytes on the wire prove it. The server's cache
cannot be emptied from here. Without --file the run writes a file of its own (.linerate-nfs-HOST-…)
into the export and removes it: the server then reads from its memory, which is right for the
question of sizes and connections. --file FILE reads parts of an existing file below the export,
each once as long as it lasts, and writes nothing unless --operation asks for it.

Beside each set of options stand the packets that were lost, by place, and the frames of one
read against the receive ring: a transfer is a burst of back-to-back frames, and a card with a
small ring loses some of them from a certain size on.

A connection is shared by all mounts of a server with one NFS version. While another such mount
exists, nconnect cannot be tried, and its traffic disturbs the run.`,
		Example: "  linerate nfs tune fs.example.com:/data\n" +
			"  linerate nfs tune fs.example.com:/data --file backup/disk.img --operation read\n" +
			"  linerate nfs tune 192.0.2.9:/data --factors rsize,wsize --sizes 4k,8k,16k,32k --nfs-version 3",
		RunE: func(cmd *cobra.Command, args []string) error { return a.nfsTune(cmd, args[0], f) },
	}
	f.add(c)
	return c
}

func (f *nfsTuneFlags) add(c *cobra.Command) {
	var names []string
	for _, x := range transfer.Factors() {
		names = append(names, string(x))
	}
	s := c.Flags()
	s.StringVar(&f.operation, "operation", "", "read, write or both (default both; with --file: read)")
	s.StringVar(&f.file, "file", "", "existing file to read, relative to the export")
	s.StringSliceVar(&f.factors, "factors", nil, "what to try: "+strings.Join(names, ", ")+" (default all)")
	s.StringSliceVar(&f.sizes, "sizes", nil, "levels of rsize and wsize (default powers of two from 4k to 1M)")
	s.StringVar(&f.version, "nfs-version", "", "4.2, 4.1, 4.0 or 3 (default the newest that works)")
	s.StringVar(&f.options, "options", "", "options of the mount to improve, as in fstab (default none)")
	s.StringVar(&f.at, "at", "", "mount point for the lines to keep (default /mnt/NAME)")
	s.StringVar(&f.size, "size", "256M", "most bytes of the own file")
	s.BoolVar(&f.direct, "one-at-a-time", false, "one call at a time, past this host's cache (O_DIRECT)")
	s.DurationVar(&f.budget, "budget", 10*time.Minute, "time for the whole run")
	s.DurationVar(&f.duration, "duration", 0, "measured part of a segment (default from the round trip)")
	s.DurationVar(&f.warmUp, "warm-up", 0, "time to leave out at the start of a segment (default from the round trip)")
	s.DurationVar(&f.patience, "patience", 30*time.Second, "how long the server may be silent before the run ends")
	s.Uint16Var(&f.port, "port", 2049, "port of the server")
	s.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default a new one)")
}

// versions are those to try, newest first.
var versions = []string{"4.2", "4.1", "4.0", "3"}

// plan reads the flags.
func (f *nfsTuneFlags) plan(flags *pflag.FlagSet, source string) (mount.Plan, transfer.Options, error) {
	p := mount.Plan{Base: mount.Spec{Source: source, Version: f.version}, File: f.file, Direct: f.direct,
		Segment: f.duration, WarmUp: f.warmUp, Patience: f.patience, Regions: 200}
	o := transfer.Options{Config: tune.DefaultConfig()}
	o.Config.Budget, o.Config.Seed = f.budget, f.seed
	if o.Config.Seed == 0 {
		o.Config.Seed = rand.Uint64()
	}
	if err := given(flags, "operation", "file", "factors", "sizes", "nfs-version", "at", "size", "duration",
		"patience", "port"); err != nil {
		return p, o, err
	}
	if _, _, err := mount.SplitSource(source); err != nil {
		return p, o, usageError{flagError{err, "as in fs.example.com:/data"}}
	}
	if err := mount.ParseOptions(f.options, &p.Base); err != nil {
		return p, o, usagef("--options: %v", err)
	}
	if f.port != 2049 {
		p.Base.Extra = append(p.Base.Extra, "port="+strconv.Itoa(int(f.port)))
	}
	switch {
	case f.version != "" && p.Base.Version != f.version:
		return p, o, usagef("--nfs-version %s: --options has another version, %s", f.version, p.Base.Version)
	case p.Base.Version != "" && !slices.Contains(versions, p.Base.Version):
		return p, o, usagef("NFS version %q: not one of %s", p.Base.Version, strings.Join(versions, ", "))
	case f.at != "" && (!path.IsAbs(f.at) || path.Clean(f.at) == "/" || strings.ContainsFunc(f.at, unicode.IsControl)):
		return p, o, usagef("--at %q: write the whole path of a mount point, from /", f.at)
	case f.budget <= 0 || f.budget > 24*time.Hour:
		return p, o, usagef("--budget %v: must be longer than 0s and at most 24h", f.budget)
	case f.duration > f.budget || f.warmUp > f.budget || f.patience > 24*time.Hour:
		return p, o, usagef("--duration and --warm-up must be within the budget of %v, and --patience at most 24h", f.budget)
	case f.patience < time.Second:
		return p, o, usagef("--patience %v: must be at least 1s", f.patience)
	case f.file != "" && !filepath.IsLocal(f.file):
		return p, o, usagef("--file %q: give it relative to the export", f.file)
	}
	op := f.operation
	if op == "" && f.file != "" {
		op = "read"
	}
	switch op {
	case "", "both":
		p.Read, p.Write = true, true
	case "read":
		p.Read = true
	case "write":
		p.Write = true
	default:
		return p, o, usagef("--operation %q: not one of read, write, both", f.operation)
	}
	if p.Write && f.file != "" {
		return p, o, usagef("--file is for reads: leave --operation %s out, or --file", op)
	}
	o.Read, o.Write = p.Read, p.Write
	for _, name := range f.factors {
		if !slices.Contains(transfer.Factors(), transfer.Factor(name)) {
			return p, o, usagef("--factors %q: not one of %v", name, transfer.Factors())
		}
		o.Factors = append(o.Factors, transfer.Factor(name))
	}
	if reason := o.Pointless(p.Base); reason != "" {
		return p, o, usagef("--factors %s: %s", strings.Join(f.factors, ","), reason)
	}
	size, err := unit.ParseBytes(f.size)
	if err != nil || size < 1<<20 {
		return p, o, usagef("--size %q: must be a number of bytes from 1 MiB", f.size)
	}
	p.Size = int64(size)
	for _, text := range f.sizes {
		n, err := unit.ParseBytes(text)
		if err != nil || n < 1024 || n > 1<<20 || int64(n)%1024 != 0 {
			return p, o, usagef("--sizes %q: must be a multiple of 1 KiB, at most 1 MiB", text)
		}
		o.Sizes = append(o.Sizes, int64(n))
	}
	return p, o, nil
}

func (a *app) nfsTune(cmd *cobra.Command, source string, f nfsTuneFlags) error {
	plan, o, err := f.plan(cmd.Flags(), source)
	if err != nil {
		return err
	}
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	ctx := cmd.Context()
	began := time.Now()
	server, export, _ := mount.SplitSource(source) // plan has checked it
	ends, err := mount.Ping(ctx, server, int(f.port), 3, f.patience)
	if err != nil {
		return nfsUnreachable(ctx, err)
	}
	segment, warmUp := transfer.SegmentFor(ends.RoundTrip)
	if plan.Segment == 0 {
		plan.Segment = segment
	}
	if !cmd.Flags().Changed("warm-up") {
		plan.WarmUp = warmUp
	}
	bench, plan, err := openNFSBench(ctx, plan, ends, p)
	if err != nil {
		return err
	}
	o.Card = cardTo(ctx, ends.Server.String())
	o.Progress = nfsProgress(p)
	o.Config.Budget = max(f.budget-time.Since(began), 1)
	o.Config.Asked, o.Config.Spent = f.budget, time.Since(began)
	result, err := transfer.Run(ctx, bench, plan.Base, o)
	cleaned := bench.Close(context.WithoutCancel(ctx))
	p.Done()
	run := report.NFSRun{Base: plan.Base, At: f.at, Plan: plan, Card: o.Card, Result: result, Duration: time.Since(began)}
	if run.At == "" {
		run.At = path.Join("/mnt", path.Base(export))
	}
	if err != nil {
		if len(result.Outcome.Segments) == 0 || ctx.Err() != nil {
			return nfsBroken(ctx, err, cleaned)
		}
		run.Unfinished = oneSentence(err)
	}
	doc := report.NewNFSTune(a.envelope(""), run)
	if cleaned != nil {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("a file is left in the export: %s; the next run of this host "+
			"removes it", oneSentence(cleaned)))
	}
	if err := a.print(doc, func(s text.Style) error { return text.NFS(a.out, doc, s) }); err != nil {
		return err
	}
	if err != nil {
		return nfsBroken(ctx, err, nil)
	}
	return tuneStatus(result.Outcome)
}

// openNFSBench opens a bench with the newest version of NFS that server and kernel share.
func openNFSBench(ctx context.Context, plan mount.Plan, ends mount.Ends, p *progress.Line) (*mount.Bench, mount.Plan,
	error) {
	bench, err := mount.OpenBench(plan, ends)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, plan, flagError{fmt.Errorf("nfs tune: %w", err), "only root may mount: use sudo"}
	case err != nil:
		return nil, plan, fmt.Errorf("nfs tune: %w", err)
	}
	if plan.Base.Version != "" {
		return bench, plan, nil
	}
	for _, v := range versions {
		plan.Base.Version = v
		p.Status("mount with NFS %s", v)
		if _, err = bench.Try(ctx, plan.Base); err == nil || !mount.OtherVersion(err) {
			break
		}
	}
	err = errors.Join(err, bench.Close(ctx))
	if err != nil {
		return nil, plan, nfsBroken(ctx, err, nil)
	}
	bench, err = mount.OpenBench(plan, ends)
	return bench, plan, err
}

// nfsUnreachable explains a server that cannot be asked.
func nfsUnreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		return statusError{exitUnreachable, "nfs tune: " + oneSentence(err), "is the name right? An address works too"}
	}
	return statusError{exitUnreachable, "nfs tune: " + oneSentence(err), "is the server up, and does a firewall let " +
		"port 2049 pass? --port names another"}
}

// nfsBroken explains what ended a run. The mounts are gone in any case.
func nfsBroken(ctx context.Context, err, cleaned error) error {
	left := ""
	if cleaned != nil {
		left = "a file of this run is left in the export, and the next run removes it"
	}
	switch {
	case ctx.Err() != nil && left != "":
		return tuneError{errors.New(left), true}
	case ctx.Err() != nil:
		return context.Canceled
	case left != "":
		left = "; " + left
	}
	switch {
	case errors.Is(err, transfer.ErrGone), errors.Is(err, mount.ErrSilent):
		return statusError{exitUnreachable, "nfs tune: " + oneSentence(err) + left, "nothing is mounted any more; run it " +
			"again when the server is back"}
	case errors.Is(err, mount.ErrNoNFS):
		return flagError{fmt.Errorf("nfs tune: %w", err), "load the module nfs, or install the kernel's modules; linerate " +
			"has no client of its own"}
	}
	return fmt.Errorf("nfs tune: %w%s", err, left)
}

// cardTo returns the interface that leads to an address; an unknown one is empty.
func cardTo(ctx context.Context, address string) transfer.Card {
	s, err := host.Root{}.Snapshot(ctx)
	if err != nil {
		return transfer.Card{}
	}
	dev, _, ok := s.InterfaceTo(address)
	if !ok {
		return transfer.Card{}
	}
	c := transfer.Card{Name: dev.Name, MTU: int(dev.MTUBytes)}
	if dev.Rings != nil {
		c.Ring = int(dev.Rings.Rx.Current)
	}
	return c
}

// nfsProgress shows an experiment on rates in bytes per second.
func nfsProgress(p *progress.Line) func(tune.Event) {
	estimate := ""
	return func(e tune.Event) {
		switch e.Kind {
		case tune.EventSegment:
			rate := unit.Bytes(e.Objective).String() + "/s"
			if e.Discard != "" {
				rate = "discarded: " + e.Discard
			}
			p.Status("segment %d (%s)  %s  %s", e.Segments, e.Arm, rate, estimate)
		case tune.EventEstimate:
			estimate = e.Text
			p.Status("%s", estimate)
		default:
			estimate = ""
			p.Step("%s", e.Text)
		}
	}
}
