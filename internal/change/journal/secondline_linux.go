package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// The second line of defence: where systemd runs, each guard starts a timer that recovers the
// journal if the guard itself is killed. The timer first elapses when the guard should long be
// done, and then every minute, until nothing of the session is on trial.
const (
	secondLineAfter = 15 * time.Second // behind the deadline; a guard has tried five times by then
	secondLineEvery = time.Minute
	// secondLineWait bounds each call of systemd. No writer waits for it: the guard is at work
	// already.
	secondLineWait = 30 * time.Second
)

func secondLineUnit(session string) string { return "linerate-later-" + session }

// startSecondLine starts the timer. It returns a function that stops it, for the end of the guard.
func startSecondLine(o GuardConfig, dir string) (stop func()) {
	nothing := func() {}
	if _, err := os.Stat("/run/systemd/system"); err != nil { // sd_booted(3)
		return nothing
	}
	program, err := os.Executable()
	if err != nil {
		return nothing
	}
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, secondLineWait)
		defer cancel()
		unit := secondLineUnit(o.Session)
		started <- exec.CommandContext(ctx, "systemd-run", "--quiet", "--collect", "--unit="+unit,
			"--description=linerate: takes trial changes back if their guard is gone",
			fmt.Sprintf("--on-active=%ds", int((o.For+secondLineAfter)/time.Second)),
			fmt.Sprintf("--timer-property=OnUnitInactiveSec=%ds", int(secondLineEvery/time.Second)),
			"--timer-property=AccuracySec=1s",
			program, "guard", "--state", dir, "--session", o.Session, "--second").Run()
	}()
	return func() {
		select {
		case err := <-started:
			cancel()
			if err == nil {
				StopSecondLine(o.Session)
			}
		case <-time.After(2 * time.Second):
			// It starts later, finds nothing on trial, and stops itself.
			cancel()
		}
	}
}

// StopSecondLine stops the timer of a session.
func StopSecondLine(session string) {
	ctx, cancel := context.WithTimeout(context.Background(), secondLineWait)
	defer cancel()
	// Best effort: a timer that stays finds nothing to do, and tries to stop again.
	_ = exec.CommandContext(ctx, "systemctl", "stop", "--no-block", secondLineUnit(session)+".timer").Run()
}

// SecondLine is what the timer of a session runs: it recovers the journal, and stops the timer when
// nothing of the session is on trial. A journal that another process has open is left for the next
// time.
func SecondLine(ctx context.Context, options Options, session string) error {
	// With a bound, so that a file system that is frozen keeps no value in force and no process.
	options.Patience = secondLineWait
	j, err := Open(options)
	if errors.Is(err, ErrLocked) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	_, err = j.Recover(ctx)
	left := false
	for _, e := range j.history.entries {
		left = left || e.Session == session && e.State == Trial && e.Phase != phaseDone
	}
	err = errors.Join(err, j.Close())
	if !left {
		StopSecondLine(session)
	}
	return err
}
