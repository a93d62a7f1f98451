package traffic

import (
	"fmt"
)

// option is a set of fields of a Spec that not every test uses. A test that does not use one
// refuses it, so that no caller believes to have set what was ignored.
type option uint32

// The options, by the fields that they allow.
const (
	directions  option = 1 << iota // Direction other than Up
	manyStreams                    // Streams above 1
	amounts                        // Bytes
	bitRates                       // RateBitsPerSec
	packetRates                    // RatePacketsPerSec
	packetSizes                    // PacketBytes
	probes                         // ProbeGap
	probeSizes                     // RequestBytes, as the size of the pings that ProbeGap asks for
	methods                        // SendMethod, ReceiveMethod
	batches                        // Batch
	fragments                      // DontFragment
	busyPolls                      // BusyPoll
	tcpOptions                     // Congestion, MSSBytes, NoDelay
	sourcePorts                    // SourcePort
	gaps                           // Gap
)

// restricted lists, for each option, how to recognise its use and what to answer for a test that
// does not take it.
var restricted = []struct {
	option  option
	used    func(s Spec) bool
	refusal string // of the test's name
}{
	{directions, func(s Spec) bool { return s.Direction != Up }, "%s has no direction: the near end always asks"},
	{amounts, func(s Spec) bool { return s.Bytes > 0 }, "%s runs for a time, not for an amount"},
	{bitRates, func(s Spec) bool { return s.RateBitsPerSec != 0 }, "%s runs at no rate"},
	{packetRates, func(s Spec) bool { return s.RatePacketsPerSec != 0 }, "%s runs at no packet rate"},
	{packetSizes, func(s Spec) bool { return s.PacketBytes != 0 }, "%s sends no datagrams of a chosen size"},
	{probes, func(s Spec) bool { return s.ProbeGap != 0 }, "no pings run beside %s"},
	{methods, func(s Spec) bool { return s.SendMethod != "" || s.ReceiveMethod != "" },
		"%s has no choice of how to send and receive"},
	{batches, func(s Spec) bool { return s.Batch != "" }, "%s sends no batches of datagrams"},
	{fragments, func(s Spec) bool { return s.DontFragment }, "%s has no choice about fragments"},
	{busyPolls, func(s Spec) bool { return s.BusyPoll }, "%s does not busy-poll"},
	{tcpOptions, func(s Spec) bool { return s.Congestion != "" || s.MSSBytes != 0 || s.NoDelay != nil },
		"%s does not run over TCP"},
	{sourcePorts, func(s Spec) bool { return s.SourcePort != 0 }, "%s has no choice of ports"},
	{gaps, func(s Spec) bool { return s.Gap != 0 }, "%s has no gap between packets"},
}

// checkOptions refuses fields that the test does not use.
func checkOptions(s Spec) string {
	takes := s.traits().takes
	for _, r := range restricted {
		if takes&r.option == 0 && r.used(s) {
			return fmt.Sprintf(r.refusal, s.Test)
		}
	}
	return ""
}
