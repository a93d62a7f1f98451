package top

import (
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/talkers"
	"github.com/linerate/linerate/internal/report"
)

// Schema names the document of the live view.
const Schema = "linerate.top/1"

// Document is linerate.top/1: what a host carried, dropped and worked for, in one interval or
// several that follow one another.
type Document struct {
	report.Envelope
	Readings []Reading `json:"readings"` // one for each interval, oldest first
	// of the host under its own load; absent: it was not judged
	Findings []evidence.Finding `json:"findings,omitempty"`
	Changes  []journal.Change   `json:"changes"`                     // the latest of the journal, newest first
	Warnings []string           `json:"warnings,omitempty"`          // what could not be read, one sentence each
	Hidden   int                `json:"hidden_interfaces,omitempty"` // left out by a filter or a limit
}

// NewDocument makes a document of the live view. Findings that are nil mean that the host was not
// judged.
func NewDocument(e report.Envelope, readings []Reading, findings []evidence.Finding, changes []journal.Change,
	warnings []string) *Document {
	d := &Document{Envelope: e.Of(Schema), Readings: slices.Clone(readings), Changes: slices.Clone(changes),
		Warnings: slices.Clone(warnings)}
	if findings != nil {
		d.Findings = report.CleanFindings(findings)
	}
	report.FillSlices(d)
	return d
}

// Reading is what happened on a host in one interval. Rates are means over it.
type Reading struct {
	Time       time.Time   `json:"time"` // the end of the interval
	Seconds    float64     `json:"interval_seconds"`
	Interfaces []Interface `json:"interfaces"`
	CPUs       []CPU       `json:"cpus"`
	TCP        TCP         `json:"tcp"`
	UDP        UDP         `json:"udp"`
	// What moved bytes over TCP, the busiest first; of the connections at most 100.
	Processes   []talkers.Total      `json:"processes"`
	Connections []talkers.Connection `json:"connections"`
	// Drops are those between the NICs and the programs.
	Drops    []Drop   `json:"drops"`
	Events   []Event  `json:"events"`             // what came, went or changed in the interval
	Warnings []string `json:"warnings,omitempty"` // what could not be read
	NoTCP    bool     `json:"-"`                  // TCP and UDP are among it, so that their zeros mean nothing
}

// Event is a change of an interface, or of the host.
type Event struct {
	Time      time.Time `json:"time"`
	Change    string    `json:"change"` // link-up, link-down, link-speed, link-renamed, link-came, link-gone, rebooted
	Interface string    `json:"interface,omitempty"`
	Text      string    `json:"text"`
}

// Interface is one interface in one interval.
type Interface struct {
	Name   string `json:"name"`
	Driver string `json:"driver,omitempty"`
	Kind   string `json:"kind,omitempty"`   // ethernet, vlan, bond, bridge, veth, …
	Parent string `json:"parent,omitempty"` // the interface below
	Up     bool   `json:"up"`               // and has a carrier

	// of the link; absent: the interface has none, or it is not known
	Speed    *float64 `json:"speed_bits_per_second,omitempty"`
	MTU      int64    `json:"mtu_bytes,omitempty"`
	Receive  float64  `json:"receive_bits_per_second"`
	Transmit float64  `json:"transmit_bits_per_second"`
	Share    *float64 `json:"link_share_ratio,omitempty"` // of the speed, in the busier direction

	ReceivePackets   float64 `json:"receive_packets_per_second"`
	TransmitPackets  float64 `json:"transmit_packets_per_second"`
	ReceiveMulticast float64 `json:"receive_multicast_packets_per_second"`

	Drops  []Drop  `json:"drops"`
	Errors []Drop  `json:"errors"` // place is the kind: crc, length, frame, …
	Qdisc  *Qdisc  `json:"qdisc,omitempty"`
	Queues []Queue `json:"queues"`
	// CarrierChanges is how often the link came or went since the first reading.
	CarrierChanges float64 `json:"carrier_changes_total"`
}

// Drop is one place where packets were lost.
type Drop struct {
	Place     string  `json:"place"`
	Direction string  `json:"direction,omitempty"` // receive, transmit
	Rate      float64 `json:"packets_per_second"`
	Total     float64 `json:"packets_total"` // since the first reading
}

// Qdisc is what the queueing disciplines of one interface did.
type Qdisc struct {
	Drops     float64 `json:"drops_packets_per_second"`
	Requeues  float64 `json:"requeues_packets_per_second"`
	Overlimit float64 `json:"overlimits_per_second"`
	Backlog   float64 `json:"backlog_bytes"`
}

// Queue is one queue of a NIC. A figure is absent where the driver does not count it.
type Queue struct {
	Queue      string   `json:"queue"` // rx-0, tx-0; 0 where one interrupt serves both directions
	Packets    *float64 `json:"packets_per_second,omitempty"`
	Bits       *float64 `json:"bits_per_second,omitempty"`
	Drops      *float64 `json:"drops_packets_per_second,omitempty"`
	Interrupts *float64 `json:"interrupts_per_second,omitempty"`
}

// CPU is one processor: shares of the interval, and what it did for the network.
type CPU struct {
	CPU     int     `json:"cpu"`
	Busy    float64 `json:"busy_ratio"` // all but idle and waiting for disks
	User    float64 `json:"user_ratio"` // nice among it
	System  float64 `json:"system_ratio"`
	Softirq float64 `json:"softirq_ratio"`
	IRQ     float64 `json:"irq_ratio"`
	Steal   float64 `json:"steal_ratio"`

	CardInterrupts float64 `json:"card_interrupts_per_second"`
	NetRX          float64 `json:"softirqs_net_rx_per_second"`
	NetTX          float64 `json:"softirqs_net_tx_per_second"`
	Packets        float64 `json:"softnet_packets_per_second"`
	Dropped        float64 `json:"softnet_drops_packets_per_second"`
	Squeezes       float64 `json:"time_squeezes_per_second"`
	RPS            float64 `json:"rps_wakeups_per_second"`
}

// TCP is what TCP did in one interval.
type TCP struct {
	Sent            float64 `json:"segments_sent_per_second"`
	Received        float64 `json:"segments_received_per_second"`
	Retransmits     float64 `json:"retransmits_per_second"`
	Retransmitted   float64 `json:"retransmits_ratio"` // of the segments sent
	Timeouts        float64 `json:"timeouts_per_second"`
	OutOfOrder      float64 `json:"out_of_order_segments_per_second"`
	ListenOverflows float64 `json:"listen_overflows_per_second"`
	Resets          float64 `json:"resets_sent_per_second"`
	Connections     float64 `json:"connections"`
}

// UDP is what UDP did in one interval.
type UDP struct {
	Received            float64 `json:"datagrams_received_per_second"`
	Sent                float64 `json:"datagrams_sent_per_second"`
	ReceiveBufferErrors float64 `json:"receive_buffer_errors_per_second"`
}
