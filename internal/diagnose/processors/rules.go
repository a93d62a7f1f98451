package processors

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules returns the rules of this package. Explains follows from one fact: a saturated CPU overruns
// every queue in front of it.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.SoftnetBacklogDrops, Span: softnetBacklogDrops, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.NAPIBudgetExhausted, Span: napiBudgetExhausted},
		{Code: evidence.CPUSteal, Span: cpuSteal, Explains: []evidence.Code{
			evidence.CPUSaturated, evidence.SoftirqCPUSaturated, evidence.NAPIBudgetExhausted,
		}},
		{Code: evidence.RSSImbalance, Span: rssImbalance, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.NAPIBudgetExhausted, evidence.SoftnetBacklogDrops,
			evidence.RXRingOverrun,
		}},
		{Code: evidence.NUMAMisplaced, Span: numaMisplaced, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated,
		}},
		{Code: evidence.CPUPowerState, Case: cpuPowerState, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated,
		}},
		{Code: evidence.SoftirqCPUSaturated, Span: softirqCPUSaturated, Explains: []evidence.Code{
			evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
		}},
		{Code: evidence.CPUSaturated, Span: cpuSaturated},
		// What a profile measures. These explain no symptom: a saturated CPU stays one, and its own
		// remedies hold.
		{Code: evidence.LockContention, Span: lockContention},
		{Code: evidence.CopyCost, Span: copyCost.rule()},
		{Code: evidence.ChecksumInSoftware, Span: checksumCost.rule()},
		{Code: evidence.DriverPollCost, Span: driverCost.rule()},
		{Code: evidence.AllocationCost, Span: allocationCost.rule()},
		{Code: evidence.BPFCost, Span: bpfCost.rule()},
	}
}
