package plan

import (
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob"
)

// Role is what a host is for.
type Role string

// The roles.
const (
	Bulk       Role = "bulk"       // few connections that carry much
	Web        Role = "web"        // many connections: web servers and caches
	Router     Role = "router"     // forwards packets and ends no connections
	Firewall   Role = "firewall"   // forwards and filters packets
	Latency    Role = "latency"    // small requests whose answers must be early
	Virtual    Role = "virtual"    // a virtual machine
	Nameserver Role = "nameserver" // many small datagrams
	NFS        Role = "nfs"        // files over TCP
)

// Roles returns all roles, in the order of the help.
func Roles() []Role { return []Role{Bulk, Web, Router, Firewall, Latency, Virtual, Nameserver, NFS} }

// windows reports whether the role needs buffers of the size of the path.
func (r Role) windows() bool { return r == Bulk || r == Web || r == Virtual || r == NFS }

// forwards reports whether the packets of others pass through the host.
func (r Role) forwards() bool { return r == Router || r == Firewall }

// connections returns how many connections of a role are busy at a time, unless the user says.
func (r Role) connections() int {
	switch r {
	case Web:
		return 2000
	case NFS:
		return 16
	}
	return 32
}

// Situation is what a plan is made for. Zero fields are unknown.
type Situation struct {
	System      System
	Role        Role
	Link        unit.BitRate  // of the interface
	RoundTrip   time.Duration // of the path, without load
	Memory      unit.Bytes    // of the host
	Connections int           // busy at a time; 0: the usual number of the role
	MTU         int           // payload of a frame in bytes, if the plan is to set it; 0: it is not
	Interface   string        // by its name on the host
	Driver      string
	// Present has values of the host by the names of package advice; nil: no host was read.
	Present map[string]string
	// RingMax is the largest receive ring of the interface in descriptors.
	RingMax int
	// Queues is how many combined queues of the interface can each have a CPU of its own.
	Queues int
}

// Effect is when a line takes effect.
type Effect string

// The moments.
const (
	AtOnce         Effect = "at once"
	NewConnections Effect = "new connections"
	AtReboot       Effect = "after a reboot"
	LinkDown       Effect = "at once, with the link down meanwhile"
)

// undo returns what an undo of a knob takes that takes effect then.
func (e Effect) undo(name string) knob.Undo {
	id := knob.ID(name) // in the notation of check-advice, which names sysctls as the catalogues do
	switch e {
	case AtReboot:
		return knob.UndoOf(id, knob.EffectAtBoot, knob.DisturbsNothing)
	case LinkDown:
		return knob.UndoOf(id, knob.EffectNow, knob.DisturbsLink)
	}
	return knob.UndoOf(id, knob.EffectNow, knob.DisturbsNothing)
}

// File is a persistent form of a line.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`           // lines for it, each with a line end
	Own  bool   `json:"own"`            // the plan makes the file; otherwise the lines are added to it
	Mode string `json:"mode,omitempty"` // octal; absent: 0644
}

// Line is one setting of a plan, set or not.
type Line struct {
	Knob    string         `json:"knob"` // in the notation of check-advice
	Value   string         `json:"value"`
	Set     bool           `json:"set"`
	WriteUp bool           `json:"write_up"` // the value is that of an old write-up
	Verdict advice.Verdict `json:"verdict"`
	Reason  string         `json:"reason"`            // why the plan sets it, or does not
	What    string         `json:"what"`              // what the setting does on this release
	Since   string         `json:"since,omitempty"`   // first release for which the verdict holds
	Today   string         `json:"today,omitempty"`   // what has the wanted effect now
	Source  string         `json:"source,omitempty"`  // of this knowledge
	Default string         `json:"default,omitempty"` // of the release on this memory; absent: not known
	about   bool           // Default depends on the memory that is free at boot, and is near that
	Present string         `json:"present,omitempty"` // on the host that was read
	// The rest is absent for what is not set.
	Read     string    `json:"read,omitempty"`     // the command that shows the value
	Commands []string  `json:"commands,omitempty"` // absent: only the file has it
	Files    []File    `json:"files,omitempty"`    // absent: the commands persist by themselves
	ByHand   string    `json:"by_hand,omitempty"`  // what the user must write to make it persistent
	Undo     []string  `json:"undo,omitempty"`
	Effect   Effect    `json:"effect,omitempty"`
	Undoing  knob.Undo `json:"undo_needs,omitempty"`
	UndoNote string    `json:"undo_note,omitempty"`
}

// Memory is what the buffers of the plan can take.
type Memory struct {
	HostBytes     unit.Bytes `json:"host_bytes"`
	BudgetBytes   unit.Bytes `json:"budget_bytes"` // what buffers of connections may take together
	BufferBytes   unit.Bytes `json:"buffer_bytes"` // of one connection, at most
	Connections   int        `json:"connections_total"`
	TogetherBytes unit.Bytes `json:"together_bytes"` // buffer × connections
	Lowered       bool       `json:"lowered"`        // the path needs more than memory allows
	Formula       string     `json:"formula"`
}

// Plan is the answer.
type Plan struct {
	Situation Situation
	Lines     []Line  // what is set, in the order of application, and then what is not
	Memory    *Memory // nil: the role takes no buffers
	Notes     []string
}
