package diagnose

import (
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// explains says which symptoms a cause accounts for. A symptom is muted when its cause is found and
// weighs as much: repairing the cause is what helps, and two findings for one fault would only
// confuse.
//
// A drop that a host has counted is a loss to the sender, whatever congestion control makes of it;
// a held window looks like a small buffer at either end; a processor that is full makes every queue
// in front of it run over.
var explains = map[evidence.Code][]evidence.Code{
	evidence.WindowScalingOff:   {evidence.ReceiveWindowLimited, evidence.SendBufferLimited},
	evidence.RouteWindowClamped: {evidence.ReceiveWindowLimited, evidence.SendBufferLimited},
	evidence.TCPMemoryPressure:  {evidence.ReceiveWindowLimited, evidence.SendBufferLimited},
	evidence.ApplicationLimited: {evidence.ReceiveWindowLimited},

	evidence.HalfDuplex: {evidence.CRCErrors, evidence.PathLoss, evidence.TimeoutsIncast,
		evidence.CongestionControlMismatch},
	evidence.CRCErrors:    {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.MTUBlackHole: {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.MTUMismatch: {evidence.MTUBlackHole, evidence.PathLoss, evidence.TimeoutsIncast,
		evidence.CongestionControlMismatch},

	evidence.ConntrackFull:       {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.RXRingOverrun:       {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.SoftnetBacklogDrops: {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.QdiscDrops: {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		evidence.Policer, evidence.Bufferbloat},
	evidence.TXQueueDrops: {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.PauseFrames:  {evidence.TXQueueDrops, evidence.QdiscDrops},

	evidence.Policer:        {evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch},
	evidence.Reordering:     {evidence.PathLoss, evidence.CongestionControlMismatch},
	evidence.TimeoutsIncast: {evidence.PathLoss, evidence.CongestionControlMismatch},
	evidence.PathLoss:       {evidence.CongestionControlMismatch},
	evidence.Bufferbloat:    {evidence.TimeoutsIncast, evidence.CongestionControlMismatch},

	evidence.CPUSteal: {evidence.CPUSaturated, evidence.SoftirqCPUSaturated, evidence.NAPIBudgetExhausted},
	evidence.RSSImbalance: {evidence.SoftirqCPUSaturated, evidence.NAPIBudgetExhausted, evidence.SoftnetBacklogDrops,
		evidence.RXRingOverrun},
	evidence.FirewallCost: {evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
		evidence.SoftnetBacklogDrops},
	evidence.NUMAMisplaced:  {evidence.SoftirqCPUSaturated, evidence.CPUSaturated},
	evidence.CPUPowerState:  {evidence.SoftirqCPUSaturated, evidence.CPUSaturated},
	evidence.InterruptStorm: {evidence.SoftirqCPUSaturated, evidence.CPUSaturated},
	evidence.OffloadsOff:    {evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted},
	evidence.EmulatedNIC:    {evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.InterruptStorm},

	evidence.SoftirqCPUSaturated: {evidence.CPUSaturated, evidence.NAPIBudgetExhausted},
}

// mute takes away what another finding explains, and lists it there. The rows are followed in the
// order of findings, and what is muted mutes no more.
func mute(found []evidence.Finding) []evidence.Finding {
	muted := make(map[evidence.Code]bool)
	for i := range found {
		for _, symptom := range explains[found[i].Code] {
			if muted[found[i].Code] || muted[symptom] {
				continue
			}
			// All places of one symptom have to weigh no more than the cause: a notice explains no
			// warning away.
			present, heavier := false, false
			for _, x := range found {
				if x.Code == symptom {
					present, heavier = true, heavier || severe(x) < severe(found[i])
				}
			}
			if present && !heavier {
				muted[symptom] = true
				found[i].Causes = append(found[i].Causes, symptom)
			}
		}
	}
	return slices.DeleteFunc(found, func(x evidence.Finding) bool { return muted[x.Code] })
}
