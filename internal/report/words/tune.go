package words

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
)

// Headline returns the result of a tune in one or two words, with a capital (Proved, Not proved,
// Nothing to tune, Not finished), and a sentence.
func Headline(d *report.TuneDocument) (verdict, sentence string) {
	result := d.Result()
	switch {
	case result == report.NotFinished:
		sentence = Sentence(d.Unfinished, "")
	case result == report.Proved && stats.FromNothing(d.Final.Ratio):
		sentence = fmt.Sprintf("From nothing to %s with %s.", Quantity(d, d.After.Objective), changes(len(d.Kept)))
	case result == report.Proved:
		sentence = fmt.Sprintf("%s → %s, %s with %s.", Quantity(d, d.Baseline.Objective),
			Quantity(d, d.After.Objective), effect(*d.Final), changes(len(d.Kept)))
	case result == report.NothingToTune:
		sentence = Sentence(strings.TrimPrefix(d.Reason, "nothing to tune: "), "No change was worth trying.")
	case d.Unreliable:
		sentence = Sentence(d.Reason, "The measurements are too noisy to prove anything.")
	default:
		none := fmt.Sprintf("None of %d trials was proven to help.", len(d.Trials))
		if len(d.Trials) == 1 {
			none = "The trial was not proven to help."
		}
		sentence = Sentence(d.Reason, none)
	}
	return capital(result), sentence
}

// effect returns a factor, with its interval where it has one.
func effect(e tune.Effect) string {
	if span := Interval(e); span != "" {
		return Times(e.Ratio) + " (" + span + ")"
	}
	return Times(e.Ratio)
}

// Together compares the effect of the kept set with the product of its single trials.
func Together(i *tune.Interaction) string {
	sentence := "Together the changes have the effect that their single trials promised"
	if i.Text != "" {
		sentence = "Together the changes do not have the effect that their single trials promised"
	}
	if i.Ratio == 0 || i.Product == 0 || stats.FromNothing(i.Product) {
		return sentence + "."
	}
	return fmt.Sprintf("%s: the product of the trials is %s, and the kept set reaches %s of that.", sentence,
		Times(i.Product), effect(tune.Effect{Ratio: i.Ratio, Low: i.Low, High: i.High}))
}

// Soaked returns the result of the test after the changes had been in force for a while.
func Soaked(s *tune.Soak) string {
	waited := "After " + unit.FormatSeconds(s.Waited) + " in force"
	switch {
	case s.Untested:
		return fmt.Sprintf("%s the changes could not be tested again, and stay: %s.", waited, s.Reason)
	case s.Held:
		return fmt.Sprintf("%s the gain is still %s: the changes stay.", waited, effect(s.Effect))
	}
	return fmt.Sprintf("%s the changes failed the test (%s) and were undone.", waited, s.Reason)
}

// Sentence returns a clause with a capital and a full stop; for an empty clause it returns
// otherwise.
func Sentence(clause, otherwise string) string {
	if clause == "" {
		return otherwise
	}
	return capital(strings.TrimSuffix(clause, ".")) + "."
}

func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// changes counts changes in words.
func changes(n int) string {
	if n == 1 {
		return "one change"
	}
	return unit.Counted(n, "change")
}

// Quantity prints a number in the unit of a tune's goal.
func Quantity(d *report.TuneDocument, x float64) string {
	if math.Abs(x) >= beyond {
		return fmt.Sprintf("%.3g %s", x, strings.ReplaceAll(d.Unit, "_", " "))
	}
	switch d.Unit {
	case "bits_per_second":
		return unit.BitRate(x).String()
	case "packets_per_second":
		return unit.FormatCount(x) + " packets/s"
	case "bytes_per_second":
		return unit.Bytes(x).String() + "/s"
	case "operations_per_second":
		return unit.FormatCount(x) + " operations/s"
	}
	return unit.FormatCount(x) + " trans/s"
}

// guardRow is one guard-rail in the table of before and after.
type guardRow struct{ key, name string }

// guardRows returns the guard-rails in the table of before and after. The document also has those
// without a row here.
//
// Two kinds of round trips are in it, and the mean of one may be above the 99th percentile of the
// other: the kernel's estimate for the flow includes acknowledgements that the receiver delays,
// while single packets beside it are answered at once. So each row names its kind, and the
// percentiles of single packets have their median above them.
func guardRows(goal string) []guardRow {
	single := "pings beside the load"
	if goal == "latency" {
		single = "transactions"
	}
	return []guardRow{
		{"rtt_loaded_seconds", "round trip of the flow, mean"},
		{"rtt_p50_seconds", "round trip of " + single + ", p50"},
		{"rtt_p99_seconds", "round trip of " + single + ", p99"},
		{"retransmit_ratio", "retransmitted segments"},
		{"cpu_seconds_per_gigabyte", "CPU time of both hosts per gigabyte"},
		{"drops_per_gigabyte", "drops per gigabyte"},
		{"latency_p99_seconds", "latency of an operation, p99"},
		{"cpu_seconds_per_operation", "CPU time of an operation"},
	}
}

