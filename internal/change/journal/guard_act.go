package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/base/visible"
)

// endWriter ends a writer that lives but has passed its deadline: it hangs, is stopped, or slept
// with the host.
func (g *watch) endWriter(ctx context.Context) error {
	g.say("deadline passed, and the writer lives: asking it to end")
	// After SIGTERM a writer takes its trials back itself and reports that to its user.
	g.config.EndWriter(false)
	// In steps: the writer can have stood still as long as this process did.
	step := time.NewTicker(writerGrace / patienceSteps)
	defer step.Stop()
	for killed, steps := false, 0; ; {
		select {
		case message, alive := <-g.messages:
			if !alive {
				return g.takeBack(ctx, causeDeadline)
			}
			if g.hear(message); !g.overdue() {
				g.say("too late: the deadline had passed")
			}
		case <-step.C:
			if steps++; steps < patienceSteps {
				continue
			}
			if killed {
				// A process that sleeps uninterruptibly in a driver or on its storage (state D)
				// survives even SIGKILL until the call returns. The knobs do not wait for it.
				g.alarm("the writer sleeps in the kernel and cannot be killed: going on without it")
				return g.takeBack(ctx, causeDeadline)
			}
			g.say("the writer does not end: killing it")
			g.config.EndWriter(true)
			killed, steps = true, 0
			step.Reset(killGrace / patienceSteps)
		}
	}
}

// killGrace is how long the end of a killed writer may take before the guard goes on without it.
const killGrace = 2 * time.Second

// The causes of a guard's acts.
const (
	causeDied     = "writer died"
	causeDeadline = "deadline passed"
	causeAsked    = "the guard was asked to stop"
)

// takeBack takes back every change of the session that is in trial or half done.
func (g *watch) takeBack(ctx context.Context, cause string) error {
	g.look()
	if len(g.left()) == 0 {
		return nil // The usual end: the writer has taken its trials back.
	}
	g.say("%s: taking trials back", cause)
	return g.finish(ctx, cause)
}

// attempts is how often a guard tries what the system refuses, at intervals of watchStep: EBUSY of
// an interface that is being reset, ENETDOWN, a full disk. These pass within seconds. What lasts
// longer, such as a read-only /proc/sys, raises the alarm, and the guard tries again lateAttempts
// times, at intervals of lateStep: on a host that stays alone no other process takes it back.
const (
	attempts     = 5
	lateAttempts = 60
	lateStep     = time.Minute
)

// finish stays with trials that have no writer any more, until none is left and the journal knows
// the end of all. It takes a trial back at its deadline, with a cause at once. A context that ends
// is a cause.
func (g *watch) finish(ctx context.Context, cause string) error {
	w := work{cause: cause, pause: firstPause}
	for {
		g.look()
		trials := g.watched()
		if len(trials) == 0 && len(g.unrecorded) == 0 {
			return errors.Join(w.failed...)
		}
		wait := watchStep
		for _, e := range trials {
			// Expires is 0 for a committed change that is half undone: it is overdue at once, as it
			// should be, because it must be finished.
			wait = min(wait, e.Expires-g.options.Boottime())
		}
		if wait <= 0 || w.cause != "" || len(g.unrecorded) > 0 {
			wait = min(g.step(&w), g.untilNext())
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if w.asked = true; w.cause == "" {
				g.say("%s: taking trials back", causeAsked)
				w.cause = causeAsked
			}
			ctx = context.Background()
		}
	}
}

// untilNext returns the time until a trial that is not due yet is due, at most lateStep.
func (g *watch) untilNext() time.Duration {
	next, now := lateStep, g.options.Boottime()
	for _, e := range g.watched() {
		if e.Expires > now {
			next = min(next, e.Expires-now)
		}
	}
	return next
}

// work is how far a guard has come with trials that are due.
type work struct {
	cause    string
	pause    time.Duration // after the journal was found locked
	failures int           // in a row
	late     int           // attempts after the alarm
	asked    bool          // to stop: no attempt comes after the alarm
	failed   []error       // of what was given up
}

