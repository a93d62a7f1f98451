package flows

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room. A code with several has one for a flow of ours, and one for what
// the programs of a watched host do.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.WindowScalingOff, Flow: windowScalingOff},
		{Code: evidence.RouteWindowClamped, Flow: routeWindowClamped},
		{Code: evidence.ReceiveWindowLimited, Flow: receiveWindowLimited},
		{Code: evidence.ReceiveWindowLimited, Span: receiveWindowWatched},
		{Code: evidence.SendBufferLimited, Flow: sendBufferLimited},
		{Code: evidence.SendBufferLimited, Span: sendBufferWatched},
		{Code: evidence.MTUBlackHole, Case: mtuBlackHole},
		{Code: evidence.MTUMismatch, Case: mtuMismatch},
		{Code: evidence.MTUSmall, Case: mtuSmall},
		{Code: evidence.Policer, Flow: policer},
		{Code: evidence.Reordering, Flow: reordering},
		{Code: evidence.TimeoutsIncast, Flow: timeoutsIncast},
		{Code: evidence.TimeoutsIncast, Span: timeoutsWatched},
		{Code: evidence.PathLoss, Flow: pathLoss},
		{Code: evidence.PathLoss, Span: pathLossWatched},
		{Code: evidence.PathLoss, Case: lostEchoes},
		{Code: evidence.CongestionControlMismatch, Flow: congestionControlMismatch},
		{Code: evidence.Bufferbloat, Case: bufferbloat},
		{Code: evidence.DelayedACKStall, Span: delayedACKWatched},
		{Code: evidence.DelayedACKStall, Case: delayedACKTransactions},
		{Code: evidence.SlowStartAfterIdle, Span: idleRestartWatched},
		{Code: evidence.SlowStartAfterIdle, Flow: idleRestartObjects},
	}
}
