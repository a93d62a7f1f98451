package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/report"
)

// Reader reads what only root may read, from root's agent or a directory that is open to this user.
type Reader interface {
	History(ctx context.Context) ([]journal.Change, error)
	Runs(ctx context.Context, kind runs.Kind) ([]string, error)
	Run(ctx context.Context, kind runs.Kind, id string) ([]byte, error)
}

// How often a node reads its host, and how long it watches it for a verdict. The reading costs some
// 50 ms of CPU time.
const (
	readEvery = 5 * time.Minute
	watchFor  = 3 * time.Second
	keepEvery = time.Minute // comparing kept changes costs a file each
)

// Host is the host that a node runs on.
type Host struct {
	reader  Reader
	knobs   knob.Backend
	version string
	log     *slog.Logger
	measure string // HOST:PORT where other hosts may measure this one

	// AfterRead is called after each reading of the host; nil: nothing. It is set before Run.
	AfterRead func()
	// Reports returns what became of the orders of a rollout; nil: this host takes no orders. It is
	// set before the first question.
	Reports func(ctx context.Context, rollout string) (executor.Report, error)

	mu       sync.Mutex
	snapshot *host.Snapshot
	facts    inventory.Facts
	encoded  []byte
	hash     string
}

// NewHost returns the source of this host. [Host.Run] must run beside it.
func NewHost(r Reader, knobs knob.Backend, version string, log *slog.Logger) *Host {
	return &Host{reader: r, knobs: knobs, version: version, log: log}
}

// ServeAt says where other hosts may measure this one. It is called before Run.
func (h *Host) ServeAt(address string) { h.measure = address }

// Speed returns the speed of the fastest interface in bits per second; 0: not known.
func (h *Host) Speed() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.facts.Cards) == 0 {
		return 0
	}
	return h.facts.Cards[0].SpeedBitsPerSec
}

// Run reads the host until the context ends.
func (h *Host) Run(ctx context.Context) {
	whole, kept := time.NewTicker(readEvery), time.NewTicker(keepEvery)
	defer whole.Stop()
	defer kept.Stop()
	h.read(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-whole.C:
			h.read(ctx)
		case <-kept.C:
			h.compare(ctx)
		}
	}
}

// read takes a snapshot and a verdict.
func (h *Host) read(ctx context.Context) {
	if h.AfterRead != nil {
		defer h.AfterRead()
	}
	v, err := loop.Watch(ctx, loop.WatchOptions{Duration: watchFor})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		h.log.Warn("read this host", "error", err)
		return
	}
	f := inventory.Of(v.Near, v.Findings, h.version)
	h.readKept(ctx, &f)
	f.Measure = h.measure
	h.mu.Lock()
	h.snapshot = v.Near
	h.mu.Unlock()
	h.set(f)
}

// compare looks whether the kept changes are in force.
func (h *Host) compare(ctx context.Context) {
	h.mu.Lock()
	f := h.facts
	h.mu.Unlock()
	if f.Name == "" {
		return
	}
	h.readKept(ctx, &f)
	h.set(f)
}

func (h *Host) set(f inventory.Facts) {
	b, hash, err := f.Encode()
	if err == nil && len(b) > inventory.MostFacts {
		err = fmt.Errorf("facts of %d bytes: more than %d", len(b), inventory.MostFacts)
	}
	if err != nil {
		h.log.Warn("read this host", "error", err)
		return
	}
	h.mu.Lock()
	h.facts, h.encoded, h.hash = f, b, hash
	h.mu.Unlock()
}

// readKept fills in the changes that should be in force, with what their knobs hold now, or why the
// journal was not read.
func (h *Host) readKept(ctx context.Context, f *inventory.Facts) {
	f.Kept, f.JournalNotRead = nil, ""
	if h.reader == nil {
		return
	}
	changes, err := h.reader.History(ctx)
	if err != nil {
		f.JournalNotRead = err.Error()
		return
	}
	latest := make(map[knob.ID]int) // the last change of a knob is what it should hold
	for i := range changes {
		if s := changes[i].State; s == journal.Committed || s == journal.Persisted {
			latest[changes[i].Knob] = i
		}
	}
	for i := range changes {
		c := &changes[i]
		if last, ok := latest[c.Knob]; !ok || last != i {
			continue
		}
		k := inventory.Kept{Knob: string(c.Knob), Want: string(c.To), Change: c.ID}
		if v, err := h.knobs.Read(ctx, c.Knob); err == nil {
			k.Have = string(v)
		}
		f.Kept = append(f.Kept, k)
	}
}

