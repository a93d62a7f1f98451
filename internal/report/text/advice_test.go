package text_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/text"
)

// TestUnjudgedTogether checks that a reason is printed once for all lines that it applies to.
func TestUnjudgedTogether(t *testing.T) {
	var settings []advice.Judgement
	for i, why := range []string{"No setting of the network.", "Nothing is known here.", "No setting of the network."} {
		settings = append(settings, advice.Judgement{Setting: advice.Setting{Line: i + 1, Text: "x"}, For: advice.Linux,
			Verdict: advice.Unknown, Why: why})
	}
	var b bytes.Buffer
	if err := text.Advice(&b, report.NewCheckAdvice(reporttest.Envelope(), "x", 3, "", nil, settings),
		text.Style{}); err != nil {
		t.Fatal(err)
	}
	want := "  line 1  x\n  line 3  x\n      No setting of the network.\n  line 2  x\n      Nothing is known here.\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%s\nwant at its end\n%s", b.String(), want)
	}
}
