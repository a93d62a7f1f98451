package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/export"
	"github.com/linerate/linerate/internal/profile/foreign"
	"github.com/linerate/linerate/internal/profile/record"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/traffic"
)

// profileFlags say what is sampled or read, and where copies go.
type profileFlags struct {
	target     targetFlags
	load       loadFlags
	event      string
	cpus       string
	interfaces []string
	rate       int
	with, test string
	from       string
	noExact    bool
	programs   bool
	out        profileFiles
}

// profileFiles are further forms of a profile, by file; empty: not written.
type profileFiles struct{ pprof, folded, speedscope, flame, gprof string }

func (a *app) profileCommand() *cobra.Command {
	var f profileFlags
	c := &cobra.Command{
		Use:         "profile",
		Annotations: exits(exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Show which kernel functions the packets pay for: time per function and stage, per packet",
		Long: `Sample all CPUs of this host and show where their time goes: by stage of the network path, by
kind of work, and by function. Each has its share and its nanoseconds per packet, at 95 %
confidence. Packets are those that the interfaces count in the same window; a forwarded one
counts once.

profile changes nothing and needs no debug symbols. It needs root, or the capabilities
cap_perfmon and cap_syslog. It samples CPU cycles where the processor shows its counters, and a
timer of the kernel otherwise (cpu-clock). That timer cannot see code that runs with interrupts
off: such samples are shown under the callers, and counted. The rate follows the cost of a
sample, so that profiling stays below 1 % of each CPU.

After the samples, profile counts for one second more, without sampling: the time of each softirq on
each CPU, and who waits for which lock. --no-exact leaves this out.

--with TARGET runs a test to a host with ` + "`linerate serve`" + ` meanwhile, and samples that host as well;
its answer names no processes. --from reads a profile instead
of this host: a document of --json, the text of perf script, folded stacks, the text of
pmcstat -G, stacks of DTrace, or a pprof file. profile compare shows what differs between two.`,
		Example: "  linerate profile\n  linerate profile --duration 30s --interface eth0\n" +
			"  linerate profile --with 192.0.2.7 --key-file FILE\n" +
			"  linerate profile --flame flame.html --pprof cpu.pb.gz --json > before.json\n" +
			"  perf script | linerate profile --from -\n  linerate profile compare before.json after.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := f.out.open()
			if err != nil {
				return err
			}
			defer files.discard()
			doc, err := a.profiled(cmd, &f)
			if err != nil {
				return err
			}
			if err := a.print(doc, func(s text.Style) error { return text.Profile(a.out, doc, s) }); err != nil {
				return err
			}
			return errors.Join(files.write(doc), cmd.Context().Err())
		},
	}
	flags := c.Flags()
	f.target.add(c)
	f.load.add(c, 10*time.Second)
	flags.Lookup("duration").Usage = "how long to sample"
	flags.Lookup("parallel").Usage = "connections of the test with --with"
	flags.Lookup("reverse").Usage = "the other side of the test with --with sends"
	flags.StringVar(&f.event, "event", "", "what to sample: "+strings.Join(record.Events(), ", ")+
		" (default: cycles, or cpu-clock where the processor shows no counters)")
	flags.StringVar(&f.cpus, "cpu", "", "sample only these CPUs, as in 0-3,8")
	flags.StringSliceVar(&f.interfaces, "interface", nil,
		"count the packets of these interfaces (default: all that stand on no other; lo if no other has traffic)")
	flags.IntVar(&f.rate, "rate", 0,
		"samples per second and CPU of cpu-clock, 10 to 2000 (default: by the cost of a sample)")
	flags.StringVar(&f.with, "with", "", "run a test to this `TARGET` meanwhile, and sample both ends")
	flags.StringVar(&f.test, "test", "stream", "the test with --with: stream, udp or rr")
	flags.StringVar(&f.from, "from", "", "read a profile from `FILE`, - for standard input, instead of this host")
	flags.BoolVar(&f.noExact, "no-exact", false, "do not count softirqs and lock waits for a second after the samples")
	flags.BoolVar(&f.programs, "programs", false,
		"also name the functions of programs, from the symbols of their files; takes more processor time")
	flags.StringVar(&f.out.pprof, "pprof", "", "also write `FILE` for go tool pprof")
	flags.StringVar(&f.out.folded, "folded", "", "also write folded stacks to `FILE`")
	flags.StringVar(&f.out.speedscope, "speedscope", "", "also write `FILE` for speedscope")
	flags.StringVar(&f.out.flame, "flame", "", "also write a page with a flame graph to `FILE`")
	flags.StringVar(&f.out.gprof, "gprof", "", "also write the flat table and the call graph of gprof to `FILE`")
	c.AddCommand(a.profileCompareCommand())
	return c
}

