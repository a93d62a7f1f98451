package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// demoCommand plays a scenario of the lab with the ordinary commands inside the world. Nothing in
// it is staged, so it takes two minutes.
func (a *app) demoCommand() *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:         "demo",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "The whole loop in a private world on this machine: measure, diagnose, tune, prove, undo",
		Long: `Make two hosts in private namespaces, joined by an emulated 1 Gb/s link with a round trip of 20
ms. Give the receiver the buffers of 2005, and let linerate find and repair the fault. It
measures, names the limit, tries the remedies one by one, keeps what is proven and confirms the
total. Then it undoes everything and proves that every value is back.

The demo takes about two minutes and touches nothing outside that world. It does not need root
where the kernel lets ordinary users create namespaces. --json prints the linerate.tune/1
document of the run. The exit status is 3 when other programs use the machine, and the rates
cannot be compared.`,
		Example: "  linerate demo\n  linerate demo --json | jq .final",
		RunE: func(cmd *cobra.Command, _ []string) error {
			scenario, err := scenario.Load(demoScenario)
			if err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			if page, err = filepath.Abs(page); err != nil {
				return err
			}
			// The tune inside the world writes the page a minute from now; a path that cannot be
			// written is reported at once.
			probe, err := newPage("html", page)
			if err != nil {
				return err
			}
			probe.discard()
			story := &teller{out: a.out, progress: p, scenario: scenario}
			if a.json {
				story.out = io.Discard
			}
			story.verdict = func(d *report.DiagnoseDocument) error {
				return text.Diagnose(story.out, d, a.style(), false)
			}
			story.begin()
			result, err := lab.Run(cmd.Context(), scenario, lab.Options{
				Progress: story.event, Verdict: true, HTML: page, Tune: demoTune(),
			})
			p.Done()
			if err != nil {
				return err
			}
			return a.demoResult(story, result, page)
		},
	}
	c.Flags().StringVar(&page, "html", "linerate-demo.html", "file for the page with the plots")
	return c
}

// demoResult prints the end of the story, or the document, and fails when the loop did not close.
// The document is printed in that case too: its figures show why.
func (a *app) demoResult(story *teller, r *lab.Result, page string) error {
	if a.json && len(r.Tune) > 0 {
		if _, err := fmt.Fprintf(a.out, "%s\n", strings.TrimSpace(string(r.Tune))); err != nil {
			return err
		}
	} else if len(r.Tune) > 0 {
		var doc report.TuneDocument
		if err := json.Unmarshal(r.Tune, &doc); err != nil {
			return fmt.Errorf("read the tune document: %w", err)
		}
		if err := text.Tune(a.out, &doc, a.style()); err != nil {
			return err
		}
		story.end(r, page)
	}
	if r.Disturbed {
		return statusError{status: exitPartial, message: "demo: " + r.Reason,
			hint: "run it again when the machine is idle"}
	}
	if !r.Pass {
		return statusError{status: exitFailed, message: "demo: " + r.Reason}
	}
	return story.err()
}
