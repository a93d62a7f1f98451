package desk

import (
	"context"
	"errors"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/report"
)

// What an administrator can ask for about rollouts.
const (
	DoPlan     = "plan"     // of a change of a selection: a conduct.Draft
	DoAgain    = "again"    // what to sign to resume, persist or undo a rollout: a conduct.Draft
	DoBegin    = "begin"    // takes a signed draft
	DoHalt     = "halt"     // stops a rollout
	DoRollouts = "rollouts" // all, or one with its hosts
)

// Signed is a draft with the orders that people have signed.
type Signed struct {
	Draft  *conduct.Draft `json:"draft"`
	Orders [][]byte       `json:"orders"`
}

// rollouts serves a request about rollouts.
func (d *Desk) rollouts(ctx context.Context, q Request) (any, error) {
	switch q.Do {
	case DoPlan:
		return d.plan(ctx, q)
	case DoAgain:
		return d.again(ctx, q)
	case DoBegin:
		if q.Signed == nil || q.Signed.Draft == nil || q.By == "" {
			return nil, UsageError{errors.New("no signed orders")}
		}
		if err := d.conductor.Begin(q.Signed.Draft, q.Signed.Orders, q.By); err != nil {
			return nil, err
		}
		d.log.Info("fleet: "+string(q.Signed.Draft.Kind), "rollout", q.Signed.Draft.Plan.ID, "by", q.By)
		return d.rollout(q.Signed.Draft.Plan.ID)
	case DoHalt:
		if err := d.conductor.Halt(q.Rollout, q.By); err != nil {
			return nil, err
		}
		return d.rollout(q.Rollout)
	}
	if q.Rollout != "" {
		return d.rollout(q.Rollout)
	}
	return &report.FleetRolloutsDocument{Envelope: d.envelope(report.SchemaFleetRollouts),
		Rollouts: d.conductor.Summaries()}, nil
}

func (d *Desk) rollout(id string) (*report.FleetRolloutDocument, error) {
	doc, err := d.conductor.Document(id)
	if err == nil {
		doc.Envelope = d.envelope(report.SchemaFleetRollout)
	}
	return doc, err
}

// plan makes a draft.
func (d *Desk) plan(ctx context.Context, q Request) (*conduct.Draft, error) {
	if q.Change == nil || q.Timing == nil {
		return nil, UsageError{errors.New("no change")}
	}
	all, err := d.candidates(q.Selection)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, UsageError{errors.New("the selection has no member")}
	}
	draft, err := d.conductor.NewDraft(ctx, *q.Change, *q.Timing, time.Duration(q.ValidMS)*time.Millisecond, all)
	if errors.Is(err, conduct.ErrNothing) {
		return draft, nil // the command lists why
	}
	if _, mistake := errors.AsType[conduct.Mistake](err); mistake || errors.Is(err, rollout.ErrLabels) {
		return nil, UsageError{err}
	}
	return draft, err
}

// again makes a draft to resume or undo. A rollout that this hub has lost is undone from what its
// hosts report.
func (d *Desk) again(ctx context.Context, q Request) (*conduct.Draft, error) {
	valid := time.Duration(q.ValidMS) * time.Millisecond
	draft, err := d.conductor.Again(ctx, q.Rollout, q.Kind, valid)
	if !errors.Is(err, conduct.ErrNoRollout) || q.Kind != conduct.Undo {
		return draft, err
	}
	all, err := d.candidates("")
	if err != nil {
		return nil, err
	}
	return d.conductor.UndoLost(ctx, q.Rollout, all, valid)
}
