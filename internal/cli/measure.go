package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/rows"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/traffic"
)

// measureCommand runs tests. A test lasts ten seconds by default, as those of iperf3 and netperf
// do, so that their figures can be compared.
func (a *app) measureCommand() *cobra.Command {
	var (
		target    targetFlags
		load      loadFlags
		test      testFlags
		source    sourceFlags
		gate      gateFlags
		confident bool
		noStore   bool
	)
	c := &cobra.Command{
		Use:         "measure TARGET",
		Annotations: exits(exitPartial, exitFinding, exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Measure what the path to another host carries",
		Long: `Measure the path to a host that runs ` + "`linerate serve`" + `, or to ssh://[USER@]HOST, where your own
ssh starts it. Without --test a suite of all tests runs, in less than 20 seconds.

  stream   bulk TCP: throughput, retransmissions, what limited the flow
  rr       request and response over one connection: transactions per second, percentiles
  crr      the same with a new connection each time
  udp      datagrams at a rate: loss and where each packet was lost, reordering, delay variation
  ping     round trip of single packets
  mtu      largest packet that passes, each way; finds black holes
  load     round trip when idle, and while each direction is full
  burst    back-to-back datagrams in growing trains until the first is lost, at which place

The result counts payload at the receiver, after the warm-up. linerate samples both ends around
every test: the result shows where packets were lost, and the CPU time that the transfer cost.

iperf3://HOST[:PORT] measures against the server of another program; so do iperf2, ttcp, nuttcp,
sockperf and stamp. These need no key, and the result lacks what the far end cannot report.

The letters and suffixes are iperf3's: K, M and G are 1024-based for bytes and 1000-based for rates,
times are plain seconds. A flag that is about one test (-R, -b, -n, -w, …) without --test asks for
stream. Unlike iperf3, -u sends as fast as possible without -b, and the streams of -P share -b.
Also, -l is for datagrams alone, -t 0 is refused, and -O without a number waits for a steady rate.

--fail-below and --baseline make a measurement a check: exit status 4 says that it failed. Against a
baseline it fails only when the whole interval of the effect is below the tolerated loss.

While a test loads this host, a fleet and the schedules of a hub keep their tests away from it.

The newest 200 results stay below the state directory, where a hub on this host finds them for
its graphs. --no-store does not store the result.`,
		Example: "  LINERATE_KEY=KEY linerate measure 192.0.2.7\n" +
			"  linerate measure ssh://db2 --test stream --parallel 4 --reverse\n" +
			"  linerate measure 192.0.2.7 --key-file FILE --test udp --rate 100M --length 200\n" +
			"  linerate measure 192.0.2.7 -P 4 -R -t 30 -B 192.0.2.1\n" +
			"  linerate measure 192.0.2.7 --fail-below 9G\n" +
			"  linerate measure 192.0.2.7 --baseline last --confidence --test stream\n" +
			"  linerate measure 192.0.2.7 --json-lines | jq .interval.throughput_bits_per_second\n" +
			"  linerate measure iperf3://192.0.2.7",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := load.check(); err != nil {
				return err
			}
			if gate.failBelow != "" && test.test == "" && !test.udp {
				test.test = string(traffic.Stream)
			}
			specs, err := specsFor(args[0], test, load)
			if err != nil {
				return err
			}
			if err := gate.read(a, cmd, specs); err != nil {
				return err
			}
			if target.family, target.from, err = source.resolve(cmd.Context(), args[0]); err != nil {
				return err
			}
			if target.from.IsValid() {
				for i := range specs {
					specs[i].SourceAddress = target.from.String()
				}
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			run, client, closeRun, err := a.runner(cmd.Context(), args[0], target, p)
			if err != nil {
				return err
			}
			defer closeRun()
			if slices.ContainsFunc(specs, traffic.Spec.Heavy) {
				release, err := a.loads("measure")
				if err != nil {
					return err
				}
				defer release()
			}
			began := time.Now()
			results, missing, broken := reach.All(specs, func(spec traffic.Spec) (*traffic.Result, error) {
				// An interrupted test has a result too; the next one does not begin.
				if err := cmd.Context().Err(); err != nil {
					return nil, err
				}
				p.Status("%s %s", spec.Test, spec.Direction)
				r, err := a.measured(cmd.Context(), run, spec, confident, p)
				if err == nil && client != nil {
					addBurstBounds(cmd.Context(), client, spec, r)
				}
				return r, err
			})
			p.Done()
			if len(results) == 0 {
				return broken
			}
			// The results so far come before the error that ended the suite.
			doc := report.NewMeasure(a.envelope(""), args[0], results)
			doc.Warnings = append(doc.Warnings, missing...)
			gate.judge(doc)
			if !noStore {
				a.storeMeasurement(began, doc)
			}
			if err := a.printTable(doc, func() rows.Table { return rows.Measure(doc) },
				func(s text.Style) error { return text.Measure(a.out, doc, s) }); err != nil {
				return err
			}
			switch failed := gate.status(doc); {
			case broken != nil:
				return broken
			case cmd.Context().Err() != nil:
				return cmd.Context().Err()
			case failed != nil:
				return failed
			case len(missing) > 0:
				return statusError{status: exitPartial}
			}
			return nil
		},
	}
	target.add(c)
	source.add(c)
	gate.add(c)
	load.add(c, 10*time.Second)
	load.addResults(c)
	test.add(c)
	c.Flags().BoolVar(&confident, "confidence", false,
		"repeat the test until its 95 % interval is within ±2.5 %, at most 30 times")
	c.Flags().BoolVar(&noStore, "no-store", false, "do not store the result")
	c.AddCommand(a.measureCompareCommand())
	return a.forScripts(a.streaming(c), true)
}

// specsFor turns flags into tests. Each test of the suite lasts three seconds or less, so that the
// whole suite takes less than 20 s. The suite has directions and options of its own; specsFor
// refuses flags about those instead of ignoring them.
func specsFor(target string, t testFlags, l loadFlags) ([]traffic.Spec, error) {
	if t.udp {
		if t.test != "" && t.test != string(traffic.UDP) {
			return nil, usagef("--udp is short for --test udp: leave out one of --udp and --test %s", t.test)
		}
		t.test = string(traffic.UDP)
	}
	if t.test == "" && (l.reverse || l.bidir || t.letter()) {
		t.test = string(traffic.Stream) // as iperf3, whose only other test has a flag
	}
	if t.test != "" {
		if _, _, ok := reach.Foreign(target); ok && t.test == string(traffic.Burst) {
			return nil, usagef("--test burst needs linerate at the far end, which reports the fate of each train")
		}
		spec, err := t.spec(l)
		return []traffic.Spec{spec}, err
	}
	if name := t.named(); name != "" {
		return nil, usagef("%s needs --test: the suite has options of its own", name)
	}
	if scheme, _, ok := reach.Foreign(target); ok {
		l.duration = min(l.duration, 3*time.Second)
		return reach.Suite(scheme, l.parallel, l.duration, l.interval), nil
	}
	return loop.Suite(min(l.duration, 3*time.Second), l.interval, l.parallel), nil
}

// runner connects to a target and returns what runs tests against it, the client, which is nil for
// a server of another program, and what closes it.
func (a *app) runner(ctx context.Context, target string, flags targetFlags, p *progress.Line) (traffic.Runner,
	*peer.Client, func(), error) {
	if scheme, address, ok := reach.Foreign(target); ok {
		if err := reach.Check(target); err != nil {
			return nil, nil, nil, err
		}
		address, err := inFamily(ctx, flags.family, address)
		return foreignRunner(scheme, address), nil, func() {}, err
	}
	client, err := a.connectUntil(ctx, ctx.Done(), target, flags, p)
	if err != nil {
		return nil, nil, nil, err
	}
	return runnerOf(client), client, func() { _ = client.Close() }, nil // every result has arrived
}

// runnerOf runs tests against a connected host. An interrupted test may still return its result.
func runnerOf(client *peer.Client) traffic.Runner {
	return func(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
		ctx, cancel := lastWords(ctx)
		defer cancel()
		return client.Run(ctx, spec, progress)
	}
}

// lastWordsTime is how long an interrupted test may take to return its result.
const lastWordsTime = 3 * time.Second

// lastWords returns a context that ends lastWordsTime after ctx.
func lastWords(ctx context.Context) (context.Context, func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWordsTime, func() { cancel(context.Cause(ctx)) })
	})
	return later, func() {
		stop()
		cancel(context.Canceled)
	}
}

