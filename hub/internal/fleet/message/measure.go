package message

// KindMeasure asks one host to measure another: a Measure, answered by an Answer with a Measured.
const KindMeasure = "measure"

// Measure asks a host to measure another one.
type Measure struct {
	ID     string `json:"id"`
	Token  string `json:"token"`
	Target string `json:"target"` // HOST:PORT of the other host's `linerate serve`
	// Groups are those of the other host, by the word of the hub that signs them.
	Groups []string `json:"groups,omitempty"`
	Test   string   `json:"test"` // of package traffic; ping is light, the others load
	// DurationMS is that of a load test; Count is of pings.
	DurationMS int64 `json:"duration_ms,omitempty"`
	Count      int   `json:"count,omitempty"`
}

// Measured is what a host has measured. Errors of the path are in Failed; a host that is in another
// test, or whose policy refuses, is Busy or Refused, and says nothing of the path.
type Measured struct {
	RTTSeconds *float64 `json:"rtt_p50_seconds,omitempty"`
	LossRatio  *float64 `json:"loss_ratio,omitempty"`
	BitsPerSec *float64 `json:"throughput_bits_per_second,omitempty"`
	// MostBitsPerSec is the rate beyond which the policy of this host allows no load test; 0: none.
	MostBitsPerSec float64 `json:"most_bits_per_second,omitempty"`
	Busy           string  `json:"busy,omitempty"`
	Refused        string  `json:"refused,omitempty"`
	Failed         string  `json:"failed,omitempty"`
	// LateSeconds is the longest that this host was late for a time of its own meanwhile: a starved
	// host does not measure the path.
	LateSeconds float64 `json:"late_seconds,omitempty"`
}
