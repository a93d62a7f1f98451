package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// Up to fewEchoes lost echoes out of a second's worth are an accident, and so is less than
// lostEchoShare of them.
const (
	fewEchoes     = 2
	lostEchoShare = 0.02
)

// lostEchoes finds that some echoes did not return on a path without a load.
//
// Without a load no queue overflows. So either the path itself loses packets, or the other end
// answers a limited number of echoes per second (net.ipv4.icmp_ratelimit of Linux does not limit
// echo replies; routers and firewalls do). Only a load distinguishes the two, so the finding is a
// notice. If the case has a loaded run, that run is judged instead.
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
			Title: fmt.Sprintf("%s of %s echoes did not return on a path without a load.", evidence.Count(lost),
				evidence.Count(sent)),
			Evidence: []evidence.Evidence{
				{Name: "echoes lost", Value: *r.LossRatio, Unit: "ratio", Source: r.Method},
				{Name: "round trip, median", Value: r.RTT.P50, Unit: "seconds", Source: r.Method},
			},
			Rejected: []string{fmt.Sprintf("Not a queue filled by the test: it sent only %s echoes.",
				evidence.Count(sent))},
		}
		x.Remedy.Text = "Echoes may also be lost because the other end limits its answers: " +
			"run `linerate serve` there and diagnose with a load, or check the error counters of the devices " +
			"on the path."
		x.Remedy.Proof = "Send the same number of echoes over ten times the time: " +
			"a path with random loss loses the same share, a limit on echoes loses none."
		return x
	}
	return nil
}
