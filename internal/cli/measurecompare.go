package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/traffic"
)

func (a *app) measureCompareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:         "compare BEFORE AFTER",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Show what differs between two measurements, with intervals",
		Long: `Compare the tests that two measurements have in common. BEFORE and AFTER are names of stored
measurements or their beginnings, the words last (or latest) and previous, or files of measure
--json; - is standard input. ` + "`linerate report --measurements`" + ` lists what is stored. A stored
name goes before a file of the same name: write ./NAME for the file.

The interval of an effect covers the true ratio in 95 of 100 comparisons, as far as the samples show
the noise: the rounds of --confidence where both have them, else the intervals of each test. "Nothing
differs" is an answer; without a test in common the result is partial. A host of the name compare is
measured as compare:7070.`,
		Example: "  linerate measure compare previous last\n  linerate measure compare monday.json tuesday.json --json",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compareMeasurements(args)
		},
	}
	return a.forScripts(c, false)
}

// compareMeasurements compares the first of several measurements with each of the others.
func (a *app) compareMeasurements(names []string) error {
	var docs []*report.MeasureDocument
	var sources []string
	for _, name := range names {
		d, source, err := a.readMeasurement(name)
		if err != nil {
			return err
		}
		docs, sources = append(docs, d), append(sources, source)
	}
	doc := report.NewMeasureCompare(a.envelope(""), sources, docs)
	if err := a.print(doc, func(s text.Style) error { return text.MeasureCompare(a.out, doc, s) }); err != nil {
		return err
	}
	if !doc.Common() {
		return statusError{status: exitPartial} // the document says why
	}
	return nil
}

// measurementStore returns the stored measurements of this user, and their directory.
func (a *app) measurementStore() (runs.Store, string, error) {
	dir, err := a.stateDir()
	if err != nil {
		return runs.Store{}, "", err
	}
	return runs.In(durable.OS(), dir, runs.Measurements, 0), filepath.Join(dir, string(runs.Measurements)), nil
}

// measurementHint is what to do about a name that is not stored.
const measurementHint = "linerate report --measurements lists what is stored; " +
	"a name may also be last, previous, - or a file"

// readMeasurement finds a measurement as readStored does.
func (a *app) readMeasurement(name string) (d *report.MeasureDocument, source string, err error) {
	store, _, err := a.measurementStore()
	if err != nil {
		return nil, "", err
	}
	doc, source, err := a.readStored(store, name, measurementHint)
	if errors.Is(err, runs.ErrNoRun) {
		if tunes, _, other := a.runStore(); other == nil {
			if id, other := tunes.Find(name); other == nil && strings.HasPrefix(id, name) {
				err = flagError{fmt.Errorf("find measurement %q: this is the name of a tune", name),
					"linerate report " + id + " shows the tune; " + measurementHint}
			}
		}
	}
	if err != nil {
		return nil, "", err
	}
	if d, err = report.DecodeMeasure(lastResult(doc)); err != nil {
		return nil, "", flagError{fmt.Errorf("read measurement %s: %w", source, err),
			"linerate measure TARGET --json prints such documents"}
	}
	return d, source, nil
}

// lastResult returns the document in the result of the lines of --json-lines, which an error may
// follow; another file as it is.
func lastResult(doc []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(doc), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var l report.Line
		if json.Unmarshal(line, &l) != nil || l.Schema != report.SchemaLine {
			return doc
		}
		switch l.Kind {
		case report.LineResult:
			return l.Document
		case report.LineError:
		default:
			return doc
		}
	}
	return doc
}

// listMeasurements prints the list of stored measurements. One that cannot be read is a line of it,
// and makes the result partial.
func (a *app) listMeasurements() error {
	store, dir, err := a.measurementStore()
	if err != nil {
		return err
	}
	ids, err := store.List()
	if err != nil {
		return err
	}
	a.mindRootsRuns(ids, runs.Measurements)
	var entries []report.MeasurementEntry
	bad := false
	for _, id := range ids {
		e := report.MeasurementEntry{Name: id}
		if d, _, err := a.readMeasurement(id); err != nil {
			bad, e.Problem = true, oneSentence(err)
		} else {
			e.Time, e.Target, e.Figures = &d.Time, d.Target, report.Figures(d.Tests)
		}
		entries = append(entries, e)
	}
	doc := report.NewMeasurements(a.envelope(""), dir, entries)
	if err := a.print(doc, func(s text.Style) error { return text.Measurements(a.out, doc, s) }); err != nil {
		return err
	}
	if bad {
		return statusError{status: exitPartial}
	}
	return nil
}

// gateFlags are what a measurement must reach.
type gateFlags struct {
	failBelow string
	baseline  string
	tolerance float64

	limit  float64 // of failBelow, in bits per second; 0: none
	source string
	before *report.MeasureDocument // of baseline; nil: none
}

func (g *gateFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&g.failBelow, "fail-below", "",
		"exit with 4 when a stream or udp test carries less than this `RATE`, as in 9G")
	f.StringVar(&g.baseline, "baseline", "",
		"exit with 4 when a test is proven worse than in this stored `MEASUREMENT` or file, as in last")
	f.Float64Var(&g.tolerance, "tolerance", defaultTolerance,
		"with --baseline: the loss that is tolerated, as a share")
}

// defaultTolerance is above what two tests of one path differ by on most hosts.
const defaultTolerance = 0.05

// read checks the flags and reads the baseline, before anything is measured.
func (g *gateFlags) read(a *app, c *cobra.Command, specs []traffic.Spec) error {
	if g.failBelow != "" {
		rate, err := unit.ParseBitRate(g.failBelow)
		if err != nil {
			return usagef("--fail-below: %w", err)
		}
		if rate <= 0 {
			return usagef("--fail-below %s: must be more than 0", g.failBelow)
		}
		g.limit = float64(rate)
		bulk := false
		for _, s := range specs {
			bulk = bulk || s.Test == traffic.Stream || s.Test == traffic.UDP
		}
		if !bulk {
			return usagef("--fail-below: needs the test stream or udp; %s has no throughput", specs[0].Test)
		}
	}
	switch {
	case c.Flags().Changed("tolerance") && g.baseline == "":
		return usagef("--tolerance: needs --baseline")
	case !(g.tolerance >= 0 && g.tolerance < 1):
		return usagef("--tolerance %v: must be at least 0 and less than 1", g.tolerance)
	case g.baseline == "":
		return nil
	}
	var err error
	g.before, g.source, err = a.readMeasurement(g.baseline)
	return err
}

// judge adds what was asked for to a document.
func (g *gateFlags) judge(d *report.MeasureDocument) {
	if g.limit == 0 && g.before == nil {
		return
	}
	var warnings []string
	d.Gate, warnings = report.Judge(d, g.limit, g.source, g.before, g.tolerance)
	d.Warnings = append(d.Warnings, warnings...)
}

// status returns exit status 4 for a measurement that failed, and 3 for one whose baseline compares
// nothing.
func (g *gateFlags) status(d *report.MeasureDocument) error {
	switch {
	case d.Gate == nil:
		return nil
	case len(d.Gate.Failures) > 0:
		return statusError{status: exitFinding}
	case g.before != nil && !compared(d.Gate.Comparisons):
		return statusError{status: exitPartial, message: "measure: nothing could be compared with the baseline",
			hint: "measure the same tests as the baseline, for 10 s or with --confidence"}
	}
	return nil
}

// compared reports whether any comparison has a verdict.
func compared(all []traffic.Comparison) bool {
	for _, c := range all {
		if c.Verdict != traffic.NotJudged {
			return true
		}
	}
	return false
}
