package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/report"
)

// sampleMatrix has one case of each kind: right, wrong in both ways, a pair, mild, sound, falsely warned of, failed, not played.
func sampleMatrix() []report.MatrixCase {
	found := func(codes ...string) (all []report.MatrixFinding) {
		for _, c := range codes {
			code, severity, _ := strings.Cut(c, " ")
			all = append(all, report.MatrixFinding{Code: code, Severity: severity, Title: "Said of " + code + "."})
		}
		return all
	}
	const kernel = "6.18.1"
	base := report.MatrixCase{Ground: "namespace", Kernel: kernel, Mode: "target", Run: 1, Seconds: 5.2, CPU: 0.6}
	with := func(scenario, level string, change func(c *report.MatrixCase)) report.MatrixCase {
		c := base
		c.Scenario, c.Level, c.Expected = scenario, level, []string{scenario}
		change(&c)
		return c
	}
	return []report.MatrixCase{
		with("policer", "mild", func(c *report.MatrixCase) { c.Found = found("healthy info") }),
		with("policer", "plain", func(c *report.MatrixCase) { c.Found, c.Rank = found("path-loss warning", "policer notice"), 2 }),
		with("policer", "gross", func(c *report.MatrixCase) { c.Found, c.Rank, c.Right = found("policer warning"), 1, true }),
		with("bufferbloat", "gross", func(c *report.MatrixCase) {
			c.Found = found("link-rate-reached info")
			c.Warnings = []string{"this machine was 93 % busy with other work before the world was made"}
		}),
		with("two-faults", "gross", func(c *report.MatrixCase) {
			c.Expected, c.Pair = []string{"send-buffer-limited", "listen-overflow"}, true
			c.Found, c.Rank, c.Right = found("listen-overflow warning", "send-buffer-limited warning"), 2, true
		}),
		with("mtu-black-hole", "gross", func(c *report.MatrixCase) {
			c.Found, c.Seconds, c.CPU = nil, 0, 0
			c.Reason = "near: linerate diagnose: exit status 12: connect to 10.77.0.2:7070: timeout"
		}),
		with("healthy", "", func(c *report.MatrixCase) { c.Found, c.Rank, c.Right = found("healthy info"), 1, true }),
		with("sound-server", "", func(c *report.MatrixCase) {
			c.Expected, c.Mode, c.Seconds, c.CPU = []string{"healthy", "link-rate-reached"}, "passive-far", 3.1, 0.02
			c.Found, c.Warned = found("udp-socket-overflow warning"), true
		}),
		with("cpu-steal", "gross", func(c *report.MatrixCase) {
			c.Ground, c.Skipped, c.Reason, c.Found, c.Seconds, c.CPU = "guest", true, "it needs a guest", nil, 0, 0
		}),
	}
}

// The last line is what scripts read.
func TestMatrixCounts(t *testing.T) {
	d := report.NewMatrix(envelope(), sampleMatrix())
	if d.Judged != 5 || *d.FirstRight != 0.4 || *d.FirstThree != 0.6 || d.Sounds != 2 || d.FalseAlarm != 1 || d.Skips != 1 || d.Pass {
		t.Errorf("%+v, %v first, %v in three", d, *d.FirstRight, *d.FirstThree)
	}
	var out bytes.Buffer
	if err := report.MatrixText(&out, d, report.Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\nfirst-right-percent=40.0 cases=5\n") {
		t.Errorf("ends in %q", out.String()[max(0, out.Len()-80):])
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
		if got := report.NewMatrix(envelope(), c.cases).Pass; got != c.want {
			t.Errorf("%s: pass %v", name, got)
		}
	}
}
