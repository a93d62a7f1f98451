package cli

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/lab/work"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// matrixFlags are the flags of lab matrix: which cases are played, and how.
type matrixFlags struct {
	only, level, ground, out string
	runs                     int
	short, inside, list      bool
}

func (a *app) labMatrixCommand() *cobra.Command {
	var f matrixFlags
	c := &cobra.Command{
		Use:         "matrix",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Check the verdicts: plant every known fault, diagnose it, compare",
		Long: `Make the world of every scenario at every level of its fault, let linerate diagnose it, and
compare the verdict with the planted fault. A table shows what was found, and each wrong case
follows in detail. The last line is

  first-right-percent=NN.N cases=N

and counts plain and gross cases. The matrix changes nothing outside the worlds. It takes about
half an hour.

The exit status is 1 when less than 95 % of the verdicts are right or a healthy world got a
warning, and 3 when this machine could not play every case.`,
		Example: "  linerate lab matrix --short\n" +
			"  linerate lab matrix --only '^policer$' --level gross --out /tmp/verdicts",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cases, err := f.cases()
			if err != nil {
				return err
			}
			if f.list {
				var scenarios []scenario.Scenario
				for _, c := range cases {
					if n := len(scenarios); n == 0 || scenarios[n-1].Name != c.Scenario.Name {
						// its levels follow one another
						scenarios = append(scenarios, c.Scenario)
					}
				}
				doc := report.NewLabList(a.envelope(""), labEntries(scenarios))
				return a.print(doc, func(s text.Style) error { return text.LabList(a.out, doc, s) })
			}
			return a.labMatrix(cmd.Context(), cases, f)
		},
	}
	c.Flags().StringVar(&f.only, "only", "", "only scenarios whose name matches this regular expression")
	c.Flags().StringVar(&f.level, "level", "", "only this level: mild, plain, gross")
	c.Flags().StringVar(&f.ground, "ground", "all", "only worlds on this ground: namespace, guest")
	c.Flags().IntVar(&f.runs, "runs", 1, "how often each case is played, in a new world each time")
	c.Flags().StringVar(&f.out, "out", "", "store the document of every verdict in this directory")
	c.Flags().BoolVar(&f.short, "short", false, "only a few gross faults and a healthy world, in about a minute")
	c.Flags().BoolVar(&f.list, "list", false, "list the scenarios instead of playing them")
	c.Flags().BoolVar(&f.inside, "inside", false,
		"this is the guest that the cases need; verdicts' documents go into the output")
	_ = c.Flags().MarkHidden("inside") // fails only for a flag that does not exist
	return c
}

// cases returns the cases that the flags select.
func (f matrixFlags) cases() ([]matrix.Case, error) {
	filter, err := matrixFilter(f.only, f.level, f.ground)
	if err != nil {
		return nil, err
	}
	filter.Short = f.short
	if f.runs < 1 {
		return nil, usagef("--runs %d: must be at least 1", f.runs)
	}
	scenarios, err := scenario.Matrix()
	if err != nil {
		return nil, err
	}
	cases := matrix.Select(scenarios, filter)
	if len(cases) == 0 {
		return nil, usagef("no scenario matches these flags; `linerate lab matrix --list` shows the scenarios")
	}
	return cases, nil
}

// matrixFilter reads the flags that select cases.
func matrixFilter(only, level, ground string) (matrix.Filter, error) {
	var filter matrix.Filter
	var err error
	if only != "" {
		if filter.Only, err = regexp.Compile(only); err != nil {
			return filter, usagef("--only: %w", err)
		}
	}
	if filter.Level, err = matrix.ParseLevel(level); err != nil {
		return filter, usageError{err}
	}
	if filter.Ground, err = matrix.ParseGround(ground); err != nil {
		return filter, usageError{err}
	}
	return filter, nil
}

// labMatrix plays the cases and prints one document.
//
// An interrupt ends it with the document of what was played until then, so that half an hour of
// verdicts is not lost.
func (a *app) labMatrix(ctx context.Context, cases []matrix.Case, f matrixFlags) error {
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	e := a.envelope("")
	right, played := 0, 0
	all, err := matrix.Run(ctx, cases, matrix.Options{
		Runs: f.runs, Out: f.out, Inside: f.inside, Embed: f.inside,
		Guest:    matrix.VerdictsInGuests(func(what string) { p.Status("%d of %d right; %s", right, played, what) }),
		Progress: func(what string) { p.Status("%d of %d right; %s", right, played, what) },
		Done: func(c report.MatrixCase) {
			played++
			if c.Right {
				right++
			}
		},
	})
	p.Done()
	if err != nil && len(all) == 0 {
		return err
	}
	doc := matrix.NewVerdicts(e, all)
	if printErr := a.print(doc, func(s text.Style) error { return text.Matrix(a.out, doc, s) }); printErr != nil {
		return printErr
	}
	switch {
	case err != nil:
		return err
	case !doc.Pass:
		return statusError{status: exitFailed, message: "lab: verdicts are wrong too often"}
	case doc.Skips > 0:
		return statusError{status: exitPartial}
	}
	return nil
}

// labWorkCommand is a background program of a practice world: this binary again, as a process with
// an account of its own.
func (a *app) labWorkCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "lab-work DESCRIPTION",
		Short:  "Be a background program of a practice world (started by linerate itself)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return work.RunDescribed(cmd.Context(),
				args[0], a.out)
		},
	}
}
