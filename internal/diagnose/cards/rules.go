package cards

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules returns the rules of this package. Explains follows from one fact: a counted drop is a loss
// to the sender, whatever its congestion control.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.LinkNegotiatedLow, Span: linkLow},
		{Code: evidence.HalfDuplex, Span: halfDuplex, Explains: []evidence.Code{
			evidence.CRCErrors, evidence.PathLoss, evidence.TimeoutsIncast,
			evidence.CongestionControlMismatch,
		}},
		{Code: evidence.CRCErrors, Span: crcErrors, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.LinkFlapping, Span: linkFlaps, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.DriverFault, Span: driverFault, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.BusLimited, Span: busLimited},
		{Code: evidence.EmulatedNIC, Span: emulatedNIC, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.InterruptStorm,
		}},

		{Code: evidence.RXRingOverrun, Span: rxRingOverrun, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.PauseFrames, Span: pauseFrames, Explains: []evidence.Code{
			evidence.TXQueueDrops, evidence.QdiscDrops,
		}},
		{Code: evidence.QdiscDrops, Span: qdiscDrops, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
			evidence.Policer, evidence.Bufferbloat,
		}},
		{Code: evidence.Policer, Span: ingressPolicer, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.TXQueueDrops, Span: txQueueDrops, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},

		{Code: evidence.InterruptStorm, Span: interruptStorm, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated,
		}},
		{Code: evidence.InterruptModerationLatency, Case: moderationLatency},
		{Code: evidence.OffloadsOff, Flow: offloadsOff, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
		}},
		{Code: evidence.OffloadsOff, Span: offloadsOffHere},
	}
}
