package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// fewEchoes lost of a second's worth are an accident, and so is less than lostEchoShare of them.
const (
	fewEchoes     = 2
	lostEchoShare = 0.02
)

// lostEchoes: of a path that nobody loaded, some echoes did not come back.
//
// Without a load there is no queue to overflow, so either the path loses packets by itself, or the
// other end answers only so many echoes a second (Linux: net.ipv4.icmp_ratelimit does not bound
// echo replies, routers and firewalls do). Which of them it is nothing but a load tells, so that it
// is a notice; where there was one, that is what is judged.
func lostEchoes(c *evidence.Case) *evidence.Finding {
	if len(evidence.FlowsOf(c)) > 0 {
		return nil
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Test != traffic.Ping || r.RTT == nil || r.LossRatio == nil || *r.LossRatio < lostEchoShare ||
			*r.LossRatio >= 1 {
			continue
		}
		sent := float64(r.RTT.Count) / (1 - *r.LossRatio)
		lost := sent - float64(r.RTT.Count)
		if lost < fewEchoes {
			continue
		}
		x := &evidence.Finding{
			Code: evidence.PathLoss, Severity: evidence.Notice, Where: "path",
			Confidence: evidence.Combine(0.4, evidence.When(lost >= 5, 0.3)),
			Title: fmt.Sprintf("%s of %s echoes did not come back on a path that nobody loaded.", evidence.Count(lost),
				evidence.Count(sent)),
			Evidence: []evidence.Evidence{
				{Name: "echoes lost", Value: *r.LossRatio, Unit: "ratio", Source: r.Method},
				{Name: "round trip, median", Value: r.RTT.P50, Unit: "seconds", Source: r.Method},
			},
			Rejected: []string{fmt.Sprintf("Not a queue of ours: nothing was sent but %s echoes.",
				evidence.Count(sent))},
		}
		x.Remedy.Text = "Echoes may also be dropped because the other end answers only so many: run `linerate serve` there and diagnose with a load, or look at the error counters of the devices on the way."
		x.Remedy.Proof = "Send the same number of echoes over ten times the time: a path that loses by chance loses the same share, a limit of echoes loses none."
		return x
	}
	return nil
}
