package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
)

// Result is one entry of tests[] in linerate.measure/1. Throughput is payload counted at the
// receiver.
type Result struct {
	Test                 Test      `json:"test"`
	Direction            Direction `json:"direction"`
	Method               string    `json:"method,omitempty"` // "tcp, blocking, pinned", "icmp echo", "udp echo"
	StartTime            time.Time `json:"start_time"`
	DurationSeconds      float64   `json:"duration_seconds"`
	WarmUpSeconds        float64   `json:"warm_up_seconds"`
	Streams              int       `json:"streams"`
	Bytes                int64     `json:"bytes,omitempty"` // payload received in DurationSeconds
	ThroughputBitsPerSec float64   `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   float64   `json:"transactions_per_second,omitempty"`
	PacketsPerSec        float64   `json:"packets_per_second,omitempty"`
	LossRatio            *float64  `json:"loss_ratio,omitempty"`
	// RTT is of transactions or pings; of the pings beside the load if there were any.
	RTT               *stats.Latencies `json:"rtt,omitempty"`
	RetransmitsTotal  *uint64          `json:"retransmits_total,omitempty"` // segments, from the sender's TCP_INFO
	MTUBytes          int              `json:"mtu_bytes,omitempty"`
	MSSBytes          int              `json:"mss_bytes,omitempty"`
	CongestionControl string           `json:"congestion_control,omitempty"`
	LocalAddress      string           `json:"local_address,omitempty"` // IP of the data connections at the near end
	RemoteAddress     string           `json:"remote_address,omitempty"`
	SendMethod        string           `json:"send_method,omitempty"`    // how a stream was handed to the kernel
	ReceiveMethod     string           `json:"receive_method,omitempty"` // and taken from it
	VerifiedBytes     int64            `json:"verified_bytes,omitempty"` // of Bytes: compared with the payload sent
	UDP               *Datagrams       `json:"udp,omitempty"`
	Pacing            *Pacing          `json:"pacing,omitempty"` // if the Spec asks for a rate
	// Losses shows where packets were dropped; together they are UDP.Lost, to the packet.
	Losses []drops.Loss `json:"losses,omitempty"`
	MTU    *PathMTU     `json:"mtu,omitempty"`   // mtu
	Load   *LoadResult  `json:"load,omitempty"`  // load
	Burst  *BurstResult `json:"burst,omitempty"` // burst
	// OneWay is from a ping of a far end that timestamps and numbers what it answers.
	OneWay *OneWayResult `json:"one_way,omitempty"`
	// Hops is from a ping of a far end that returns the TTL of what it received.
	Hops       *HopCounts  `json:"hops,omitempty"`
	Confidence *Confidence `json:"confidence,omitempty"` // if the test was repeated
	Intervals  []Interval  `json:"intervals"`
	Ends       Ends        `json:"ends"`
	Warnings   []string    `json:"warnings,omitempty"` // noise: steal, cross traffic, non-steady series
	// Bidir: Throughput is the sum; these are the parts.
	UpBitsPerSec   float64 `json:"up_bits_per_second,omitempty"`
	DownBitsPerSec float64 `json:"down_bits_per_second,omitempty"`
}

// Datagrams is what happened to the datagrams of a udp test: all of them together and, when both
// directions ran, each direction separately.
type Datagrams struct {
	DatagramCounts
	// Batch is how they were handed to the kernel and taken from it: "gso", "mmsg", "single".
	Batch string          `json:"batch,omitempty"`
	Up    *DatagramCounts `json:"up,omitempty"` // bidir only
	Down  *DatagramCounts `json:"down,omitempty"`
}

// DatagramCounts are exact: the sender flags the datagrams of the measured window, and the receiver
// waits for the last of them.
type DatagramCounts struct {
	Sent       uint64  `json:"sent_packets_total"`
	Received   uint64  `json:"received_packets_total"` // each once
	Lost       uint64  `json:"lost_packets_total"`
	Duplicates *uint64 `json:"duplicate_packets_total,omitempty"` // nil: the receiver does not report it
	// Reordered packets arrived after a later one (RFC 4737 §3); nil: the receiver does not report
	// them.
	Reordered     *uint64 `json:"reordered_packets_total,omitempty"`
	JitterSeconds float64 `json:"jitter_seconds"` // RFC 3550 §6.4.1, mean over the streams
	// DelayVariation is that of one-way delay over its smallest (RFC 5481 §4.2).
	DelayVariation *stats.Latencies `json:"delay_variation,omitempty"`
}

// Pacing shows how well a rate was kept.
type Pacing struct {
	TargetBitsPerSec   float64 `json:"target_bits_per_second"`
	AchievedBitsPerSec float64 `json:"achieved_bits_per_second"` // sent, not received
	// Gaps are those between the starts of successive sends, of all streams.
	Gaps *stats.Latencies `json:"gaps,omitempty"`
	// Method is "user" (our own schedule) or "kernel" (SO_MAX_PACING_RATE).
	Method string `json:"method,omitempty"`
}

// PathMTU is the largest IP packet that passes unfragmented, found by probing.
type PathMTU struct {
	UpBytes          int  `json:"up_bytes,omitempty"`
	DownBytes        int  `json:"down_bytes,omitempty"`
	BlackHoleUp      bool `json:"black_hole_up,omitempty"` // larger packets are dropped without an ICMP message
	BlackHoleDown    bool `json:"black_hole_down,omitempty"`
	LocalMTUBytes    int  `json:"local_mtu_bytes,omitempty"` // of the outgoing interface
	RemoteMTUBytes   int  `json:"remote_mtu_bytes,omitempty"`
	MSSBytes         int  `json:"mss_bytes,omitempty"`          // that TCP uses on this path
	ReportedMTUBytes int  `json:"reported_mtu_bytes,omitempty"` // by the path, in an ICMP message
	LocalMSSBytes    int  `json:"local_mss_bytes,omitempty"`    // that the near handshake offered
	RemoteMSSBytes   int  `json:"remote_mss_bytes,omitempty"`   // that the far handshake offered
	MSSClampedUp     bool `json:"mss_clamped_up,omitempty"`     // a middlebox lowered the near offer
	MSSClampedDown   bool `json:"mss_clamped_down,omitempty"`   // a middlebox lowered the far offer
}

// LoadResult is the round-trip time idle and while each direction, or both, are full. The worse
// load is the one with the larger 90th percentile.
type LoadResult struct {
	Idle           *stats.Latencies `json:"idle,omitempty"`
	Up             *stats.Latencies `json:"up,omitempty"`
	Down           *stats.Latencies `json:"down,omitempty"`
	Both           *stats.Latencies `json:"both,omitempty"`
	UpBitsPerSec   float64          `json:"up_bits_per_second,omitempty"` // of the load
	DownBitsPerSec float64          `json:"down_bits_per_second,omitempty"`
	BothBitsPerSec float64          `json:"both_bits_per_second,omitempty"` // sum of the directions
	// 90th percentile under the worse load less median idle: the headline figure
	AddedSeconds float64 `json:"added_seconds"`
	// one minute over the mean under the worse load
	RoundTripsPerMinute float64     `json:"round_trips_per_minute"`
	Curve               []LoadPoint `json:"curve,omitempty"`
}

// LoadPoint is one step of the curve of a load test.
type LoadPoint struct {
	AtSeconds            float64 `json:"at_seconds"` // from the start of the test
	Phase                string  `json:"phase"`      // idle, up, down, both
	RTTSeconds           float64 `json:"rtt_seconds,omitempty"`
	ThroughputBitsPerSec float64 `json:"throughput_bits_per_second,omitempty"`
}

// OneWayResult is each direction of a ping separately.
type OneWayResult struct {
	Up   OneWay `json:"up"`
	Down OneWay `json:"down"`
}

// OneWay is what is known about one direction; all of it may be unknown.
type OneWay struct {
	// nil: the clocks are not both known to be right
	Delay *stats.Latencies `json:"delay,omitempty"`
	// bound of the error of every value of Delay, as both ends report their clocks
	DelayErrorSeconds float64 `json:"delay_error_seconds,omitempty"`
	// of delay over its smallest (RFC 5481 §4.2), which needs no right clocks
	DelayVariation *stats.Latencies `json:"delay_variation,omitempty"`
	Lost           *uint64          `json:"lost_packets_total,omitempty"` // nil: the direction of the loss is unknown
}

// HopCounts is how many routers packets passed on their way; 0: not known.
type HopCounts struct {
	Up   int `json:"up,omitempty"`
	Down int `json:"down,omitempty"`
}

// Confidence is how sure the mean of a repeated test is: an interval of 95 % confidence, in the
// unit of the test's first figure.
type Confidence struct {
	Rounds         int     `json:"rounds"`
	Mean           float64 `json:"mean"`
	Low            float64 `json:"low"`
	High           float64 `json:"high"`
	HalfWidthRatio float64 `json:"half_width_ratio"` // of the mean
	Reached        bool    `json:"reached"`          // it became narrow enough before the last round
}

// Interval is one interim result. Of stream, the kernel's view of the connections is the sender's:
// means over the connections for times and shares, sums for bytes and packets.
type Interval struct {
	StartSeconds         float64 `json:"start_seconds"`
	EndSeconds           float64 `json:"end_seconds"`
	ThroughputBitsPerSec float64 `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   float64 `json:"transactions_per_second,omitempty"`
	PacketsPerSec        float64 `json:"packets_per_second,omitempty"` // received
	// missing so far among those sent in the interval; udp
	LostPacketsTotal       uint64  `json:"lost_packets_total,omitempty"`
	RTTSeconds             float64 `json:"rtt_seconds,omitempty"`           // smoothed (stream) or mean (rr, crr, ping)
	RTTVarSeconds          float64 `json:"rtt_variation_seconds,omitempty"` // tcpi_rttvar
	CwndBytes              float64 `json:"cwnd_bytes,omitempty"`
	SsthreshBytes          float64 `json:"ssthresh_bytes,omitempty"` // absent: slow start has not ended
	DeliveryRateBitsPerSec float64 `json:"delivery_rate_bits_per_second,omitempty"`
	RwndLimitedRatio       float64 `json:"rwnd_limited_ratio,omitempty"`   // of the interval's time
	SndbufLimitedRatio     float64 `json:"sndbuf_limited_ratio,omitempty"` // of the interval's time
	RetransmitsTotal       uint64  `json:"retransmits_total,omitempty"`
	ProbeRTTSeconds        float64 `json:"probe_rtt_seconds,omitempty"` // mean of the pings beside the load
	Omitted                bool    `json:"omitted,omitempty"`           // warm-up
}

