package traffic

import (
	"time"

	"github.com/linerate/linerate/internal/host"
)

// Test names what is measured.
type Test string

// The tests of this version.
const (
	Stream Test = "stream" // bulk TCP
	RR     Test = "rr"     // TCP request/response, one in flight per connection
	Ping   Test = "ping"   // round trip of single packets, ICMP echo or a UDP echo of our own
)

// Direction is seen from the near side: up is near to far.
type Direction string

// The directions.
const (
	Up    Direction = "up"
	Down  Direction = "down" // --reverse
	Bidir Direction = "bidir"
)

// Spec is one test to run; it travels to the far end as JSON, so both ends know the same.
type Spec struct {
	Test          Test          `json:"test"`
	Direction     Direction     `json:"direction"`
	Streams       int           `json:"streams"`
	Duration      time.Duration `json:"duration_nanoseconds"`         // measured part, after the warm-up
	WarmUp        time.Duration `json:"warm_up_nanoseconds"`          // cut from the front; <0: find the steady state
	Interval      time.Duration `json:"interval_nanoseconds"`         // of interim results
	RequestBytes  int           `json:"request_bytes,omitempty"`      // rr, ping
	ResponseBytes int           `json:"response_bytes,omitempty"`     // rr
	Gap           time.Duration `json:"gap_nanoseconds,omitempty"`    // ping: between packets
	Congestion    string        `json:"congestion_control,omitempty"` // empty: the host's own
}

