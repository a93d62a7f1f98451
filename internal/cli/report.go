package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	drawn "github.com/linerate/linerate/internal/report/page"
	"github.com/linerate/linerate/internal/report/rows"
	"github.com/linerate/linerate/internal/report/text"
)

type reportFlags struct {
	html string
	raw  bool
	// list the stored measurements instead of the tunes
	measurements bool
	rules        tune.Rules
}

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:         "report [RUN...]",
		Annotations: exits(exitPartial, exitNotPermitted, exitInterrupted),
		Short:       "Show a stored tune again, judge it again from its raw segments, draw its page",
		Long: `linerate stores every tune with all its measurements, also an interrupted one. Without RUN,
report lists them, newest first. RUN is the name of a run or its beginning, the word last, a
file from another host, or - for standard input.

report shows a run as its tune showed it, and judges it again from its raw segments with the
code that judged it live. --confidence and --min-effect show the decisions by other rules.
--html draws one page that needs no network; --raw prints the segments as comma-separated
values.

A stored measurement, or a file of measure --json, is shown as measure showed it. Several are shown
beside the first of them, each with the interval of what differs: name the one before a change first.
--measurements lists those that are stored.

The newest 200 runs stay in the state directory (--state), and as many measurements.`,
		Example: "  linerate report\n  linerate report last --html result.html\n" +
			"  linerate report 20261122-13 --confidence 0.99\n" +
			"  linerate report last --raw > segments.csv\n" +
			"  linerate report before.json after.json\n  linerate report --format csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, a.json, args); err != nil {
				return err
			}
			switch {
			case f.measurements:
				return a.listMeasurements()
			case len(args) == 0:
				return a.listRuns()
			case len(args) > 1:
				return a.compareMeasurements(args)
			}
			return a.report(args[0], f)
		},
	}
	c.Flags().StringVar(&f.html, "html", "", "also write one self-contained page to this file")
	c.Flags().BoolVar(&f.raw, "raw", false, "print only the segments, as comma-separated values")
	c.Flags().BoolVar(&f.measurements, "measurements", false, "list the stored measurements instead of the tunes")
	c.Flags().Float64Var(&f.rules.Confidence, "confidence", 0,
		"judge with this two-sided confidence, such as 0.99 (default: the run's own)")
	c.Flags().Float64Var(&f.rules.MinUsefulEffect, "min-effect", 0,
		"judge with this minimum useful effect, such as 0.05 for 5 % (default: the run's own)")
	return a.forScripts(c, true)
}

// single reports whether a flag was given that only a tune has a use for.
func (f reportFlags) single() bool { return f.raw || f.html != "" || f.rules != tune.Rules{} }

// check refuses flags that contradict each other before any file is opened.
func (f reportFlags) check(cmd *cobra.Command, jsonToo bool, args []string) error {
	flags := cmd.Flags()
	single := f.raw || f.html != "" || flags.Changed("confidence") || flags.Changed("min-effect")
	switch {
	case f.measurements && (len(args) > 0 || single):
		return usagef("--measurements lists what is stored: leave out RUN and the other flags")
	case flags.Changed("format") && (len(args) > 0 || f.measurements):
		return usagef("--format: only the list of runs is a table; leave out RUN and --measurements")
	case len(args) > 1 && single:
		return usagef("report: one RUN at a time with --raw, --html, --confidence and --min-effect")
	case len(args) == 0 && single:
		return usageError{flagError{errors.New("report: which run?"),
			"linerate report last, or a name that `linerate report` lists"}}
	case f.raw && (jsonToo || f.html != ""):
		return usagef("--raw prints only segments: leave out --json and --html")
	case flags.Changed("confidence") && !(f.rules.Confidence > 0.5 && f.rules.Confidence < 1):
		return usagef("--confidence %v: must be more than 0.5 and less than 1", f.rules.Confidence)
	case flags.Changed("min-effect") &&
		!(f.rules.MinUsefulEffect >= tune.LeastUsefulEffect && f.rules.MinUsefulEffect <= 100):
		return usagef("--min-effect %v: must be from %v to 100", f.rules.MinUsefulEffect, tune.LeastUsefulEffect)
	}
	return nil
}

// runStore returns the stored runs of this user, and their directory.
func (a *app) runStore() (runs.Store, string, error) {
	dir, err := a.stateDir()
	if err != nil {
		return runs.Store{}, "", err
	}
	return runs.In(durable.OS(), dir, runs.Tunes, 0), filepath.Join(dir, string(runs.Tunes)), nil
}

