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

	"github.com/linerate/linerate/internal/wire"
)

// EventKind says what an Event tells.
type EventKind string

// The events of a run, in their order. Step repeats.
const (
	EventWorld    EventKind = "world"    // the world is up
	EventHealthy  EventKind = "healthy"  // measured without the faults: Rate
	EventFaults   EventKind = "faults"   // applied
	EventBefore   EventKind = "before"   // measured with them: Rate
	EventDiagnose EventKind = "diagnose" // first finding: Text
	EventStep     EventKind = "step"     // a line of progress of the command that runs: Text
	EventAfter    EventKind = "after"    // measured after tuning: Rate
	EventUndo     EventKind = "undo"     // both hosts have taken back their changes
	EventProof    EventKind = "proof"    // all settings compared
)

// Event is one word of progress.
type Event struct {
	Kind          EventKind
	Text          string
	BitsPerSecond float64
	Document      json.RawMessage // of the command that said it: linerate.diagnose/1
}

// Options of Run. The zero value will do.
type Options struct {
	Progress func(Event) // called one at a time; nil: nobody listens
	StateDir string      // where the hosts keep their journals, in near and far; empty: a temporary directory, removed at the end

	// Measured part of healthy, before and after, and how often each is measured; the median counts, so that one moment in which the
	// machine was busy elsewhere decides nothing. Zero: 2 s, three times.
	Measure time.Duration
	Repeats int

	Budget time.Duration // of tune; 0: its own default
	HTML   string        // file for tune's page; empty: none
	Tune   []string      // further flags of tune
}

// Run plays a scenario with the ordinary commands inside its world: measure healthy, apply the faults, measure, diagnose, tune,
// measure, undo at both hosts, compare all settings. A scenario that does not pass is a Result with a reason; an error means that
// the world could not be made (ErrNoNamespaces, ErrNotSupported) or ctx has ended.
func Run(ctx context.Context, s Scenario, o Options) (*Result, error) {
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
		res.Reason = fmt.Sprintf("skipped: this machine does not offer %s to namespaces; as root: modprobe tcp_%[1]s, then add it to sysctl net.ipv4.tcp_allowed_congestion_control", s.Needs.CongestionControl)
		return res, nil
	}
	if o.StateDir == "" {
		dir, err := os.MkdirTemp("", "linerate-lab-*")
		if err != nil {
			return nil, fmt.Errorf("run scenario %s: %w", s.Name, err)
		}
		defer os.RemoveAll(dir)
		o.StateDir = dir
	}
	world, err := Up(ctx, s.World.pinned())
	if err != nil {
		return nil, err
	}
	defer world.Close()
	res.Warnings = world.Warnings
	o.Progress(Event{Kind: EventWorld, Text: string(s.World.Topology)})

	// A key of its own for each play, handed over in the environment: arguments can be read by everyone on the machine (proc_pid_cmdline(5)).
	p := &play{Running: world, o: o, res: res, key: wire.NewKey().String()}
	err = p.all(ctx)
	p.bench(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		res.Pass, res.Reason = false, err.Error()
		return res, nil
	}
	res.judge()
	return res, nil
}

// allowed tells whether the machine lets namespaces use a congestion control. A file that cannot be read says no.
func allowed(name string) bool {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	return err == nil && slices.Contains(strings.Fields(string(b)), name)
}

// play is one run of a scenario under way.
type play struct {
	*Running
	o   Options
	res *Result
	key string
}