// Ends are the two hosts of a test: local is where the command runs.
type Ends struct {
	Local  End `json:"local"`
	Remote End `json:"remote"`
}

// End is what one host saw and spent during the test.
type End struct {
	Host string `json:"host,omitempty"` // its name, with its address where both ends have the same name
	// whole host in the measured window, all classes but idle and steal; absent: not known
	CPUSeconds            float64 `json:"cpu_seconds,omitempty"`
	CPUSecondsPerGigabyte float64 `json:"cpu_seconds_per_gigabyte,omitempty"`
	// of it, user and system time of the test's own threads, to the nanosecond; absent: not known. On
	// a host that does something else meanwhile, the difference is mostly that.
	TestCPUSeconds            float64 `json:"test_cpu_seconds,omitempty"`
	TestCPUSecondsPerGigabyte float64 `json:"test_cpu_seconds_per_gigabyte,omitempty"`
	// packets of the test's payload: datagrams, segments, transactions' messages
	CPUSecondsPerMillion float64 `json:"cpu_seconds_per_million_packets,omitempty"`
	// CPUSeconds by class, as the kernel's tick sees them
	UserSeconds    float64 `json:"user_seconds,omitempty"`
	SystemSeconds  float64 `json:"system_seconds,omitempty"`
	SoftIRQSeconds float64 `json:"softirq_seconds,omitempty"`
	IRQSeconds     float64 `json:"irq_seconds,omitempty"`
	// where the workers ran; absent: nowhere in particular
	Placement []Placement       `json:"placement,omitempty"`
	CPUs      []host.CPUTimes   `json:"cpus,omitempty"`
	Drops     []drops.Drop      `json:"drops"`
	Counters  map[string]uint64 `json:"counters,omitempty"` // differences over the test, zero ones left out
	// one per stream, last reading, differences over the measured part where cumulative
	TCP []tcpinfo.TCPInfo `json:"tcp,omitempty"`
}

// Placement is the CPU that one stream's worker was pinned to.
type Placement struct {
	Stream int `json:"stream"` // index of the data connection
	CPU    int `json:"cpu"`
}
