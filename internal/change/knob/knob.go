package knob

import "context"

// ID names one tunable by the field's own name with its scope in front: sysctl:net.ipv4.tcp_rmem,
// link:eth0/mtu, ethtool:eth0/feature.tx-tcp-segmentation, route:10.0.0.0/8/window (design §5). The
// names of a sysctl are path elements; an element may hold dots of its own (VLAN interfaces), then
// written with '/' between elements.
type ID string

// Value is what a knob holds, as text, in the canonical form that Definition.Normalize gives.
type Value string

// Setting is a knob together with a value.
type Setting struct {
	Knob  ID    `json:"knob"`
	Value Value `json:"value"`
}

// Disturbance is what changing a knob does to running traffic (design §8).
//
// The numbers are in files and on the command line (d0 to d4) and never change their meaning.
type Disturbance int

// The classes, from harmless to disruptive.
const (
	DisturbsNothing    Disturbance = iota // d0
	DisturbsNewSockets                    // d1: takes effect on new sockets or flows only
	DisturbsBriefLoss                     // d2: the driver re-initialises, packets are lost for a moment
	DisturbsLink                          // d3: link down and renegotiation
	DisturbsHost                          // d4: module reload or reboot
)

// Scope is what shares a knob.
//
// Scopes of the network are per namespace for nearly all of net.ipv4 and for a few of net.core;
// which ones differs by kernel, and the definition says what was seen on the one it names.
type Scope string

// The scopes; a global knob is read-only or absent inside a container.
const (
	ScopeGlobal    Scope = "global"
	ScopeNamespace Scope = "namespace"
	ScopeDevice    Scope = "device"
	ScopeRoute     Scope = "route"
	ScopeSocket    Scope = "socket"
	ScopeProgram   Scope = "program" // one server, by its configuration file
)

// Backend reads and writes knobs of one host. Implementations: package live for the running system,
// Memory, DryRun; one conformance suite (package knobtest) holds for all of them. Errors satisfy
// errors.Is with fs.ErrNotExist (no such knob on this host), fs.ErrPermission (not permitted) and
// ErrNotSupported (this kernel, driver or OS cannot), and are *Error. Only package journal may call
// Write.
type Backend interface {
	Read(ctx context.Context, id ID) (Value, error)
	Write(ctx context.Context, id ID, v Value) error
}

// As returns the first backend that implements T, from the outermost of a chain to the one that
// reads the host. A backend that stands before another one shows that by a method Unwrap; what only
// the host knows, such as Displacer and Keeper, then needs no method of every backend between.
func As[T any](b Backend) (found T, ok bool) {
	for b != nil {
		if found, ok = b.(T); ok {
			return found, true
		}
		before, wraps := b.(interface{ Unwrap() Backend })
		if !wraps {
			break
		}
		b = before.Unwrap()
	}
	return found, false
}

// Carrier is a backend whose values are names of something longer, such as the rules of a table. A
// process that has to write such a value without storage, as a guard has, needs that too.
type Carrier interface {
	// Carry returns what another process needs to write the values of a knob; nothing where the value
	// is all.
	Carry(id ID) ([]byte, error)
	// Accept takes what Carry returned in another process.
	Accept(id ID, data []byte) error
}
