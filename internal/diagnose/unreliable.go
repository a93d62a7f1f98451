package diagnose

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// noticedSteal makes figures doubtful; heavySteal makes them useless.
	noticedSteal, heavySteal = 0.05, 0.15
	// maxScatter of the interim rates: beyond it a mean says little.
	maxScatter = 0.30
	// minRoundTrips is how long a run must be with its warm-up, in round trips, to have left slow
	// start: it takes ten round trips from ten segments to the window of 10 Gb/s on a path of 10
	// ms, and as many again to settle after the first losses.
	minRoundTrips = 25
)

// measurementUnreliable returns the reasons, other than the path, why the figures are doubtful; nil
// if there are none. A minor reason comes last and needs no action. A reason that makes the figures
// useless comes before every verdict that rests on rates alone.
//
// It accompanies the other verdicts and does not replace them: a cause still helps a reader with a
// noisy bench, as long as the doubt is visible beside it.
func measurementUnreliable(f *evidence.Flow) *evidence.Finding {
	x := &evidence.Finding{Code: evidence.MeasurementUnreliable, Severity: evidence.Info, Where: "path"}
	var reasons []string
	say := func(serious bool, e evidence.Evidence, format string, args ...any) {
		if serious {
			x.Severity = evidence.Notice
		}
		reasons = append(reasons, fmt.Sprintf(format, args...))
		x.Evidence = append(x.Evidence, e)
	}
	if f.RateBitsPerSec <= 0 {
		say(true, evidence.Evidence{Name: "throughput", Value: f.RateBitsPerSec, Unit: "bits_per_second",
			Source: "payload counted at the receiver"}, "no payload arrived")
	}
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if s := e.Stolen(); s > noticedSteal {
			say(s > heavySteal, evidence.Evidence{Name: "stolen processor time", Value: s, Unit: "ratio",
				Source: "/proc/stat steal (" + e.Name + ")"},
				"the hypervisor took %s of the CPU time of the %s host", evidence.Percent(s), e.Name)
		}
	}
	from, to, rising := rise(f)
	switch {
	case rising && f.ScatterRatio > maxScatter:
		say(true, evidence.Evidence{Name: "rate at the end, of that at the beginning", Value: to / from, Unit: "times",
			Source: fmt.Sprintf("%d intervals", f.Intervals)},
			"the flow was still accelerating when the test ended, from %s to %s", evidence.Rate(from),
			evidence.Rate(to))
	case f.Intervals >= 3 && f.ScatterRatio > maxScatter:
		// Inside one machine a saturated CPU explains the scatter: other programs share it with the
		// flow.
		_, _, busy, ok := f.BusiestOf()
		explained := f.ShortPath() && ok && busy >= 0.95
		say(!explained, evidence.Evidence{Name: "scatter of the interim rates", Value: f.ScatterRatio, Unit: "ratio",
			Source: fmt.Sprintf("%d intervals", f.Intervals)},
			"the interim rates scatter by %s", evidence.Percent(f.ScatterRatio))
	}
	if d := f.Run.DurationSeconds; d > 0 &&
		(d < 0.9 || f.Base() > 0 && d+f.Run.WarmUpSeconds < minRoundTrips*f.Base()) {
		say(true, evidence.Evidence{Name: "measured part", Value: d, Unit: "seconds", Source: "the run"},
			"the measured part lasted only %s", evidence.Seconds(d))
	}
	for _, w := range f.Run.Warnings {
		say(false, evidence.Evidence{Name: "warning", Value: w, Source: "the run"}, "%s", strings.TrimSuffix(w, "."))
	}
	if len(reasons) == 0 {
		return nil
	}
	x.Confidence = 0.6
	if x.Severity == evidence.Notice {
		x.Confidence = 0.9
	}
	// The title holds two reasons; the evidence has all.
	why := strings.Join(reasons[:min(len(reasons), 2)], "; ")
	if more := len(reasons) - 2; more > 0 {
		why += fmt.Sprintf("; and %d more", more)
	}
	x.Title = fmt.Sprintf("The figures are less certain than usual at %s: %s.", evidence.Rate(f.RateBitsPerSec), why)
	if x.Severity == evidence.Notice {
		x.Title = fmt.Sprintf("The bench is too noisy to trust %s: %s.", evidence.Rate(f.RateBitsPerSec), why)
	}
	x.Remedy.Text = "Measure again for longer, on a quieter host or at a quieter hour."
	if rising && f.ScatterRatio > maxScatter {
		x.Title = fmt.Sprintf("The test was too short to trust %s: %s.", evidence.Rate(f.RateBitsPerSec), why)
		x.Remedy.Text = fmt.Sprintf(
			"Load the path for longer (--duration 20s): with a round trip of %s, slow start takes a while.",
			evidence.Seconds(f.Loaded()))
	}
	return x
}

// rise reports whether the rate of a flow grew from beginning to end. Such a flow scatters as much
// as a noisy one but only needs more time. A drop of up to a tenth between two intervals is noise
// on top of the rise.
func rise(f *evidence.Flow) (from, to float64, rising bool) {
	var rates []float64
	for _, i := range f.Run.Intervals {
		if !i.Omitted && i.ThroughputBitsPerSec > 0 {
			rates = append(rates, i.ThroughputBitsPerSec)
		}
	}
	if len(rates) < 3 {
		return 0, 0, false
	}
	for k := 1; k < len(rates); k++ {
		if rates[k] < 0.9*rates[k-1] {
			return 0, 0, false
		}
	}
	from, to = rates[0], rates[len(rates)-1]
	return from, to, to >= 1.5*from
}
