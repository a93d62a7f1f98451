package matrix_test

import (
	"math"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
)

func TestMatrixCounts(t *testing.T) {
	d := matrix.NewVerdicts(reporttest.Envelope(), reporttest.Matrix())
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
		if got := matrix.NewVerdicts(reporttest.Envelope(), c.cases).Pass; got != c.want {
			t.Errorf("%s: pass %v", name, got)
		}
	}
}

func TestTuneMatrixJudge(t *testing.T) {
	good := report.TuneMatrixCase{Goal: "throughput", Healthy: new(100.0), After: new(90.0), Trials: 20, Undone: true}
	needed := report.TuneRemoval{Knob: "k", Side: "far", Needed: true}
	for name, c := range map[string]struct {
		change func(c *report.TuneMatrixCase)
		want   string // in the reason; empty: tuned; -: neither tuned nor failed
	}{
		"just": {func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{needed} }, ""},
		"short": {func(c *report.TuneMatrixCase) { c.After, c.Ended = new(89.9), "out of time" },
			"out of time"},
		"too long": {func(c *report.TuneMatrixCase) { c.Trials = 21 }, "trials"},
		"spare change": {func(
			c *report.TuneMatrixCase) {
			c.Kept = []report.TuneRemoval{needed, {Knob: "l", Side: "near"}}
		}, "near l was kept"},
		"left behind":  {func(c *report.TuneMatrixCase) { c.Undone = false }, "undo"},
		"not measured": {func(c *report.TuneMatrixCase) { c.After = nil }, "measured"},
		"nulls": {func(
			c *report.TuneMatrixCase) {
			c.Null, c.Trials, c.Kept = true, 40, []report.TuneRemoval{{}, {}}
		}, ""},
		"three nulls": {func(
			c *report.TuneMatrixCase) {
			c.Null, c.Trials, c.Kept = true, 40, []report.TuneRemoval{{}, {}, {}}
		}, "without an effect"},
		"no nulls": {func(c *report.TuneMatrixCase) { c.Null, c.Trials, c.Ended = true, 0, "a noisy bench" },
			"a noisy bench"},
		"costs nothing":  {func(c *report.TuneMatrixCase) { c.Before = new(90.0) }, "-"},
		"and dips after": {func(c *report.TuneMatrixCase) { c.Before, c.After = new(95.0), new(80.0) }, "-"},
		"costs a little": {func(c *report.TuneMatrixCase) { c.Before, c.After = new(89.9), new(89.0) },
			"too far below"},
		"costs nothing, and something was kept": {func(c *report.TuneMatrixCase) {
			c.Before, c.Kept = new(95.0), []report.TuneRemoval{needed}
		}, ""},
		"costs nothing, and something is left": {
			func(c *report.TuneMatrixCase) { c.Before, c.Undone = new(95.0), false }, "undo"},
		"costs nothing, and it failed": {
			func(c *report.TuneMatrixCase) { c.Before, c.Reason = new(95.0), "no world" }, "no world"},
		"failed": {func(c *report.TuneMatrixCase) { c.Reason = "no world" }, "no world"},
	} {
		judged := good
		c.change(&judged)
		matrix.Judge(&judged)
		if judged.Free != (c.want == "-") || judged.Tuned != (c.want == "") || judged.Free && judged.Reason != "" ||
			!judged.Free && !strings.Contains(judged.Reason, c.want) {
			t.Errorf("%s: tuned %v, costs nothing %v: %q", name, judged.Tuned, judged.Free, judged.Reason)
		}
	}
	d := matrix.NewTunes(reporttest.Envelope(), reporttest.TuneMatrix())
	if d.Judged != 6 || d.Tuned != 3 || d.Free != 1 || d.Skips != 1 || d.Pass {
		t.Errorf("%+v", d)
	}
	if r := report.NewTuneRemoval("k", "far", "1", "2", 3, 0, math.Inf(1)); r.Needed || r.Ratio != nil ||
		r.High != nil {
		t.Errorf("too few pairs for an interval: %+v", r)
	}
}
