package matrix

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

// TuneOptions of Tune. Budget and Trials must be set.
type TuneOptions struct {
	Runs     int                          // of each case; 0: 1
	Budget   time.Duration                // of each tune
	Trials   int                          // limit for each tune
	Further  []string                     // flags of tune, after those of the scenario
	Out      string                       // directory for the tunes' documents; empty: none is kept
	Inside   bool                         // this program already runs in the guest that the cases need
	Embed    bool                         // documents go into the cases, for a caller who cannot read files here
	Guest    Guest[report.TuneMatrixCase] // nil: cases that need a guest are skipped
	Progress func(c Case, what string)    // receives the present step; may be nil
	Done     func(report.TuneMatrixCase)  // called when a case has ended; may be nil
}

// removalPairs is the number of pairs that decide whether a kept change is needed. By chance all
// eight favour it with a probability of one in 256, and eight tolerate one outlier.
const removalPairs = 8

// Repairable returns the cases that tuning can repair.
func Repairable(cases []Case) (kept []Case) {
	for _, c := range cases {
		if c.Scenario.Repairable() && c.Level != "" {
			kept = append(kept, c)
		}
	}
	return kept
}

// nullScenario is the sound world for knobs without an effect. Only the hosts limit it, so its
// figures scatter as those of real hosts do. Behind an emulated link they would vary too little for
// a useless knob to look useful.
const nullScenario = "healthy"

// nullKnobs have no effect on one TCP stream over IPv4 without losses and pauses. They concern
// datagrams, fragments, neighbours, listeners, the end of connections, losses and what a connection
// leaves behind. Each is one candidate at each end.
var nullKnobs = []string{
	"sysctl:net.ipv4.udp_rmem_min", "sysctl:net.ipv4.tcp_base_mss", "sysctl:net.ipv4.tcp_fin_timeout",
	"sysctl:net.ipv4.tcp_max_tw_buckets",
	"sysctl:net.ipv4.tcp_slow_start_after_idle", "sysctl:net.ipv4.ipfrag_high_thresh",
	"sysctl:net.ipv4.tcp_max_syn_backlog", "sysctl:net.core.somaxconn",
	"sysctl:net.ipv4.tcp_frto", "sysctl:net.ipv4.tcp_thin_linear_timeouts", "sysctl:net.ipv4.tcp_rto_max_ms",
	"sysctl:net.ipv4.tcp_max_reordering",
	"sysctl:net.ipv4.tcp_early_retrans", "sysctl:net.ipv4.tcp_tw_reuse", "sysctl:net.ipv4.tcp_no_ssthresh_metrics_save",
	"sysctl:net.ipv4.tcp_comp_sack_nr",
	"sysctl:net.ipv6.ip6frag_high_thresh", "sysctl:net.ipv4.neigh.*.unres_qlen_bytes",
	"sysctl:net.ipv6.neigh.*.unres_qlen_bytes", "sysctl:net.core.txrehash",
	"sysctl:net.ipv4.tcp_fastopen", "sysctl:net.ipv4.ip_no_pmtu_disc", "ethtool:*/feature.tx-tcp6-segmentation",
	"ethtool:*/feature.tx-udp-segmentation",
}

// Nulls returns the case for knobs without an effect.
func Nulls() (Case, error) {
	s, err := scenario.Load(nullScenario)
	if err != nil {
		return Case{}, err
	}
	return Case{Scenario: s}, nil
}

// Nulled returns the flags that make tune try a number of knobs without an effect.
func Nulled(knobs int) []string {
	return []string{"--thorough", "--knobs", strings.Join(nullKnobs, ","), "--max-trials", strconv.Itoa(knobs)}
}

// Tune plays whole cases, those in namespaces first. It measures a sound world like each case's,
// plants the fault, tunes, measures, and takes back and repeats each kept change. A tune that fails
// is a case that is not tuned. An error is the lab's own or ctx's; the cases played before it are
// returned with it.
func Tune(ctx context.Context, cases []Case, o TuneOptions) ([]report.TuneMatrixCase, error) {
	if o.Progress == nil {
		o.Progress = func(Case, string) {}
	}
	p := playing[report.TuneMatrixCase]{
		runs: max(o.Runs, 1), out: o.Out, inside: o.Inside, embed: o.Embed, guest: o.Guest, done: o.Done,
		one:  func(c Case, run, _ int) (report.TuneMatrixCase, error) { return tuneOne(ctx, c, run, o) },
		not:  func(c Case) report.TuneMatrixCase { return Untuned(c, 1, release(), needsGuest, true) },
		file: func(m *report.TuneMatrixCase) file { return file{m.Scenario, m.Level, m.Run, &m.Document} },
	}
	return p.all(ctx, cases)
}

func tuneOne(ctx context.Context, c Case, run int, o TuneOptions) (report.TuneMatrixCase, error) {
	load := busy(ctx)
	r, err := lab.Run(ctx, c.Scenario, lab.Options{
		Level: c.Level, Budget: o.Budget, Removals: removalPairs,
		Tune:     append([]string{"--max-trials", strconv.Itoa(o.Trials)}, o.Further...),
		Progress: func(e lab.Event) { o.Progress(c, string(e.Kind)+" "+e.Text) },
	})
	if err != nil {
		return report.TuneMatrixCase{}, err
	}
	m := Untuned(c, run, release(), "", r.Skipped)
	// Zero is a figure once everything was measured: a black hole carries nothing.
	figure := func(x float64) *float64 {
		if x == 0 && r.Proof.Compared == 0 {
			return nil
		}
		return &x
	}
	m.Found, m.Healthy, m.Before, m.After = r.Found, figure(r.Healthy), figure(r.Before), figure(r.After)
	m.Trials, m.Seconds, m.Ended, m.Document = r.Trials+r.Together, r.TuneTime.Seconds(), r.Ended, r.Tune
	m.Undone = r.Proof.Whole()
	if m.Null = c.Level == ""; m.Null {
		m.Trials = r.Trials // single knobs only
	}
	for _, k := range r.Removals {
		m.Kept = append(m.Kept, report.NewTuneRemoval(k.Knob, k.Side, k.From, k.To, k.Ratio, k.Low, k.High))
	}
	m.Warnings = append(m.Warnings, r.Warnings...)
	for _, w := range []string{load, r.Noise} {
		if w != "" {
			m.Warnings = append(m.Warnings, w)
		}
	}
	if r.Skipped || r.Proof.Compared == 0 {
		m.Reason = r.Reason // the case ended before everything was measured
	}
	Judge(&m)
	return m, nil
}

// Untuned returns the result of a case without a tune, for a Guest that could not play it. A
// skipped case is not counted.
func Untuned(c Case, run int, kernel, reason string, skipped bool) report.TuneMatrixCase {
	m := report.TuneMatrixCase{
		Scenario: c.Scenario.Name, Level: string(c.Level), Ground: string(c.Scenario.On()), Kernel: kernel, Run: run,
		Goal: cmp.Or(c.Scenario.Tuning.Goal, "throughput"), Skipped: skipped, Reason: reason,
		Kept: []report.TuneRemoval{}, Warnings: []string{},
	}
	if skipped || reason != "" {
		Judge(&m)
	}
	return m
}
