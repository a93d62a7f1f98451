package evidence

import (
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// Code names a finding, such as path-loss. Codes never change meaning.
type Code string

// Severity orders findings.
type Severity string

// The severities, as the package comment defines them.
const (
	Info     Severity = "info"
	Notice   Severity = "notice"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Case is everything that a verdict may rest on. Near is the host that runs the command. Far is nil
// if nothing is known of it.
type Case struct {
	Near *host.Snapshot `json:"near,omitempty"`
	Far  *host.Snapshot `json:"far,omitempty"`
	// Runs has at least one loaded stream for a verdict with a target; it may hold a ping (the idle
	// round trip) and other tests.
	Runs []traffic.Result `json:"runs"`

	// NearAddress and FarAddress are the addresses of the control channel, if known. On hosts with
	// several interfaces they show which one carried the flow; otherwise the routes of both
	// snapshots decide.
	NearAddress string `json:"near_address,omitempty"`
	FarAddress  string `json:"far_address,omitempty"`

	// Watched holds hosts observed without a test run: passive verdicts, and snapshots that were
	// sent.
	Watched []Span `json:"watched,omitempty"`

	// Profiles are what the CPUs did under the load of a stream, by side (near, far), where one of
	// them was the limit.
	Profiles map[string]*Profile `json:"profiles,omitempty"`

	// Probes holds the results of the further runs that rules asked for, and Refused the reason for
	// each run that could not be made.
	Probes  map[Probe]traffic.Result `json:"probes,omitempty"`
	Refused map[Probe]string         `json:"refused,omitempty"`

	wanted []Probe
}

// Finding is one verdict with its evidence; findings[] of linerate.diagnose/1.
type Finding struct {
	Code       Code       `json:"code"`
	Severity   Severity   `json:"severity"`
	Confidence float64    `json:"confidence_ratio"`
	Title      string     `json:"title"` // one sentence with the deciding number
	Where      string     `json:"where"` // near, far, path
	Evidence   []Evidence `json:"evidence"`
	Rejected   []string   `json:"rejected"` // alternatives ruled out, each with its number
	Remedy     Remedy     `json:"remedy"`
	Causes     []Code     `json:"causes,omitempty"` // symptoms that this finding explains and mutes

	// Aside says that the fault is too small, or too long ago, to explain what the run showed.
	Aside bool `json:"-"`
	// LostPerSec are the packets per second that the place of the finding dropped, for findings that
	// are about these drops; 0 for others. Among faults of equal severity in one period it is the
	// share of the loss that each explains.
	LostPerSec float64 `json:"-"`
}

// Evidence is one fact behind a finding. Value is a float64, a string or a bool.
type Evidence struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source"` // tcp_info tcpi_rwnd_limited (near), /proc/net/netstat TcpExt.TCPTimeouts (far), …
}

// Remedy is what to do about a finding. Settings are machine-readable candidates in the order to
// try them; Knobs are their names.
type Remedy struct {
	Text     string      `json:"text"`
	Knobs    []string    `json:"knobs"`
	Settings []Candidate `json:"settings,omitempty"`
	Proof    string      `json:"proof,omitempty"` // the experiment that shows it, one sentence
}

// Candidate is one knob to try on one side, with the levels to try from small to large.
//
// Levels are whole values in the form of the knob, not factors, so that the document shows what was
// tried.
type Candidate struct {
	Knob   knob.ID      `json:"knob"`
	Side   string       `json:"side"` // near, far
	Levels []knob.Value `json:"levels"`
	Why    string       `json:"why"`
}
