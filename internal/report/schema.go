package report

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/diagnose/casefile"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host/optic"
	"github.com/linerate/linerate/internal/traffic"
)

// Schema is the part of JSON Schema (draft 2020-12) that the documents need.
//
// Type and AdditionalProperties are any, because JSON Schema allows two kinds of each: a name or a
// list of names, false or a schema.
type Schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        any                `json:"type,omitempty"` // a name or a list of names
	Format      string             `json:"format,omitempty"`
	Const       string             `json:"const,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// false, or the schema of a map's values
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Defs                 map[string]*Schema `json:"$defs,omitempty"`
}

// Described is a document type and the name of its schema.
type Described struct {
	Name  string
	Value any // the zero value of the type
}

// documents lists the documents of this package and of the wings below. A new one is added here to
// get its schema file and its checks. A wing above report owns its documents, and passes them to
// the functions that take further ones.
var documents = []Described{
	{SchemaInspect, InspectDocument{}},
	{SchemaMeasure, MeasureDocument{}},
	{SchemaDisk, DiskDocument{}},
	{SchemaNFS, NFSDocument{}},
	{SchemaDiagnose, DiagnoseDocument{}},
	{casefile.Schema, casefile.File{}},
	{SchemaTune, TuneDocument{}},
	{SchemaApply, ApplyDocument{}},
	{SchemaRuns, RunsDocument{}},
	{SchemaReport, ReportDocument{}},
	{SchemaHistory, HistoryDocument{}},
	{SchemaUndo, UndoDocument{}},
	{SchemaExport, ExportDocument{}},
	{SchemaBootRecovery, BootRecoveryDocument{}},
	{SchemaPersist, PersistDocument{}},
	{SchemaKnobs, KnobsDocument{}},
	{SchemaCheckAdvice, AdviceDocument{}},
	{SchemaCalc, CalcDocument{}},
	{SchemaPlan, PlanDocument{}},
	{SchemaFirewall, FirewallDocument{}},
	{SchemaFirewallTrace, FirewallTraceDocument{}},
	{SchemaExplain, ExplainDocument{}},
	{SchemaResolver, ResolverDocument{}},
	{SchemaResolverAnswer, ResolverAnswerDocument{}},
	{SchemaResolverLab, ResolverLabDocument{}},
	{SchemaResolverDiagnose, ResolverDiagnoseDocument{}},
	{SchemaResolverTune, ResolverTuneDocument{}},
	{SchemaScenarios, LabListDocument{}},
	{SchemaLab, LabDocument{}},
	{SchemaMatrix, MatrixDocument{}},
	{SchemaTuneMatrix, TuneMatrixDocument{}},
	{SchemaLabUp, LabUpDocument{}},
	{SchemaServe, ServeDocument{}},
	{SchemaPeers, PeersDocument{}},
	{SchemaAgent, AgentDocument{}},
	{SchemaHubCheck, HubCheckDocument{}},
	{SchemaSwitch, SwitchDocument{}},
	{SchemaVersion, VersionDocument{}},
	{SchemaProfile, ProfileDocument{}},
	{SchemaProfileCompare, ProfileCompareDocument{}},
	{SchemaError, ErrorDocument{}},
	{SchemaLine, Line{}},
	{SchemaMeasureCompare, MeasureCompareDocument{}},
	{SchemaMeasurements, MeasurementsDocument{}},
	{SchemaFleetStatus, FleetStatusDocument{}},
	{SchemaFleetHosts, FleetHostsDocument{}},
	{SchemaFleetAsk, FleetAskDocument{}},
	{SchemaFleetFetch, FleetFetchDocument{}},
	{SchemaFleetInvite, FleetInviteDocument{}},
	{SchemaFleetDecide, FleetDecideDocument{}},
	{SchemaFleetJoin, FleetJoinDocument{}},
	{SchemaFleetMeasure, FleetMeasureDocument{}},
	{SchemaFleetPlan, FleetPlanDocument{}},
	{SchemaFleetRollout, FleetRolloutDocument{}},
	{SchemaFleetRollouts, FleetRolloutsDocument{}},
	{SchemaFleetKey, FleetKeyDocument{}},
	{SchemaFleetTrust, FleetTrustDocument{}},
}

// enums are the string types with a closed set of values.
//
// A closed set is a promise: readers may switch over it without a default. Codes of findings are
// not closed, because new rules add new ones.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[evidence.Severity](): {string(evidence.Info), string(evidence.Notice), string(evidence.Warning),
		string(evidence.Critical)},
	reflect.TypeFor[advice.Verdict](): {string(advice.Harmful), string(advice.Removed), string(advice.Ignored),
		string(advice.NowDefault),
		string(advice.StillRight), string(advice.Unknown)},
	reflect.TypeFor[plan.Effect](): {string(plan.AtOnce), string(plan.NewConnections), string(plan.AtReboot),
		string(plan.LinkDown)},
	reflect.TypeFor[knob.Undo](): {string(knob.UndoNow), string(knob.UndoReboot), string(knob.UndoDowntime)},
	reflect.TypeFor[plan.Role](): {string(plan.Bulk), string(plan.Web), string(plan.Router), string(plan.Firewall),
		string(plan.Latency), string(plan.Nameserver), string(plan.NFS)},
	reflect.TypeFor[tune.Verdict](): {string(tune.Kept), string(tune.RevertedWorse), string(tune.RevertedUnproven),
		string(tune.Refused)},
	reflect.TypeFor[tune.Side]():  {string(tune.Near), string(tune.Far)},
	reflect.TypeFor[tune.State](): {string(tune.StateTrial), string(tune.StateCommitted), string(tune.StateUndone)},
	reflect.TypeFor[tune.Phase](): {string(tune.PhasePilot), string(tune.PhaseLevels), string(tune.PhaseTrial),
		string(tune.PhaseConfirmation), string(tune.PhaseAblation), string(tune.PhaseSoak)},
	reflect.TypeFor[PersistState](): {string(PersistPlanned), string(PersistDone), string(PersistByHand),
		string(PersistRefused), string(PersistHeld),
		string(PersistLost), string(PersistWaiting), string(PersistCovered)},
	reflect.TypeFor[LineKind](): {string(LineInterval), string(LineEvent), string(LineReading), string(LineResult),
		string(LineError)},
	reflect.TypeFor[traffic.Comparative](): {string(traffic.Better), string(traffic.Worse), string(traffic.NoDifference),
		string(traffic.NotJudged)},
	reflect.TypeFor[optic.State](): {string(optic.Fine), string(optic.LowWarning), string(optic.HighWarning),
		string(optic.LowAlarm), string(optic.HighAlarm)},
	reflect.TypeFor[journal.State](): {string(journal.Trial), string(journal.Committed), string(journal.Persisted),
		string(journal.Undone), "dry-run"},
}

// unitsOfKeys explains the units that keys end in. The first suffix that fits wins, so longer ones
// come first.
var unitsOfKeys = []struct{ suffix, unit string }{
	{"_transactions_per_second", "transactions per second"},
	{"_bytes_per_second", "bytes per second"},
	{"_operations_per_second", "operations per second"},
	{"_packets_per_second", "packets per second"},
	{"_bits_per_second", "bits per second"},
	{"nanoseconds_per_packet", "nanoseconds of processor time for each packet"},
	{"nanoseconds_per_byte", "nanoseconds of processor time for each byte that an interface carried"},
	{"_seconds_per_gigabyte", "seconds of processor time per 10⁹ bytes of payload"},
	{"transactions_per_second", "transactions per second"},
	{"operations_per_second", "operations per second"},
	{"packets_per_second", "packets per second"},
	{"bits_per_second", "bits per second"},
	{"_microseconds", "microseconds"},
	{"_seconds", "seconds"},
	{"_bytes", "bytes"},
	{"_packets", "packets"},
	{"_megahertz", "megahertz"},
	{"_ratio", "ratio; for an effect 1 is no change, for a share 1 is all"},
	{"_total", "a count"},
}

// Schemas returns the JSON Schema of every document, and of further ones, by schema name.
func Schemas(further ...Described) map[string]*Schema {
	all := map[string]*Schema{}
	for _, d := range slices.Concat(documents, further) {
		all[d.Name] = schemaOf(d.Name, reflect.TypeOf(d.Value))
	}
	return all
}

// SchemaFile returns the file name of a schema in docs/schema: linerate.tune.1.json for
// linerate.tune/1.
func SchemaFile(name string) string { return strings.ReplaceAll(name, "/", ".") + ".json" }

// SchemaFiles returns the content of every file of docs/schema, by file name.
func SchemaFiles(further ...Described) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, s := range Schemas(further...) {
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode schema %s: %w", name, err)
		}
		files[SchemaFile(name)] = append(b, '\n')
	}
	return files, nil
}

// schemaOf makes the schema of one document type.
//
// The schemas forbid additional keys, so that the tests find undescribed ones. Readers should
// ignore unknown keys, because new keys do not raise the number of a schema.
func schemaOf(name string, t reflect.Type) *Schema {
	g := &generator{defs: map[string]*Schema{}}
	s := g.object(t)
	s.Dialect = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "urn:linerate:schema:" + strings.ReplaceAll(strings.TrimPrefix(name, "linerate."), "/", ":")
	s.Title = name
	s.Description = "Generated from the Go types of package report. Absent means not known."
	s.Properties["schema"] = &Schema{Const: name}
	if len(g.defs) > 0 {
		s.Defs = g.defs
	}
	return s
}

// generator collects the definitions that a document refers to.
type generator struct{ defs map[string]*Schema }

// of returns the schema of any type; structs become definitions, named by package and type.
//
// Pointers have the schema of their element: "required" says whether a value may be absent, and
// null never appears.
func (g *generator) of(t reflect.Type) *Schema {
	zero := 0.0
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &Schema{Type: "string", Format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage](): // a document in a document
		return &Schema{Type: "object"}
	case enums[t] != nil:
		return &Schema{Type: "string", Enum: enums[t]}
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()): // addresses
		return &Schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer", Minimum: &zero}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: "array", Items: g.of(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: g.of(t.Elem())}
	case reflect.Interface:
		// The only one is Evidence.Value.
		return &Schema{Type: []string{"number", "string", "boolean"}}
	case reflect.Struct:
		name := packageOf(t) + "." + t.Name()
		if _, done := g.defs[name]; !done {
			g.defs[name] = nil // ends the recursion of a type that contains itself
			g.defs[name] = g.object(t)
		}
		return &Schema{Ref: "#/$defs/" + name}
	}
	panic("no schema for " + t.String()) // a new kind in a document; the tests build every schema
}

// packageOf returns the last element of the package path of a type, which distinguishes
// host.Interface from another Interface.
func packageOf(t reflect.Type) string {
	path := t.PkgPath()
	return path[strings.LastIndex(path, "/")+1:]
}

// object returns the schema of a struct with the fields that encoding/json writes: embedded ones in
// place, and the outer one of two with one name.
func (g *generator) object(t reflect.Type) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
	g.fields(s, t)
	slices.Sort(s.Required)
	return s
}

// fields adds the fields of a struct. Outer fields come first, because encoding/json lets them hide
// embedded ones of the same name.
//
// Embedded structs with a tag of their own are ordinary fields, as in encoding/json.
func (g *generator) fields(s *Schema, t reflect.Type) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			et := f.Type
			if et.Kind() == reflect.Pointer {
				et = et.Elem()
			}
			embedded = append(embedded, et)
			continue
		case tag == "-" || !f.IsExported():
			continue
		case tag == "":
			tag = f.Name
		}
		if _, outer := s.Properties[tag]; outer {
			continue
		}
		p := g.of(f.Type)
		if u := unitOf(tag); u != "" && p.Ref == "" {
			p.Description = u
		}
		s.Properties[tag] = p
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, tag)
		}
	}
	for _, et := range embedded {
		g.fields(s, et)
	}
}

// unitOf returns the explanation of the unit that a key ends in; empty for keys without one.
func unitOf(key string) string {
	for _, u := range unitsOfKeys {
		if strings.HasSuffix(key, u.suffix) {
			return u.unit
		}
	}
	return ""
}
