package report_test

import (
	"math"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/report"
)

// sampleTuneMatrix has a case of each sort: tuned, by transactions, not minimal, out of reach, broken off, and not played.
func sampleTuneMatrix() []report.TuneMatrixCase {
	rmem := report.NewTuneRemoval("sysctl:net.ipv4.tcp_rmem", "far", "4096 87380 174760", "4096 131072 8388608", 21, 19.5, 22.25)
	spare := report.NewTuneRemoval("sysctl:net.ipv4.tcp_wmem", "near", "4096 16384 4194304", "4096 16384 8388608", 1.001, 0.99, 1.012)
	with := func(scenario string, change func(c *report.TuneMatrixCase)) report.TuneMatrixCase {
		c := report.TuneMatrixCase{
			Scenario: scenario, Level: "gross", Ground: "namespace", Kernel: "6.18.1", Run: 1, Goal: "throughput", Found: "receive-window-limited",
			Healthy: p(920e6), Before: p(43.4e6), After: p(941e6), Trials: 1, Seconds: 83.2, Ended: "confirmed", Undone: true, Warnings: []string{},
		}
		change(&c)
		c.Judge()
		return c
	}
	return []report.TuneMatrixCase{
		with("receive-window", func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{rmem} }),
		with("guest-moderation", func(c *report.TuneMatrixCase) {
			c.Ground, c.Goal, c.Found = "guest", "latency", "interrupt-moderation-latency"
			c.Healthy, c.Before, c.After = p(2010.0), p(310.0), p(1998.0)
		}),
		with("send-buffer", func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{rmem, spare} }),
		with("path-loss", func(c *report.TuneMatrixCase) {
			c.After, c.Ended = p(44e6), "no candidate was proven to help"
			c.Warnings = []string{"this machine was 93 % busy with other work before the world was made"}
		}),
		with("mtu-small", func(c *report.TuneMatrixCase) {
			c.After, c.Reason = nil, "near: linerate tune: exit status 12: connect to 10.77.0.2:7070: timeout"
		}),
		with("guest-napi-budget", func(c *report.TuneMatrixCase) { c.Ground, c.Before = "guest", p(915e6) }),
		with("healthy", func(c *report.TuneMatrixCase) {
			c.Level, c.Null, c.Found, c.Before, c.Trials, c.Ended = "", true, "healthy", p(920e6), 40, "no candidate was proven to help"
		}),
		with("guest-rx-ring", func(c *report.TuneMatrixCase) {
			c.Ground, c.Healthy, c.Before, c.After, c.Skipped, c.Reason = "guest", nil, nil, nil, true, "it needs a guest"
		}),
	}
}

func TestTuneMatrixJudge(t *testing.T) {
	good := report.TuneMatrixCase{Goal: "throughput", Healthy: p(100.0), After: p(90.0), Trials: 20, Undone: true}
	needed := report.TuneRemoval{Knob: "k", Side: "far", Needed: true}
	for name, c := range map[string]struct {
		change func(c *report.TuneMatrixCase)
		want   string // in the reason; empty: tuned
	}{
		"just":         {func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{needed} }, ""},
		"short":        {func(c *report.TuneMatrixCase) { c.After, c.Ended = p(89.9), "out of time" }, "out of time"},
		"too long":     {func(c *report.TuneMatrixCase) { c.Trials = 21 }, "trials"},
		"spare change": {func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{needed, {Knob: "l", Side: "near"}} }, "near l was kept"},
		"left behind":  {func(c *report.TuneMatrixCase) { c.Undone = false }, "undo"},
		"not measured": {func(c *report.TuneMatrixCase) { c.After = nil }, "measured"},
		"nulls":        {func(c *report.TuneMatrixCase) { c.Null, c.Trials, c.Kept = true, 40, []report.TuneRemoval{{}, {}} }, ""},
		"three nulls":  {func(c *report.TuneMatrixCase) { c.Null, c.Trials, c.Kept = true, 40, []report.TuneRemoval{{}, {}, {}} }, "without an effect"},
		"no nulls":     {func(c *report.TuneMatrixCase) { c.Null, c.Trials, c.Ended = true, 0, "a noisy bench" }, "a noisy bench"},
		"failed":       {func(c *report.TuneMatrixCase) { c.Reason = "no world" }, "no world"},
	} {
		judged := good
		c.change(&judged)
		judged.Judge()
		if judged.Tuned != (c.want == "") || !strings.Contains(judged.Reason, c.want) {
			t.Errorf("%s: tuned %v: %q", name, judged.Tuned, judged.Reason)
		}
	}
	d := report.NewTuneMatrix(envelope(), sampleTuneMatrix())
	if d.Judged != 7 || d.Tuned != 4 || d.Skips != 1 || d.Pass {
		t.Errorf("%+v", d)
	}
	if r := report.NewTuneRemoval("k", "far", "1", "2", 3, 0, math.Inf(1)); r.Needed || r.Ratio != nil || r.High != nil {
		t.Errorf("too few pairs for an interval: %+v", r)
	}
}
