package journal

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// GuardConfig is how the guard command was started. Journal, Mode, Session and For are required.
type GuardConfig struct {
	Journal Options       // of the state directory; its Mode, Guard and Unguarded are ignored
	Mode    Mode          // --mode
	Session string        // --session
	For     time.Duration // --deadline

	// Life, Ready and Log are for tests. Life ends when the writer is gone; nil means descriptor 3.
	// Ready takes the answer; nil means descriptor 4. Log takes one line per event; nil means
	// standard error. Without Life the process also detaches from its terminal.
	Life  io.Reader
	Ready io.WriteCloser
	Log   io.Writer
	// Alarm takes a line that must reach a person; nil means the log of the system, and nothing with
	// Life.
	Alarm func(string)
	// EndWriter ends a writer that outlives its deadline: first politely, then by force. nil sends
	// signals to the parent process.
	EndWriter func(force bool)
}

// watchStep is how often a guard with a deadline checks the clock and the journal. Go's timers stop
// while the host is suspended, CLOCK_BOOTTIME does not: after a resume the guard is late by at most
// this time.
const watchStep = time.Second

// writerGrace is how long a writer past its deadline may take to exit after SIGTERM.
const writerGrace = 5 * time.Second

// systemdPatience is how long systemd may take to move the guard to a control group of its own,
// while the writer waits. It usually takes some 20 ms; an emulated host that gets a tenth of a CPU
// needs more than 2 s. It is less than the guard handshake takes at most. Only Linux uses it, and
// tests change it.
var systemdPatience = 8 * time.Second

// RunGuard is the guard process. It waits until the writer is gone or its deadline passes. In
// Deadline mode, after a normal end of the writer, it waits until the trials of its session end: at
// their deadline, or because a command committed them or took them back. Then it takes back what is
// left and returns.
//
// The end of the context asks the guard to stop. A guard that watches trials without a writer takes
// them back first; one whose writer lives continues, because only the end of that writer is safe.
// An error means that something could not be taken back; the next Recover tries again.
func RunGuard(ctx context.Context, config GuardConfig) error {
	var group, resident string
	process := config.Life == nil
	if process {
		var err error
		if config.Life, config.Ready, err = inheritedPipes(); err != nil {
			return fmt.Errorf("guard: %w", err)
		}
		if config.Alarm == nil {
			config.Alarm = systemLog
		}
		ctx = cutLoose(ctx) // Before the answer: from then on no terminal can end this process.
		var leave func()
		leave, group = ownGroup(config.Session)
		defer leave()
		resident = stayResident()
	}
	// The answer goes out only after the journal was read and the watch is set up: the writer
	// writes no knob before it has the answer.
	g, err := newWatch(config)
	answer := messageReady
	if err != nil {
		answer = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	// It does not matter whether the writer reads this: the other pipe shows a writer that is gone.
	_, _ = fmt.Fprintln(config.Ready, answer)
	_ = config.Ready.Close()
	if err == nil {
		defer g.lines.close()
		if process {
			for _, line := range []string{group, resident} {
				if line != "" {
					g.say("%s", line)
				}
			}
			defer startSecondLine(config, g.options.Dir)()
		}
		if err = g.run(ctx); err != nil {
			g.say("%v", err)
		}
	}
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// watch is a guard at work.
type watch struct {
	config   GuardConfig
	options  Options
	messages chan string   // closed when the writer is gone
	deadline time.Duration // of the lease, CLOCK_BOOTTIME; 0: none
	detached bool          // the writer ended normally
	writer   int           // its process id; 0: not received yet
	screen   *terminal     // where it was started; nil: without a terminal

	lines   *guardLog
	memory  *memory
	seen    fs.FileInfo  // the log when it was last read
	pending chan reading // a look at the log that has not returned yet; nil: none
	trouble error        // why the log cannot be trusted now; nil: it can

	unrecorded []Outcome       // taken back, and the journal does not know it yet
	givenUp    map[string]bool // changes that this guard cannot take back
}

func newWatch(config GuardConfig) (*watch, error) {
	options, err := config.Journal.defaults()
	switch {
	case err != nil:
		return nil, err
	case config.Mode != Lease && config.Mode != Deadline:
		return nil, fmt.Errorf("mode %q is neither %s nor %s", config.Mode, Lease, Deadline)
	case config.Session == "":
		return nil, errors.New("a session is needed")
	}
	options.Elsewhere = remembered(options.Elsewhere)
	if config.Log == nil {
		config.Log = os.Stderr
	}
	g := &watch{config: config, options: options, messages: make(chan string), memory: newMemory(config.Session),
		givenUp: map[string]bool{}}
	if g.config.EndWriter == nil {
		g.config.EndWriter = func(force bool) { endParent(g.writer, force) }
	}
	// Better to find an unreadable journal now than when it is needed: the writer then changes
	// nothing.
	if err := g.read(); err != nil {
		return nil, err
	}
	switch {
	case config.Mode == Deadline:
		// Trials carry their own deadlines, so the guard reads the journal at every step: a `set`
		// that hangs before it releases the journal (stopped by Ctrl-Z, blocked at a terminal that
		// accepts no more output) must not keep its trial in force.
		g.deadline = options.Boottime() + watchStep
	case config.For > 0:
		g.deadline = options.Boottime() + config.For
	}
	g.lines = newGuardLog(config.Log)
	go g.listen()
	return g, nil
}

// remembered makes a guard look for an interface once: a look takes as long as the host has
// processes, and the journal, whose storage has a bound, must not wait for a second one.
func remembered(look func(Identity, string) (Identity, bool)) func(Identity, string) (Identity, bool) {
	type question struct {
		Identity
		name string
	}
	type answer struct {
		there Identity
		known bool
	}
	var mu sync.Mutex
	answers := map[question]answer{}
	return func(i Identity, name string) (Identity, bool) {
		mu.Lock()
		defer mu.Unlock()
		a, ok := answers[question{i, name}]
		if !ok {
			a.there, a.known = look(i, name)
			answers[question{i, name}] = a
		}
		return a.there, a.known
	}
}

// listen passes on the messages of the writer until the pipe ends.
func (g *watch) listen() {
	defer close(g.messages)
	// A record has no bound, so this is no Scanner.
	for in := bufio.NewReader(g.config.Life); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return // half a line is a message that the writer did not finish
		}
		// Unbuffered, so that a message stays in the pipe until the loop can act on it; the pipe
		// itself holds 64 KiB (pipe(7)).
		g.messages <- strings.TrimSuffix(line, "\n")
	}
}

