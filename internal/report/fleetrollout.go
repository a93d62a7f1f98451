package report

import "time"

// The documents of rollouts.
const (
	SchemaFleetPlan     = "linerate.fleet-plan/1"
	SchemaFleetRollout  = "linerate.fleet-rollout/1"
	SchemaFleetRollouts = "linerate.fleet-rollouts/1"
	SchemaFleetKey      = "linerate.fleet-key/1"
	SchemaFleetTrust    = "linerate.fleet-trust/1"
)

// FleetPlanDocument is linerate.fleet-plan/1: a rollout before its first order, or what a person
// signs to resume, persist or undo one.
type FleetPlanDocument struct {
	Envelope
	Kind      string `json:"kind"` // apply, resume, persist or undo
	Rollout   string `json:"rollout"`
	Selection string `json:"selection,omitempty"`
	Knob      string `json:"knob"`
	To        string `json:"to"`
	// Metric is what the change is judged by. It is read at each host over the window, from its
	// production traffic.
	Metric       string    `json:"metric,omitempty"`
	Window       float64   `json:"window_seconds,omitempty"`
	Pairs        int       `json:"pairs,omitempty"` // of an experiment on one host
	Deadline     float64   `json:"deadline_seconds"`
	Settle       float64   `json:"settle_seconds"`
	Soak         float64   `json:"soak_seconds"`
	LongSoak     float64   `json:"long_soak_seconds"`
	ValidUntil   time.Time `json:"valid_until"` // of the signatures
	UndoesOnHarm bool      `json:"undoes_on_harm"`
	Orders       int       `json:"orders_total"` // that a person signs

	Stages  []FleetStage    `json:"stages"`
	Hosts   []FleetPlanHost `json:"hosts"`
	Missing []FleetMissing  `json:"missing,omitempty"` // hosts of the selection that are left out

	// SignedBy are those who have signed it into a file, for the next person.
	SignedBy []string `json:"signed_by,omitempty"`
}

// FleetStage is one stage of a plan.
type FleetStage struct {
	Name    string   `json:"name"`
	Hosts   int      `json:"hosts"`
	Classes []string `json:"classes,omitempty"`
}

// FleetPlanHost is one host of a plan.
type FleetPlanHost struct {
	FleetName
	Class string `json:"class"`
	Rack  string `json:"rack,omitempty"`
	Site  string `json:"site,omitempty"`
	Stage string `json:"stage"`
	// Expect is what the knob holds now, as the host says; the host refuses the order if it differs
	// then.
	Expect     string `json:"expect"`
	Experiment bool   `json:"experiment,omitempty"` // it measures the change against itself first
	Like       string `json:"like,omitempty"`       // id of the like host that it is compared with
}

// FleetMissing is a host that is left out, and why.
type FleetMissing struct {
	FleetName
	Reason string `json:"reason"`
}

// FleetRolloutDocument is linerate.fleet-rollout/1: where a rollout stands.
type FleetRolloutDocument struct {
	Envelope
	FleetRollout
	Looks []FleetLook        `json:"looks"` // at the measurements, one after each stage
	Hosts []FleetRolloutHost `json:"hosts"`
}

// FleetRollout is a rollout in short.
type FleetRollout struct {
	ID     string `json:"id"`
	Knob   string `json:"knob"`
	To     string `json:"to"`
	Metric string `json:"metric,omitempty"`
	By     string `json:"by"` // who signed last
	Reason string `json:"reason,omitempty"`
	// Phase is ordering, soaking, collecting, halted, unwinding, persisting or done.
	Phase  string `json:"phase"`
	Stage  string `json:"stage"`
	Halted string `json:"halted,omitempty"` // why it was halted, the last time
	Proven bool   `json:"proven"`           // the benefit
	// Harm: measurements show it.
	Harm       bool           `json:"harm,omitempty"`
	Resumable  bool           `json:"resumable,omitempty"` // a person may resume now
	Begun      time.Time      `json:"begun"`
	ValidUntil time.Time      `json:"valid_until"` // of the signatures
	States     map[string]int `json:"states"`      // hosts by state
}

// FleetLook is one look at all differences so far.
type FleetLook struct {
	Stage    string  `json:"stage"`
	Pairs    int     `json:"pairs"` // of a changed and a like host
	Effect   float64 `json:"effect_log_ratio"`
	T        float64 `json:"t"`
	Boundary float64 `json:"boundary_z"` // O'Brien and Fleming; 0: this look cannot prove
	P        float64 `json:"p_ratio"`
	Proven   bool    `json:"proven"`
	Harm     string  `json:"harm,omitempty"` // the class, or fleet
}

// FleetRolloutHost is one host of a rollout.
type FleetRolloutHost struct {
	FleetName
	Stage      string           `json:"stage"`
	State      string           `json:"state"`
	Answer     string           `json:"answer,omitempty"` // code of the last answer to an order since the hub started
	Text       string           `json:"text,omitempty"`
	Experiment *FleetExperiment `json:"experiment,omitempty"`
}

// FleetExperiment is what a host measured of the change against itself.
type FleetExperiment struct {
	Effect float64 `json:"effect_log_ratio"` // positive is better
	Error  float64 `json:"error_log_ratio"`
	Pairs  int     `json:"pairs"`
}

// FleetRolloutsDocument is linerate.fleet-rollouts/1: the rollouts of a hub.
type FleetRolloutsDocument struct {
	Envelope
	Rollouts []FleetRollout `json:"rollouts"`
}

// FleetKeyDocument is linerate.fleet-key/1: the public part of a key that signs orders.
type FleetKeyDocument struct {
	Envelope
	Name        string `json:"name"`
	Public      string `json:"public_key"`
	Fingerprint string `json:"fingerprint"`
	File        string `json:"file"` // with the private part
	Made        bool   `json:"made"` // now
	Line        string `json:"line"` // to use as root on each host
}

// FleetTrustDocument is linerate.fleet-trust/1: whose orders this host takes.
type FleetTrustDocument struct {
	Envelope
	Host   string          `json:"host_id"`
	Keys   []FleetKnownKey `json:"keys"`
	Policy []string        `json:"policy"` // what the fleet may do here, a sentence each
	Files  []string        `json:"files"`  // that this command has written
}

// FleetKnownKey is a key whose orders a host takes.
type FleetKnownKey struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}