// profiled returns the profile that the flags ask for.
func (a *app) profiled(cmd *cobra.Command, f *profileFlags) (*report.ProfileDocument, error) {
	changed := cmd.Flags().Changed
	if f.from != "" {
		for _, name := range []string{"duration", "event", "cpu", "interface", "rate", "with", "test",
			"parallel", "reverse", "no-exact", "programs"} {
			if changed(name) {
				return nil, usagef("--%s: a profile that is read from a file has no use for it", name)
			}
		}
		return a.readProfile(f.from)
	}
	if changed("from") {
		return nil, usagef("--from: name a file, or - for standard input")
	}
	if err := f.check(changed); err != nil {
		return nil, err
	}
	cpus, err := sys.ParseCPUList(f.cpus)
	if err != nil {
		return nil, usagef("--cpu %s: write a list as in 0-3,8", f.cpus)
	}
	p, err := a.newProgress()
	if err != nil {
		return nil, err
	}
	defer p.Done()
	o := record.Options{Duration: f.load.duration, Event: f.event, CPUs: cpus, Interfaces: f.interfaces, Rate: f.rate,
		Programs: f.programs}
	if f.with != "" {
		return a.profiledWith(cmd.Context(), f, o, p)
	}
	p.Status("sampling for %v", f.load.duration)
	got, err := f.sampled(cmd.Context(), o)
	if err != nil {
		return nil, err
	}
	return report.NewProfile(a.envelope(""), got), nil
}

// exactTime is how long softirqs and lock waits are counted after the samples.
const exactTime = time.Second

// sampled samples this host, and counts exactly for a second more.
func (f *profileFlags) sampled(ctx context.Context, o record.Options) (*profile.Profile, error) {
	got, err := record.Run(ctx, o)
	if err != nil {
		return nil, profileError(err)
	}
	if !f.noExact && ctx.Err() == nil {
		record.Exact(ctx, got, exactTime, false)
	}
	return got, nil
}

// check refuses flags that no profile can have.
func (f *profileFlags) check(changed func(string) bool) error {
	if err := f.load.check(); err != nil {
		return err
	}
	switch {
	case f.load.duration < 500*time.Millisecond || f.load.duration > time.Hour:
		return usagef("--duration %v: must be from 500ms to 1h", f.load.duration)
	case changed("rate") && (f.rate < 10 || f.rate > 2000):
		return usagef("--rate %d: must be from 10 to 2000", f.rate)
	case changed("rate") && f.event != "" && f.event != "cpu-clock":
		return usagef("--rate: only cpu-clock has a rate; counters of the processor have a period")
	}
	for _, name := range []string{"test", "parallel", "reverse"} {
		if changed(name) && f.with == "" {
			return usagef("--%s needs --with: it is about the test", name)
		}
	}
	switch traffic.Test(f.test) {
	case traffic.Stream, traffic.UDP, traffic.RR:
		return nil
	}
	return usagef("--test %s: choose stream, udp or rr", f.test)
}

// profileError adds the status of usage to a mistyped event.
func profileError(err error) error {
	switch {
	case errors.Is(err, record.ErrNoEvent):
		return usageError{err}
	case errors.Is(err, profile.ErrHidden) && os.Geteuid() == 0:
		return flagError{err, "kernel.kptr_restrict must not be 2, and a container needs CAP_SYSLOG"}
	case errors.Is(err, profile.ErrHidden):
		return flagError{err, "run it as root, or give the program what it needs: setcap cap_perfmon,cap_syslog+ep; " +
			"kernel.kptr_restrict must not be 2"}
	}
	return err
}

