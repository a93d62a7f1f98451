package reporttest

import (
	"strings"

	"github.com/linerate/linerate/internal/lab/matrix"
	"github.com/linerate/linerate/internal/report"
)

// Matrix returns one case of each kind: right, wrong in both ways, a pair, mild, sound, with a
// false warning, failed, not played.
func Matrix() []report.MatrixCase {
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
		with("policer", "plain",
			func(c *report.MatrixCase) { c.Found, c.Rank = found("path-loss warning", "policer notice"), 2 }),
		with("policer", "gross",
			func(c *report.MatrixCase) { c.Found, c.Rank, c.Right = found("policer warning"), 1, true }),
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

// TuneMatrix returns one case of each kind: tuned, by transactions, not minimal, out of reach,
// interrupted, and not played.
func TuneMatrix() []report.TuneMatrixCase {
	rmem := report.NewTuneRemoval("sysctl:net.ipv4.tcp_rmem", "far", "4096 87380 174760", "4096 131072 8388608", 21,
		19.5, 22.25)
	spare := report.NewTuneRemoval("sysctl:net.ipv4.tcp_wmem", "near", "4096 16384 4194304", "4096 16384 8388608",
		1.001, 0.99, 1.012)
	with := func(scenario string, change func(c *report.TuneMatrixCase)) report.TuneMatrixCase {
		c := report.TuneMatrixCase{
			Scenario: scenario, Level: "gross", Ground: "namespace", Kernel: "6.18.1", Run: 1, Goal: "throughput",
			Found:   "receive-window-limited",
			Healthy: new(920e6), Before: new(43.4e6), After: new(941e6), Trials: 1, Seconds: 83.2, Ended: "confirmed",
			Undone: true, Warnings: []string{},
		}
		change(&c)
		matrix.Judge(&c)
		return c
	}
	return []report.TuneMatrixCase{
		with("receive-window", func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{rmem} }),
		with("guest-moderation", func(c *report.TuneMatrixCase) {
			c.Ground, c.Goal, c.Found = "guest", "latency", "interrupt-moderation-latency"
			c.Healthy, c.Before, c.After = new(2010.0), new(310.0), new(1998.0)
		}),
		with("send-buffer", func(c *report.TuneMatrixCase) { c.Kept = []report.TuneRemoval{rmem, spare} }),
		with("path-loss", func(c *report.TuneMatrixCase) {
			c.After, c.Ended = new(44e6), "no candidate was proven to help"
			c.Warnings = []string{"this machine was 93 % busy with other work before the world was made"}
		}),
		with("mtu-small", func(c *report.TuneMatrixCase) {
			c.After, c.Reason = nil, "near: linerate tune: exit status 12: connect to 10.77.0.2:7070: timeout"
		}),
		with("guest-napi-budget", func(c *report.TuneMatrixCase) { c.Ground, c.Before = "guest", new(915e6) }),
		with("healthy", func(c *report.TuneMatrixCase) {
			c.Level, c.Null, c.Found, c.Before, c.Trials, c.Ended = "", true, "healthy", new(920e6), 40,
				"no candidate was proven to help"
		}),
		with("guest-rx-ring", func(c *report.TuneMatrixCase) {
			c.Ground, c.Healthy, c.Before, c.After, c.Skipped, c.Reason = "guest", nil, nil, nil, true,
				"it needs a guest"
		}),
	}
}
