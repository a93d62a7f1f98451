package journal

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
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
	var group string
	if config.Life == nil {
		var err error
		if config.Life, config.Ready, err = inheritedPipes(); err != nil {
			return fmt.Errorf("guard: %w", err)
		}
		ctx = cutLoose(ctx) // Before the answer: from then on no terminal can end this process.
		var leave func()
		leave, group = ownGroup(config.Session)
		defer leave()
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
		if group != "" {
			g.say("%s", group)
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

	seen  fs.FileInfo // the log when it was last read
	cared []*entry    // what was found then
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
	if config.Log == nil {
		config.Log = os.Stderr
	}
	g := &watch{config: config, options: options, messages: make(chan string)}
	if g.config.EndWriter == nil {
		g.config.EndWriter = func(force bool) { endParent(g.writer, force) }
	}
	// Better to find an unreadable journal now than when it is needed.
	if _, err := g.left(); err != nil {
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
	go g.listen()
	return g, nil
}

// listen passes on the messages of the writer until the pipe ends.
func (g *watch) listen() {
	defer close(g.messages)
	scanner := bufio.NewScanner(g.config.Life)
	for scanner.Scan() {
		// Unbuffered, so that a message stays in the pipe until the loop can act on it; the pipe
		// itself holds 64 KiB (pipe(7)).
		g.messages <- scanner.Text()
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
				return g.takeBack("writer died")
			}
			return g.watchTrials(ctx)
		case <-wait:
			if g.mustEnd() {
				return g.endWriter()
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
	trials, err := g.left()
	if err != nil {
		return true // An unreadable journal may hold a trial; taking back one trial too many is the smaller harm.
	}
	now := g.options.Boottime()
	for _, e := range trials {
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

// endWriter ends a writer that lives but has passed its deadline: it hangs, is stopped, or slept
// with the host. It holds the lock of the journal, so nothing can be taken back before it ends.
func (g *watch) endWriter() error {
	g.say("deadline passed, and the writer lives: asking it to end")
	// After SIGTERM a writer takes its trials back itself and reports that to its user, which is
	// faster than waiting for its lock.
	g.config.EndWriter(false)
	timer := time.NewTimer(writerGrace)
	defer timer.Stop()
	for {
		select {
		case message, alive := <-g.messages:
			if !alive {
				return g.takeBack("deadline passed")
			}
			if g.hear(message); !g.overdue() {
				g.say("too late: the deadline had passed")
			}
		case <-timer.C:
			g.say("the writer does not end: killing it")
			g.config.EndWriter(true)
			// A process that sleeps uninterruptibly in a driver (state D) survives even SIGKILL
			// until the driver returns, and holds the lock until then.
			for range g.messages { // Until it is gone.
			}
			return g.takeBack("deadline passed")
		}
	}
}

// watchTrials stays with Deadline trials whose writer ended normally.
func (g *watch) watchTrials(ctx context.Context) error {
	failures, overdue := 0, false
	for {
		trials, err := g.left()
		if err != nil {
			if failures++; failures == attempts || errors.Is(err, ErrCorrupt) {
				return err
			}
			g.say("%v", err)
		} else if failures = 0; len(trials) == 0 {
			return nil
		}
		wait := watchStep
		for _, e := range trials {
			// Expires is 0 for a committed change that is half undone: it is overdue at once, as it
			// should be, because it must be finished.
			wait = min(wait, e.Expires-g.options.Boottime())
		}
		if wait <= 0 {
			// Only trials past their deadline; the guard keeps watching the rest. act has tried
			// five times by now, so another attempt would not help.
			if err := g.act(""); err != nil {
				return err
			}
			// act succeeded and yet a trial is overdue: it belongs to another network namespace,
			// and recover leaves it. Acting again at once would spin.
			if overdue {
				return errors.New("a trial past its deadline is out of reach")
			}
			overdue = true
			continue
		}
		overdue = false
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return g.takeBack("the guard was asked to stop")
		}
	}
}

// left returns the changes of the session that still need the guard. It takes no lock, and does not
// read again a log that has not grown since the last time.
func (g *watch) left() ([]*entry, error) {
	path := logPath(g.options.Dir)
	// Size and time show every change of the log: a record makes it longer, and compaction replaces
	// the file.
	info, err := g.options.FS.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if g.seen != nil && g.seen.Size() == info.Size() && g.seen.ModTime().Equal(info.ModTime()) {
		return g.cared, nil
	}
	h, err := load(g.options.FS, path)
	if err != nil {
		return nil, err
	}
	g.seen, g.cared = info, nil
	for _, e := range h.entries {
		if e.Session != g.config.Session || e.BootID != g.options.BootID || e.Phase == phaseDone {
			continue
		}
		if e.State == Trial || e.Phase != phaseApplied {
			g.cared = append(g.cared, e)
		}
	}
	return g.cared, nil
}

// takeBack takes back every change of the session that is in trial or half done.
func (g *watch) takeBack(cause string) error {
	left, err := g.left()
	if err == nil && len(left) == 0 {
		return nil // The usual end: the writer has taken its trials back.
	}
	g.say("%s: taking trials back", cause)
	return g.act(cause)
}

// attempts is how often a guard retries what the system refuses, at intervals of watchStep.
const attempts = 5

// act recovers the journal; with a cause also the trials of the session whose deadline has not
// passed. The end of the guard's context must not stop this, because it is the purpose of the
// guard.
func (g *watch) act(cause string) error {
	for attempt := 1; ; attempt++ {
		err := g.actOnce(cause)
		if err == nil || attempt == attempts || errors.Is(err, ErrCorrupt) {
			return err
		}
		// EBUSY of an interface that is being reset, ENETDOWN, a full disk: these pass within
		// seconds or not at all.
		time.Sleep(watchStep)
	}
}

func (g *watch) actOnce(cause string) error {
	j, err := g.open()
	if err != nil {
		return err
	}
	session := ""
	if cause != "" {
		session = g.config.Session
	}
	outcomes, err := j.recover(context.Background(), "guard", session, cause)
	for _, o := range outcomes {
		g.say("change %s of %s, %q to %q: %s", o.Change.ID, o.Change.Knob, o.Change.From, o.Change.To,
			cmp.Or(o.Error, o.Change.Note))
	}
	g.announce(outcomes)
	return errors.Join(err, j.Close())
}

// announce reports to the user that settings went back without a command: at the terminal where
// they were made, and through the next command. Otherwise the user would believe for hours in a
// change that no longer exists.
func (g *watch) announce(outcomes []Outcome) {
	if len(outcomes) == 0 {
		return
	}
	var lines []string
	for _, o := range outcomes {
		lines = append(lines, notice(o))
	}
	leaveNotices(g.options.FS, g.options.Dir, lines)
	if g.screen == nil {
		return
	}
	if err := g.screen.show(lines); err != nil {
		g.say("no terminal to notify: %v", err)
	}
}

// open takes the journal. It waits without limit while another process has it: the lock ends with
// its holder, and a guard that gives up is useless.
func (g *watch) open() (*Journal, error) {
	// The writer ended just now and the kernel is still closing its descriptors, so the first
	// attempts come quickly.
	pause := 5 * time.Millisecond
	for {
		j, err := Open(g.options)
		var locked *LockedError
		if !errors.As(err, &locked) {
			return j, err
		}
		if pause < watchStep {
			if pause *= 2; pause >= watchStep {
				g.say("waiting for the journal, which process %d has open", locked.PID)
			}
		}
		time.Sleep(pause)
	}
}

// say writes a line to the log.
func (g *watch) say(format string, args ...any) {
	// Best effort: a guard whose disk is full must still do its work.
	_, _ = fmt.Fprintf(g.config.Log, "%s guard %d: %s\n", g.options.Now().UTC().Format(time.RFC3339), os.Getpid(),
		fmt.Sprintf(format, args...))
}
