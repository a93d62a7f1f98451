package link

import (
	"fmt"
	"time"
)

// Params says what one direction of a link does to frames. The zero value is a perfect wire: no limit of rate, no delay, no loss.
type Params struct {
	RateBitsPerSec float64 `json:"rate_bits_per_second,omitempty"` // on the wire, framing included; 0: no limit
	DelaySeconds   float64 `json:"delay_seconds,omitempty"`        // one way, from the last bit sent to its arrival; 0 to 60
	JitterSeconds  float64 `json:"jitter_seconds,omitempty"`       // each frame's delay varies evenly by ± this; at most the delay
	Reorder        bool    `json:"reorder,omitempty"`              // lets jitter change the order of frames; otherwise none passes another
	LossRatio      float64 `json:"loss_ratio,omitempty"`           // probability that a wire segment is lost, each by itself; 0 to 1
	QueueBytes     int64   `json:"queue_bytes,omitempty"`          // what may wait for the wire, in wire bytes; 0: DefaultQueue
	MTUBytes       int     `json:"mtu_bytes,omitempty"`            // longest packet that passes, without Ethernet header; 0: 1500
	Seed           uint64  `json:"seed,omitempty"`                 // of loss and jitter; the same seed gives the same fate to the same frames
}

// The bounds of Params, and the least a default queue holds.
const (
	minRate      = 1e3   // bits per second: below this one frame takes longer than any test
	maxRate      = 1e12  // bits per second: the arithmetic is exact up to here
	maxDelay     = 60    // seconds
	defaultQueue = 256e3 // bytes
	defaultMTU   = 1500  // bytes
	maxMTU       = 65535 // bytes
)

// Check says what is wrong with the parameters, or nil.
func (p Params) Check() error {
	switch {
	case p.RateBitsPerSec != 0 && !(p.RateBitsPerSec >= minRate && p.RateBitsPerSec <= maxRate):
		return fmt.Errorf("link rate %v bits per second: want 0 (no limit) or %g to %g", p.RateBitsPerSec, minRate, maxRate)
	case !(p.DelaySeconds >= 0 && p.DelaySeconds <= maxDelay):
		return fmt.Errorf("link delay %v seconds: want 0 to %d", p.DelaySeconds, maxDelay)
	case !(p.JitterSeconds >= 0 && p.JitterSeconds <= p.DelaySeconds):
		return fmt.Errorf("link jitter %v seconds: want 0 to the delay, %v", p.JitterSeconds, p.DelaySeconds)
	case !(p.LossRatio >= 0 && p.LossRatio <= 1):
		return fmt.Errorf("link loss ratio %v: want 0 to 1", p.LossRatio)
	case p.QueueBytes < 0:
		return fmt.Errorf("link queue %d bytes: want 0 (default) or more", p.QueueBytes)
	case p.MTUBytes != 0 && (p.MTUBytes < 68 || p.MTUBytes > maxMTU):
		return fmt.Errorf("link mtu %d bytes: want 68 to %d", p.MTUBytes, maxMTU)
	}
	return nil
}

// Queue gives the queue limit in wire bytes: QueueBytes, or by default what the link carries in one round trip with the same delay
// both ways, and at least 256 kB. One such product is what a single loss-based flow needs to keep the wire busy after it has halved.
func (p Params) Queue() int64 {
	if p.QueueBytes > 0 {
		return p.QueueBytes
	}
	return max(defaultQueue, int64(p.RateBitsPerSec/8*2*p.DelaySeconds))
}

// MTU gives the longest packet that passes, in bytes without the Ethernet header.
func (p Params) MTU() int {
	if p.MTUBytes > 0 {
		return p.MTUBytes
	}
	return defaultMTU
}

// seconds turns a number of seconds from a document into a duration, rounded to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(s*1e9 + 0.5) }

// Counters are the totals of one direction since the start. Packets are wire segments: a super-frame of 40 counts 40. Bytes are
// Ethernet frame lengths without framing. Packets in are either out, dropped, or still waiting.
type Counters struct {
	InPackets      uint64 `json:"in_packets_total"`
	InBytes        uint64 `json:"in_bytes_total"`
	OutPackets     uint64 `json:"out_packets_total"`
	OutBytes       uint64 `json:"out_bytes_total"`
	WaitingPackets uint64 `json:"waiting_packets"`
	DroppedLoss    uint64 `json:"dropped_by_loss_packets_total"`     // lost on the wire, as LossRatio asks
	DroppedQueue   uint64 `json:"dropped_by_queue_packets_total"`    // found the queue full
	DroppedTooLong uint64 `json:"dropped_too_long_packets_total"`    // longer than the MTU
	DroppedInvalid uint64 `json:"dropped_invalid_packets_total"`     // headers that do not fit together
	Overruns       uint64 `json:"dropped_by_overrun_packets_total"`  // the emulator read too slowly: the bench is at fault, not the link
	Refused        uint64 `json:"dropped_by_receiver_packets_total"` // the receiving interface took no more; also the bench
}
