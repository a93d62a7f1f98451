package traffic

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/host/drops"
)

// Burst sends back-to-back datagrams in growing trains until the first one loses some. Package loop
// runs each train as a udp test of an amount and puts their results together; neither end runs it
// here, so the far end need not know it.
const Burst Test = "burst"

// BurstPackets is the longest train without [Spec.Bytes]: eight times the largest ring of today's
// NICs.
const BurstPackets = 32768

type burstTest struct{}

func (burstTest) traits() traits {
	return traits{bulk: true, composed: true, takes: directions | amounts | packetSizes | fragments | sourcePorts}
}

func (burstTest) fill(s *Spec) {
	udpTest{}.fill(s)
	if s.Bytes == 0 {
		s.Bytes = BurstPackets * int64(s.PacketBytes)
	}
	s.WarmUp = 0 // a train has no ramp
}

func (burstTest) check(s Spec) string {
	if s.Bytes < int64(s.PacketBytes) {
		return fmt.Sprintf("a longest train of %d bytes holds no datagram of %d", s.Bytes, s.PacketBytes)
	}
	return udpTest{}.check(s)
}

func (burstTest) near(context.Context, *nearEnd) (cast, error) { return cast{}, errComposed }
func (burstTest) far(context.Context, *farEnd) (cast, error)   { return cast{}, errComposed }
func (burstTest) interval(*Interval, Direction, part, part)    {}
func (burstTest) result(*Result, outcome) (packets uint64)     { return 0 }

// BurstResult is what the path took back to back. A train is a number of datagrams that the sender
// hands to its kernel as fast as it can.
type BurstResult struct {
	PacketBytes    int          `json:"packet_bytes"`     // payload of a datagram
	HeldPackets    uint64       `json:"held_packets"`     // longest train that arrived whole; 0: none did
	LostAtPackets  uint64       `json:"lost_at_packets"`  // shortest train that did not; 0: all arrived whole
	LongestPackets uint64       `json:"longest_packets"`  // longest train that the test would send
	Place          string       `json:"place,omitempty"`  // of most losses of that train, as in losses[]
	Losses         []drops.Loss `json:"losses,omitempty"` // of that train
	// Bounds are what the queues on the way hold by the settings of both hosts, in the order of the
	// path; absent: the hosts were not read.
	Bounds []BurstBound `json:"bounds,omitempty"`
	Trains []BurstTrain `json:"trains"` // in the order in which they were sent
}

// BurstTrain is one train.
type BurstTrain struct {
	Packets  uint64 `json:"packets"`
	Received uint64 `json:"received_packets_total"`
	Lost     uint64 `json:"lost_packets_total"`
	Place    string `json:"place,omitempty"` // of most of the losses
}

// BurstBound is one queue on the way of a train. A train that is no longer fits even if the queue
// is not emptied meanwhile.
type BurstBound struct {
	Place     string `json:"place"`               // as in losses[]
	Interface string `json:"interface,omitempty"` // absent: of the host
	Source    string `json:"source"`              // the setting
	Packets   uint64 `json:"packets"`             // that the queue holds
	// FullAfter is the time after which frames at the speed of the link fill the queue, see
	// calc burst; absent: the speed is not known.
	FullAfter float64 `json:"full_after_seconds,omitempty"`
}

// At returns the bound of a place, and whether it is known.
func (b *BurstResult) At(place string) (BurstBound, bool) {
	for _, bound := range b.Bounds {
		if bound.Place == place {
			return bound, true
		}
	}
	return BurstBound{}, false
}
