package tables

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.ConntrackFull, Span: conntrackFull},
		{Code: evidence.NeighbourTableFull, Span: neighbourTableFull},
		{Code: evidence.ListenOverflow, Span: listenOverflow},
		{Code: evidence.PortExhaustion, Span: portExhaustion},
		{Code: evidence.PortExhaustion, Case: portsRefused},
		{Code: evidence.TCPMemoryPressure, Span: tcpMemoryPressure},
		{Code: evidence.UDPSocketOverflow, Span: udpSocketOverflow},
		{Code: evidence.FirewallCost, Span: firewallCost},
		{Code: evidence.ApplicationLimited, Span: applicationLimited},
	}
}
