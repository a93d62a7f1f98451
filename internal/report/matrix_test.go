package report_test

import (
	"testing"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

func TestMatrixCounts(t *testing.T) {
	d := report.NewMatrix(reporttest.Envelope(), reporttest.Matrix())
	if d.Judged != 5 || *d.FirstRight != 0.4 || *d.FirstThree != 0.6 || d.Sounds != 2 || d.FalseAlarm != 1 ||
		d.Skips != 1 || d.Pass {
		t.Errorf("%+v, %v first, %v in three", d, *d.FirstRight, *d.FirstThree)
	}
}

func TestMatrixPasses(t *testing.T) {
	right := report.MatrixCase{Level: "gross", Right: true, Rank: 1, Found: []report.MatrixFinding{{Code: "x"}}}
	wrong := report.MatrixCase{Level: "plain", Found: []report.MatrixFinding{{Code: "x"}}}
	sound := report.MatrixCase{Right: true, Found: []report.MatrixFinding{{Code: "healthy"}}}
	alarm, mute, mild := sound, sound, wrong
	alarm.Warned, mute.Found, mild.Level = true, nil, "mild"
	many := func(n int, c report.MatrixCase, more ...report.MatrixCase) []report.MatrixCase {
		for range n {
			more = append(more, c)
		}
		return more
	}
	for name, c := range map[string]struct {
		cases []report.MatrixCase
		want  bool
	}{
		"nothing":     {nil, true},
		"enough":      {many(19, right, wrong, sound), true},
		"too few":     {many(18, right, wrong, sound), false},
		"mild misses": {many(1, right, mild, mild), true},
		"alarm":       {many(20, right, alarm), false},
		"mute":        {many(20, right, mute), false},
	} {
		if got := report.NewMatrix(reporttest.Envelope(), c.cases).Pass; got != c.want {
			t.Errorf("%s: pass %v", name, got)
		}
	}
}
