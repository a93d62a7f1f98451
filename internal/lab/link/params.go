package link

import (
	"fmt"
	"time"
)

// Params describe what one direction of a link does to frames. The zero value is a perfect wire: no
// rate limit, no delay, no loss.
type Params struct {
	RateBitsPerSec float64 `json:"rate_bits_per_second,omitempty"` // on the wire, framing included; 0: no limit
	DelaySeconds   float64 `json:"delay_seconds,omitempty"`        // one way, from the last bit sent; 0 to 60
	JitterSeconds  float64 `json:"jitter_seconds,omitempty"`       // uniform variation of the delay by ± this
	Reorder        bool    `json:"reorder,omitempty"`              // lets jitter change the order of frames
	LossRatio      float64 `json:"loss_ratio,omitempty"`           // share of wire segments that is lost; 0 to 1
	LossBurst      float64 `json:"loss_burst_packets,omitempty"`   // mean run of losses, geometric; 0, 1: single
	QueueBytes     int64   `json:"queue_bytes,omitempty"`          // limit of the queue, in wire bytes; 0: see Queue
	MTUBytes       int     `json:"mtu_bytes,omitempty"`            // without Ethernet header; 0: 1500

	// HoleBytes makes a black hole: longer packets are dropped without a message. 0: no hole.
	HoleBytes int `json:"hole_bytes,omitempty"`
	// PoliceBitsPerSec and PoliceBurstBytes describe a policer in front of the queue: a token
	// bucket that drops frames that find no tokens. It counts Ethernet frames without framing, as
	// switches do. 0: no policer.
	PoliceBitsPerSec float64 `json:"police_bits_per_second,omitempty"`
	PoliceBurstBytes int64   `json:"police_burst_bytes,omitempty"`

	Seed uint64 `json:"seed,omitempty"` // of loss and jitter; equal seeds treat equal frames equally
}

// The bounds of Params, and the least a default queue holds.
const (
	minRate      = 1e3   // bits per second: below this one frame takes longer than any test
	maxRate      = 1e12  // bits per second: the arithmetic is exact up to here
	maxDelay     = 60    // seconds
	defaultQueue = 256e3 // bytes
	defaultMTU   = 1500  // bytes
	minMTU       = 68    // bytes: what every IPv4 hop must carry (RFC 791)
	maxMTU       = 65535 // bytes
	maxLossBurst = 10000 // packets
)

// Check returns an error that names the parameter out of range, or nil.
func (p Params) Check() error {
	switch {
	case p.RateBitsPerSec != 0 && !(p.RateBitsPerSec >= minRate && p.RateBitsPerSec <= maxRate):
		return fmt.Errorf("link rate %v bits per second: want 0 (no limit) or %g to %g", p.RateBitsPerSec,
			minRate, maxRate)
	case !(p.DelaySeconds >= 0 && p.DelaySeconds <= maxDelay):
		return fmt.Errorf("link delay %v seconds: want 0 to %d", p.DelaySeconds, maxDelay)
	case !(p.JitterSeconds >= 0 && p.JitterSeconds <= p.DelaySeconds):
		return fmt.Errorf("link jitter %v seconds: want 0 to the delay, %v", p.JitterSeconds, p.DelaySeconds)
	case !(p.LossRatio >= 0 && p.LossRatio <= 1):
		return fmt.Errorf("link loss ratio %v: want 0 to 1", p.LossRatio)
	case p.LossBurst != 0 && !(p.LossBurst >= 1 && p.LossBurst <= maxLossBurst):
		return fmt.Errorf("link loss burst of %v packets: want 0, or 1 to %d", p.LossBurst, maxLossBurst)
	case p.HoleBytes < 0 || p.HoleBytes != 0 && p.HoleBytes < minMTU:
		return fmt.Errorf("link hole above %d bytes: want 0 (none) or at least %d", p.HoleBytes, minMTU)
	case p.PoliceBitsPerSec != 0 && !(p.PoliceBitsPerSec >= minRate && p.PoliceBitsPerSec <= maxRate):
		return fmt.Errorf("link policer of %v bits per second: want 0 (none) or %g to %g", p.PoliceBitsPerSec,
			minRate, maxRate)
	case p.PoliceBitsPerSec != 0 && p.PoliceBurstBytes < int64(p.MTU()+ethernetLen):
		return fmt.Errorf("link policer burst of %d bytes: want at least one frame, %d", p.PoliceBurstBytes,
			p.MTU()+ethernetLen)
	case p.PoliceBitsPerSec == 0 && p.PoliceBurstBytes != 0:
		return fmt.Errorf("link policer burst of %d bytes without a rate", p.PoliceBurstBytes)
	case p.QueueBytes < 0:
		return fmt.Errorf("link queue %d bytes: want 0 (default) or more", p.QueueBytes)
	case p.MTUBytes != 0 && (p.MTUBytes < minMTU || p.MTUBytes > maxMTU):
		return fmt.Errorf("link mtu %d bytes: want %d to %d", p.MTUBytes, minMTU, maxMTU)
	}
	return nil
}

// Queue returns the queue limit in wire bytes. The default is what the link carries in one round
// trip with the same delay both ways, and at least 256 kB: one bandwidth-delay product lets a
// single loss-based flow keep the wire busy after it has halved its window.
func (p Params) Queue() int64 {
	if p.QueueBytes > 0 {
		return p.QueueBytes
	}
	return max(defaultQueue, int64(p.RateBitsPerSec/8*2*p.DelaySeconds))
}

// MTU returns the longest packet that the interfaces of the link send, in bytes without the
// Ethernet header.
func (p Params) MTU() int {
	if p.MTUBytes > 0 {
		return p.MTUBytes
	}
	return defaultMTU
}

// seconds converts seconds of a document into a duration, rounded to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(s*1e9 + 0.5) }

// Counters are the totals of one direction since the start. Packets are wire segments: a
// super-frame of 40 segments counts 40. Bytes are Ethernet frame lengths without framing. Every
// packet in is out, dropped, or still waiting. Overruns and Refused come from a busy machine and
// not from the link.
type Counters struct {
	InPackets      uint64 `json:"in_packets_total"`
	InBytes        uint64 `json:"in_bytes_total"`
	OutPackets     uint64 `json:"out_packets_total"`
	OutBytes       uint64 `json:"out_bytes_total"`
	WaitingPackets uint64 `json:"waiting_packets"`
	DroppedLoss    uint64 `json:"dropped_by_loss_packets_total"`     // lost on the wire, by LossRatio
	DroppedQueue   uint64 `json:"dropped_by_queue_packets_total"`    // found the queue full
	DroppedTooLong uint64 `json:"dropped_too_long_packets_total"`    // longer than the MTU, or than HoleBytes
	DroppedPolicer uint64 `json:"dropped_by_policer_packets_total"`  // found no tokens
	DroppedInvalid uint64 `json:"dropped_invalid_packets_total"`     // headers that do not fit together
	Overruns       uint64 `json:"dropped_by_overrun_packets_total"`  // the emulator read too slowly
	Refused        uint64 `json:"dropped_by_receiver_packets_total"` // the interface took no more
}
