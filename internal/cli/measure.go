package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/loop"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/unit"
)

// Ten seconds are what iperf3 and netperf take by default, so that figures can be put side by side.
func (a *app) measureCommand() *cobra.Command {
	var (
		target targetFlags
		load   loadFlags
		test   string
		warmUp time.Duration
	)
	c := &cobra.Command{
		Use:   "measure TARGET",
		Short: "Measure what the path to another host carries",
		Long: `Measure throughput (stream), request/response rate (rr) and round trip (ping) to a host that
runs ` + "`linerate serve`" + `, or to ssh://[USER@]HOST, where it is started over your own ssh.
Without --test a short suite of all three runs, both directions.

The figure is payload counted at the receiver, after the warm-up. Both ends are sampled around
every test: where packets died and what the transfer cost in CPU time are part of the result.`,
		Example: "  linerate measure 192.0.2.7 --key KEY\n  linerate measure ssh://db2 --test stream --parallel 4 --reverse",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := load.check(); err != nil {
				return err
			}
			specs, err := specsFor(test, load, warmUp)
			if err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			client, err := a.connect(cmd.Context(), args[0], target, p)
			if err != nil {
				return err
			}
			defer client.Close()
			var results []traffic.Result
			var missing []string
			for _, spec := range specs {
				p.Status("%s %s", spec.Test, spec.Direction)
				r, err := client.Run(cmd.Context(), spec, func(i traffic.Interval) { a.interim(p, spec, i) })
				// One test that gets no answer (echoes are often filtered) must not hide the others of the suite.
				if errors.Is(err, traffic.ErrNoAnswer) && len(specs) > 1 {
					missing = append(missing, err.Error())
					continue
				}
				if err != nil {
					return err
				}
				results = append(results, *r)
			}
			p.Done()
			doc := report.NewMeasure(a.envelope(""), args[0], results)
			doc.Warnings = append(doc.Warnings, missing...)
			if err := a.print(doc, func(s report.Style) error { return report.MeasureText(a.out, doc, s) }); err != nil {
				return err
			}
			if len(missing) > 0 {
				return statusError{status: exitPartial}
			}
			return nil
		},
	}
	target.add(c)
	load.add(c, 10*time.Second, true)
	c.Flags().StringVar(&test, "test", "", "one test instead of the suite: stream, rr, ping")
	c.Flags().DurationVar(&warmUp, "warm-up", -1, "cut this from the front of a test; negative: until the rate is steady")
	return c
}

// specsFor turns flags into tests. The suite gives each test a short, fixed share, so that the whole screen is there in under 20 s.
//
// The suite has directions and warm-ups of its own, so flags about those are refused rather than ignored; of --duration each test takes
// three seconds at the most.
func specsFor(test string, l loadFlags, warmUp time.Duration) ([]traffic.Spec, error) {
	if test == "" {
		if l.reverse || l.bidir || warmUp >= 0 {
			return nil, usagef("--reverse, --bidir and --warm-up need --test: the suite measures both directions")
		}
		l.duration = min(l.duration, 3*time.Second)
		specs := loop.Suite(l.duration, l.interval, l.parallel)
		return specs, nil
	}
	spec := traffic.Spec{
		Test: traffic.Test(test), Direction: l.direction(), Streams: l.parallel,
		Duration: l.duration, Interval: l.interval, WarmUp: warmUp,
	}
	switch spec.Test {
	case traffic.Stream:
	// One byte each way is the smallest transaction, whose rate is one over the round trip as a program sees it
	// (netperf's TCP_RR does the same).
	case traffic.RR:
		spec.RequestBytes, spec.ResponseBytes = 1, 1
	// 56 bytes of payload are those of ping(8); ten a second are no load on any path.
	case traffic.Ping:
		spec.RequestBytes, spec.Gap = 56, 100*time.Millisecond
	default:
		return nil, usagef("--test %q: not one of stream, rr, ping", test)
	}
	if spec.Test != traffic.Stream {
		if l.reverse || l.bidir {
			return nil, usagef("--reverse and --bidir are for --test stream: a %s has both directions in it", test)
		}
		spec.WarmUp = max(warmUp, 0)
	}
	return []traffic.Spec{spec}, nil
}

// interim tells one interval while a test runs.
//
// On a terminal an interim result rewrites the status line, in a log it is a line of its own: there the run of the
// figures is what one looks for.
func (a *app) interim(p *progress, spec traffic.Spec, i traffic.Interval) {
	tell := p.Step
	if p.mode != progressLines {
		tell = p.Status
	}
	omitted := ""
	if i.Omitted {
		omitted = "  (warm-up)"
	}
	switch {
	case spec.Test == traffic.Stream:
		tell("%s %s  %5.1f s  %s  rtt %s%s", spec.Test, spec.Direction, i.EndSeconds,
			unit.BitRate(i.ThroughputBitsPerSec), unit.FormatSeconds(i.RTTSeconds), omitted)
	case spec.Test == traffic.RR:
		tell("%s  %5.1f s  %s transactions/s%s", spec.Test, i.EndSeconds, unit.FormatCount(i.TransactionsPerSec), omitted)
	default:
		tell("%s  %5.1f s  round trip %s%s", spec.Test, i.EndSeconds, unit.FormatSeconds(i.RTTSeconds), omitted)
	}
}
