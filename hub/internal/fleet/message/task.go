package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/peer/order"
)

// Task is work for one host: an order, or a measurement.
type Task struct {
	Token string `json:"token"` // names where the answer goes: the kind TaskDone(Token) from the host
	// Order is a signed order, as package order writes it. The node passes it on as it is: root's
	// agent checks it.
	Order   []byte  `json:"order,omitempty"`
	Measure *Figure `json:"measure,omitempty"`
}

// Figure asks for one figure of what the host carries.
type Figure struct {
	Metric     Metric `json:"metric"`
	DurationMS int64  `json:"duration_ms"`
}

// Metric is a figure of the production traffic of a host. Nothing is sent to read it.
type Metric string

// The metrics.
const (
	Sent        Metric = "sent"        // bytes a second that leave all interfaces but lo
	Received    Metric = "received"    // bytes a second that arrive there
	Retransmits Metric = "retransmits" // share of the TCP segments that are sent again
)

// Metrics are all metrics.
func Metrics() []Metric { return []Metric{Sent, Received, Retransmits} }

// MoreIsBetter reports whether a higher figure is the better one.
func (m Metric) MoreIsBetter() bool { return m != Retransmits }

// Valid reports whether the metric is one of [Metrics].
func (m Metric) Valid() bool { return m == Sent || m == Received || m == Retransmits }

// Bounds of a task.
const (
	MostTask       = 8 << 10 // bytes; an order has at most order.MaxEnvelope, in base64
	MostDone       = 4 << 10
	LongestMeasure = time.Minute
)

// Done answers a Task. Error says why the host could not begin it, or lost it: whether an order was
// carried out is then not known, and it may be sent again.
type Done struct {
	Answer *order.Answer `json:"answer,omitempty"`
	Value  *float64      `json:"value,omitempty"` // of the metric
	Error  string        `json:"error,omitempty"`
}

// ErrNoTask reports bytes that are not a task.
var ErrNoTask = errors.New("not a task")

// DecodeTask reads a task.
func DecodeTask(b []byte) (Task, error) {
	var t Task
	if len(b) > MostTask {
		return t, fmt.Errorf("%w: %d bytes", ErrNoTask, len(b))
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("%w: %w", ErrNoTask, err)
	}
	m := t.Measure
	switch {
	case t.Token == "" || len(t.Token) > 64:
		return t, fmt.Errorf("%w: no token", ErrNoTask)
	case (len(t.Order) > 0) == (m != nil):
		return t, fmt.Errorf("%w: want an order or a measurement", ErrNoTask)
	case m != nil && (!m.Metric.Valid() || m.DurationMS < 1 || m.DurationMS > LongestMeasure.Milliseconds()):
		return t, fmt.Errorf("%w: %.40q for %d ms: want one of %v for at most %v", ErrNoTask, m.Metric, m.DurationMS,
			Metrics(), LongestMeasure)
	}
	return t, nil
}