// measured runs one test, or repeats it until its interval is narrow enough.
func (a *app) measured(ctx context.Context, run traffic.Runner, spec traffic.Spec, confident bool,
	p *progress.Line) (*traffic.Result, error) {
	once := func(ctx context.Context) (*traffic.Result, error) {
		r, err := loop.Measure(ctx, run, spec, func(i traffic.Interval) { a.interim(p, spec, i) })
		if spec.Congestion != "" && errors.Is(err, fs.ErrNotExist) {
			err = flagError{err, "net.ipv4.tcp_available_congestion_control lists what this host accepts for --cc"}
		}
		return r, err
	}
	if !confident {
		return once(ctx)
	}
	return loop.Confident(ctx, once, func(round int, c traffic.Confidence) {
		p.Step("round %d: 95 %% interval ±%s", round, unit.FormatPercent(c.HalfWidthRatio))
	})
}

// interim prints one interval of a running test: on a terminal it rewrites the status line, in a
// log it is a line of its own.
func (a *app) interim(p *progress.Line, spec traffic.Spec, i traffic.Interval) {
	if a.lines != nil {
		line := report.NewLine(report.LineInterval)
		line.Test, line.Direction, line.Interval = spec.Test, spec.Direction, &i
		_ = a.lines.put(line) // the command ends by its context, and reports the error
		return
	}
	show := p.Step
	if p.Mode() != progress.Lines {
		show = p.Status
	}
	omitted := ""
	if i.Omitted {
		omitted = "  (warm-up)"
	}
	switch spec.Test {
	case traffic.Stream:
		text := fmt.Sprintf("%s %s  %5.1f s  %s  rtt %s", spec.Test, spec.Direction, i.EndSeconds,
			unit.BitRate(i.ThroughputBitsPerSec), unit.FormatSeconds(i.RTTSeconds))
		if i.ProbeRTTSeconds > 0 {
			text += "  ping " + unit.FormatSeconds(i.ProbeRTTSeconds)
		}
		show("%s%s", text, omitted)
	case traffic.UDP, traffic.Burst:
		show("%s %s  %5.1f s  %s  %s packets/s  %d lost%s", spec.Test, spec.Direction, i.EndSeconds,
			unit.BitRate(i.ThroughputBitsPerSec), unit.FormatCount(i.PacketsPerSec), i.LostPacketsTotal, omitted)
	case traffic.RR, traffic.CRR:
		show("%s  %5.1f s  %s transactions/s%s", spec.Test, i.EndSeconds,
			unit.FormatCount(i.TransactionsPerSec), omitted)
	default:
		text := fmt.Sprintf("%s  %5.1f s", spec.Test, i.EndSeconds)
		if rtt := max(i.RTTSeconds, i.ProbeRTTSeconds); rtt > 0 {
			text += "  round trip " + unit.FormatSeconds(rtt)
		}
		// The load test fills the path at this rate meanwhile.
		if i.ThroughputBitsPerSec > 0 {
			text += " at " + unit.BitRate(i.ThroughputBitsPerSec).String()
		}
		show("%s%s", text, omitted)
	}
}
