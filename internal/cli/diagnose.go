package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// diagnoseFlags say what is judged and how much of it is printed.
type diagnoseFlags struct {
	target  targetFlags
	load    loadFlags
	failOn  string
	explain string
	verbose bool
	cpu     cpuFlag
	sent    sentFlags
	disk    fromDiskFlag
}

// diagnoseCommand names limits. --fail-on makes it a check for scripts and monitoring: status 4
// means "a limit was found", status 1 "could not look".
func (a *app) diagnoseCommand() *cobra.Command {
	var f diagnoseFlags
	c := &cobra.Command{
		Use:         "diagnose [TARGET]",
		Annotations: exits(exitFinding, exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Name what limits this host, or the path to another, with evidence",
		Long: `Name what limits the path to TARGET, or without one what is wrong with this host. Each finding
shows its numbers, their sources, and the explanations that were ruled out. diagnose changes
nothing.

With a TARGET, diagnose reads both hosts, loads the path once, and samples both ends around the
load. A few short probes follow where a suspicion needs them. Where a processor is the limit, the
last of them samples it, and the finding names the stages of the network path that take the time.
All of this takes at most 15 seconds.

iperf3://HOST[:PORT], and the other programs that measure knows, are judged by what this end
sees of them. icmp://HOST is judged by round trips and the path MTU alone. So is a host where no
server accepts the connection.

Without a TARGET nothing is sent: diagnose watches the counters, processors, interrupts and
sockets of this host during its normal work, for --duration, which is then at most 5 seconds.
Where a processor is the limit, it samples the CPUs for two seconds more, if the kernel permits,
and the finding names the stages of the network path that take the time.

--from-disk PATH answers which of the two limits a copy to TARGET: the disk below PATH, read through
the page cache as a copy does, or the path. It measures one after the other, which takes three
seconds more, and in a directory the time to fill a file without a name.

--from judges a host that you cannot reach, from the files it sent: one snapshot shows what the
host has counted since its start, two show what happened between them. --save writes all
evidence of a verdict, with addresses and names replaced, so that another person can judge it
again.`,
		Example: "  linerate diagnose\n  linerate diagnose 192.0.2.7 --key-file FILE\n" +
			"  linerate diagnose iperf3://192.0.2.7\n  linerate diagnose --fail-on warning --json\n" +
			"  linerate diagnose 192.0.2.7 --from-disk /srv\n" +
			"  linerate diagnose --from monday.capture --from tuesday.capture\n" +
			"  linerate diagnose --explain receive-window-limited",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.explain != "" {
				return a.explain(f.explain)
			}
			// Flags are checked before anything is connected: a mistake in one must not load a path
			// for nothing.
			if err := f.check(cmd, args); err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			var target string
			if len(args) > 0 {
				target = args[0]
			}
			disk, err := f.disk.open(cmd.Context(), p)
			if err != nil {
				return err
			}
			if disk != nil {
				defer disk.Close()
			}
			v, short, err := a.diagnosed(cmd.Context(), target, f, p)
			if err != nil {
				return err
			}
			doc := report.NewDiagnose(a.envelope(v.Near.Name), target, v.Case, v.Findings, v.Blind)
			if err := f.disk.compare(cmd.Context(), disk, f.load.reverse, v, doc); err != nil {
				return err
			}
			p.Done()
			if short != nil {
				doc.Warnings = append(doc.Warnings, oneSentence(short)+": judged by echoes alone")
			}
			show := func(w io.Writer, d *report.DiagnoseDocument, s text.Style) error {
				return text.Diagnose(w, d, s, f.verbose)
			}
			if f.cpu.of(v, doc) {
				show = text.CPU
			}
			if err := a.print(doc, func(s text.Style) error { return show(a.out, doc, s) }); err != nil {
				return err
			}
			// A full disk does not cost the verdict.
			return cmp.Or(f.sent.keep(v.Case, p), failOnSeverity(f.failOn, v.Findings), short)
		},
	}
	f.target.add(c)
	f.load.add(c, 3*time.Second)
	c.Flags().Lookup("duration").Usage = "how long to load the path, after its warm-up; " +
		"without TARGET how long to watch this host, at most 5s"
	c.Flags().StringVar(&f.failOn, "fail-on", "",
		"exit with 4 when a finding is at or above this severity: info, notice, warning, critical")
	c.Flags().StringVar(&f.explain, "explain", "", "explain a finding's code instead of measuring")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false,
		"print all evidence of all findings, and everything that could not be seen")
	f.cpu.add(c)
	f.sent.add(c)
	f.disk.add(c)
	return a.forScripts(a.streaming(c), false)
}

// check refuses flags that contradict each other or the arguments.
func (f *diagnoseFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.load.check(); err != nil {
		return err
	}
	if f.failOn != "" && severityRank(evidence.Severity(f.failOn)) < 0 {
		return usagef("--fail-on %q: not one of info, notice, warning, critical", f.failOn)
	}
	if err := cmp.Or(f.cpu.check(args), f.sent.check(cmd, args), f.disk.check(args)); err != nil {
		return err
	}
	if len(args) > 0 || len(f.sent.from) > 0 {
		return nil
	}
	for _, name := range []string{"key", "key-file", "connect-timeout", "parallel", "reverse"} {
		if cmd.Flags().Changed(name) {
			return flagError{usagef("--%s: without a TARGET nothing is sent", name), "linerate diagnose TARGET --" +
				name + " …"}
		}
	}
	if f.load.duration > watch.MaxDuration {
		return usagef("--duration %v: this host is watched for %v at most; give a TARGET to load a path for longer",
			f.load.duration, watch.MaxDuration)
	}
	return nil
}

func (a *app) explain(code string) error {
	entry, ok := evidence.Explain(evidence.Code(code))
	if !ok {
		return usagef("no finding has the code %q; `linerate diagnose --explain healthy` shows the form", code)
	}
	doc := report.NewExplain(a.envelope(""), entry)
	return a.print(doc, func(s text.Style) error { return text.Explain(a.out, doc, s) })
}

// severities are in the order of severityRank.
var severities = []evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical}

func severityRank(s evidence.Severity) int { return slices.Index(severities, s) }

// failOnSeverity returns exit status 4 when a finding is at or above a severity; the document shows
// which.
func failOnSeverity(failOn string, findings []evidence.Finding) error {
	if failOn == "" {
		return nil
	}
	for _, f := range findings {
		if severityRank(f.Severity) >= severityRank(evidence.Severity(failOn)) {
			return statusError{status: exitFinding}
		}
	}
	return nil
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
