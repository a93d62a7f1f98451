package sample

import "time"

// Kind is the meaning of a metric's values.
type Kind uint8

const (
	// Counter never decreases while its series exists, except to zero when the sampler starts: its
	// growth is what happened.
	Counter Kind = iota
	// Gauge is a level.
	Gauge
)

// Metric describes one kind of figure, which many things may have.
type Metric struct {
	Name   string   // as Prometheus has it, with the unit: linerate_interface_receive_bytes_total
	Kind   Kind     //
	Help   string   // one sentence: what is counted and where it is read
	Labels []string // names of the labels that distinguish the series of this metric, in a fixed order
}

// Series is one metric of one thing. Its pointer is its identity.
type Series struct {
	Metric *Metric
	Values []string // of Metric.Labels, in their order
}

// Point is the value of a series at the time of its reading.
type Point struct {
	Series *Series
	Value  float64
}

// Reading is a host at one moment.
type Reading struct {
	// Time is what the points are filed under: the requested tick if the reading came soon enough
	// after it, so that times in a history are regular and take almost no space.
	Time time.Time
	// SinceBoot is when the reading was taken, including time asleep and independent of the clock's
	// setting: rates are over its differences.
	SinceBoot time.Duration
	Points    []Point // the sampler reuses them for the next reading but one
	// Ended are series of earlier readings that no longer exist: the thing is gone, or another one
	// has its name. No point here has the same labels.
	Ended []*Series
	// Happened lists what came, went or changed since the previous reading.
	Happened []Happening
	Warnings []string // what could not be read, one sentence each
}

// Change is what happened to an interface.
type Change string

// What can happen between two readings.
const (
	LinkUp      Change = "link-up"
	LinkDown    Change = "link-down"
	LinkSpeed   Change = "link-speed"
	LinkRenamed Change = "link-renamed"
	LinkCame    Change = "link-came"
	LinkGone    Change = "link-gone"
)

// Happening is one change.
type Happening struct {
	Time      time.Time
	Change    Change
	Interface string // empty: of the host
	Text      string // one line for users
}
