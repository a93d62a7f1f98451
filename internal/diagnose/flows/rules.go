package flows

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules returns the rules of this package. A code with several has one for a flow of a test and one
// for the connections of a watched host.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.WindowScalingOff, Flow: windowScalingOff, Explains: []evidence.Code{
			evidence.ReceiveWindowLimited, evidence.SendBufferLimited,
		}},
		{Code: evidence.RouteWindowClamped, Flow: routeWindowClamped, Explains: []evidence.Code{
			evidence.ReceiveWindowLimited, evidence.SendBufferLimited,
		}},
		{Code: evidence.ReceiveWindowLimited, Flow: receiveWindowLimited},
		{Code: evidence.ReceiveWindowLimited, Span: receiveWindowWatched},
		{Code: evidence.SendBufferLimited, Flow: sendBufferLimited},
		{Code: evidence.SendBufferLimited, Span: sendBufferWatched},
		{Code: evidence.MTUBlackHole, Case: mtuBlackHole, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.MTUMismatch, Case: mtuMismatch, Explains: []evidence.Code{
			evidence.MTUBlackHole, evidence.PathLoss, evidence.TimeoutsIncast,
			evidence.CongestionControlMismatch,
		}},
		{Code: evidence.MTUSmall, Case: mtuSmall},
		{Code: evidence.Policer, Flow: policer, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.Reordering, Flow: reordering, Explains: []evidence.Code{
			evidence.PathLoss, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.TimeoutsIncast, Flow: timeoutsIncast, Explains: []evidence.Code{
			evidence.PathLoss, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.TimeoutsIncast, Span: timeoutsWatched},
		{Code: evidence.PathLoss, Flow: pathLoss, Explains: []evidence.Code{
			evidence.CongestionControlMismatch,
		}},
		{Code: evidence.PathLoss, Span: pathLossWatched},
		{Code: evidence.PathLoss, Case: lostEchoes},
		{Code: evidence.CongestionControlMismatch, Flow: congestionControlMismatch},
		{Code: evidence.Bufferbloat, Case: bufferbloat, Explains: []evidence.Code{
			evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.DelayedACKStall, Span: delayedACKWatched},
		{Code: evidence.DelayedACKStall, Case: delayedACKTransactions},
		{Code: evidence.SlowStartAfterIdle, Span: idleRestartWatched},
		{Code: evidence.SlowStartAfterIdle, Flow: idleRestartObjects},
	}
}
