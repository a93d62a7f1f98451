package report

import "github.com/linerate/linerate/internal/change/plan"

// SchemaPlan is the document of a plan.
const SchemaPlan = "linerate.plan/1"

// PlanDocument is linerate.plan/1: the settings that one system can use in one role on one path, as
// commands and files with their undo, and the settings of old write-ups with what became of them.
type PlanDocument struct {
	Envelope
	System    PlanSystem    `json:"system"`
	Role      plan.Role     `json:"role"`
	Situation PlanSituation `json:"situation"`
	Memory    *plan.Memory  `json:"memory,omitempty"` // absent: the role takes no buffers for its connections
	// what is set, in the order in which it must be applied, and then what is not
	Lines []plan.Line `json:"lines"`
	Set   int         `json:"set_total"`
	Notes []string    `json:"notes"`
	// for the shell of the system: POSIX, PowerShell, or cmd for XP and Server 2003
	Script     string `json:"script"`
	UndoScript string `json:"undo_script"`
}

// PlanSystem is the system that a plan is for.
type PlanSystem struct {
	OS      string `json:"os"`                // as check-advice names it
	Name    string `json:"name"`              // as it was given: debian, freebsd, omnios
	Release string `json:"release,omitempty"` // as it was given
}

// PlanSituation is what the values of a plan follow from. Absent ones were not given.
type PlanSituation struct {
	LinkBitsPerSec   float64 `json:"link_bits_per_second"`
	RoundTripSeconds float64 `json:"round_trip_seconds,omitempty"`
	MemoryBytes      int64   `json:"memory_bytes,omitempty"`
	Connections      int     `json:"connections_total,omitempty"`
	MTUBytes         int     `json:"mtu_bytes,omitempty"`
	Interface        string  `json:"interface,omitempty"`
	Driver           string  `json:"driver,omitempty"`
	FromHost         bool    `json:"from_host"` // present values of a host were known
}

// NewPlan makes the document of a plan.
func NewPlan(e Envelope, p *plan.Plan) *PlanDocument {
	s := p.Situation
	d := &PlanDocument{
		Envelope: e.Of(SchemaPlan), Role: s.Role,
		System: PlanSystem{OS: string(s.System.OS), Name: s.System.Name, Release: s.System.Release},
		Situation: PlanSituation{LinkBitsPerSec: float64(s.Link), RoundTripSeconds: s.RoundTrip.Seconds(),
			MemoryBytes: int64(s.Memory), Connections: s.Connections, MTUBytes: s.MTU, Interface: s.Interface,
			Driver: s.Driver, FromHost: s.Present != nil},
		Memory: p.Memory, Lines: p.Lines, Notes: p.Notes, Script: p.Script(), UndoScript: p.UndoScript(),
	}
	for _, l := range p.Lines {
		if l.Set {
			d.Set++
		}
	}
	FillSlices(d)
	return d
}