// firstPause is how soon a guard looks again for a journal that another process has open. The
// writer ended just now, and the kernel needs some milliseconds to close its descriptors.
const firstPause = 5 * time.Millisecond

// step does what is due, and returns how long to wait before the next step.
func (g *watch) step(w *work) time.Duration {
	began := g.options.Boottime()
	err := g.act(w.cause)
	var locked *LockedError
	switch {
	case err == nil:
		w.failures, w.late, w.pause = 0, 0, firstPause
		if n := g.giveUp(w.cause, began); n > 0 {
			// Recovery leaves it to processes of its network namespace.
			w.failed = append(w.failed, fmt.Errorf("%s past the deadline cannot be reached", unit.Counted(n, "trial")))
		}
		return 0
	case errors.As(err, &locked):
		// A holder that lives long takes back what has expired, and the log then shows it.
		if w.pause < watchStep {
			if w.pause *= 2; w.pause >= watchStep {
				g.say("waiting for the journal, which process %d has open", locked.PID)
			}
		}
		return min(w.pause, watchStep)
	}
	w.failures++
	if w.failures < attempts && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrSilent) {
		return watchStep
	}
	return g.withoutJournal(w, err)
}

// withoutJournal does what was left to the journal: a value that may be a driver's rounding, and
// what the system refused until now. It returns how long to wait before the next step.
func (g *watch) withoutJournal(w *work, why error) time.Duration {
	began := g.options.Boottime()
	last, err := g.putBack(w.cause, true)
	g.show(last)
	done := append(slices.Clone(g.unrecorded), last...)
	g.unrecorded = nil
	if err != nil && !w.asked && w.late < lateAttempts {
		if w.late++; w.late == 1 {
			text := fmt.Sprintf("not taken back yet, trying again for an hour: %v", err)
			g.alarm(text)
			g.note(append(notices(done), text))
		}
		return lateStep
	}
	w.failures = 0
	w.failed = append(w.failed, why)
	text := fmt.Sprintf("the journal does not know yet what went back: %v", why)
	if n := g.giveUp(w.cause, began); n > 0 {
		text = fmt.Sprintf("%s could not be taken back: %v", unit.Counted(n, "trial"), errors.Join(err, why))
	}
	g.alarm(text)
	g.note(append(notices(done), text))
	return 0
}

// note leaves lines for the next command, without waiting for storage that does not answer.
func (g *watch) note(lines []string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		leaveNotices(g.options.FS, g.options.Dir, lines)
	}()
	awaitFor(written, storagePatience)
}

// watched returns the changes that still need the guard and that it has not given up.
func (g *watch) watched() []*entry {
	return slices.DeleteFunc(g.left(), func(e *entry) bool { return g.givenUp[e.ID] })
}

// giveUp stops watching what was due when an attempt began, and returns how many changes that are.
// The attempt did not try what became due meanwhile: the changes of one command expire some
// milliseconds apart, and storage takes longer.
func (g *watch) giveUp(cause string, began time.Duration) int {
	n := 0
	for _, e := range g.watched() {
		if cause != "" || began >= e.Expires {
			g.givenUp[e.ID] = true
			n++
		}
	}
	return n
}

// act takes back the trials of the session that are past their deadline, with a cause all of them.
// The knobs come first, by what the guard remembers: neither a lock that another process holds nor
// storage that is read-only, full, silent or gone keeps a trial in force. The journal comes second.
// The end of the guard's context does not stop this, because it is the purpose of the guard.
func (g *watch) act(cause string) error {
	done, err := g.putBack(cause, false)
	g.show(done)
	g.unrecorded = append(g.unrecorded, done...)
	if errors.Is(g.trouble, ErrCorrupt) {
		// Opening the journal would cut its tail or create a new one, and so hide the damage.
		return errors.Join(err, g.trouble)
	}
	if g.trouble == nil && g.recorded(cause) {
		g.unrecorded = nil
		return err
	}
	recordErr := g.recordOnce(cause, g.unrecorded)
	if recordErr == nil {
		g.unrecorded = nil
		g.look()
	}
	return errors.Join(err, recordErr)
}