func (p *play) all(ctx context.Context) error {
	s := p.res.Scenario
	stop, err := p.Serve(ctx, p.key, filepath.Join(p.o.StateDir, "far"), nil)
	if err != nil {
		return err
	}
	defer func() { stop() }() // whichever is the present one
	if p.res.Healthy, err = p.measure(ctx); err != nil {
		return err
	}
	p.o.Progress(Event{Kind: EventHealthy, BitsPerSecond: p.res.Healthy})

	p.res.Before = p.res.Healthy
	if len(s.Faults) > 0 {
		// The far end is started again, as after a boot with such settings: a listening socket keeps what held when it was made.
		stop()
		for name, settings := range s.Faults {
			for _, h := range p.Hosts {
				if name == h.Name || name == "all" {
					if err := h.Set(ctx, settings...); err != nil {
						return err
					}
				}
			}
		}
		if stop, err = p.Serve(ctx, p.key, filepath.Join(p.o.StateDir, "far"), nil); err != nil {
			return err
		}
		p.o.Progress(Event{Kind: EventFaults})
		if p.res.Before, err = p.measure(ctx); err != nil {
			return err
		}
	}
	p.o.Progress(Event{Kind: EventBefore, BitsPerSecond: p.res.Before})

	// With the faults in place: undo has to bring back what was there when tuning began, not what is healthy.
	before, err := p.settings(ctx)
	if err != nil {
		return err
	}
	if err := p.diagnose(ctx); err != nil {
		return err
	}
	p.o.Progress(Event{Kind: EventDiagnose, Text: p.res.Found, Document: p.res.Diagnose})
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

	// The far serve ends first: it holds that host's journal, which undo needs. What is left to undo is what tuning committed.
	stop()
	stop = func() {}
	for _, h := range []*Host{p.Near(), p.Far()} {
		if _, err := p.linerate(ctx, h, "undo", "--all"); err != nil {
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

// bench warns when the emulated link itself dropped frames: then the machine was too busy and the figures are not the world's.
func (p *play) bench(ctx context.Context) {
	if p.World.Link == nil {
		return
	}
	c, err := p.LinkCounts(ctx)
	if err != nil {
		return // the world is gone, which the run itself has told
	}
	if n := c.Out.Overruns + c.Out.Refused + c.Back.Overruns + c.Back.Refused; n > 0 {
		p.res.Warnings = append(p.res.Warnings, fmt.Sprintf("the emulated link could not keep up and dropped %d frames: the machine was too busy", n))
	}
}

// settings reads all hosts, in their order.
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

// linerate runs one command in a host and gives its document.
func (p *play) linerate(ctx context.Context, h *Host, args ...string) ([]byte, error) {
	return p.command(ctx, h, nil, args...)
}

// command is linerate with the exit statuses that count as success besides 0.
func (p *play) command(ctx context.Context, h *Host, fine []int, args ...string) ([]byte, error) {
	args = append(args, "--json", "--progress", "all", "--state", filepath.Join(p.o.StateDir, h.Name))
	c := h.Command(ctx, args...)
	c.Env = []string{"LINERATE_KEY=" + p.key}
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

// measure gives the payload rate from near to far: the median of the repeats.
func (p *play) measure(ctx context.Context) (float64, error) {
	var rates []float64
	for range p.o.Repeats {
		out, err := p.linerate(ctx, p.Near(), "measure", p.Far().Address+":"+port, "--test", "stream", "--duration", p.o.Measure.String())
		if err != nil {
			return 0, err
		}
		var d struct {
			Tests []struct {
				Rate float64 `json:"throughput_bits_per_second"`
			} `json:"tests"`
		}
		if err := json.Unmarshal(out, &d); err != nil {
			return 0, fmt.Errorf("near: linerate measure: its document: %w", err)
		}
		if len(d.Tests) == 0 {
			return 0, errors.New("near: linerate measure: its document has no test")
		}
		rates = append(rates, d.Tests[0].Rate)
	}
	// The upper middle one of an even number: the machine only ever takes away.
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

func (p *play) diagnose(ctx context.Context) error {
	out, err := p.linerate(ctx, p.Near(), "diagnose", p.Far().Address+":"+port)
	if err != nil {
		return err
	}
	var d struct {
		Limit string `json:"limit"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return fmt.Errorf("near: linerate diagnose: its document: %w", err)
	}
	p.res.Found, p.res.Diagnose = d.Limit, out
	return nil
}

func (p *play) tune(ctx context.Context) error {
	args := []string{"tune", p.Far().Address + ":" + port, "--goal", "throughput"}
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
	// 3: the budget ended first; 5: what seemed to help did not stand confirmation and was rolled back. Both are answers.
	out, err := p.command(ctx, p.Near(), []int{3, 5}, append(args, p.o.Tune...)...)
	if err != nil {
		return err
	}
	var d struct {
		State   string `json:"state"`
		Changes []Kept `json:"changes"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return fmt.Errorf("near: linerate tune: its document: %w", err)
	}
	p.res.Tune = out
	if d.State == "committed" {
		p.res.Kept = d.Changes
	}
	return nil
}

// tail keeps the last line of what a command says and hands each on.
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

// sentence gives the words of a line; an error document (the command was asked for JSON) is its error's words.
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

// last is the last line, to follow an error; nothing if there was none.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == "" {
		return ""
	}
	return ": " + t.line
}
