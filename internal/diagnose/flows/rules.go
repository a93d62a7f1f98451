package flows

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.WindowScalingOff, Flow: windowScalingOff},
		{Code: evidence.RouteWindowClamped, Flow: routeWindowClamped},
		{Code: evidence.ReceiveWindowLimited, Flow: receiveWindowLimited},
		{Code: evidence.SendBufferLimited, Flow: sendBufferLimited},
		{Code: evidence.PathLoss, Flow: pathLoss},
	}
}
