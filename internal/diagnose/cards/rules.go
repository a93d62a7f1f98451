package cards

import "github.com/linerate/linerate/internal/diagnose/evidence"

// Rules are those of this room.
func Rules() []evidence.Rule {
	return []evidence.Rule{
		{Code: evidence.LinkNegotiatedLow, Span: linkLow},
		{Code: evidence.HalfDuplex, Span: halfDuplex},
		{Code: evidence.CRCErrors, Span: crcErrors},
		{Code: evidence.BusLimited, Span: busLimited},
		{Code: evidence.EmulatedNIC, Span: emulatedNIC},

		{Code: evidence.RXRingOverrun, Span: rxRingOverrun},
		{Code: evidence.PauseFrames, Span: pauseFrames},
		{Code: evidence.QdiscDrops, Span: qdiscDrops},
		{Code: evidence.TXQueueDrops, Span: txQueueDrops},

		{Code: evidence.InterruptStorm, Span: interruptStorm},
		{Code: evidence.InterruptModerationLatency, Case: moderationLatency},
		{Code: evidence.OffloadsOff, Flow: offloadsOff},
		{Code: evidence.OffloadsOff, Span: offloadsOffHere},
	}
}
