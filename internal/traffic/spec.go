package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Test names what is measured. The constants of this type are in the files of the tests.
type Test string

// Direction is seen from the near end: up is near to far.
type Direction string

// The directions.
const (
	Up    Direction = "up"
	Down  Direction = "down" // --reverse
	Bidir Direction = "bidir"
)

// Spec is one test to run. It travels to the far end as JSON, so both ends know the same. Fields
// that a test does not use must be zero, so that no caller believes to have set what was ignored;
// [Spec.Normalize] checks this.
type Spec struct {
	Test      Test      `json:"test"`
	Direction Direction `json:"direction"`
	Streams   int       `json:"streams"`
	// Duration is the measured part, after the warm-up; with Bytes the longest time.
	Duration time.Duration `json:"duration_nanoseconds"`
	// WarmUp precedes the measured part; <0: until the rate is steady; with Bytes none.
	WarmUp   time.Duration `json:"warm_up_nanoseconds"`
	Interval time.Duration `json:"interval_nanoseconds"` // of interim results

	// Bytes makes a test of an amount instead of a time: payload of each direction, shared among
	// its streams. 0: time decides. For stream and udp.
	Bytes int64 `json:"bytes,omitempty"`
	// Rates are of the payload of each direction, shared among its streams; 0: as fast as possible.
	// For stream and udp; packet rates for udp only.
	RateBitsPerSec    float64 `json:"rate_bits_per_second,omitempty"`
	RatePacketsPerSec float64 `json:"rate_packets_per_second,omitempty"`

	// RequestBytes is for rr, crr and ping; for stream it is the size of the pings beside it.
	RequestBytes  int `json:"request_bytes,omitempty"`
	ResponseBytes int `json:"response_bytes,omitempty"` // rr, crr
	// PacketBytes is the payload of one datagram of udp, its header included.
	PacketBytes int `json:"packet_bytes,omitempty"`
	// Gap is the time between the packets of ping, or the pause before each request of rr.
	Gap time.Duration `json:"gap_nanoseconds,omitempty"`
	// ProbeGap is the time between the pings that run beside the test; 0: none.
	ProbeGap time.Duration `json:"probe_gap_nanoseconds,omitempty"`

	SendMethod    engine.SendMethod    `json:"send_method,omitempty"`    // stream
	ReceiveMethod engine.ReceiveMethod `json:"receive_method,omitempty"` // stream
	// Batch is "gso", "mmsg" or "single", for udp; empty: the fastest that works.
	Batch    string `json:"batch,omitempty"`
	BusyPoll bool   `json:"busy_poll,omitempty"` // rr, crr, udp: spin instead of sleeping

	Congestion string `json:"congestion_control,omitempty"` // of the sending ends; empty: the host's own
	// WindowBytes are the socket buffers of both ends, as requested; 0: tuned by the kernel.
	WindowBytes  int   `json:"window_bytes,omitempty"`
	MSSBytes     int   `json:"mss_bytes,omitempty"`     // TCP_MAXSEG before connecting; 0: the kernel's
	NoDelay      *bool `json:"no_delay,omitempty"`      // TCP_NODELAY; nil: on for rr and crr, off for stream
	TOS          int   `json:"tos,omitempty"`           // IP TOS or IPv6 traffic class of all data packets
	DontFragment bool  `json:"dont_fragment,omitempty"` // udp
	// SourcePort is the near port of the first data connection, plus its index for later ones; 0:
	// any.
	SourcePort int `json:"source_port,omitempty"`
	// SourceAddress is the near IP address of every connection and datagram; empty: the route
	// chooses. The far end sees it in what arrives.
	SourceAddress string `json:"-"`

	// ForgetPeer makes both kernels forget what they remember about TCP connections with the other
	// host, before the first connection: then the test before this one neither helps it nor holds
	// it back.
	ForgetPeer bool `json:"forget_peer,omitempty"`

	NearCPUs []int `json:"near_cpus,omitempty"` // of the near end's workers, in turn; empty: chosen
	FarCPUs  []int `json:"far_cpus,omitempty"`  // the same at the far end
}
