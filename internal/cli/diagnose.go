package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/loop"
	"github.com/linerate/linerate/internal/report"
)

// --fail-on makes it a check for scripts and monitoring: status 4 tells "something is wrong with the path" from 1,
// "could not look".
func (a *app) diagnoseCommand() *cobra.Command {
	var (
		target  targetFlags
		load    loadFlags
		failOn  string
		explain string
	)
	c := &cobra.Command{
		Use:   "diagnose TARGET",
		Short: "Name what limits the path to another host, with evidence",
		Long: `Load the path once, sample both ends around it, and say what limits it: each finding with its
numbers, where they came from, and the explanations that were ruled out. Changes nothing.`,
		Example: "  linerate diagnose 192.0.2.7 --key KEY\n  linerate diagnose --explain receive-window-limited",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if explain != "" {
				return a.explain(explain)
			}
			if len(args) != 1 {
				return usagef("diagnose needs a TARGET: a host that runs `linerate serve`, or ssh://HOST")
			}
			if err := load.check(); err != nil {
				return err
			}
			// Flags are checked before anything is connected: a typing error must not cost a measurement, nor load a
			// path for nothing.
			if failOn != "" && severityRank(diagnose.Severity(failOn)) < 0 {
				return usagef("--fail-on %q: not one of info, notice, warning, critical", failOn)
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
			v, err := loop.Diagnose(cmd.Context(), client, loop.DiagnoseOptions{
				Direction: load.direction(), Streams: load.parallel, Duration: load.duration,
				Progress: func(step string) { p.Status("%s", step) },
			})
			if err != nil {
				return err
			}
			p.Done()
			doc := report.NewDiagnose(a.envelope(v.Near.Name), args[0], v.Findings, v.Runs)
			if err := a.print(doc, func(s report.Style) error { return report.DiagnoseText(a.out, doc, s) }); err != nil {
				return err
			}
			return failOnSeverity(failOn, v.Findings)
		},
	}
	target.add(c)
	load.add(c, 3*time.Second, false)
	c.Flags().StringVar(&failOn, "fail-on", "", "exit with 4 when a finding is at or above this severity: info, notice, warning, critical")
	c.Flags().StringVar(&explain, "explain", "", "explain a finding's code instead of measuring")
	return c
}

func (a *app) explain(code string) error {
	entry, ok := diagnose.Explain(diagnose.Code(code))
	if !ok {
		return usagef("no finding has the code %q; `linerate diagnose --explain healthy` shows the form", code)
	}
	doc := report.NewExplain(a.envelope(""), entry)
	return a.print(doc, func(s report.Style) error { return report.ExplainText(a.out, doc, s) })
}

// Their order is that of severityRank.
var severities = []diagnose.Severity{diagnose.Info, diagnose.Notice, diagnose.Warning, diagnose.Critical}

func severityRank(s diagnose.Severity) int { return slices.Index(severities, s) }

// failOnSeverity gives exit status 4 when a finding is bad enough; the document has said which.
func failOnSeverity(failOn string, findings []diagnose.Finding) error {
	if failOn == "" {
		return nil
	}
	for _, f := range findings {
		if severityRank(f.Severity) >= severityRank(diagnose.Severity(failOn)) {
			return statusError{status: exitFinding}
		}
	}
	return nil
}

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