// Facts implements Source.
func (h *Host) Facts(context.Context) ([]byte, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.encoded, h.hash, nil
}

// The verbs of a host.
const (
	VerbPing  = "ping"
	VerbState = "state"
	VerbKnob  = "knob"
)

// Ping answers VerbPing.
type Ping struct {
	Version string `json:"version"`
}

// State answers VerbState. Without the journal no changes are known.
type State struct {
	Version        string   `json:"version"`
	Findings       []string `json:"findings,omitempty"`
	Kept           *int     `json:"kept_changes,omitempty"`
	Drifted        *int     `json:"drifted_changes,omitempty"`
	JournalNotRead string   `json:"journal_not_read,omitempty"`
}

// ErrNotReadYet reports a node that has just started.
var ErrNotReadYet = errors.New("the node has just started, and has not read this host yet")

// mostKnobs is how many knobs one question may name.
const mostKnobs = 8

// Answer implements Source.
func (h *Host) Answer(ctx context.Context, verb string, args []string) (any, error) {
	switch verb {
	case VerbPing:
		return Ping{h.version}, nil
	case VerbState:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.facts.Name == "" {
			return nil, ErrNotReadYet
		}
		s := State{Version: h.version, Findings: h.facts.Findings, JournalNotRead: h.facts.JournalNotRead}
		if s.JournalNotRead == "" {
			s.Kept, s.Drifted = new(len(h.facts.Kept)), new(h.facts.Drift())
		}
		return s, nil
	case VerbKnob:
		return h.knobValues(ctx, args)
	}
	return nil, fmt.Errorf("question %.40q: %w", verb, ErrUnknownVerb)
}

// What stands for a value that cannot be read.
const (
	NotThere     = "not there"
	NotPermitted = "not permitted"
	NotSupported = "not supported"
)

// knobValues returns the present values of knobs. What cannot be read has the reason instead.
func (h *Host) knobValues(ctx context.Context, names []string) (map[string]string, error) {
	if len(names) == 0 || len(names) > mostKnobs {
		return nil, fmt.Errorf("name 1 to %d knobs", mostKnobs)
	}
	out := make(map[string]string)
	for _, name := range names {
		id := knob.ID(knob.WithKind(name))
		v, err := h.knobs.Read(ctx, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out[name] = NotThere
		case errors.Is(err, fs.ErrPermission):
			out[name] = NotPermitted
		case err != nil:
			out[name] = NotSupported
		default:
			out[name] = strings.Join(strings.Fields(string(v)), " ")
		}
	}
	return out, nil
}

// The documents of a host, besides its facts. Those with an id have it after the slash.
const (
	DocumentInspect      = "inspect"
	DocumentHistory      = "history"
	DocumentRuns         = "runs"
	DocumentMeasurements = "measurements"
	DocumentOrders       = "orders" // or orders/ROLLOUT: what became of orders, as root's agent says
	documentRun          = "run/"
	documentMeasurement  = "measurement/"
)

// Document implements Source.
func (h *Host) Document(ctx context.Context, name string) ([]byte, error) {
	h.mu.Lock()
	snapshot := h.snapshot
	h.mu.Unlock()
	envelope := report.NewEnvelope(h.version, h.factsName())
	if name == DocumentInspect {
		if snapshot == nil {
			return nil, errors.New("this host is not read yet; ask again in some seconds")
		}
		copied := *snapshot
		return json.Marshal(report.NewInspect(envelope, &copied))
	}
	if rollout, ok := strings.CutPrefix(name, DocumentOrders); ok && h.Reports != nil {
		r, err := h.Reports(ctx, strings.TrimPrefix(rollout, "/"))
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
	if h.reader == nil {
		return nil, fmt.Errorf("document %.60q: %w", name, fs.ErrNotExist)
	}
	list := func(kind runs.Kind) ([]byte, error) {
		ids, err := h.reader.Runs(ctx, kind)
		if err != nil {
			return nil, err
		}
		return json.Marshal(ids)
	}
	switch name {
	case DocumentHistory:
		changes, err := h.reader.History(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(report.NewHistory(envelope, changes))
	case DocumentRuns:
		return list(runs.Tunes)
	case DocumentMeasurements:
		return list(runs.Measurements)
	}
	if id, ok := strings.CutPrefix(name, documentRun); ok {
		return h.reader.Run(ctx, runs.Tunes, id)
	}
	if id, ok := strings.CutPrefix(name, documentMeasurement); ok {
		return h.reader.Run(ctx, runs.Measurements, id)
	}
	return nil, fmt.Errorf("document %.60q: %w", name, fs.ErrNotExist)
}

func (h *Host) factsName() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.facts.Name
}