// hold takes the lock of the journal for the writes to the knobs, so that no command writes the
// same knob meanwhile. Where another process keeps the lock, or storage hangs, it goes on without
// after lockPatience: values are compared before they are written, and no command holds a trial
// beyond its deadline.
func (g *watch) hold() (unlock func()) {
	type result struct {
		lock io.Closer
		err  error
	}
	got, given := make(chan result, 1), make(chan struct{})
	go func() {
		awaitWrites(g.options)
		for pause := 5 * time.Millisecond; ; pause = min(2*pause, lockPatience/4) {
			lock, err := g.options.FS.Lock(lockPath(g.options.Dir))
			if !errors.Is(err, ErrLocked) {
				got <- result{lock, err}
				return
			}
			select {
			case <-given:
				got <- result{nil, err}
				return
			case <-time.After(pause):
			}
		}
	}()
	r, came := awaitFor(got, lockPatience)
	if !came {
		close(given)
		go func() { // A lock that comes too late goes at once.
			if r := <-got; r.lock != nil {
				_ = r.lock.Close()
			}
		}()
		g.say("going on without the journal's lock, which did not come within %v", lockPatience)
		return func() {}
	}
	if r.err != nil {
		g.say("going on without the journal's lock: %v", r.err)
		return func() {}
	}
	return func() { _ = r.lock.Close() }
}

// awaitWrites returns when the storage of the state directory takes writes, or refuses them. The
// kernel asks for permission to write before it looks for the name to remove, so this hangs on a
// frozen file system, where the lock itself would be taken first: its holder hangs then, and keeps
// it from every command until the thaw.
func awaitWrites(o Options) { _ = o.FS.Remove(lockPath(o.Dir) + ".probe") } // No such file.

// lockPatience is how long a guard waits for the lock before it writes knobs without it. The writer
// ended just now, and the kernel needs some milliseconds to close its descriptors.
const lockPatience = time.Second

// putBack writes the old values by what the guard remembers, and returns what is settled by that.
// It leaves to the journal, unless alone: a value that may be a driver's rounding or another
// program's, a knob that is gone, a change with another process's change on top, and files.
func (g *watch) putBack(cause string, alone bool) (done []Outcome, err error) {
	j := &Journal{options: g.options, history: g.memory.history(), sure: !alone}
	if len(g.due(j, cause)) == 0 {
		return nil, nil
	}
	unlock := g.hold()
	defer unlock()
	// The trials of one command expire some time apart. What became due while the lock was awaited
	// does not wait for storage that hangs as well.
	due := g.due(j, cause)
	outcomes, err := j.takeAllBack(context.Background(), due, func(e *entry) string {
		if e.Phase == phaseUndoing && e.Why != "" {
			return e.Why + "; finished by guard"
		}
		return "undone by guard: " + cmp.Or(cause, causeDeadline)
	})
	for _, o := range outcomes {
		// What was not restored is judged and reported by the journal, with all that it knows.
		if o.Change.State == Undone && (o.Restored || alone) {
			g.settle(j, o.Change.ID)
			done = append(done, o)
		}
	}
	return done, worthRetrying(outcomes, err)
}

// settle remembers that a change is over.
func (g *watch) settle(j *Journal, id string) {
	own := g.memory.own
	if own.find(id) == nil {
		own.insert(j.history.find(id))
	}
	*own.find(id) = *j.history.find(id)
}

// worthRetrying returns the errors of outcomes that another attempt may mend.
func worthRetrying(outcomes []Outcome, err error) error {
	if err == nil {
		return nil
	}
	for _, o := range outcomes {
		if o.Error != "" && !o.later {
			return err
		}
	}
	return nil
}

// due returns the changes to take back from memory.
func (g *watch) due(j *Journal, cause string) []*entry {
	var list []*entry
	for _, e := range j.history.entries {
		if e.Session != g.config.Session || e.BootID != g.options.BootID || e.Phase == phaseDone || e.Saved != nil {
			continue
		}
		if e.State != Trial && e.Phase == phaseApplied || cause == "" && e.Phase != phaseUndoing && !j.expired(e) {
			continue
		}
		list = append(list, e)
	}
	// One with a foreign change on top does not hold the knob. The journal passes its old value on.
	return slices.DeleteFunc(list, func(e *entry) bool {
		top := j.history.above(e)
		return top != nil && !slices.Contains(list, top)
	})
}