// run waits for the first of the events that end the guard.
func (g *watch) run(ctx context.Context) error {
	cancelled := ctx.Done()
	for {
		wait, stop := g.timer()
		select {
		case message, alive := <-g.messages:
			stop()
			if alive {
				g.hear(message)
				continue
			}
			// The kernel closes the pipe, after SIGKILL, an OOM kill or a panic, and only when no
			// process holds the write end any longer. The write end is close-on-exec, so no child
			// inherits it.
			if !g.detached {
				return g.takeBack(ctx, causeDied)
			}
			return g.finish(ctx, "")
		case <-wait:
			if g.mustEnd() {
				return g.endWriter(ctx)
			}
		case <-cancelled:
			stop()
			g.say("asked to stop, but the writer still runs: staying")
			// A closed channel would be ready in every round; nil never is.
			cancelled = nil
		}
	}
}

// timer returns a channel that is ready when the clock must be checked, nil without a deadline.
func (g *watch) timer() (<-chan time.Time, func() bool) {
	if g.deadline == 0 {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(min(max(g.deadline-g.options.Boottime(), 0), watchStep))
	return timer.C, timer.Stop
}

func (g *watch) overdue() bool { return g.deadline != 0 && g.options.Boottime() >= g.deadline }

// mustEnd reports whether a living writer must be ended to end a trial: its deadline has passed and
// a change of its session is still in trial or half done. A writer with nothing in trial may idle
// past its deadline; for `serve`, whose client measures for an hour after its last trial, that is
// the normal case. The deadline stays, and the guard checks it again after a step: a writer that
// was stopped between sending a new deadline and writing its intent shows its trial when it
// continues.
func (g *watch) mustEnd() bool {
	if !g.overdue() {
		return false
	}
	g.look()
	now := g.options.Boottime()
	for _, e := range g.left() {
		// In Deadline mode each trial has its own deadline. In Lease mode the one deadline applies
		// to all.
		if g.config.Mode == Lease || e.Expires != 0 && now >= e.Expires {
			return true
		}
	}
	g.deadline = now + watchStep
	return false
}

func (g *watch) hear(message string) {
	word, rest, _ := strings.Cut(message, " ")
	switch word {
	case messageDetach:
		g.detached = true
	case messageWriter:
		g.writer, _ = strconv.Atoi(rest) // 0 when it is not a number: then no process is killed.
	case messageScreen:
		g.screen = atTerminal(rest)
	case messageRecord:
		if err := g.memory.hear(rest); err != nil {
			g.say("%v", err)
		}
	case messageCarry:
		if err := g.accept(rest); err != nil {
			g.say("%v", err)
		}
	case messageExtend:
		nanoseconds, err := strconv.ParseInt(rest, 10, 64)
		if err != nil || nanoseconds < 0 {
			g.say("message not understood: %q", message)
			return
		}
		g.deadline = time.Duration(nanoseconds)
	default:
		g.say("message not understood: %q", message)
	}
}

// accept takes what the backend needs to write a knob.
func (g *watch) accept(message string) error {
	id, encoded, _ := strings.Cut(message, " ")
	carrier, ok := g.options.Backend.(knob.Carrier)
	if !ok {
		return fmt.Errorf("nothing takes what belongs to %s", id)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		err = carrier.Accept(knob.ID(id), data)
	}
	if err != nil {
		return fmt.Errorf("what belongs to %s: %w", id, err)
	}
	return nil
}
