package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/lab/work"
	"github.com/linerate/linerate/internal/wire"
)

// ErrLacks reports that the machine lacks what a scenario needs; the error that wraps it names it.
var ErrLacks = errors.New("this machine cannot play the scenario")

// Staged is a world with its fault planted and its background work under way, ready for a verdict.
type Staged struct {
	*Running
	Scenario scenario.Scenario
	Level    scenario.Level

	key   string
	state string
	serve func()   // ends the far end; nil: the world has none
	stop  []func() // in the order in which they began
}

// Verdict is what `linerate diagnose` made of a staged world.
type Verdict struct {
	Document json.RawMessage // linerate.diagnose/1
	Elapsed  time.Duration   // of the command, from its start to its end
	CPU      time.Duration   // of the command and its children; with a target it includes the load
}

// Stage makes a scenario's world, plants the fault of a level (none for a sound world) and starts
// the background work. state is a directory for the hosts' journals. The caller closes the result.
// The error is ErrLacks if the machine cannot hold the fault.
func Stage(ctx context.Context, s scenario.Scenario, l scenario.Level, state string) (*Staged, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	f, ok := s.Fault(l)
	if !ok && !s.Sound() {
		return nil, fmt.Errorf("scenario %q has no level %q", s.Name, l)
	}
	if c := s.Needs.CongestionControl; c != "" && !allowed(c) {
		return nil, fmt.Errorf("%w: it does not offer %s to namespaces", ErrLacks, c)
	}
	return raise(ctx, s, l, f, "", state)
}

// raise makes a scenario's world with a fault in it. inMachine names the host that keeps the
// machine's own network namespace; empty: none.
func raise(ctx context.Context, s scenario.Scenario, l scenario.Level, f scenario.Fault, inMachine,
	state string) (*Staged, error) {
	w := s.World.Pinned()
	if f.Link != nil {
		w.Link = f.Link
	}
	running, err := upIn(ctx, w, inMachine)
	if err != nil {
		return nil, err
	}
	staged := &Staged{Running: running, Scenario: s, Level: l, key: wire.NewKey().String(), state: state}
	if err := staged.plant(ctx, f); err != nil {
		return nil, errors.Join(fmt.Errorf("scenario %s: %w", s.Name, err), staged.Close())
	}
	return staged, nil
}

// plant makes the fault: first the settings that hold for sockets yet to be made, then the far end,
// then the work of other programs.
func (s *Staged) plant(ctx context.Context, f scenario.Fault) error {
	// Some settings of a NIC are refused while its link is down, and some take the link down.
	if err := s.carriers(ctx); err != nil {
		return err
	}
	// Undone at the end: the next case may use the same guest.
	for _, m := range f.Settings[scenario.AllOfMachine] {
		undo, err := applyToMachine(m.Knob, m.Value)
		if err != nil {
			return fmt.Errorf("the machine: %w", err)
		}
		s.stop = append(s.stop, undo)
	}
	for _, h := range s.Hosts {
		if lines := slices.Concat(s.World.TC[h.Name], f.TC[h.Name]); len(lines) > 0 {
			if err := h.feed(ctx, "iproute2", strings.Join(lines, "\n")+"\n", "tc", "-batch", "-"); err != nil {
				return err
			}
		}
		settings := append([]scenario.Setting{}, f.Settings["all"]...)
		settings = append(settings, f.Settings[h.Name]...)
		if err := h.Set(ctx, settings...); err != nil {
			return err
		}
		if rules, ok := f.Firewall[h.Name]; ok {
			if err := h.load(ctx, rules); err != nil {
				return err
			}
		}
	}
	if err := s.carriers(ctx); err != nil {
		return err
	}
	var err error
	if s.serve, err = s.Serve(ctx, s.key, filepath.Join(s.state, "far"), nil); err != nil {
		return err
	}
	s.stop = append(s.stop, s.serve)
	for _, w := range f.Work {
		stop, err := s.work(ctx, w)
		if err != nil {
			return err
		}
		s.stop = append(s.stop, stop)
	}
	return nil
}

// load loads a host's firewall rules.
func (h *Host) load(ctx context.Context, f scenario.Firewall) error {
	return h.feed(ctx, "nftables", ruleset(f), "nft", "-f", "-")
}

// feed runs a program of a Debian package in a host, with the given input.
func (h *Host) feed(ctx context.Context, debian, input string, args ...string) error {
	c := h.Exec(ctx, args...)
	said := &tail{}
	c.Stdin, c.Stderr = strings.NewReader(input), said
	err := c.Run()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the program %s is missing: install %s", ErrLacks, args[0], debian)
	}
	if err != nil {
		return fmt.Errorf("host %s: %w%s", h.Name, err, said.last())
	}
	return nil
}

