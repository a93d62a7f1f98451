package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// readKnob reads one knob of this host.
func (c *session) readKnob(ctx context.Context, raw json.RawMessage) (any, error) {
	var body readCall
	if err := decode(raw, &body); err != nil {
		return nil, err
	}
	id, err := knob.ParseID(string(body.Knob))
	if err != nil {
		return nil, err
	}
	if err := disclosed("read", id); err != nil {
		return nil, err
	}
	if c.Backend == nil {
		return nil, &knob.Error{Op: "read", Knob: id, Err: knob.ErrNotSupported}
	}
	v, err := c.Backend.Read(ctx, id)
	return readAnswer{v}, err
}

// disclosed refuses a knob that no other host may read. serve often runs as root, and a knob's name
// reaches every file below /proc/sys: only what the catalogue lists is offered, less its secrets.
func disclosed(op string, id knob.ID) error {
	d, known := knob.Catalogue().Lookup(id)
	switch {
	case !known:
		return &knob.Error{Op: op, Knob: id, Err: knob.ErrUnknown}
	case d.Secret:
		return &knob.Error{Op: op, Knob: id, Err: fmt.Errorf("%w: it is a secret of that host", fs.ErrPermission)}
	}
	return nil
}

// mayTune makes this client the tuning client, and opens the journal at its first change.
func (c *session) mayTune(ctx context.Context) error {
	if c.permission() == nil {
		if c.Peers != nil {
			return ErrPeerMeasures
		}
		return ErrTuningOff
	}
	if c.OpenJournal == nil {
		return fmt.Errorf("change settings of %s: %w", c.HostName, knob.ErrNotSupported)
	}
	if c.journal != nil {
		return nil
	}
	// Clients of this process compete first, then processes: the journal's lock would refuse the
	// second client too, but could only report that this process holds it.
	if err := c.becomeTuner(c); err != nil {
		return err
	}
	j, err := c.OpenJournal()
	if err != nil {
		c.stopTuning(c)
		return err
	}
	// Trials that an earlier linerate left behind must be undone before anything is measured
	// against them.
	outcomes, err := j.Recover(ctx)
	if err != nil {
		err = errors.Join(err, j.Close())
		c.stopTuning(c)
		return err
	}
	c.logOutcomes("left by an earlier run", outcomes)
	j.Tend(func(outcomes []journal.Outcome, err error) {
		c.logOutcomes("of another command", outcomes)
		if err != nil {
			c.Log(fmt.Sprintf("taking back what has expired: %v", err))
		}
	})
	c.journal = j
	return nil
}

// check returns nil for a knob that a permission, which a revoked peer lacks, has.
func check(p *knob.Permission, id knob.ID) error {
	if p == nil {
		return ErrPeerMeasures
	}
	return p.Check(id)
}

// change answers a call that changes settings.
func (c *session) change(p pending, do func(context.Context, json.RawMessage) (any, error)) (any, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	return do(p.ctx, p.call.Body)
}

// endLease undoes the trials whose lease is over. A call that held changing may have renewed it, or
// the session has ended.
func (c *session) endLease() {
	c.changing.Lock()
	defer c.changing.Unlock()
	if time.Now().Before(c.leaseEnd) {
		return
	}
	if c.undoTrials() > 0 {
		c.Log(c.who + " kept its trials for too long")
	}
	c.letGo()
}

// open reads the body of a call that changes settings, and prepares this client for it. If it
// succeeds, the caller ends with letGo.
func (c *session) open(ctx context.Context, raw json.RawMessage, body any) error {
	if err := decode(raw, body); err != nil {
		return err
	}
	return c.mayTune(ctx)
}

// letGo closes the journal while nothing of this client is on trial, so that the commands of this
// host can use it. The client remains the one that may tune.
func (c *session) letGo() {
	if c.journal == nil {
		return
	}
	for _, change := range c.journal.Changes() {
		if change.State == journal.Trial && slices.Contains(c.trials, change.ID) {
			return
		}
	}
	j := c.journal
	c.journal = nil
	if err := j.Close(); err != nil {
		c.Log(fmt.Sprintf("close journal: %v", err))
	}
}

