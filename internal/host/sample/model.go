package sample

import "time"

// Kind tells what may be done with the values of a metric.
type Kind uint8

const (
	// Counter never falls while its series exists, except to zero when the sampler starts: what it
	// grew by is what happened.
	Counter Kind = iota
	// Gauge is a level.
	Gauge
)

// Metric is what is known of many things of one sort.
type Metric struct {
	Name   string   // as Prometheus has it, with the unit: linerate_interface_receive_bytes_total
	Kind   Kind     //
	Help   string   // one sentence: what is counted and where it is read
	Labels []string // names of what tells the series of this metric apart, in a fixed order
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
	// Time is what the points are filed under. It is the tick that was asked for when the reading
	// came soon enough after it, so that times in a history are regular and cost next to nothing.
	Time time.Time
	// SinceBoot is when the reading was taken, with the time asleep counted and whatever the clock
	// was set to: rates are over differences of it.
	SinceBoot time.Duration
	Points    []Point // the sampler uses them again for the next reading but one
	// were told before and are no more: the thing is gone, or is another one under the same name.
	// No point here has the same labels
	Ended []*Series
	// Happened is what came, went or changed since the reading before.
	Happened []Happening
	Warnings []string // what could not be read, one sentence each
}

// Change says what happened to an interface.
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

// Happening is one of them.
type Happening struct {
	Time      time.Time
	Change    Change
	Interface string // empty: of the host
	Text      string // one line for people
}
