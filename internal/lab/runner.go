package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// EventKind is the kind of an Event.
type EventKind string

// The events of a run, in their order. Step repeats.
const (
	EventWorld    EventKind = "world"    // the world is up
	EventHealthy  EventKind = "healthy"  // measured without the faults: Rate
	EventFaults   EventKind = "faults"   // applied
	EventBefore   EventKind = "before"   // measured with them: Rate
	EventDiagnose EventKind = "diagnose" // first finding: Text; only if Options.Verdict
	EventStep     EventKind = "step"     // a line of progress of the command that runs: Text
	EventAfter    EventKind = "after"    // measured after tuning: Rate
	EventRemoved  EventKind = "removed"  // measured without one kept change: Text
	EventUndo     EventKind = "undo"     // both hosts have taken back their changes
	EventProof    EventKind = "proof"    // all settings compared
)

// Event is one event of a run.
type Event struct {
	Kind          EventKind
	Text          string
	BitsPerSecond float64
	Document      json.RawMessage // linerate.diagnose/1, with EventDiagnose
}

// Options of Run. The zero value has usable defaults.
type Options struct {
	Progress func(Event) // called for one event at a time; nil: none
	// StateDir is where the hosts keep their journals, in near and far. Empty: a temporary
	// directory, removed at the end.
	StateDir string

	// Measure is the length of each measurement of the healthy world, before tuning and after it,
	// and Repeats is their number. The median counts, so one moment of other load on the machine
	// decides nothing. Zero: 2 s, three times.
	Measure time.Duration
	Repeats int

	Level scenario.Level // of the fault; empty: gross
	// Verdict asks for a diagnosis of its own before tuning. Otherwise the tune's finding counts,
	// which follows the same rules on a load of its own.
	Verdict bool
	Budget  time.Duration // of tune; 0: its own default
	HTML    string        // file for tune's page; empty: none
	Tune    []string      // further flags of tune
	// Removals is the number of pairs of segments with and without each kept change, which show
	// whether the change is needed; 0: not measured.
	Removals int
}

// Run plays a scenario with the ordinary commands. It measures a sound world like the scenario's,
// makes the world with its fault, measures, tunes, measures, undoes the changes on both hosts, and
// compares all settings. A scenario that does not pass is a Result with a reason. An error means
// that the world could not be made (ErrNoNamespaces, ErrNotSupported) or that ctx has ended.
func Run(ctx context.Context, s scenario.Scenario, o Options) (*Result, error) {
	start := time.Now()
	res := &Result{Scenario: s}
	defer func() { res.Duration = time.Since(start) }()
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	o.Measure, o.Repeats = cmp.Or(o.Measure, 2*time.Second), cmp.Or(o.Repeats, 3)
	if s.Needs.CongestionControl != "" && !allowed(s.Needs.CongestionControl) {
		res.Skipped = true
		res.Reason = fmt.Sprintf(
			"skipped: this machine does not offer %s to namespaces; as root: modprobe tcp_%[1]s, "+
				"then add it to sysctl net.ipv4.tcp_allowed_congestion_control", s.Needs.CongestionControl)
		return res, nil
	}
	if o.StateDir == "" {
		dir, err := scratch.New("lab")
		if err != nil {
			return nil, fmt.Errorf("run scenario %s: %w", s.Name, err)
		}
		defer dir.Close() // journals of the world alone
		o.StateDir = dir.Path
	}
	o.Level = cmp.Or(o.Level, scenario.Gross)
	p := &play{o: o, res: res}
	disturbed := Watch()
	err := p.all(ctx)
	res.Noise = disturbed()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrNoNamespaces), errors.Is(err, ErrNotSupported):
		return nil, err
	case errors.Is(err, ErrLacks):
		res.Skipped, res.Reason = true, err.Error()
	case err != nil:
		res.fail(err)
	default:
		res.judge()
	}
	return res, nil
}

// allowed reports whether the machine lets namespaces use a congestion control. It returns false if
// it cannot read the list.
func allowed(name string) bool {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	return err == nil && slices.Contains(strings.Fields(string(b)), name)
}

// play is one run of a scenario under way.
type play struct {
	*Staged
	o   Options
	res *Result
}

func (p *play) all(ctx context.Context) error {
	s := p.res.Scenario
	fault, ok := s.Fault(p.o.Level)
	switch {
	case !ok && !s.Sound():
		return fmt.Errorf("the scenario has no level %q", p.o.Level)
	case !ok:
		p.o.Level = ""
	default:
		// A new world, and not the same world before its fault: links and background work are
		// faults too, and a listening socket keeps the settings with which it was made.
		if err := p.stage(ctx, fault.Twin()); err != nil {
			return err
		}
		healthy, err := p.measure(ctx)
		if err = errors.Join(err, p.Close()); err != nil {
			return err
		}
		p.res.Healthy = healthy
		p.o.Progress(Event{Kind: EventHealthy, BitsPerSecond: healthy})
	}
	if err := p.stage(ctx, fault); err != nil {
		return err
	}
	defer p.Close()
	err := p.faulty(ctx)
	// If the emulated link itself dropped frames, the figures are not those of the world.
	if busy := p.Busy(ctx); busy != "" {
		p.res.Warnings = append(p.res.Warnings, busy)
	}
	return err
}

