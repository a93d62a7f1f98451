package words_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/words"
)

// TestHeadlineWithoutTrials checks that the headline distinguishes a path with nothing to tune from
// a run that ended before it could try anything.
func TestHeadlineWithoutTrials(t *testing.T) {
	for _, tc := range []struct {
		outcome                   tune.Outcome
		wantVerdict, wantSentence string
	}{
		{tune.Outcome{Reason: "nothing to tune: the link is full"}, "Nothing to tune", "The link is full."},
		{tune.Outcome{Partial: true, Reason: "the time budget ran out before a confirmation"}, "Not proved",
			"The time budget ran out before a confirmation."},
		{tune.Outcome{Unreliable: true, Reason: "×1.2 where there is nothing"}, "Not proved",
			"×1.2 where there is nothing."},
		{tune.Outcome{Reason: "überall voll"}, "Nothing to tune", "Überall voll."},
	} {
		d := report.NewTune(reporttest.Envelope(), report.TuneRun{Goal: "throughput", Outcome: &tc.outcome})
		if verdict, sentence := words.Headline(d); verdict != tc.wantVerdict || sentence != tc.wantSentence {
			t.Errorf("%q: %q, %q", tc.outcome.Reason, verdict, sentence)
		}
	}
}

// TestEffects checks factors, and the words for an effect with zero on one side: the ratio that
// represents zero is not a figure to print.
func TestEffects(t *testing.T) {
	const all = 1e6 // its ratio: a millionth represents zero (stats.PairedLogRatio)
	for _, tc := range []struct {
		effect          tune.Effect
		times, interval string
	}{
		{tune.Effect{}, "", ""},
		{tune.Effect{Ratio: 1.0234, Low: 1.01}, "×1.023", "×1.010 to …"},
		{tune.Effect{Ratio: 25.3, Low: 24.8, High: 25.9}, "×25.30", "×24.80 to ×25.90"},
		{tune.Effect{Ratio: math.Exp(math.Log(all)), Low: all, High: all}, "from nothing", ""},
		{tune.Effect{Ratio: 7071, Low: 50, High: all}, "×7071", "×50.00 or more"},
		{tune.Effect{Ratio: all, High: all}, "from nothing", "… to …"},
		{tune.Effect{Ratio: 1 / all, Low: 1 / all, High: 1 / all}, "to nothing", ""},
		{tune.Effect{Ratio: 0.01, Low: 1 / all, High: 0.5}, "×0.010", "×0.500 or less"},
		{tune.Effect{Ratio: 1, Low: 1 / all, High: all}, "×1.000", ""},
		{tune.Effect{Ratio: 0.0004, Low: 0.00012, High: 0.0031}, "×0.0004", "×0.00012 to ×0.0031"},
		{tune.Effect{Ratio: 2e6, Low: 1.5e6, High: 3e6}, "×2.00 M", "×1.50 M to ×3.00 M"},
	} {
		if times, interval := words.Times(tc.effect.Ratio), words.Interval(tc.effect); times != tc.times ||
			interval != tc.interval {
			t.Errorf("%+v: %q, %q; want %q, %q", tc.effect, times, interval, tc.times, tc.interval)
		}
	}
}

// TestPercent checks that a rounded share keeps its meaning.
func TestPercent(t *testing.T) {
	for ratio, want := range map[float64]string{0: "0 %", 0.004: "<1 %", 0.006: "1 %", 0.5: "50 %", 0.994: "99 %",
		0.9997: ">99 %", 1: "100 %", 1.2: "120 %", -0.002: "0 %", -0.1: "-10 %"} {
		if got := words.Percent(ratio); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}

// TestEvidence checks values that no host has and a document may claim: their text stays short, and
// a size does not turn negative.
func TestEvidence(t *testing.T) {
	for of, want := range map[string]string{"bits_per_second": "1e+300 bits per second", "bytes": "1e+300 bytes",
		"seconds": "1e+300 seconds", "ratio": "1e+300 ratio", "packets": "1e+300 packets", "": "1e+300"} {
		if got := words.Evidence(evidence.Evidence{Value: 1e300, Unit: of}); got != want {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
	if got := words.Evidence(evidence.Evidence{Value: 0.9997, Unit: "ratio"}); got != "99.97 %" {
		t.Errorf("%q", got)
	}
}

// TestSoaked checks the sentence for each result of the test after the wait.
func TestSoaked(t *testing.T) {
	effect := tune.Effect{Pairs: 6, Ratio: 3.9, Low: 3.8, High: 4}
	for want, soak := range map[string]tune.Soak{
		"After 1 h 00 min in force the gain is still ×3.90 (×3.80 to ×4.00): the changes stay.": {
			Effect: effect, Waited: 3600, Held: true, Reason: "gains"},
		"After 1 h 00 min in force the changes could not be tested again, and stay: cross traffic.": {
			Waited: 3600, Held: true, Untested: true, Reason: "cross traffic"},
		"After 1 h 00 min in force the changes failed the test (not proven: +0.2 %) and were undone.": {
			Effect: effect, Waited: 3600, Reason: "not proven: +0.2 %"},
	} {
		if got := words.Soaked(&soak); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTogether checks that only known figures are printed.
func TestTogether(t *testing.T) {
	for want, i := range map[string]tune.Interaction{
		"Together the changes have the effect that their single trials promised: the product of the trials is ×4.38, " +
			"and the kept set reaches ×1.002 (×0.990 to ×1.010) of that.": {Product: 4.38, Ratio: 1.002, Low: 0.99,
			High: 1.01},
		"Together the changes do not have the effect that their single trials promised: the product of the trials is " +
			"×4.38, and the kept set reaches ×0.895 of that.": {Product: 4.38, Ratio: 0.895, Text: "less"},
		"Together the changes have the effect that their single trials promised.": {Product: 1e6, Ratio: 1},
	} {
		if got := words.Together(&i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBudget checks that the flag accepts what is printed.
func TestBudget(t *testing.T) {
	for want, seconds := range map[string]float64{"40s": 40, "1m30s": 90, "5m": 300, "1h": 3600, "1h0m30s": 3630,
		"1h10m": 4200, "10m": 600} {
		if got := words.Budget(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
		if d, err := time.ParseDuration(words.Budget(seconds)); err != nil || d.Seconds() != seconds {
			t.Errorf("%v s is read as %v, %v", seconds, d, err)
		}
	}
}

// TestRowsOfRoundTrips: the 99th percentile of pings may be below the mean round trip of a flow, so
// the rows say which round trips they are, and have the median of the same ones beside it.
func TestRowsOfRoundTrips(t *testing.T) {
	for goal, want := range map[string][]string{
		"throughput": {"throughput", "round trip of the flow, mean", "round trip of pings beside the load, p50",
			"round trip of pings beside the load, p99"},
		"latency": {"latency", "round trip of the flow, mean", "round trip of transactions, p50",
			"round trip of transactions, p99"},
	} {
		d := &report.TuneDocument{Goal: goal, Baseline: &report.Figure{Guards: map[string]float64{
			"rtt_loaded_seconds": 0.6e-3, "rtt_p50_seconds": 0.2e-3, "rtt_p99_seconds": 0.4e-3}}}
		var got []string
		for _, r := range words.Rows(d) {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows %q, want %q", goal, got, want)
		}
	}
}
