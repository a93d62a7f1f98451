package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// couple is a host on which two people use linerate at random, with a real guard for each trial.
type couple struct {
	t      *testing.T
	fsys   *durable.Mem
	host   *knobs
	clock  *bubbleClock
	random *rand.Rand
	held   map[int]*journal.Journal // by person: a tune or a serve that is running
	guards []chan error
	steps  []string
}

func (c *couple) options(mode journal.Mode) journal.Options {
	o := options(c.fsys, c.host, nil)
	o.Boottime, o.Mode = c.clock.Boottime, mode
	return o
}

// guarded opens the journal as a command does, with a guard; nil if the other person has it.
func (c *couple) guarded(mode journal.Mode) *journal.Journal {
	c.t.Helper()
	j, err := journal.Open(c.options(mode))
	if errors.Is(err, journal.ErrLocked) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	life, lifeWriter := io.Pipe()
	ready, readyWriter := io.Pipe()
	done := make(chan error, 1)
	c.guards = append(c.guards, done)
	go func() {
		done <- journal.RunGuard(context.Background(), journal.GuardConfig{
			Journal: c.options(""), Mode: mode, Session: j.Session(), Life: life, Ready: readyWriter, Log: io.Discard,
			EndWriter: func(bool) { c.t.Error("a guard ends a writer that works") },
		})
	}()
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || line != "ready\n" {
		c.t.Fatalf("guard: %q, %v", line, err)
	}
	j.ReportTo(pipe{lifeWriter})
	return j
}

// step lets a person do something.
func (c *couple) step(person int) {
	c.t.Helper()
	ctx := context.Background()
	id := []string{rmem, mtu, ring}[c.random.IntN(3)]
	value := map[string][]string{rmem: {"B", "C"}, mtu: {"9000", "1400"}, ring: {"512", "1024"}}[id][c.random.IntN(2)]
	did := func(format string, args ...any) {
		c.steps = append(c.steps, fmt.Sprintf("%v person %d: "+format, append([]any{c.clock.Boottime(), person}, args...)...))
	}
	if j := c.held[person]; j != nil {
		switch c.random.IntN(4) {
		case 0:
			did("ends the tune")
			_, err := j.UndoTrials(ctx)
			c.must(err, j.Close())
			delete(c.held, person)
		case 1:
			did("is killed")
			c.must(j.Close()) // takes nothing back; the guard sees the end of the pipe
			delete(c.held, person)
		default:
			_, err := j.Apply(ctx, journal.Request{}, knob.Setting{Knob: knob.ID(id), Value: knob.Value(value)})
			did("tries %s=%s: %v", id, value, err)
		}
		return
	}
	switch n := c.random.IntN(6); n {
	case 0, 1:
		if j := c.guarded(journal.Deadline); j != nil {
			seconds := time.Duration(1+c.random.IntN(20)) * time.Second
			_, err := j.Apply(ctx, journal.Request{For: seconds}, knob.Setting{Knob: knob.ID(id), Value: knob.Value(value)})
			did("sets %s=%s for %v: %v", id, value, seconds, err)
			c.must(j.Close())
		}
	case 2:
		if j := c.guarded(journal.Lease); j != nil {
			_, err := j.Recover(ctx)
			c.must(err)
			j.Tend(nil)
			did("starts a tune")
			c.held[person] = j
		}
	default:
		j, err := journal.Open(c.options(journal.Deadline))
		if errors.Is(err, journal.ErrLocked) {
			return
		}
		c.must(err)
		switch n {
		case 3:
			_, err = j.Recover(ctx)
			did("recovers: %v", err)
		case 4:
			var trials []string
			for _, change := range j.Changes() {
				if change.State == journal.Trial {
					trials = append(trials, change.ID)
				}
			}
			did("confirms %v: %v", trials, j.Commit(ctx, trials...))
		default:
			_, err = j.UndoAll(ctx)
			did("undoes all: %v", err)
		}
		c.must(j.Close())
	}
}

func (c *couple) must(errs ...error) {
	c.t.Helper()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatalf("%v\n%s", err, strings.Join(c.steps, "\n"))
	}
}

// explained checks that a knob which differs from its first value has an open change.
func (c *couple) explained(when string) {
	c.t.Helper()
	changes, err := journal.History(c.fsys, "/state")
	c.must(err)
	open := map[knob.ID]bool{}
	for _, change := range changes {
		if change.State == journal.Undone {
			continue
		}
		open[change.Knob] = true
	}
	for id, first := range host().values {
		if now := c.host.get(id); now != first && !open[id] {
			c.t.Fatalf("%s: %s holds %s and no change explains it\n%s", when, id, now, strings.Join(c.steps, "\n"))
		}
	}
}

// TestTwoLinerates: two people who use one host at random lose nothing of each other's: every
// difference has an open change, and undo --all restores the host.
func TestTwoLinerates(t *testing.T) {
	for seed := range uint64(testenv.Sample(150, 30)) {
		synctest.Test(t, func(t *testing.T) {
			c := &couple{t: t, fsys: durable.NewMem(), host: host(), clock: &bubbleClock{start: time.Now()},
				random: rand.New(rand.NewPCG(18, seed)), held: map[int]*journal.Journal{}}
			for range 40 {
				c.step(c.random.IntN(2))
				time.Sleep(time.Duration(c.random.IntN(4000)) * time.Millisecond)
				synctest.Wait()
				c.explained("on the way")
			}
			for person, j := range c.held {
				c.must(j.Close())
				delete(c.held, person)
			}
			time.Sleep(time.Minute) // every deadline has passed
			for _, guard := range c.guards {
				c.must(<-guard)
			}
			for _, change := range mustHistory(c) {
				if change.State == journal.Trial {
					t.Fatalf("still on trial: %+v\n%s", change, strings.Join(c.steps, "\n"))
				}
			}
			c.explained("in the end")
			j := open(t, c.options(journal.Deadline))
			_, err := j.UndoAll(t.Context())
			c.must(err)
			if diff := cmp.Diff(host().values, c.host.clone().values); diff != "" {
				t.Fatalf("after undo --all: %s\n%s", diff, strings.Join(c.steps, "\n"))
			}
			j.Close()
		})
	}
}

func mustHistory(c *couple) []journal.Change {
	changes, err := journal.History(c.fsys, "/state")
	c.must(err)
	return changes
}
