package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
	"github.com/linerate/linerate/internal/traffic"
)

// The schema names. The number rises when a key changes its meaning or disappears; a new key does
// not raise it.
const (
	SchemaInspect  = "linerate.inspect/1"
	SchemaMeasure  = "linerate.measure/1"
	SchemaDiagnose = "linerate.diagnose/1"
	SchemaTune     = "linerate.tune/1"
	SchemaHistory  = "linerate.history/1"
	SchemaKnobs    = "linerate.knobs/1"
	SchemaLab      = "linerate.lab/1"
	SchemaLabUp    = "linerate.lab-up/1"
	SchemaServe    = "linerate.serve/1"
	SchemaError    = "linerate.error/1"
)

// Envelope begins every document.
//
// It is embedded and not nested, so that the name of the schema is a key of the document itself and
// a reader can look at it first.
type Envelope struct {
	Schema   string    `json:"schema"`
	Linerate string    `json:"linerate"` // version of the program
	Time     time.Time `json:"time"`     // RFC 3339, when the document was made
	Host     Host      `json:"host"`
}

// Host names the machine that made a document, or the machine of an archived tree.
//
// Kernel, boot id and memory are absent in documents without a snapshot: they are not read for the
// envelope alone.
type Host struct {
	Name           string `json:"name,omitempty"`
	OS             string `json:"os,omitempty"`
	Kernel         string `json:"kernel,omitempty"`
	Arch           string `json:"arch,omitempty"`
	BootID         string `json:"boot_id,omitempty"`
	Virtualization string `json:"virtualization,omitempty"`
	MemoryBytes    int64  `json:"memory_bytes,omitempty"`
}

// NewEnvelope returns the envelope of a document of the running program on the host of that name.
// The constructor of the document sets the schema.
//
// The time is now, in UTC and in milliseconds: documents of two hosts are compared, and more digits
// would claim that their clocks agree better than they do.
func NewEnvelope(version, hostName string) Envelope {
	return Envelope{
		Linerate: version,
		Time:     time.Now().UTC().Truncate(time.Millisecond),
		Host:     Host{Name: hostName, OS: runtime.GOOS, Arch: runtime.GOARCH},
	}
}

// Of returns the envelope with the schema of its document.
func (e Envelope) Of(schema string) Envelope {
	e.Schema = schema
	return e
}

// describe returns the envelope with the host of a snapshot; nil leaves it unchanged.
func (e Envelope) describe(s *host.Snapshot) Envelope {
	if s != nil {
		e.Host = Host{Name: s.Name, OS: s.OS, Kernel: s.Kernel, Arch: s.Arch, BootID: s.BootID,
			Virtualization: s.Virtualization, MemoryBytes: s.MemoryBytes}
	}
	return e
}

// InspectDocument is linerate.inspect/1: what one host has, and the ceilings that follow.
type InspectDocument struct {
	Envelope
	Interfaces []host.Interface `json:"interfaces"`
	CPUs       []host.CPU       `json:"cpus"`
	Settings   []host.Setting   `json:"settings"`
	Routes     []host.Route     `json:"routes,omitempty"`
	host.Platform
	Ceilings []ceiling.Rate `json:"ceilings"`
	// Moderation is what the interrupt throttle of NICs of the e1000 family allows, with its
	// hazards; absent: the host has no such NIC.
	Moderation []ceiling.Moderated `json:"moderation,omitempty"`
	Warnings   []string            `json:"warnings,omitempty"` // what could not be read
}

// MeasureDocument is linerate.measure/1: tests against one target.
type MeasureDocument struct {
	Envelope
	Target   string           `json:"target"`
	Tests    []traffic.Result `json:"tests"`
	Gate     *MeasureGate     `json:"gate,omitempty"` // of --fail-below and --baseline
	Warnings []string         `json:"warnings,omitempty"`
}

// NewMeasure makes a measure document of tests.
func NewMeasure(e Envelope, target string, tests []traffic.Result) *MeasureDocument {
	d := &MeasureDocument{Envelope: e.Of(SchemaMeasure), Target: target, Tests: slices.Clone(tests)}
	FillSlices(d)
	return d
}