// ruleset returns input for nft(8). Its addresses are of the benchmark network (RFC 2544), which no
// host here uses: the kernel evaluates each rule for each packet and none matches.
func ruleset(f scenario.Firewall) string {
	var b strings.Builder
	b.WriteString("table inet linerate_lab {\n\tchain input {\n" +
		"\t\ttype filter hook input priority filter; policy accept;\n")
	if f.Conntrack {
		b.WriteString("\t\tct state invalid counter\n")
	}
	for i := range f.Rules {
		fmt.Fprintf(&b, "\t\tip saddr 198.%d.%d.%d drop\n", 18+i>>16&1, i>>8&255, i&255)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// work starts one background program and returns when the program reports that it is ready.
func (s *Staged) work(ctx context.Context, w work.Work) (stop func(), err error) {
	// By address: a world that could not mount its /etc/hosts has no names.
	if h := s.Host(w.To); h != nil {
		w.To = h.Address
	}
	q, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	c := s.Host(w.Host).Command(inner, workCommand, string(q))
	first, said := &firstLine{seen: make(chan struct{})}, &tail{}
	c.Stdout, c.Stderr = first, said
	if err := c.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("work %s: %w", w.Kind, err)
	}
	ended := make(chan error, 1) // room for the result, so that the goroutine always ends
	go func() { ended <- c.Wait() }()
	select {
	case <-first.seen:
		return func() { cancel(); <-ended }, nil
	case err := <-ended:
		cancel()
		if err == nil {
			err = errors.New("ended at once")
		}
		return nil, fmt.Errorf("work %s on %s did not start: %w%s", w.Kind, w.Host, err, said.last())
	case <-ctx.Done():
		cancel()
		<-ended
		return nil, ctx.Err()
	}
}

// Diagnose returns the verdict in the scenario's mode. The command's stderr goes to log, which may
// be nil.
func (s *Staged) Diagnose(ctx context.Context, log io.Writer) (Verdict, error) {
	h, args := s.Near(), []string{"diagnose"}
	switch s.Scenario.Mode {
	case scenario.PassiveNear, scenario.PassiveMachine:
	case scenario.PassiveFar:
		h = s.Far()
	default:
		args = append(args, s.Far().Address+":"+port)
	}
	args = append(args, s.Scenario.Flags...)
	args = append(args, "--json", "--progress", "off", "--state", filepath.Join(s.state, h.Name))
	said := &tail{}
	complaints := io.Writer(said)
	if log != nil {
		complaints = io.MultiWriter(said, log)
	}
	var (
		v     Verdict
		start = time.Now()
		err   error
	)
	if s.Scenario.Mode == scenario.PassiveMachine {
		h = &Host{Name: scenario.AllOfMachine}
		v.Document, v.CPU, err = runHere(ctx, complaints, args)
	} else {
		c := h.Command(ctx, args...)
		c.Env, c.Stderr = []string{"LINERATE_KEY=" + s.key}, complaints
		v.Document, err = c.Output()
		v.CPU = c.CPU()
	}
	v.Document, v.Elapsed = bytes.TrimSpace(v.Document), time.Since(start)
	if err != nil {
		return v, fmt.Errorf("%s: %w%s", h.Name, err, said.last())
	}
	if !json.Valid(v.Document) {
		return v, fmt.Errorf("%s: the document of linerate diagnose is not JSON", h.Name)
	}
	return v, nil
}

// runHere runs linerate outside of the world, in the maker's namespaces.
func runHere(ctx context.Context, complaints io.Writer, args []string) (out []byte, cpu time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	c := exec.CommandContext(ctx, self, args...)
	c.Args[0], c.Stderr = ourName, complaints
	out, err = c.Output()
	if c.ProcessState != nil {
		cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	return out, cpu, err
}

// Busy reports how many frames the emulated link dropped because it could not keep up, which makes
// the world differ from the scenario's; empty: none.
func (s *Staged) Busy(ctx context.Context) string {
	c, err := s.LinkCounts(ctx)
	if err != nil {
		return "" // the world is gone, which the caller's other calls report
	}
	n := c.Out.Overruns + c.Out.Refused + c.Back.Overruns + c.Back.Refused
	if s.World.Link == nil || n == 0 {
		return ""
	}
	return fmt.Sprintf("the emulated link could not keep up and dropped %d frames: the machine was too busy", n)
}

// Close ends the work, the far end and the world.
func (s *Staged) Close() error {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
	return s.Running.Close()
}

// workCommand is the hidden command by which the binary does background work.
const workCommand = "lab-work"

// firstLine closes seen at the end of the first line that is written. It keeps nothing.
type firstLine struct {
	once sync.Once
	seen chan struct{}
}

func (f *firstLine) Write(b []byte) (int, error) {
	if bytes.IndexByte(b, '\n') >= 0 {
		f.once.Do(func() { close(f.seen) })
	}
	return len(b), nil
}
