package mib

import (
	"errors"
	"net"
	"time"
)

// ErrRestarted reports that the agent restarted while it was read.
var ErrRestarted = errors.New("the agent restarted while it was read")

// Counter names a counter of a port.
type Counter int

// The counters. In is what the port receives.
const (
	InBytes Counter = iota
	OutBytes
	InUnicast
	InMulticast
	InBroadcast
	OutUnicast
	OutMulticast
	OutBroadcast
	InDiscards
	OutDiscards
	InErrors
	OutErrors
	// Kinds of errors (EtherLike-MIB); InErrors and OutErrors contain most of them.
	FCSErrors
	AlignmentErrors
	SymbolErrors
	TooLong
	InternalReceive
	LateCollisions
	ExcessiveCollisions
	CarrierSense
	InternalTransmit
	InPause
	OutPause
	Counters // how many there are
)

// Count is the value of a counter, and its width. Width 0: the agent does not have it.
type Count struct {
	Value uint64
	Width int // bits: 0, 32 or 64
}

// Duplex is the mode of a port.
type Duplex string

// The modes; empty is unknown.
const (
	Full Duplex = "full"
	Half Duplex = "half"
)

// Neighbour is what LLDP says of the other end of a port's cable.
type Neighbour struct {
	System      string // its name
	Port        string // of the neighbour: a name, or an address as text
	Description string // of that port
	Chassis     string
	Address     net.HardwareAddr // of chassis or port, whichever is given as one; nil: none
}

// Port is an interface of a switch.
type Port struct {
	Index    uint32
	Name     string // unique in a snapshot: ifName, ifDescr, or either with the index
	Descr    string
	Alias    string // what an operator wrote
	Type     int    // ifType
	Address  net.HardwareAddr
	Enabled  bool
	Up       bool
	Speed    float64 // bits per second; 0: unknown
	Duplex   Duplex
	Counters [Counters]Count
	// Discontinuity is the uptime at which the counters began anew, in hundredths of a second.
	Discontinuity uint64
	Neighbours    []Neighbour
	// Untagged and Tagged are the VLANs whose frames leave without and with their tag. A port with
	// tagged ones is a trunk.
	Untagged, Tagged VLANs
	// Hosts are those asked for that the bridge has learnt at this port.
	Hosts []Learnt
}

// Snapshot is a switch at one moment.
type Snapshot struct {
	Time        time.Time     // when the counters were asked for
	Took        time.Duration // to read the whole
	Name        string        // sysName
	Description string
	UptimeTicks uint32        // sysUpTime in hundredths of a second; it wraps after 497 days
	UptimeAt    time.Time     // when that was asked for
	Uptime      time.Duration // the same
	Boots       int64         // snmpEngineBoots; -1: the agent does not say
	Ports       []Port        // sorted by index
	LeftOut     int           // ports beyond MostPorts
	Narrow      int           // ports without 64-bit counters
	Warnings    []string      // what the agent did wrong, one sentence each
}