// Result is one entry of tests[] in linerate.measure/1. Throughput is payload counted at the receiver.
type Result struct {
	Test                 Test          `json:"test"`
	Direction            Direction     `json:"direction"`
	Method               string        `json:"method,omitempty"` // "tcp, blocking, pinned", "icmp echo", "udp echo"
	StartTime            time.Time     `json:"start_time"`
	DurationSeconds      float64       `json:"duration_seconds"`
	WarmUpSeconds        float64       `json:"warm_up_seconds"`
	Streams              int           `json:"streams"`
	Bytes                int64         `json:"bytes,omitempty"` // payload received in DurationSeconds
	ThroughputBitsPerSec float64       `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   float64       `json:"transactions_per_second,omitempty"`
	PacketsPerSec        float64       `json:"packets_per_second,omitempty"`
	LossRatio            *float64      `json:"loss_ratio,omitempty"`
	RTT                  *Distribution `json:"rtt,omitempty"`
	RetransmitsTotal     *uint64       `json:"retransmits_total,omitempty"` // segments, from the sender's TCP_INFO
	MTUBytes             int           `json:"mtu_bytes,omitempty"`
	MSSBytes             int           `json:"mss_bytes,omitempty"`
	CongestionControl    string        `json:"congestion_control,omitempty"`
	LocalAddress         string        `json:"local_address,omitempty"` // IP of the data connections at the near end
	RemoteAddress        string        `json:"remote_address,omitempty"`
	Intervals            []Interval    `json:"intervals"`
	Ends                 Ends          `json:"ends"`
	Warnings             []string      `json:"warnings,omitempty"` // noise: steal, cross traffic, non-steady series
	// Bidir: Throughput is the sum; these are the parts.
	UpBitsPerSec   float64 `json:"up_bits_per_second,omitempty"`
	DownBitsPerSec float64 `json:"down_bits_per_second,omitempty"`
}

// Distribution is a round-trip time distribution in seconds.
type Distribution struct {
	Count  uint64  `json:"count_total"`
	Min    float64 `json:"min_seconds"`
	Mean   float64 `json:"mean_seconds"`
	P50    float64 `json:"p50_seconds"`
	P90    float64 `json:"p90_seconds"`
	P99    float64 `json:"p99_seconds"`
	P999   float64 `json:"p999_seconds"`
	Max    float64 `json:"max_seconds"`
	StdDev float64 `json:"stddev_seconds"`
}

// Interval is one interim result.
type Interval struct {
	StartSeconds         float64 `json:"start_seconds"`
	EndSeconds           float64 `json:"end_seconds"`
	ThroughputBitsPerSec float64 `json:"throughput_bits_per_second,omitempty"`
	TransactionsPerSec   float64 `json:"transactions_per_second,omitempty"`
	RTTSeconds           float64 `json:"rtt_seconds,omitempty"` // smoothed (stream) or mean (rr, ping)
	CwndBytes            float64 `json:"cwnd_bytes,omitempty"`
	RetransmitsTotal     uint64  `json:"retransmits_total,omitempty"`
	Omitted              bool    `json:"omitted,omitempty"` // warm-up
}

// Ends are the two hosts of a test: local is where the command runs.
type Ends struct {
	Local  End `json:"local"`
	Remote End `json:"remote"`
}

// End is what one host saw and spent during the test.
type End struct {
	Host                  string            `json:"host,omitempty"`
	CPUSeconds            float64           `json:"cpu_seconds"` // whole host in the measured window, all classes but idle and steal
	CPUSecondsPerGigabyte float64           `json:"cpu_seconds_per_gigabyte,omitempty"`
	CPUs                  []host.CPUTimes   `json:"cpus,omitempty"`
	Drops                 []Drop            `json:"drops"`
	Counters              map[string]uint64 `json:"counters,omitempty"` // differences over the test, zero ones left out
	TCP                   []TCPInfo         `json:"tcp,omitempty"`      // one per stream, last reading, differences over the measured part where cumulative
}

// Drop is one place where packets died, and how many.
type Drop struct {
	Place string `json:"place"` // counter name as in host.Counters
	Total uint64 `json:"total"`
}

// TCPInfo is what the kernel says of one connection (struct tcp_info and socket options), in plain units.
type TCPInfo struct {
	Sender                 bool    `json:"sender"`                 // this end sent the bulk data
	BusySeconds            float64 `json:"busy_seconds"`           // tcpi_busy_time: had unacknowledged data
	RwndLimitedSeconds     float64 `json:"rwnd_limited_seconds"`   // tcpi_rwnd_limited
	SndbufLimitedSeconds   float64 `json:"sndbuf_limited_seconds"` // tcpi_sndbuf_limited
	AppLimited             bool    `json:"app_limited"`
	RTTSeconds             float64 `json:"rtt_seconds"`     // smoothed, at the end
	MinRTTSeconds          float64 `json:"min_rtt_seconds"` // kernel's windowed minimum
	CwndBytes              float64 `json:"cwnd_bytes"`
	SndMSSBytes            int     `json:"snd_mss_bytes"`
	RcvMSSBytes            int     `json:"rcv_mss_bytes"`
	SndWndBytes            int64   `json:"snd_wnd_bytes,omitempty"`     // peer's advertised window, kernel ≥ 5.4
	MaxSndWndBytes         int64   `json:"max_snd_wnd_bytes,omitempty"` // largest seen in the samples
	RcvWndBytes            int64   `json:"rcv_wnd_bytes,omitempty"`     // window this end advertises, kernel ≥ 6.2
	RcvSpaceBytes          int64   `json:"rcv_space_bytes"`
	SndWScale              int     `json:"snd_wscale"` // shift the peer announced
	RcvWScale              int     `json:"rcv_wscale"` // shift this end announced
	WScaleOK               bool    `json:"wscale_ok"`  // option seen on both SYNs
	SACKOK                 bool    `json:"sack_ok"`
	TimestampsOK           bool    `json:"timestamps_ok"`
	ECNOK                  bool    `json:"ecn_ok"`
	DeliveryRateBitsPerSec float64 `json:"delivery_rate_bits_per_second"`
	BytesAcked             uint64  `json:"bytes_acked"`
	BytesReceived          uint64  `json:"bytes_received"`
	BytesRetransmitted     uint64  `json:"bytes_retransmitted,omitempty"`
	SegsOut                uint64  `json:"segs_out"`
	SegsIn                 uint64  `json:"segs_in"`
	RetransSegs            uint64  `json:"retrans_segs"`
	ReorderSeen            uint64  `json:"reorder_seen"`
	DSACKDups              uint64  `json:"dsack_dups"`
	SndBufBytes            int64   `json:"sndbuf_bytes"` // SO_SNDBUF as the kernel keeps it
	RcvBufBytes            int64   `json:"rcvbuf_bytes"`
	PMTUBytes              int     `json:"pmtu_bytes"`
	CongestionControl      string  `json:"congestion_control"`
	MeanRTTSeconds         float64 `json:"mean_rtt_seconds,omitempty"` // over the samples of the measured part
	MeanCwndBytes          float64 `json:"mean_cwnd_bytes,omitempty"`
}