// listRuns prints the list. A run that cannot be read is a line of it, and makes the result
// partial.
func (a *app) listRuns() error {
	store, dir, err := a.runStore()
	if err != nil {
		return err
	}
	ids, err := store.List()
	if err != nil {
		return err
	}
	a.mindRootsRuns(ids, runs.Tunes)
	var entries []report.RunEntry
	bad := false
	for _, id := range ids {
		doc, err := store.Read(id)
		var d *report.TuneDocument
		if err == nil {
			d, err = report.DecodeTune(doc)
		}
		if err != nil {
			bad = true
			entries = append(entries, report.UnreadableRun(id, err))
			continue
		}
		entries = append(entries, report.NewRunEntry(id, d))
	}
	list := report.NewRuns(a.envelope(""), dir, entries)
	if err := a.printTable(list, func() rows.Table { return rows.Runs(list) },
		func(s text.Style) error { return text.Runs(a.out, list, s) }); err != nil {
		return err
	}
	if bad {
		return statusError{status: exitPartial}
	}
	return nil
}

// report shows one run, or one measurement where no flag asks for what only a tune has.
func (a *app) report(name string, f reportFlags) error {
	store, _, err := a.runStore()
	if err != nil {
		return err
	}
	stored, source, err := a.readStored(store, name, runHint)
	if errors.Is(err, runs.ErrNoRun) && !f.single() {
		if d, _, other := a.readMeasurement(name); other == nil {
			return a.showMeasurement(d)
		}
	}
	if err != nil {
		return err
	}
	run, err := decodeRun(stored, source)
	if errors.Is(err, report.ErrNotARun) && !f.single() {
		if d, other := report.DecodeMeasure(lastResult(stored)); other == nil {
			return a.showMeasurement(d)
		}
	}
	if err != nil {
		return err
	}
	if f.raw {
		return report.SegmentsCSV(a.out, run)
	}
	page, err := newPage("html", f.html)
	if err != nil {
		return err
	}
	defer page.discard()
	doc, err := report.NewReport(a.envelope(""), source, run, f.rules)
	if err != nil {
		return flagError{fmt.Errorf("report %s: %w", name, err),
			"linerate report RUN without --confidence judges by the run's own rules; --raw prints the segments"}
	}
	if err := a.print(doc, func(s text.Style) error { return text.Report(a.out, doc, s) }); err != nil {
		return err
	}
	if page == nil {
		return nil
	}
	return page.write(func(w io.Writer) error { return drawn.Report(w, doc) })
}

func (a *app) showMeasurement(d *report.MeasureDocument) error {
	return a.print(d, func(s text.Style) error { return text.Measure(a.out, d, s) })
}

// readStored finds a document by its name in a store, the beginning of that name, a word of the
// store, the path of a file, or - for standard input. A name with a directory or with .json is a
// file first, and any other name is one in the store first. hint is what to do when neither is
// there.
func (a *app) readStored(store runs.Store, name, hint string) (doc []byte, source string, err error) {
	if name == "-" || waits(name) {
		in, err := a.openInput(name)
		if err != nil {
			return nil, name, err
		}
		defer in.Close() // opened for reading
		if doc, err = io.ReadAll(io.LimitReader(in, runs.MaxBytes+1)); err == nil && len(doc) > runs.MaxBytes {
			err = runs.ErrTooLarge
		}
		return doc, name, err
	}
	base := strings.TrimSuffix(filepath.Base(name), ".json")
	file := strings.ContainsRune(name, os.PathSeparator) || strings.HasSuffix(name, ".json")
	if file {
		doc, err = store.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return doc, name, err
		}
	}
	id, missing := store.Find(base)
	switch {
	case missing == nil && (!file || base == id): // the file of a stored run is found from anywhere
		doc, err = store.Read(id)
		return doc, store.Path(id), err
	case file:
		return nil, name, flagError{err, hint}
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && errors.Is(missing, runs.ErrNoRun) {
		doc, err = store.ReadFile(name)
		return doc, name, err
	}
	if errors.Is(missing, fs.ErrPermission) {
		return nil, name, missing // another name does not help
	}
	return nil, name, flagError{missing, hint}
}

const runHint = "linerate report lists the runs; a name may also be last, previous, - or a file"

func decodeRun(doc []byte, source string) (*report.TuneDocument, error) {
	run, err := report.DecodeTune(doc)
	if err != nil {
		err = flagError{fmt.Errorf("read run %s: %w", source, err),
			"linerate tune --json prints such documents, and stores each one in the state directory"}
	}
	return run, err
}
