package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// labTuneFlags are the flags of lab tune: which cases are tuned, and how.
type labTuneFlags struct {
	only, level, ground, out string
	runs, trials, null       int
	budget                   time.Duration
	inside, list             bool
}

func (a *app) labTuneCommand() *cobra.Command {
	var f labTuneFlags
	c := &cobra.Command{
		Use:         "tune",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Check that tuning repairs: plant every fault that a knob can repair, tune it, compare",
		Long: `For every scenario whose fault a knob can repair: measure a healthy world like it, make the
world with its fault, measure, tune, and measure again. Then alternately remove and restore each
kept change, undo, and compare every setting. A case is tuned when it reaches 90 % of the
healthy rate within 20 trials, each kept change gains more than the noise, and every setting is
back. A case is listed separately and does not count when its fault costs less than a tenth of
the rate on this machine and nothing was kept. The last line is

  tuned-percent=NN.N cases=N

--null N plants no fault and diagnoses nothing: it tries N knobs without an effect on the
traffic in a healthy world. No more than one in twenty of these may be kept.

lab tune changes nothing outside the worlds. All cases take about an hour, and 40 knobs without
an effect ten minutes.

The exit status is 1 when a case is not tuned, and 3 when this machine could not play every
case.`,
		Example: "  linerate lab tune --ground namespace\n" +
			"  linerate lab tune --only '^receive-window$' --level plain --out /tmp/tunes\n" +
			"  linerate lab tune --null 40 --budget 30m",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cases, err := f.cases()
			if err != nil {
				return err
			}
			if f.list {
				var scenarios []scenario.Scenario
				for _, c := range cases {
					scenarios = append(scenarios, c.Scenario)
				}
				doc := report.NewLabList(a.envelope(""), labEntries(scenarios))
				return a.print(doc, func(s text.Style) error { return text.LabList(a.out, doc, s) })
			}
			return a.labTune(cmd.Context(), cases, f)
		},
	}
	c.Flags().StringVar(&f.only, "only", "", "only scenarios whose name matches this regular expression")
	c.Flags().StringVar(&f.level, "level", string(scenario.Gross), "how bad the fault is: mild, plain, gross")
	c.Flags().StringVar(&f.ground, "ground", "all", "only worlds on this ground: namespace, guest")
	c.Flags().IntVar(&f.runs, "runs", 1, "how often each case is played, in new worlds each time")
	c.Flags().DurationVar(&f.budget, "budget", 5*time.Minute, "time for each tune")
	c.Flags().IntVar(&f.trials, "max-trials", 20, "most trials of each tune")
	c.Flags().IntVar(&f.null, "null", 0,
		"instead of the scenarios, try this many knobs without an effect in a healthy world")
	c.Flags().StringVar(&f.out, "out", "", "store the document of every tune in this directory")
	c.Flags().BoolVar(&f.list, "list", false, "list the scenarios instead of playing them")
	c.Flags().BoolVar(&f.inside, "inside", false,
		"this is the guest that the cases need; the tunes' documents go into the output")
	_ = c.Flags().MarkHidden("inside") // fails only for a flag that does not exist
	return c
}

// maxNulls is the number of candidates without an effect, at both ends together, on a recent
// kernel.
const maxNulls = 40

// nullSegment are the flags of short segments. A knob without an effect is kept only by chance, and
// short segments leave more to chance.
var nullSegment = []string{"--duration", "400ms", "--warm-up", "100ms"}

// cases returns the cases that the flags select.
func (f labTuneFlags) cases() ([]matrix.Case, error) {
	filter, err := matrixFilter(f.only, f.level, f.ground)
	switch {
	case f.level == "":
		return nil, usagef("--level %q: want one of %v", f.level, scenario.Levels)
	case err != nil:
		return nil, err
	case f.runs < 1:
		return nil, usagef("--runs %d: must be at least 1", f.runs)
	case f.trials < 1:
		return nil, usagef("--max-trials %d: must be at least 1", f.trials)
	case f.budget <= 0:
		return nil, usagef("--budget %v: must be longer than 0s", f.budget)
	case f.null < 0 || f.null > maxNulls:
		return nil, usagef("--null %d: must be from 1 to %d", f.null, maxNulls)
	case f.null > 0:
		c, err := matrix.Nulls()
		return []matrix.Case{c}, err
	}
	scenarios, err := scenario.Matrix()
	if err != nil {
		return nil, err
	}
	cases := matrix.Repairable(matrix.Select(scenarios, filter))
	if len(cases) == 0 {
		return nil, usagef("no scenario matches these flags; `linerate lab tune --list` shows those that a " +
			"knob can repair")
	}
	return cases, nil
}

// labTune plays the cases and prints one document, also after an interrupt.
func (a *app) labTune(ctx context.Context, cases []matrix.Case, f labTuneFlags) error {
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	e := a.envelope("")
	tuned, played := 0, 0
	status := func(what string) {
		p.Status("%d of %d tuned; %s", tuned, played, strings.Replace(what, progress.StatusMark, "", 1))
	}
	var further []string
	if f.null > 0 {
		further = append(matrix.Nulled(f.null), nullSegment...)
	}
	all, err := matrix.Tune(ctx, cases, matrix.TuneOptions{
		Runs: f.runs, Budget: f.budget, Trials: f.trials, Further: further, Out: f.out, Inside: f.inside,
		Embed:    f.inside,
		Guest:    matrix.TunesInGuests(status, f.budget, f.trials),
		Progress: func(c matrix.Case, what string) { status(c.Name() + ": " + what) },
		Done: func(c report.TuneMatrixCase) {
			if c.Tuned {
				tuned++
			}
			if !c.Free {
				played++
			}
		},
	})
	p.Done()
	if err != nil && len(all) == 0 {
		return err
	}
	doc := matrix.NewTunes(e, all)
	if printErr := a.print(doc, func(s text.Style) error { return text.TuneMatrix(a.out, doc, s) }); printErr != nil {
		return printErr
	}
	switch {
	case err != nil:
		return err
	case !doc.Pass:
		return statusError{status: exitFailed, message: "lab: not every world could be tuned"}
	case doc.Skips > 0:
		return statusError{status: exitPartial}
	}
	return nil
}