// Time of a test before and after the samples: its start is not what the path costs.
const (
	profileLead = time.Second
	profileTail = exactTime + 500*time.Millisecond
)

// sampler samples the host at the other end.
type sampler func(ctx context.Context, d time.Duration, exact bool) (*profile.Profile, error)

// ends returns what runs a test to a target, and what samples the host there; nil for a server of
// another program.
func (a *app) ends(ctx context.Context, target string, flags targetFlags, p *progress.Line) (traffic.Runner, sampler,
	func(), error) {
	if _, _, foreign := reach.Foreign(target); foreign {
		run, _, closeRun, err := a.runner(ctx, target, flags, p)
		return run, nil, closeRun, err
	}
	client, err := a.connectUntil(ctx, ctx.Done(), target, flags, p)
	if err != nil {
		return nil, nil, nil, err
	}
	return runnerOf(client), client.Profile, func() { _ = client.Close() }, nil // every result has arrived
}

// samplers samples both ends of a tune. The error is why this host cannot be sampled.
func samplers(client *peer.Client) (map[tune.Side]loop.Sampler, error) {
	near, err := record.Open(record.Options{})
	if err == nil {
		err = near.Named()
	}
	if err != nil {
		return nil, err
	}
	return map[tune.Side]loop.Sampler{
		tune.Near: near.Run,
		tune.Far: func(ctx context.Context, d time.Duration) (*profile.Profile, error) {
			return client.Profile(ctx, d, false)
		},
	}, nil
}

// profiledWith samples this host and the other one while a test between them loads both.
func (a *app) profiledWith(ctx context.Context, f *profileFlags, o record.Options, p *progress.Line) (
	*report.ProfileDocument, error) {
	run, sample, closeRun, err := a.ends(ctx, f.with, f.target, p)
	if err != nil {
		return nil, err
	}
	defer closeRun()
	spec := traffic.Spec{Test: traffic.Test(f.test), Direction: f.load.direction(), Streams: f.load.parallel,
		Duration: o.Duration + profileLead + profileTail}
	if spec.Heavy() {
		release, err := a.loads("profile")
		if err != nil {
			return nil, err
		}
		defer release()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ended struct {
		result *traffic.Result
		err    error
	}
	test := make(chan ended, 1)
	go func() {
		r, err := loop.Measure(ctx, run, spec, func(traffic.Interval) {})
		test <- ended{r, err}
	}()
	p.Status("%s to %s, sampling for %v", f.test, f.with, o.Duration)
	select {
	case early := <-test:
		return nil, cmp.Or(early.err, errors.New("measure "+f.with+": the test ended before it was sampled"))
	case <-time.After(profileLead):
	}
	with := &report.ProfiledTest{Target: f.with, Test: f.test}
	far := make(chan struct{})
	go func() {
		defer close(far)
		if sample == nil {
			with.FarRefused = "it runs no linerate"
			return
		}
		got, err := sample(ctx, o.Duration, !f.noExact)
		if err != nil {
			with.FarRefused = oneSentence(err)
			return
		}
		with.Far = got
	}()
	got, err := f.sampled(ctx, o)
	if err != nil {
		cancel()
		<-far
		<-test
		return nil, err
	}
	<-far
	end := <-test
	if end.err != nil {
		return nil, end.err
	}
	doc := report.NewProfile(a.envelope(""), got)
	with.ThroughputBitsPerS, with.TransactionsPerS = end.result.ThroughputBitsPerSec, end.result.TransactionsPerSec
	with.ReceivedPacketsPerS = end.result.PacketsPerSec
	doc.With = with
	report.FillSlices(doc)
	return doc, nil
}

// readProfile reads a document of this program, or a profile of another.
func (a *app) readProfile(name string) (*report.ProfileDocument, error) {
	source := name
	if name == "-" {
		source = "standard input"
	}
	in, err := a.openInput(name)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	defer func() { _ = in.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(in, foreign.MaxBytes))
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", source, err)
	}
	if head := bytes.TrimSpace(b); len(head) > 0 && head[0] == '{' {
		return report.DecodeProfile(b)
	}
	p, err := foreign.Read(bytes.NewReader(b), source)
	if err != nil {
		return nil, err
	}
	return report.NewProfile(a.envelope(""), p), nil
}

