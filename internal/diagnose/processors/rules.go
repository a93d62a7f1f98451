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
	}
}
