package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Guardian is the guard process of a trial, as the journal records it.
type Guardian struct {
	PID int `json:"pid"`
	// Started is when the kernel started the process, in clock ticks since boot (proc_pid_stat(5),
	// starttime): the process id is given to another process later.
	Started uint64 `json:"started_ticks"`
	// Namespace is the PID namespace that PID counts in: pid:[4026531836].
	Namespace string `json:"namespace"`
}

// unguarded reports whether a trial in force has certainly lost its guard: its writer is gone or
// detached, and the newest guard of its session was killed or stopped. The host then keeps the
// trial past its deadline, until the next Recover.
func (h *history) unguarded(e *entry, bootID string, alive func(Guardian) bool) bool {
	if e.State != Trial || e.Phase == phaseDone || e.BootID != bootID {
		return false
	}
	var newest *Guardian
	for _, other := range h.entries {
		if other.Session == e.Session && other.Guard != nil {
			newest = other.Guard // a guard that replaces another takes over its trials
		}
	}
	return newest != nil && !alive(*newest)
}

// tendStep is how often an open journal looks for what has expired.
const tendStep = time.Second

// Tend makes a journal that stays open for long do what its lock keeps others from: every second,
// until Close, it takes back the trials of other sessions that are past their deadline or have lost
// their guard, and replaces a guard of its own that was killed or stopped. report gets what was
// taken back; nil drops it.
func (j *Journal) Tend(report func([]Outcome, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.tending != nil {
		return
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	j.tending = func() {
		close(stop)
		<-ended
	}
	go func() {
		defer close(ended)
		every := time.NewTicker(tendStep)
		defer every.Stop()
		for {
			select {
			case <-stop:
				return
			case <-every.C:
			}
			if outcomes, err := j.tend(); report != nil && (len(outcomes) > 0 || err != nil) {
				report(outcomes, err)
			}
		}
	}()
}

func (j *Journal) tend() ([]Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, nil
	}
	ctx := context.Background()
	var due []*entry
	var own []string
	for _, e := range j.history.entries {
		switch {
		case e.Phase == phaseDone || e.State != Trial || e.BootID != j.options.BootID:
		case e.Session == j.session:
			own = append(own, e.ID)
		case e.Phase == phaseApplied && !e.Identity.elsewhere(j.options.Identify(e.Knob)) && !j.absent(e) &&
			(j.expired(e) || j.history.unguarded(e, j.options.BootID, j.options.GuardAlive)):
			due = append(due, e)
		}
	}
	var err error
	if len(own) > 0 && (j.guard == nil || !j.guard.works(j.options.GuardAlive)) {
		if err = j.ensureGuard(ctx, j.lease); err == nil && j.guard != nil {
			// Without the record other commands would look for the guard that was killed.
			err = j.writeOrRemember(record{Kind: kindGuarded, IDs: own, Guard: j.guard.is})
		}
	}
	outcomes, undoErr := j.takeAllBack(ctx, due, func(*entry) string {
		return "undone by the holder of the journal: " + causeDeadline
	})
	return outcomes, errors.Join(err, undoErr)
}

// OnTrial returns an error that matches ErrOnTrial when a trial of another session is in force
// here: it would change during a measurement.
func (j *Journal) OnTrial() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.history.entries {
		if e.Phase == phaseDone || e.State != Trial || e.Session == j.session || e.BootID != j.options.BootID {
			continue
		}
		until := ""
		if e.Deadline != nil {
			until = " until " + e.Deadline.Local().Format(time.TimeOnly)
		}
		return fmt.Errorf("%w: change %s of %s%s", ErrOnTrial, e.ID, e.Knob, until)
	}
	return nil
}

// guardianOf describes a guard that was just started; nil where the system cannot identify a
// process beyond its number.
func guardianOf(pid int) *Guardian {
	started, err := processStarted(pid)
	if err != nil {
		return nil
	}
	return &Guardian{PID: pid, Started: started, Namespace: pidNamespace()}
}

// guardAlive reports whether a guard runs. One whose PID namespace is another, or that cannot be
// looked at, counts as running.
func guardAlive(g Guardian) bool {
	if g.Namespace != pidNamespace() {
		return true
	}
	started, err := processStarted(g.PID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return started == g.Started
}
