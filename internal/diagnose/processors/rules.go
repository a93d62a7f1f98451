package processors

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.SoftnetBacklogDrops, Span: softnetBacklogDrops},
		{Code: evidence.NAPIBudgetExhausted, Span: napiBudgetExhausted},
		{Code: evidence.CPUSteal, Span: cpuSteal},
		{Code: evidence.RSSImbalance, Span: rssImbalance},
		{Code: evidence.NUMAMisplaced, Span: numaMisplaced},
		{Code: evidence.CPUPowerState, Case: cpuPowerState},
		{Code: evidence.SoftirqCPUSaturated, Span: softirqCPUSaturated},
		{Code: evidence.CPUSaturated, Span: cpuSaturated},
	}
}