// apply sets knobs of this host as trials.
func (c *session) apply(ctx context.Context, raw json.RawMessage) (any, error) {
	var body applyCall
	if err := c.open(ctx, raw, &body); err != nil {
		return nil, err
	}
	defer c.letGo()
	if err := c.journal.OnTrial(); err != nil {
		return nil, fmt.Errorf("change settings of %s: %w", c.HostName, err)
	}
	tuning := c.permission()
	for i, setting := range body.Settings {
		id, err := knob.ParseID(string(setting.Knob))
		if err == nil {
			err = check(tuning, id)
		}
		if err != nil {
			return nil, err
		}
		body.Settings[i].Knob = id // the name that was checked is the name that is written
	}
	c.dropCommit() // its lease is over, and its changes are trials like all others
	lease := maxTrialFor
	if body.For > 0 {
		lease = min(body.For, maxTrialFor)
	}
	// The journal's guard ends a process whose lease is over, which here is all of serve. So this
	// session ends its trials on time, and the guard acts only if the session does not.
	request := journal.Request{Reason: shortened(body.Reason, maxReason), For: lease + guardSlack}
	if runs.Name(body.Run) {
		request.Run = body.Run
	}
	// The lease is set before the change, so that a slow driver shortens the trial. All trials of
	// the session share one lease: a new change shows that the client still works with the older
	// ones.
	c.leaseEnd = time.Now().Add(lease)
	if c.lease == nil {
		c.lease = time.AfterFunc(lease, c.endLease)
	} else {
		c.lease.Reset(lease)
	}
	changes, err := c.journal.Apply(ctx, request, body.Settings...)
	ids := make([]string, 0, len(changes))
	for _, change := range changes {
		ids = append(ids, change.ID)
		c.Log(fmt.Sprintf("%s set %s from %q to %q, on trial (%q)", c.who, change.Knob, change.From, change.To,
			change.Reason))
	}
	c.trials = append(c.trials, ids...)
	return applyAnswer{ids}, err
}

// undo undoes changes of this client, and changes that other clients made and committed. It refuses
// to undo changes made on this host itself.
func (c *session) undo(ctx context.Context, raw json.RawMessage) (any, error) {
	var body changesCall
	if err := c.open(ctx, raw, &body); err != nil {
		return nil, err
	}
	defer c.letGo()
	// The journal is the source and not this session: after a lost connection, a client may return
	// and undo what it had committed.
	remote := make(map[string]knob.ID)
	for _, change := range c.journal.Changes() {
		if change.Side == FarSide {
			remote[change.ID] = change.Knob
		}
	}
	for _, id := range body.IDs {
		knob, known := remote[id]
		if !known {
			return nil, fmt.Errorf("undo %s: %w made by a remote client", id, journal.ErrUnknownChange)
		}
		// Undoing is a write too, and an earlier serve may have allowed more than this one.
		if !slices.Contains(c.trials, id) {
			if err := check(c.permission(), knob); err != nil {
				return nil, err
			}
		}
	}
	if len(body.IDs) == 0 {
		return undoAnswer{}, nil
	}
	outcomes, err := c.journal.Undo(ctx, body.IDs...)
	c.logOutcomes("of "+c.who, outcomes)
	return undoAnswer{outcomes}, err
}

// takeBack undoes the trials that this client left. It runs after everything else of the session
// has ended.
func (c *session) takeBack() {
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.lease != nil {
		c.lease.Stop()
	}
	c.dropCommit()
	// The order matters: undo, then close the journal and release its lock, then let another client
	// tune. Closing also releases the guard, which undoes what undoTrials could not.
	defer c.stopTuning(c)
	if c.journal == nil {
		return
	}
	c.undoTrials()
	if err := c.journal.Close(); err != nil {
		c.Log(fmt.Sprintf("close journal: %v", err))
	}
	c.journal = nil // a lease that ends now has nothing to do
}

// undoTrials undoes this client's trials under a context of its own, and returns how many there
// were.
func (c *session) undoTrials() int {
	if c.journal == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoBound)
	defer cancel()
	var left []string
	for _, change := range c.journal.Changes() {
		if change.State == journal.Trial && slices.Contains(c.trials, change.ID) {
			left = append(left, change.ID)
		}
	}
	if len(left) == 0 {
		return 0
	}
	outcomes, err := c.journal.Undo(ctx, left...)
	c.logOutcomes("of "+c.who, outcomes)
	if err != nil {
		c.Log(fmt.Sprintf("taking back the trials of %s: %v; run `linerate recover` here", c.who, err))
	}
	return len(left)
}

// logOutcomes logs what was undone.
func (c *session) logOutcomes(whose string, outcomes []journal.Outcome) {
	for _, o := range outcomes {
		switch {
		case o.Restored:
			c.Log(fmt.Sprintf("took back trial %s: %s is %q again", whose, o.Change.Knob, o.Change.From))
		case o.Foreign != "":
			c.Log(fmt.Sprintf("left trial %s alone: another program changed %s to %q", whose,
				o.Change.Knob, o.Foreign))
		case o.Error != "":
			c.Log(fmt.Sprintf("could not take back trial %s: %s: %s", whose, o.Change.Knob, o.Error))
		}
	}
}