// stage makes the next world of this run.
func (p *play) stage(ctx context.Context, f scenario.Fault) (err error) {
	s := p.res.Scenario
	if p.Staged, err = raise(ctx, s, p.o.Level, f, s.Tuning.Machine, p.o.StateDir); err != nil {
		return err
	}
	p.res.Warnings = p.Warnings
	p.o.Progress(Event{Kind: EventWorld, Text: string(s.World.Topology)})
	return nil
}

// faulty plays the scenario in the world that is up.
func (p *play) faulty(ctx context.Context) error {
	if p.Level != "" {
		p.o.Progress(Event{Kind: EventFaults})
	}
	var err error
	if p.res.Before, err = p.measure(ctx); err != nil {
		return err
	}
	if p.Level == "" {
		p.res.Healthy = p.res.Before
		p.o.Progress(Event{Kind: EventHealthy, BitsPerSecond: p.res.Healthy})
	}
	p.o.Progress(Event{Kind: EventBefore, BitsPerSecond: p.res.Before})

	// With the faults in place: undo must restore the state before tuning, not the healthy one.
	before, err := p.settings(ctx)
	if err != nil {
		return err
	}
	if p.o.Verdict {
		if err := p.diagnose(ctx); err != nil {
			return err
		}
		p.o.Progress(Event{Kind: EventDiagnose, Text: p.res.Found, Document: p.res.Diagnose})
	}
	if err := p.tune(ctx); err != nil {
		return err
	}
	tuned, err := p.settings(ctx)
	if err != nil {
		return err
	}
	if p.res.After, err = p.measure(ctx); err != nil {
		return err
	}
	p.o.Progress(Event{Kind: EventAfter, BitsPerSecond: p.res.After})
	if p.o.Removals > 0 {
		if err := p.removals(ctx); err != nil {
			return err
		}
	}

	// The far server ends first: it holds the journal of its host, which undo needs. Undo then
	// takes back what tuning committed.
	p.serve()
	for _, h := range []*Host{p.Near(), p.Far()} {
		if _, err := p.linerate(ctx, h, "undo", "--all", "--here"); err != nil {
			return err
		}
	}
	p.o.Progress(Event{Kind: EventUndo})
	after, err := p.settings(ctx)
	if err != nil {
		return err
	}
	for i, h := range p.Hosts {
		p.res.Proof.prove(h.Name, before[i], tuned[i], after[i])
	}
	p.o.Progress(Event{Kind: EventProof})
	return nil
}

