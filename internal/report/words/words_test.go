package words_test

import (
	"testing"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/words"
	"github.com/linerate/linerate/internal/tune"
)

// TestHeadlineWithoutTrials tells a path on which there is nothing to tune from a run that ended before it could try anything.
func TestHeadlineWithoutTrials(t *testing.T) {
	for _, tc := range []struct {
		outcome                   tune.Outcome
		wantVerdict, wantSentence string
	}{
		{tune.Outcome{Reason: "nothing to tune: the link is full"}, "Nothing to tune", "The link is full."},
		{tune.Outcome{Partial: true, Reason: "the time budget ran out before a confirmation"}, "Not proved", "The time budget ran out before a confirmation."},
		{tune.Outcome{Unreliable: true, Reason: "×1.2 where there is nothing"}, "Not proved", "×1.2 where there is nothing."},
		{tune.Outcome{Reason: "überall voll"}, "Nothing to tune", "Überall voll."},
	} {
		d := report.NewTune(reporttest.Envelope(), report.TuneRun{Goal: "throughput", Outcome: &tc.outcome})
		if verdict, sentence := words.Headline(d); verdict != tc.wantVerdict || sentence != tc.wantSentence {
			t.Errorf("%q: %q, %q", tc.outcome.Reason, verdict, sentence)
		}
	}
}