// Guard prints a guard-rail in the unit that its key names.
func Guard(key string, v float64) string {
	switch {
	case math.Abs(v) >= beyond:
		return fmt.Sprintf("%.3g", v)
	case strings.HasSuffix(key, "_seconds"), strings.HasPrefix(key, "cpu_seconds"):
		return unit.FormatSeconds(v)
	case strings.HasSuffix(key, "_ratio"):
		return unit.FormatPercent(v)
	}
	return unit.FormatCount(v)
}

// Row is one line of the table of before and after, in words. After and what follows it are empty
// where nothing was kept.
type Row struct {
	Name, Before, After, Change string
	// the guard-rail in the confirmation; nil for the objective, and where it was not judged
	Guard *tune.GuardRun
}

// Rows pairs the figures of before and after: the objective first, then the guard-rails.
func Rows(d *report.TuneDocument) []Row {
	if d.Baseline == nil {
		return nil
	}
	rows := []Row{{Name: d.Goal, Before: Quantity(d, d.Baseline.Objective)}}
	if d.After != nil {
		rows[0].After = Quantity(d, d.After.Objective)
		if d.Final != nil {
			rows[0].Change = strings.TrimSpace(Times(d.Final.Ratio) + "  " + Interval(*d.Final))
		}
	}
	for _, g := range guardRows(d.Goal) {
		before, ok := d.Baseline.Guards[g.key]
		if !ok {
			continue
		}
		row := Row{Name: g.name, Before: Guard(g.key, before)}
		if d.After != nil {
			if after, ok := d.After.Guards[g.key]; ok {
				row.After = Guard(g.key, after)
			}
			if i := slices.IndexFunc(d.Guards, func(r tune.GuardRun) bool { return r.Name == g.key }); i >= 0 {
				row.Guard = &d.Guards[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Verdict returns a verdict in words.
func Verdict(v tune.Verdict) string {
	switch v {
	case tune.Kept:
		return "kept: proved"
	case tune.RevertedWorse:
		return "reverted: worse"
	case tune.RevertedUnproven:
		return "reverted: not proved"
	}
	return string(v)
}

// Trial returns the verdict of a trial, and marks several candidates that were tried as one.
func Trial(t tune.Trial) string {
	if t.Joint {
		return Verdict(t.Verdict) + ", together"
	}
	return Verdict(t.Verdict)
}

// Needed returns whether a kept change is needed beside the other ones, in a word.
func Needed(a tune.Ablation) string {
	if a.Needed {
		return "needed"
	}
	return "dropped"
}

// Comparison names a comparison, with the numbers of the ladder.
func Comparison(c tune.Comparison) string {
	switch c.Phase {
	case tune.PhaseTrial:
		if c.Joint {
			return fmt.Sprintf("trial %d, with others together", c.Trial+1)
		}
		return fmt.Sprintf("trial %d: %s %s", c.Trial+1, c.Side, c.Knob)
	case tune.PhaseAblation:
		return fmt.Sprintf("still needed: %s %s", c.Side, c.Knob)
	case tune.PhaseConfirmation:
		return "all kept against the original"
	case tune.PhaseSoak:
		return "the same after a while in force"
	}
	return string(c.Phase)
}

// Again describes by which rules a run was judged again, and the result.
func Again(r *tune.Reanalysis) string {
	rules := "the run's own rules"
	if !r.OwnRules {
		rules = "other rules"
	}
	text := fmt.Sprintf("From %s, by %s (%s confidence, minimum gain %s): ", unit.Counted(r.Segments, "segment"), rules,
		unit.FormatPercent(r.Confidence), unit.FormatPercent(r.MinUsefulEffect))
	if r.RulesUnknown {
		text = "The run does not record its rules; this version uses its own. " + text
	}
	switch {
	case r.Pilot == nil:
		return text + "nothing to judge, because the measurement of the noise is incomplete."
	case len(r.Comparisons) == 0:
		return text + "nothing was compared."
	case r.OwnRules && r.Changed > 0:
		differ := "differ"
		if r.Changed == 1 {
			differ = "differs"
		}
		text += fmt.Sprintf("%s of the file %s from what its segments show.", unit.Counted(r.Changed, "effect"), differ)
	case r.OwnRules:
		text += "every effect is the same as the stored one."
	default:
		text += fmt.Sprintf("%s judged again.", unit.Counted(len(r.Comparisons), "comparison"))
	}
	switch r.Disagreements {
	case 0:
		return text + " No decision differs."
	case 1:
		return text + " 1 decision would differ."
	}
	return text + fmt.Sprintf(" %d decisions would differ.", r.Disagreements)
}
