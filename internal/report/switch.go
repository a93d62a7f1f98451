package report

import (
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// SchemaSwitch is the document of one switch, read twice.
const SchemaSwitch = "linerate.switch/1"

// SwitchDocument is linerate.switch/1: the ports of a switch, and what they lose.
type SwitchDocument struct {
	Envelope
	Switch   Switch             `json:"switch"`
	Findings []evidence.Finding `json:"findings"`
}

// Switch is a switch as its SNMP agent describes it.
type Switch struct {
	Name          string       `json:"name"` // as the configuration has it, or the address
	Address       string       `json:"address"`
	SystemName    string       `json:"system_name"`
	Description   string       `json:"description"`
	UptimeSeconds float64      `json:"uptime_seconds"`  // of the agent
	Time          *time.Time   `json:"time,omitempty"`  // of the last reading; absent: there was none
	ReadSeconds   float64      `json:"read_seconds"`    // how long that took
	Error         string       `json:"error,omitempty"` // why it does not answer
	Ports         []SwitchPort `json:"ports"`
	Warnings      []string     `json:"warnings"`
}

// SwitchPort is a port of a switch. Counts and rates are over over_seconds; 0: one reading.
type SwitchPort struct {
	Name        string  `json:"name"`
	Index       uint32  `json:"index"` // ifIndex
	Alias       string  `json:"alias,omitempty"`
	Enabled     bool    `json:"enabled"`
	Up          bool    `json:"up"`
	Speed       float64 `json:"speed_bits_per_second"` // 0: unknown
	Duplex      string  `json:"duplex,omitempty"`      // full or half; absent: unknown
	CounterBits int     `json:"counter_bits"`          // width of the counters of bytes; 0: none
	OverSeconds float64 `json:"over_seconds"`

	ReceiveRate     float64 `json:"receive_bits_per_second"`
	TransmitRate    float64 `json:"transmit_bits_per_second"`
	ReceivePackets  float64 `json:"receive_packets_per_second"`
	TransmitPackets float64 `json:"transmit_packets_per_second"`

	ReceiveErrors    float64 `json:"receive_errors"`
	TransmitErrors   float64 `json:"transmit_errors"`
	ReceiveDiscards  float64 `json:"receive_discards"`
	TransmitDiscards float64 `json:"transmit_discards"`
	LateCollisions   float64 `json:"late_collisions"`

	// VLANs whose frames leave without and with their tag: "1,10-20". Absent: unknown, or none.
	UntaggedVLANs string `json:"untagged_vlans,omitempty"`
	TaggedVLANs   string `json:"tagged_vlans,omitempty"`

	Neighbours []SwitchNeighbour `json:"neighbours"`
	Attached   []SwitchAttached  `json:"attached"`
}

// SwitchNeighbour is the other end of a port's cable, as LLDP describes it.
type SwitchNeighbour struct {
	System      string `json:"system,omitempty"`
	Port        string `json:"port,omitempty"`
	Description string `json:"description,omitempty"`
	Chassis     string `json:"chassis,omitempty"`
}

// SwitchAttached is an interface of this host that hangs at a port.
type SwitchAttached struct {
	Interface string `json:"interface"`
	Source    string `json:"source"`          // LLDP, bridge table, bridge table of VLAN N, configuration
	Trunk     bool   `json:"trunk,omitempty"` // the port leads to others as well
}

// NewSwitch returns the document of a switch.
func NewSwitch(e Envelope, s Switch, findings []evidence.Finding) *SwitchDocument {
	s.Fill()
	return &SwitchDocument{Envelope: e.Of(SchemaSwitch), Switch: s,
		Findings: NewDiagnose(e, "", evidence.Case{}, findings, nil).Findings}
}

// Fill replaces missing lists by empty ones.
func (s *Switch) Fill() {
	if s.Ports == nil {
		s.Ports = []SwitchPort{} // JSON: an empty list, not null
	}
	if s.Warnings == nil {
		s.Warnings = []string{}
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Neighbours == nil {
			p.Neighbours = []SwitchNeighbour{}
		}
		if p := &s.Ports[i]; p.Attached == nil {
			p.Attached = []SwitchAttached{}
		}
	}
}