// HistoryDocument is linerate.history/1: changes of the journal; set and confirm print it too.
type HistoryDocument struct {
	Envelope
	Changes []journal.Change `json:"changes"`
	// settings that set left alone, because the host held their values already
	Unchanged []Unchanged `json:"unchanged,omitempty"`
}

// Unchanged is a setting that the host held already.
type Unchanged struct {
	knob.Setting
	// the trial that made it so, and goes back unless confirmed; absent: none
	Trial    string     `json:"trial,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"` // of that trial
}

// NewHistory makes a history document.
func NewHistory(e Envelope, changes []journal.Change) *HistoryDocument {
	d := &HistoryDocument{Envelope: e.Of(SchemaHistory), Changes: slices.Clone(changes)}
	FillSlices(d)
	return d
}

// LabDocument is linerate.lab/1: one played scenario of the lab. Healthy, Before and After are in
// Unit.
//
// The rates are pointers: one that was not measured is absent, while zero is the measurement of a
// broken path. Their keys have no unit, because all three share the one in Unit.
type LabDocument struct {
	Envelope
	Scenario string   `json:"scenario"`
	Expected string   `json:"expected"`          // finding code that the scenario plants
	Found    string   `json:"found"`             // finding code that came first
	Healthy  *float64 `json:"healthy,omitempty"` // rate of the same world without the fault
	Before   *float64 `json:"before,omitempty"`  // rate with the fault
	After    *float64 `json:"after,omitempty"`   // rate after tuning; absent when nothing was tuned
	Unit     string   `json:"unit"`              // bits_per_second
	Pass     bool     `json:"pass"`
	Skipped  bool     `json:"skipped,omitempty"` // this machine cannot play it; reason says what it lacks
	// pass, fail, not-judged or skipped
	Verdict string `json:"verdict"`
	// Disturbed reports that this machine was too disturbed, so the scenario is not judged; the reason
	// names the disturbance.
	Disturbed bool       `json:"disturbed,omitempty"`
	Reason    string     `json:"reason,omitempty"` // why it did not pass, one sentence
	Kept      []string   `json:"kept"`             // knobs that tuning kept
	Seconds   float64    `json:"duration_seconds,omitempty"`
	Replay    *LabReplay `json:"replay,omitempty"` // of a scenario that recreates a write-up

	Document json.RawMessage `json:"document,omitempty"` // linerate.tune/1; with --inside
}

// LabOutcome is the result of one played scenario. Rates are in bits per second; zero and NaN mean
// not measured.
type LabOutcome struct {
	Scenario, Expected, Found string
	Healthy, Before, After    float64
	Pass, Skipped, Disturbed  bool
	Reason                    string
	Kept                      []string
	Duration                  time.Duration
	Unit                      string // of the figures; empty: bits per second
	Replay                    *LabReplay
	Document                  json.RawMessage // of the tune
}

// labVerdict returns the outcome in a word.
func labVerdict(o LabOutcome) string {
	switch {
	case o.Skipped:
		return "skipped"
	case o.Disturbed:
		return "not-judged"
	case o.Pass:
		return "pass"
	}
	return "fail"
}

// NewLab makes a lab document.
func NewLab(e Envelope, o LabOutcome) *LabDocument {
	d := &LabDocument{
		Envelope: e.Of(SchemaLab),
		Scenario: o.Scenario, Expected: o.Expected, Found: o.Found,
		Healthy: positive(o.Healthy), Before: positive(o.Before), After: positive(o.After),
		Unit: cmp.Or(o.Unit, "bits_per_second"), Pass: o.Pass, Skipped: o.Skipped, Disturbed: o.Disturbed,
		Reason: o.Reason, Kept: slices.Clone(o.Kept), Seconds: o.Duration.Seconds(),
		Verdict: labVerdict(o), Replay: o.Replay, Document: o.Document,
	}
	FillSlices(d)
	return d
}

// LabUpDocument is linerate.lab-up/1: a practice world that is up, and the way into its hosts. It
// is printed once, when the world is ready.
type LabUpDocument struct {
	Envelope
	World string      `json:"world"` // pair or router
	Hosts []LabUpHost `json:"hosts"`
	Key   string      `json:"key"`   // LINERATE_KEY in the near host, for its far one
	State string      `json:"state"` // LINERATE_STATE in the near host
}