// settings reads all hosts, in the order of p.Hosts.
func (p *play) settings(ctx context.Context) ([]map[string]string, error) {
	var all []map[string]string
	for _, h := range p.Hosts {
		s, err := h.Settings(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// linerate runs one command in a host and returns its document.
func (p *play) linerate(ctx context.Context, h *Host, args ...string) ([]byte, error) {
	return p.command(ctx, h, nil, args...)
}

// command is linerate with further exit statuses, besides 0, that count as success.
func (p *play) command(ctx context.Context, h *Host, fine []int, args ...string) ([]byte, error) {
	args = append(args, "--json", "--progress", "all", "--state", filepath.Join(p.o.StateDir, h.Name))
	c := h.Command(ctx, args...)
	c.Env = []string{"LINERATE_KEY=" + p.Staged.key}
	said := &tail{each: func(line string) { p.o.Progress(Event{Kind: EventStep, Text: line}) }}
	c.Stderr = said
	out, err := c.Output()
	var exit *ExitError
	if errors.As(err, &exit) && slices.Contains(fine, exit.Code) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", h.Name, err, said.last())
	}
	return out, nil
}

// measure returns the figure that the scenario is tuned for, in its direction and with its streams:
// the median of the repeats.
func (p *play) measure(ctx context.Context) (float64, error) {
	var figures []float64
	for range p.o.Repeats {
		f, err := p.once(ctx, p.o.Measure)
		if err != nil {
			return 0, err
		}
		figures = append(figures, f)
	}
	// The upper of two middle values: other load on the machine only ever lowers a figure.
	slices.Sort(figures)
	return figures[len(figures)/2], nil
}

// once measures for a time: the payload rate at the receiver, or small transactions per second.
func (p *play) once(ctx context.Context, d time.Duration) (float64, error) {
	s := p.res.Scenario
	test := map[string][]string{scenario.Throughput: {"stream"}, scenario.Latency: {"rr"},
		scenario.Packets: {"udp", "--length", "64"}}[s.Tuning.MeasuredBy()]
	args := append([]string{"measure", p.Far().Address + ":" + port, "--duration", d.String(), "--test"}, test...)
	out, err := p.linerate(ctx, p.Near(), append(args, s.Flags...)...)
	if err != nil {
		return 0, err
	}
	var doc struct {
		Tests []struct {
			Rate         float64 `json:"throughput_bits_per_second"`
			Transactions float64 `json:"transactions_per_second"`
			Packets      float64 `json:"packets_per_second"`
		} `json:"tests"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return 0, fmt.Errorf("near: read the document of linerate measure: %w", err)
	}
	switch {
	case len(doc.Tests) == 0:
		return 0, errors.New("near: the document of linerate measure has no test")
	case s.Tuning.MeasuredBy() == scenario.Latency:
		return doc.Tests[0].Transactions, nil
	case s.Tuning.MeasuredBy() == scenario.Packets:
		return doc.Tests[0].Packets, nil
	}
	return doc.Tests[0].Rate, nil
}

func (p *play) diagnose(ctx context.Context) error {
	out, err := p.linerate(ctx, p.Near(),
		append([]string{"diagnose", p.Far().Address + ":" + port}, p.res.Scenario.Flags...)...)
	if err != nil {
		return err
	}
	var d struct {
		Limit string `json:"limit"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return fmt.Errorf("near: read the document of linerate diagnose: %w", err)
	}
	p.res.Found, p.res.Diagnose = d.Limit, out
	return nil
}

func (p *play) tune(ctx context.Context) error {
	s := p.res.Scenario
	args := []string{"tune", p.Far().Address + ":" + port, "--goal", s.Tuning.MeasuredBy()}
	if p.o.Budget > 0 {
		args = append(args, "--budget", p.o.Budget.String())
	}
	if p.o.HTML != "" {
		page, err := filepath.Abs(p.o.HTML)
		if err != nil {
			return err
		}
		args = append(args, "--html", page)
	}
	args = slices.Concat(args, s.Flags, s.Tuning.Flags, p.o.Tune)
	began := time.Now()
	// 3: the budget ended first. 5: a gain did not stand confirmation and was rolled back. Both are
	// results.
	out, err := p.command(ctx, p.Near(), []int{3, 5}, args...)
	p.res.TuneTime = time.Since(began)
	if err != nil {
		return err
	}
	var d struct {
		State      string                  `json:"state"`
		Reason     string                  `json:"reason"`
		Unreliable bool                    `json:"measurement_unreliable"`
		Disturbed  int                     `json:"disturbed_trials_total"`
		Changes    []Kept                  `json:"changes"`
		Findings   []struct{ Code string } `json:"findings"`
		Trials     []struct {
			Verdict string `json:"verdict"`
			Joint   bool   `json:"together"`
		} `json:"trials"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return fmt.Errorf("near: read the document of linerate tune: %w", err)
	}
	p.res.Tune, p.res.Ended, p.res.Unreliable = out, d.Reason, d.Unreliable
	p.res.DisturbedTrials = d.Disturbed
	if d.State == "committed" {
		p.res.Kept = d.Changes
	}
	if len(d.Findings) > 0 && !p.o.Verdict {
		p.res.Found = d.Findings[0].Code
	}
	// Changes tried together are one trial, and a refused change is none.
	for _, t := range d.Trials {
		switch {
		case t.Verdict == "refused":
		case t.Joint:
			p.res.Together = 1
		default:
			p.res.Trials++
		}
	}
	return nil
}

// tail keeps the last line that a command prints, and passes on each line.
type tail struct {
	each func(line string)

	mu   sync.Mutex
	part []byte
	line string
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, b...)
	for {
		line, rest, whole := bytes.Cut(t.part, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		t.part = bytes.Clone(rest)
		if text := strings.TrimSpace(string(line)); text != "" {
			plain, failed := sentence(text)
			t.line = plain
			if t.each != nil && !failed {
				t.each(text)
			}
		}
	}
}

// sentence returns the text of a line. For an error document (the command was asked for JSON) it
// returns the error's text, and true.
func sentence(line string) (text string, failed bool) {
	var d struct {
		Schema string `json:"schema"`
		Error  string `json:"error"`
	}
	if json.Unmarshal([]byte(line), &d) != nil || d.Schema != "linerate.error/1" {
		return line, false
	}
	return d.Error, true
}

// last returns the last line, to follow an error, or "" if there was no line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == "" {
		return ""
	}
	return ": " + t.line
}
