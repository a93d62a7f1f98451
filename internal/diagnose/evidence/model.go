package evidence

import (
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// Code names a finding (design §12). Codes never change meaning.
type Code string

// Severity orders findings.
type Severity string

// The severities. Info never asks for action.
const (
	Info     Severity = "info"
	Notice   Severity = "notice"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Case is everything a verdict may rest on. Near is the host the command runs on. Far is nil when
// nothing is known of it.
type Case struct {
	Near *host.Snapshot   `json:"near,omitempty"`
	Far  *host.Snapshot   `json:"far,omitempty"`
	Runs []traffic.Result `json:"runs"` // at least one loaded stream for a verdict with a target; may hold a ping (idle round trip) and others

	// NearAddress and FarAddress are the addresses of the control channel, when known. They tell on
	// hosts with several interfaces which one carried the flow; without them the routes of both
	// snapshots are searched.
	NearAddress string `json:"near_address,omitempty"`
	FarAddress  string `json:"far_address,omitempty"`

	// Watched are hosts that were looked at without a run of ours: passive verdicts, and snapshots
	// from elsewhere.
	Watched []Span `json:"watched,omitempty"`

	// Probes are the further runs that rules asked for, and Refused those that could not be made,
	// with the reason.
	Probes  map[Probe]traffic.Result `json:"probes,omitempty"`
	Refused map[Probe]string         `json:"refused,omitempty"`

	wanted []Probe
}

// Finding is one verdict with its evidence; findings[] of linerate.diagnose/1.
type Finding struct {
	Code       Code       `json:"code"`
	Severity   Severity   `json:"severity"`
	Confidence float64    `json:"confidence_ratio"`
	Title      string     `json:"title"` // one sentence, with the number that decides
	Where      string     `json:"where"` // near, far, path
	Evidence   []Evidence `json:"evidence"`
	Rejected   []string   `json:"rejected"` // alternatives ruled out, each with its number
	Remedy     Remedy     `json:"remedy"`
	Causes     []Code     `json:"causes,omitempty"` // symptoms this finding explains; they are muted
}

// Evidence is one fact behind a finding. Value is a float64, a string or a bool.
type Evidence struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source"` // tcp_info tcpi_rwnd_limited (near), /proc/net/netstat TcpExt.TCPTimeouts (far), …
}

// Remedy is what to do. Settings are machine-readable candidates in the order to try them; Knobs
// are their names.
type Remedy struct {
	Text     string      `json:"text"`
	Knobs    []string    `json:"knobs"`
	Settings []Candidate `json:"settings,omitempty"`
	Proof    string      `json:"proof,omitempty"` // how to show that this is it, one sentence
}

// Candidate is one knob worth trying, on one side, with the levels worth trying from small to
// large.
//
// Levels are whole values in the form of the knob, not factors: what is tried must be readable in
// the document.
type Candidate struct {
	Knob   knob.ID      `json:"knob"`
	Side   string       `json:"side"` // near, far
	Levels []knob.Value `json:"levels"`
	Why    string       `json:"why"`
}
