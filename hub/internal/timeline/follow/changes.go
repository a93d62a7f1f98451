package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/report"
)

// defaultState is the default state directory of root's commands.
const defaultState = "/var/lib/linerate"

// lookAtChanges puts the changes of the journal that differ from the last look.
func (f *Follower) lookAtChanges(ctx context.Context, now time.Time) error {
	state, err := f.o.Source.State(ctx)
	if err != nil {
		return err
	}
	changes, err := f.o.Source.History(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range changes {
		if err := f.change(c, state, now); err != nil {
			errs = append(errs[:min(len(errs), 3)], err) // the others are put anyway
		}
	}
	if len(f.changes) > 2*len(changes)+100 {
		clear(f.changes) // the journal has pruned most of them; putting the rest again changes nothing
	}
	return errors.Join(errs...)
}

// change puts one change, in its present state.
func (f *Follower) change(c journal.Change, state string, now time.Time) error {
	e := timeline.Event{
		ID: f.changeID(c), Kind: timeline.Change, Time: ms(c.Time), Host: f.o.Host, Subject: string(c.Knob),
		Interface: c.Knob.Interface(),
		Title:     fmt.Sprintf("%s: %s → %s", c.Knob, value(string(c.From)), value(string(c.To))), Severity: "info",
		State: string(c.State),
	}
	if c.State == journal.Undone {
		if c.Note != "" && c.Note != string(journal.Undone) { // which the state says already
			e.Title += " (" + c.Note + ")"
		}
	} else if c.Persisted || c.State == journal.Persisted || c.BootID == "" || c.BootID == f.boot {
		e.Undo = undo(c.ID, state)
	} else {
		e.Title += " (until the restart)"
	}
	have, known := f.o.Store.Get(e.ID)
	if known && c.State == journal.Undone {
		e.End = have.End
		if have.State != string(journal.Undone) && f.boot == c.BootID {
			e.End = ms(now) // it was seen to go
		}
	}
	doc, err := encoded(report.NewHistory(f.envelope(c.Time), []journal.Change{c}))
	if err != nil {
		return fmt.Errorf("change %s: %w", c.ID, err)
	}
	if e, err = e.Normal(); err != nil {
		return err
	}
	before, put := f.changes[e.ID]
	e.Document = have.Document
	if known && have == e && have.Document && (!put || before == string(doc)) ||
		put && before == string(doc) && !known {
		f.changes[e.ID] = string(doc)
		return nil // the second: it was put, and was too old to stay
	}
	if err := f.o.Store.Put(e, doc); err != nil {
		return err
	}
	f.changes[e.ID] = string(doc)
	return nil
}

// changeID is the id of the journal, unless the store has another change under it, of a journal
// that was there before this one.
func (f *Follower) changeID(c journal.Change) string {
	id, other := idOf(c.ID), idOf(c.ID, fmt.Sprint(c.Time.Unix()))
	if _, ok := f.o.Store.Get(other); ok {
		return other
	}
	if have, ok := f.o.Store.Get(id); ok && (have.Kind != timeline.Change || have.Host != f.o.Host ||
		!have.Time.Equal(ms(c.Time))) {
		return other
	}
	return id
}

// value returns a knob's value for a title, in quotes if it is empty or has blanks.
func value(v string) string {
	if v == "" || strings.ContainsAny(v, " \t\n") {
		return fmt.Sprintf("%q", v)
	}
	return v
}

// undo is the command that takes a change back on its host, as typed by root.
func undo(id, state string) string {
	command := "linerate undo " + id
	if state != "" && state != defaultState {
		command += " --state " + quoted(state)
	}
	return command
}

// quoted is a word of a shell.
func quoted(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("/._-+:@", r)
	}) < 0
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