// recorded reports whether the log has the end of every change that was taken back, and nothing
// else is due.
func (g *watch) recorded(cause string) bool {
	for _, o := range g.unrecorded {
		if g.memory.logged == nil {
			return false
		}
		if e := g.memory.logged.find(o.Change.ID); e != nil && e.Phase != phaseDone {
			return false
		}
	}
	now := g.options.Boottime()
	return !slices.ContainsFunc(g.watched(), func(e *entry) bool { return cause != "" || now >= e.Expires })
}

// recordOnce opens the journal, records what was done, and recovers the rest. It returns ErrSilent
// when the storage keeps it too long; the attempt then goes on in the background for as long as
// this process lives, which does no harm: it compares before it writes.
func (g *watch) recordOnce(cause string, done []Outcome) error {
	type result struct {
		outcomes []Outcome
		err      error
	}
	got := make(chan result, 1)
	go func() {
		awaitWrites(g.options)
		j, err := Open(g.options)
		if err != nil {
			got <- result{err: err}
			return
		}
		err = j.settle(done)
		session := ""
		if cause != "" {
			session = g.config.Session
		}
		outcomes, recoverErr := j.recover(context.Background(), "guard", session, cause)
		err = errors.Join(err, worthRetrying(outcomes, recoverErr), j.Close())
		lines := notices(outcomes)
		if err == nil {
			// Only once: after an error there is another attempt, or withoutJournal.
			lines = notices(append(slices.Clone(done), outcomes...))
		}
		leaveNotices(g.options.FS, g.options.Dir, lines)
		got <- result{outcomes, err}
	}()
	r, answered := awaitFor(got, storagePatience)
	if !answered {
		return ErrSilent
	}
	g.show(r.outcomes)
	return r.err
}

// settle records what a guard has done to knobs before it had the journal.
func (j *Journal) settle(done []Outcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, o := range done {
		e := j.history.find(o.Change.ID)
		if e == nil || e.Phase == phaseDone || !o.Restored || e.Knob != o.Change.Knob {
			continue
		}
		errs = append(errs, j.writeOrRemember(record{Kind: kindUndone, ID: e.ID, Note: o.Change.Note, Restored: true}))
	}
	return errors.Join(errs...)
}

func notices(outcomes []Outcome) []string {
	var lines []string
	for _, o := range outcomes {
		lines = append(lines, notice(o))
	}
	return lines
}

// show reports to the user that settings went back without a command: in the log, and at the
// terminal where they were made. Otherwise the user would believe for hours in a change that no
// longer exists.
func (g *watch) show(outcomes []Outcome) {
	if len(outcomes) == 0 {
		return
	}
	for _, o := range outcomes {
		g.say("change %s of %s, %q to %q: %s", o.Change.ID, o.Change.Knob, o.Change.From, o.Change.To,
			cmp.Or(o.Error, o.Change.Note))
	}
	g.notify(notices(outcomes))
}

// notify writes lines to the terminal of the writer, if it had one.
func (g *watch) notify(lines []string) {
	if g.screen == nil {
		return
	}
	if err := g.screen.show(lines); err != nil {
		g.say("no terminal to notify: %v", err)
	}
}

// alarm reports that the journal cannot be relied on, wherever a person may look: in the log, at
// the terminal of the writer, and in the log of the system.
func (g *watch) alarm(text string) {
	g.say("%s", text)
	g.notify([]string{text})
	if g.config.Alarm != nil {
		g.config.Alarm(visible.Line(fmt.Sprintf("guard of %s: %s", g.options.Dir, text)))
	}
}

// say writes a line to the log, without waiting for its storage.
func (g *watch) say(format string, args ...any) {
	// People read the log with cat, and the name of an interface may hold an escape sequence.
	line := fmt.Sprintf("%s guard %d: %s\n", g.options.Now().UTC().Format(time.RFC3339), os.Getpid(),
		visible.Line(fmt.Sprintf(format, args...)))
	g.lines.write(line)
}
