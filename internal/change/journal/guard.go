package journal

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// GuardOptions are how to start a guard process. Apply fills in Dir, Mode, Session and For; a
// caller sets at most the other fields.
type GuardOptions struct {
	// Exe is the program that implements the guard command; empty means this program.
	Exe string
	// Args precede the guard command.
	Args []string
	// Handshake is how long the guard may take to answer; 0 means 10 s. A guard that uses its
	// processor meanwhile has six times as long.
	Handshake time.Duration

	Dir     string
	Mode    Mode
	Session string
	// For is the time from now to the first deadline of a Lease; 0 sets none.
	For time.Duration
}

// The messages on the pipe to the guard, one per line.
const (
	messageWriter = "writer" // followed by the process id of the writer
	messageExtend = "extend" // followed by the new deadline, CLOCK_BOOTTIME in nanoseconds, 0: none
	messageScreen = "screen" // followed by the terminal that the writer was started at
	messageDetach = "detach" // the writer ends as it should: let Deadline trials live
	messageRecord = "record" // followed by a record of the log, before the knob that it is about is written
	messageCarry  = "carry"  // followed by a knob and, in base64, what its backend needs to write it (knob.Carrier)
	messageReady  = "ready"  // from the guard
)

// Guard is a running guard process, held by the writer it watches.
type Guard struct {
	mode   Mode
	pid    int
	is     *Guardian
	end    func()        // kills the process
	life   lifeline      // write end; when it closes, for any reason, the guard knows that the writer is gone
	exited chan struct{} // closed when the process has ended
}

// lifeline is a pipe to a guard.
type lifeline interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// StartGuard starts `EXE ARGS… guard --state DIR --mode MODE --session SESSION --deadline FOR` in
// its own session, and returns when the guard has answered. The process outlives this one, however
// this one ends. It inherits two pipes: descriptor 3 reports whether the writer lives, and the
// guard answers on descriptor 4. Its output goes to guard.log in the state directory.
func StartGuard(ctx context.Context, o GuardOptions) (*Guard, error) {
	guard, err := startGuard(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start guard: %w: %w", ErrUnguarded, err)
	}
	return guard, nil
}

func startGuard(ctx context.Context, o GuardOptions) (*Guard, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	exe, err := guardProgram(o.Exe)
	if err != nil {
		return nil, err
	}
	command := exec.Command(exe, append(append([]string{}, o.Args...), "guard",
		"--state", dir, "--mode", string(o.Mode), "--session", o.Session, "--deadline", o.For.String())...)
	if o.Exe == "" {
		command.Args[0] = os.Args[0] // a program with several names is called by the name of this process
	}
	command.Dir = "/" // Keeps no mount busy.
	if err := ownSession(command); err != nil {
		return nil, err
	}
	if log := openGuardLog(filepath.Join(dir, "guard.log")); log != nil {
		defer log.Close() // Only the guard writes to it.
		command.Stdout, command.Stderr = log, log
	}
	// Go makes both ends close-on-exec, so no other child of this process, even one forked at the
	// same moment, holds the write end and makes the guard believe that the writer lives.
	theirLife, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ready, theirReady, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirLife.Close(), life.Close())
	}
	defer ready.Close()
	if err = passPipes(command, theirLife, theirReady); err == nil {
		err = command.Start()
	}
	_ = theirLife.Close() // The guard has its own copy.
	_ = theirReady.Close()
	if err != nil {
		_ = life.Close() // The other end has no reader.
		return nil, err
	}
	guard := &Guard{mode: o.Mode, pid: command.Process.Pid, is: guardianOf(command.Process.Pid), life: life,
		exited: make(chan struct{}), end: func() { _ = command.Process.Kill() }} // one that has ended needs no signal
	go func() {
		defer close(guard.exited)
		_ = command.Wait() // Reaps the process; its log has the reason why it ended.
	}()
	if err := handshake(ctx, ready, o.Handshake, func() uint64 { return processWork(guard.pid) }); err != nil {
		_ = command.Process.Kill()
		_ = life.Close()
		<-guard.exited
		return nil, err
	}
	if err := guard.send(messageWriter + " " + strconv.Itoa(os.Getpid())); err != nil {
		// A guard that does not answer is useless. When the pipe closes, it finds its writer gone,
		// has nothing to take back, and exits.
		_ = life.Close()
		return nil, err
	}
	if path := ownTerminal(); path != "" {
		_ = guard.send(messageScreen + " " + path) // The user can also find this message elsewhere.
	}
	return guard, nil
}

// workingStretches is how many times the patience of a handshake a guard has that uses its
// processor: on a small board beside other work, the start of a program can take half a minute.
const workingStretches = 6