// LabUpHost is a host of a practice world.
type LabUpHost struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Enter   string `json:"enter"` // the command that starts a shell in it
}

// NewLabUp makes a lab-up document.
func NewLabUp(e Envelope, d LabUpDocument) *LabUpDocument {
	d.Envelope = e.Of(SchemaLabUp)
	FillSlices(&d)
	return &d
}

// ServeDocument is linerate.serve/1: where a server listens and what the other side needs. It is
// printed once, before the first client connects.
type ServeDocument struct {
	Envelope
	Listen      string     `json:"listen"` // address and port that was opened
	Port        int        `json:"port"`
	Key         string     `json:"key,omitempty"`              // absent: each peer has its own
	KeyExpires  *time.Time `json:"key_expires_time,omitempty"` // absent: when the server ends
	KeyClients  int        `json:"key_clients"`                // how many hosts may use the key; 0: any
	PeersFile   string     `json:"peers_file,omitempty"`       // of the peers with their own keys
	Peers       []string   `json:"peers,omitempty"`            // their names at the start
	AllowTuning bool       `json:"allow_tuning"`
	Tuning      string     `json:"tuning,omitempty"` // what may be changed: class, patterns
	// the line to paste on the other host; absent: `linerate peers add` printed it
	Command string `json:"command,omitempty"`
	// addresses of this host that the listener answers at, the one in the command first
	Addresses []string       `json:"addresses"`
	Accepting []ServeDialect `json:"accepting,omitempty"`
}

// ServeDialect is another program whose clients are answered.
type ServeDialect struct {
	Dialect string `json:"dialect"`
	Listen  string `json:"listen"`
}

// NewServe makes a serve document; the caller fills in the rest.
func NewServe(e Envelope) *ServeDocument { return &ServeDocument{Envelope: e.Of(SchemaServe)} }

// ErrorDocument is linerate.error/1: one object on standard error when a command with --json fails.
//
// It has no envelope, because making one could fail too.
type ErrorDocument struct {
	Schema     string `json:"schema"`
	Error      string `json:"error"` // operation subject: cause
	Hint       string `json:"hint,omitempty"`
	ExitStatus int    `json:"exit_status"`

	Notices []string `json:"notices,omitempty"` // what else the user should know, a sentence each
}

// NewError makes an error document.
func NewError(text, hint string, exitStatus int) *ErrorDocument {
	return &ErrorDocument{Schema: SchemaError, Error: text, Hint: hint, ExitStatus: exitStatus}
}

// Print writes the error as JSON, or as one sentence with the hint on a line of its own. When the
// JSON object cannot be encoded it writes the sentence.
func (e *ErrorDocument) Print(w io.Writer, program string, asJSON bool) {
	if asJSON && Encode(w, e) == nil {
		return
	}
	fmt.Fprintf(w, "%s: %s\n", program, e.Error)
	if e.Hint != "" {
		fmt.Fprintf(w, "try: %s\n", e.Hint)
	}
}

// known returns a pointer to a finite number, and nil for NaN and infinities: absent means not
// known.
func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// positive is known for quantities that are never zero when measured: a path of the lab that
// carried nothing at all is a failure of the lab and not a rate.
func positive(x float64) *float64 {
	if x <= 0 {
		return nil
	}
	return known(x)
}

// CleanFindings returns findings without the evidence that JSON cannot carry: a number that is NaN
// or infinite is not evidence.
//
// encoding/json fails for a whole document with a NaN, and one bad number from a far host must not
// cost the reader everything else.
func CleanFindings(in []evidence.Finding) []evidence.Finding {
	out := make([]evidence.Finding, 0, len(in))
	for _, f := range in {
		f.Evidence = slices.DeleteFunc(slices.Clone(f.Evidence), func(e evidence.Evidence) bool {
			x, ok := e.Value.(float64)
			return ok && known(x) == nil
		})
		out = append(out, f)
	}
	return out
}
