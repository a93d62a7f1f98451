package load

import (
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/resolver/message"
)

// Result is one load.
type Result struct {
	Server    string    `json:"server"`
	Transport Transport `json:"transport"`
	Mode      Mode      `json:"mode"`
	StartTime time.Time `json:"start_time"`
	// DurationSeconds is the time in which queries were sent, and in a closed loop a query's mean time
	// longer, as the last ones take their places too. The rates are of this time.
	DurationSeconds float64 `json:"duration_seconds"`
	Method          string  `json:"method"` // system calls, as "sendmmsg, recvmmsg"
	Sockets         int     `json:"sockets"`
	Workers         int     `json:"workers,omitempty"`
	// Target is the rate of an open loop.
	Target float64 `json:"target_queries_per_second,omitempty"`
	Burst  int     `json:"burst_queries,omitempty"` // due together, on one worker
	// Outstanding is how many queries a closed loop kept waiting.
	Outstanding int `json:"outstanding_queries,omitempty"`

	QueriesPerSecond float64 `json:"queries_per_second"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	Counts
	LossRatio float64     `json:"loss_ratio"`
	Wrong     []KindCount `json:"wrong,omitempty"` // of wrong_total
	Codes     []CodeCount `json:"codes,omitempty"` // of answers_total

	// Latency counts from the time at which a query was due to leave; in a closed loop, from when it
	// left.
	Latency *stats.Latencies `json:"latency,omitempty"`
	// ServiceLatency counts from when a query left.
	ServiceLatency *stats.Latencies `json:"service_latency,omitempty"`
	// SendDelay is how much later than it was due an answered query of an open loop left.
	SendDelay *stats.Latencies `json:"send_delay,omitempty"`
	// KernelDepartures is how many messages of one or more queries the kernel reported the departure
	// of. The others left, as far as is known, after the usual time for that; without any report, when
	// the system call began.
	KernelDepartures uint64 `json:"kernel_departures_total,omitempty"`

	CPUSeconds          float64 `json:"cpu_seconds,omitempty"` // of this process, while the load ran
	CPUSecondsPerAnswer float64 `json:"cpu_seconds_per_answer,omitempty"`
	SocketDrops         uint64  `json:"socket_drops_total"`          // answers that our own sockets dropped
	Refused             uint64  `json:"port_unreachable_total"`      // ICMP messages in answer to queries
	Connections         uint64  `json:"connections_total,omitempty"` // opened

	// Steps are the rates of a ramp, and Knee the highest that was held; 0: none.
	Steps []Step  `json:"steps,omitempty"`
	Knee  float64 `json:"knee_queries_per_second,omitempty"`

	Intervals []Interval `json:"intervals"`
	Warnings  []string   `json:"warnings,omitempty"`

	answersAfter uint64 // that arrived when the last query had left
}

// Counts are of one load or interval. Every query ends up answered, lost, with wrong content, or
// interrupted.
type Counts struct {
	Queries uint64 `json:"queries_total"`
	Answers uint64 `json:"answers_total"` // sound, in time, each once
	Lost    uint64 `json:"lost_total"`    // queries without an answer in time
	Late    uint64 `json:"late_total"`    // answers after the timeout, to lost queries
	// Interrupted are queries that waited when the user ended the load.
	Interrupted uint64 `json:"interrupted_total,omitempty"`
	Duplicates  uint64 `json:"duplicates_total"`
	WrongTotal  uint64 `json:"wrong_total"`     // messages that are no answer to any query, by kind in wrong
	Truncated   uint64 `json:"truncated_total"` // answers with the TC bit
	NoEDNS      uint64 `json:"no_edns_total"`   // answers without EDNS to queries with it
	Authentic   uint64 `json:"authentic_total"` // answers with the AD bit
}

// KindCount is how many received messages had one fault.
type KindCount struct {
	Kind  string `json:"kind"`
	Total uint64 `json:"total"`
}

// CodeCount is how many answers had one response code.
type CodeCount struct {
	Code  string `json:"code"`
	Total uint64 `json:"total"`
}

// Interval is a part of a load. Its answers are those that arrived in it; what arrives after the
// last query of an open loop has left is in no rate. Losses and latencies of that time are in the
// last interval.
type Interval struct {
	AtSeconds        float64 `json:"at_seconds"` // its end, from the start of the load
	QueriesPerSecond float64 `json:"queries_per_second"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	Lost             uint64  `json:"lost_total"`
	Wrong            uint64  `json:"wrong_total"`
	P50              float64 `json:"p50_seconds,omitempty"`
	P99              float64 `json:"p99_seconds,omitempty"`
	Max              float64 `json:"max_seconds,omitempty"`
}