// handshake waits for the one line that the guard sends. Work returns how much of a processor the
// guard has used so far.
func handshake(ctx context.Context, ready io.Reader, patience time.Duration, work func() uint64) error {
	if patience <= 0 {
		patience = 10 * time.Second
	}
	// Ten seconds allow for a host that swaps; a guard answers within milliseconds. Waiting costs
	// nothing, since no knob has been written yet. The wait counts the time in which this process
	// runs: after a pause, the guard may not have run either.
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 2) // one of the guard, one of the context
	go func() {
		line, err := bufio.NewReader(ready).ReadString('\n')
		read <- answer{line, err}
	}()
	defer context.AfterFunc(ctx, func() { read <- answer{err: ctx.Err()} })()
	var got answer
	var waited time.Duration
	answered := false
	for used, stretch := work(), 0; !answered && stretch < workingStretches; stretch++ {
		got, answered = awaitFor(read, patience)
		waited += patience
		now := work()
		if now <= used {
			break // it hangs
		}
		used = now
	}
	switch line := strings.TrimSpace(got.line); {
	case ctx.Err() != nil:
		return ctx.Err()
	case !answered:
		return fmt.Errorf("no answer within %v", waited)
	case line == messageReady:
		return nil
	case line != "":
		return errors.New(line)
	case errors.Is(got.err, io.EOF):
		return errors.New("it ended before it answered; see guard.log in the state directory")
	default:
		return fmt.Errorf("no answer: %w", got.err)
	}
}

// guardProgram returns the path of the program to start.
func guardProgram(exe string) (string, error) {
	if exe != "" {
		return exe, nil
	}
	if runtime.GOOS == "linux" {
		// The file that this process runs from, even if an upgrade has replaced or removed its
		// name.
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}

// guardLogLimit is the size in bytes above which the guards start a new log.
const guardLogLimit = 64 << 10

// openGuardLog returns nil when it cannot open a log: a guard without a log is better than no
// guard.
func openGuardLog(path string) *os.File {
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > guardLogLimit {
		flag |= os.O_TRUNC
	}
	log, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return nil
	}
	return log
}

// PID returns the process id of the guard.
func (g *Guard) PID() int { return g.pid }

// Exited is closed when the guard process has ended.
func (g *Guard) Exited() <-chan struct{} { return g.exited }

// Extend sets a new deadline of the lease, counted from now; 0 removes the deadline.
func (g *Guard) Extend(d time.Duration) error {
	var deadline time.Duration
	if d > 0 {
		deadline = sys.Boottime() + d
	}
	return g.send(messageExtend + " " + strconv.FormatInt(int64(deadline), 10))
}

// Release reports to the guard that the writer ends normally. In Lease mode the guard takes back
// remaining trials, of which there should be none, and exits; in Deadline mode it stays with them.
// Release does not wait for that.
func (g *Guard) Release() error {
	var err error
	if g.mode == Deadline {
		err = g.send(messageDetach)
	}
	return errors.Join(err, g.life.Close())
}

// sendPatience is how long the pipe to the guard may stay full, that is, how long the guard may be
// stopped.
const sendPatience = 2 * time.Second

func (g *Guard) send(message string) error {
	// In steps: a deadline that passed while this process was paused says nothing of the guard.
	rest, err := []byte(message+"\n"), error(nil)
	for range patienceSteps {
		// Best effort: without a deadline the writer waits indefinitely.
		_ = g.life.SetWriteDeadline(time.Now().Add(sendPatience / patienceSteps))
		var n int
		n, err = g.life.Write(rest)
		if rest = rest[n:]; !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write to guard %d: %w", g.pid, err)
	}
	return nil
}

// alive reports whether the guard process runs.
func (g *Guard) alive() bool {
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

// works reports whether the guard can act: it runs, and no signal has stopped it.
func (g *Guard) works(alive func(Guardian) bool) bool {
	return g.alive() && (g.is == nil || alive(*g.is))
}

// ensureGuard makes sure that a guard runs, and extends its lease.
func (j *Journal) ensureGuard(ctx context.Context, d time.Duration) error {
	if j.options.Unguarded {
		return nil
	}
	if j.options.Guard == nil {
		return ErrUnguarded
	}
	if j.guard != nil && j.guard.works(j.options.GuardAlive) {
		// A Deadline guard reads each trial's time from the journal. A lease is extended before the
		// intent of the new trial is written, so that the guard never sees the trial under a
		// deadline that has passed.
		if j.options.Mode == Deadline || j.guard.Extend(d) == nil {
			return nil
		}
	}
	if j.guard != nil {
		// The guard ended or no longer reads its pipe: it was killed or stopped. Another one takes
		// over the trials. A stopped one must not go on later: it would find its writer gone.
		j.guard.end()
		_ = j.guard.life.Close()
		j.guard = nil
	}
	options := *j.options.Guard
	options.Dir, options.Mode, options.Session, options.For = j.options.Dir, j.options.Mode, j.session, d
	guard, err := StartGuard(ctx, options)
	if err != nil {
		return err
	}
	j.guard = guard
	return nil
}

// Extend sets a new deadline of this journal's lease, counted from now; 0 removes the deadline.
// Without a guard it does nothing. An error means that the guard is gone: the next Apply starts
// another one.
func (j *Journal) Extend(d time.Duration) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.guard == nil || j.options.Mode != Lease {
		return nil
	}
	return j.guard.Extend(d)
}

// Guard returns the guard process of this journal, or nil while no trial has needed one.
func (j *Journal) Guard() *Guard {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.guard
}

// carry gives the guard what it needs to write a knob without storage, before the intent.
func (j *Journal) carry(id knob.ID) error {
	carrier, ok := j.options.Backend.(knob.Carrier)
	if !ok || j.guard == nil {
		return nil
	}
	data, err := carrier.Carry(id)
	if err != nil || len(data) == 0 {
		return err
	}
	if err := j.guard.send(messageCarry + " " + string(id) + " " + base64.StdEncoding.EncodeToString(data)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnguarded, err)
	}
	return nil
}
