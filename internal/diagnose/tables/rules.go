package tables

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules returns the rules of this package.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.ConntrackFull, Span: conntrackFull, Explains: []evidence.Code{
			evidence.PathLoss, evidence.TimeoutsIncast, evidence.CongestionControlMismatch,
		}},
		{Code: evidence.NeighbourTableFull, Span: neighbourTableFull},
		{Code: evidence.ListenOverflow, Span: listenOverflow},
		{Code: evidence.PortExhaustion, Span: portExhaustion},
		{Code: evidence.PortExhaustion, Case: portsRefused},
		{Code: evidence.TCPMemoryPressure, Span: tcpMemoryPressure, Explains: []evidence.Code{
			evidence.ReceiveWindowLimited, evidence.SendBufferLimited,
		}},
		{Code: evidence.UDPSocketOverflow, Span: udpSocketOverflow},
		{Code: evidence.FragmentLoss, Span: fragmentLoss},
		{Code: evidence.FirewallCost, Span: firewallCost, Explains: []evidence.Code{
			evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
			evidence.SoftnetBacklogDrops,
		}},
		{Code: evidence.ApplicationLimited, Span: applicationLimited, Explains: []evidence.Code{
			evidence.ReceiveWindowLimited,
		}},
	}
}
