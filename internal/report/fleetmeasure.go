package report

import "time"

// SchemaFleetMeasure is the document of a mesh of measurements.
const SchemaFleetMeasure = "linerate.fleet-measure/1"

// FleetMeasureDocument is linerate.fleet-measure/1: hosts that measured each other.
type FleetMeasureDocument struct {
	Envelope
	Selection string `json:"selection"`
	Seed      uint64 `json:"seed"`     // of the plan: the same hosts and seed give the same pairs
	Partners  int    `json:"partners"` // of each host, in the first stage
	Test      string `json:"test"`     // of the load tests; empty: pings alone
	// Hosts are those of the mesh; results name them by their place in this list.
	Hosts   []FleetMeasuredHost `json:"hosts"`
	Results []FleetMeasured     `json:"results"`
	// Racks has one entry for each two racks between which a test ran.
	Racks    []FleetRackPair `json:"rack_pairs"`
	Culprits []FleetCulprit  `json:"culprits"` // what the results accuse, the likeliest first
	Refused  int             `json:"refused_total"`
	Left     int             `json:"left_total"` // planned tests that no round had room for
	Ended    time.Time       `json:"ended"`
	Seconds  float64         `json:"duration_seconds"`
}

// FleetMeasuredHost is a host of a mesh.
type FleetMeasuredHost struct {
	FleetName
	Rack   string `json:"rack,omitempty"`
	Site   string `json:"site,omitempty"`
	Class  string `json:"class,omitempty"`
	Target string `json:"target,omitempty"` // HOST:PORT where the others measure it
	Error  string `json:"error,omitempty"`  // why it is in no test
}

// FleetMeasured is one test between two hosts.
type FleetMeasured struct {
	From       int      `json:"from"`  // place in Hosts
	To         int      `json:"to"`    // place in Hosts
	Stage      int      `json:"stage"` // 1; 2: against a suspect
	Test       string   `json:"test"`
	RTT        *float64 `json:"rtt_p50_seconds,omitempty"`
	Loss       *float64 `json:"loss_ratio,omitempty"`
	Throughput *float64 `json:"throughput_bits_per_second,omitempty"`
	Bad        bool     `json:"bad,omitempty"`
	Reason     string   `json:"reason,omitempty"` // why it is bad
	// Error is why there is no value. An error of the path is bad; a busy host is not.
	Error string `json:"error,omitempty"`
}

// FleetRackPair are the tests between two racks, or within one.
type FleetRackPair struct {
	A          string   `json:"a"` // SITE/RACK, not after B
	B          string   `json:"b"`
	Tests      int      `json:"tests_total"`
	Bad        int      `json:"bad_tests_total"`
	RTT        *float64 `json:"worst_rtt_p50_seconds,omitempty"`
	Loss       *float64 `json:"worst_loss_ratio,omitempty"`
	Throughput *float64 `json:"lowest_throughput_bits_per_second,omitempty"`
}

// FleetCulprit is a thing that the results accuse.
type FleetCulprit struct {
	Kind string `json:"kind"` // host, rack-pair or rack
	Name string `json:"name"` // id of a host, SITE/RACK, or two of these with a blank
	Text string `json:"text"` // the same for people
	// Score is the logarithm of how much more likely the results are if this alone is bad.
	Score float64 `json:"score_log_ratio"`
	Tests int     `json:"tests_total"`
	Bad   int     `json:"bad_tests_total"`
}