// forms are the open files of further forms, in the order of their flags; nil: not written.
type forms struct{ pprof, folded, speedscope, flame, gprof *page }

// open opens the files before anything is measured for them.
func (o *profileFiles) open() (f forms, err error) {
	for _, one := range []struct {
		flag, name string
		to         **page
	}{{"pprof", o.pprof, &f.pprof}, {"folded", o.folded, &f.folded}, {"speedscope", o.speedscope, &f.speedscope},
		{"flame", o.flame, &f.flame}, {"gprof", o.gprof, &f.gprof}} {
		if *one.to, err = newPage(one.flag, one.name); err != nil {
			f.discard()
			return forms{}, err
		}
	}
	return f, nil
}

func (f forms) discard() {
	for _, p := range []*page{f.pprof, f.folded, f.speedscope, f.flame, f.gprof} {
		p.discard()
	}
}

// write writes the further forms.
func (f forms) write(d *report.ProfileDocument) error {
	title := "linerate profile"
	if d.Host.Name != "" {
		title += " of " + d.Host.Name
	}
	var errs []error
	for _, one := range []struct {
		to    *page
		write func(io.Writer) error
	}{
		{f.pprof, func(w io.Writer) error { return export.Pprof(w, &d.Profile, d.Time.UnixNano()) }},
		{f.folded, func(w io.Writer) error { return export.Folded(w, &d.Profile) }},
		{f.speedscope, func(w io.Writer) error { return export.Speedscope(w, &d.Profile, title) }},
		{f.flame, func(w io.Writer) error { return export.Flame(w, &d.Profile, title) }},
		{f.gprof, func(w io.Writer) error { return export.Gprof(w, &d.Profile) }},
	} {
		if one.to != nil {
			errs = append(errs, one.to.write(one.write))
		}
	}
	return errors.Join(errs...)
}

func (a *app) profileCompareCommand() *cobra.Command {
	var flame string
	c := &cobra.Command{
		Use:         "compare BEFORE AFTER",
		Annotations: exits(exitNotPermitted, exitInterrupted),
		Short:       "Show what differs between two profiles, with intervals",
		Long: `Compare two profiles, documents of --json or files that --from reads, and show the differences
of time per packet, or of shares where packets were not counted. An interval covers the true
difference in 95 of 100 comparisons. Rows that differ beyond chance are marked, and at most one
in twenty of the marked ones is chance. "Nothing differs" is an answer.

--flame draws the later profile: red functions cost more than before, blue ones less, and grey ones
do not differ beyond chance.`,
		Example: "  linerate profile compare before.json after.json\n" +
			"  linerate profile compare --flame difference.html before.json after.json",
		RunE: func(_ *cobra.Command, args []string) error {
			page, err := newPage("flame", flame)
			if err != nil {
				return err
			}
			defer page.discard()
			before, err := a.readProfile(args[0])
			if err != nil {
				return err
			}
			after, err := a.readProfile(args[1])
			if err != nil {
				return err
			}
			c := profile.Compare(&before.Profile, &after.Profile)
			doc := report.NewProfileCompare(a.envelope(""), c)
			if err := a.print(doc, func(s text.Style) error { return text.ProfileCompare(a.out, doc, s) }); err != nil {
				return err
			}
			if page == nil {
				return nil
			}
			return page.write(func(w io.Writer) error {
				return export.FlameDifference(w, &after.Profile, c, "linerate profile compare "+args[0]+" "+args[1])
			})
		},
	}
	c.Flags().StringVar(&flame, "flame", "", "also write a page with a flame graph of the difference to `FILE`")
	return c
}
