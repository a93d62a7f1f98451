package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/report"
)

// A pattern without a match is an error with a status of its own and never an empty document.
func (a *app) knobsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "knobs [PATTERN]",
		Short: "The catalogue of knobs: range, default, symptom, risk, source",
		Long: `List the knobs that linerate knows, with what they do, the range, the default, when to touch
them, what may go wrong, and where that is known from. PATTERN is a part of the name or a glob.`,
		Example: "  linerate knobs rmem\n  linerate knobs 'ethtool:*'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			found := knob.Catalogue().Match(pattern)
			if len(found) == 0 {
				return statusError{status: exitUsage, message: fmt.Sprintf("no knob matches %q", pattern), hint: "linerate knobs, for the whole list"}
			}
			doc := report.NewKnobs(a.envelope(""), found)
			return a.print(doc, func(s report.Style) error { return report.KnobsText(a.out, doc, s) })
		},
	}
}