// tally counts what one worker or connection received.
type tally struct {
	Counts
	kinds   [message.Kinds]uint64
	codes   [codes]uint64
	refused uint64
	limited uint64 // truncated answers to questions that were answered whole before
	opened  uint64
	drops   uint64
	// departures is how many messages have a time of departure from the kernel.
	departures uint64

	latency *stats.Histogram
	service *stats.Histogram
	delay   *stats.Histogram
}

// codes is how many response codes have a counter of their own; the last one counts all others.
const codes = 32

func newTally() *tally {
	return &tally{latency: stats.NewHistogram(), service: stats.NewHistogram(), delay: stats.NewHistogram()}
}

// wrong counts a message that is no answer.
func (t *tally) wrong(k message.Kind) {
	t.kinds[k]++
	t.WrongTotal++
}

// merge adds another tally.
func (t *tally) merge(o *tally) {
	t.Counts.add(o.Counts)
	for i := range o.kinds {
		t.kinds[i] += o.kinds[i]
	}
	for i := range o.codes {
		t.codes[i] += o.codes[i]
	}
	t.refused += o.refused
	t.limited += o.limited
	t.opened += o.opened
	t.drops += o.drops
	t.departures += o.departures
	t.latency.Merge(o.latency)
	t.service.Merge(o.service)
	t.delay.Merge(o.delay)
}

func (c *Counts) add(o Counts) {
	c.Queries += o.Queries
	c.Answers += o.Answers
	c.Lost += o.Lost
	c.Late += o.Late
	c.Interrupted += o.Interrupted
	c.Duplicates += o.Duplicates
	c.WrongTotal += o.WrongTotal
	c.Truncated += o.Truncated
	c.NoEDNS += o.NoEDNS
	c.Authentic += o.Authentic
}

// reset empties a tally.
func (t *tally) reset() {
	l, s, d := t.latency, t.service, t.delay
	l.Reset()
	s.Reset()
	d.Reset()
	*t = tally{latency: l, service: s, delay: d}
}

// fill writes the counts of a whole load into its result.
func (t *tally) fill(r *Result) {
	r.Counts = t.Counts
	if r.DurationSeconds > 0 {
		r.QueriesPerSecond = float64(t.Queries) / r.DurationSeconds
		r.AnswersPerSecond = float64(t.Answers) / r.DurationSeconds
	}
	if ended := t.Queries - t.Interrupted; ended > 0 {
		r.LossRatio = float64(t.Lost) / float64(ended)
	}
	for k, n := range t.kinds {
		if n > 0 {
			r.Wrong = append(r.Wrong, KindCount{message.Kind(k).String(), n})
		}
	}
	for c, n := range t.codes {
		name := message.RCode(c).String()
		if c == codes-1 {
			name = "other"
		}
		if n > 0 {
			r.Codes = append(r.Codes, CodeCount{name, n})
		}
	}
	r.Latency, r.ServiceLatency = t.latency.Snapshot().OrNil(), t.service.Snapshot().OrNil()
	r.SendDelay = t.delay.Snapshot().OrNil()
	r.Refused, r.Connections, r.SocketDrops = t.refused, t.opened, t.drops
	r.KernelDepartures = t.departures
	if t.Answers > 0 {
		r.CPUSecondsPerAnswer = r.CPUSeconds / float64(t.Answers)
	}
}
