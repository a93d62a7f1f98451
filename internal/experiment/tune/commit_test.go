package tune

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// losing is a host whose connection is lost at the answer to a commit.
type losing struct {
	Host
	arrives bool // the commit reaches the host
	lost    bool
}

var errLost = errors.New("nothing heard for 8s")

func (l *losing) Commit(ctx context.Context, ids ...string) error {
	l.lost = true
	if l.arrives {
		if err := l.Host.Commit(ctx, ids...); err != nil {
			return err
		}
	}
	return errLost
}

func (l *losing) Undo(ctx context.Context, ids ...string) error {
	if l.lost {
		return errLost
	}
	return l.Host.Undo(ctx, ids...)
}

// TestLostInCommit loses the far host at the answer to its commit, which it has made or not. The
// record must name what may stay there, and it must do so before the commit, in case this process
// is killed then.
func TestLostInCommit(t *testing.T) {
	for name, arrives := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			w := longFatPath()
			far := &losing{Host: w.hosts[Far], arrives: arrives}
			hosts := w.tuneHosts()
			hosts[Far] = far
			cfg := configFor(w)
			var stored []Change
			cfg.Checkpoint = func(o *Outcome) {
				if far.lost {
					t.Error("a checkpoint after the loss")
				}
				stored = o.PossiblyCommitted
			}
			plan, err := defaultPlan()
			if err != nil {
				t.Fatal(err)
			}
			if cfg, err = cfg.complete(); err != nil {
				t.Fatal(err)
			}
			out, err := run(t.Context(), cfg, plan, w, hosts, longFatCandidates(), nil)
			if !errors.Is(err, errLost) || out.State != StateTrial {
				t.Fatalf("err %v, state %s", err, out.State)
			}
			if !maps.Equal(w.hosts[Near].values, w.hosts[Near].original) {
				t.Errorf("the near host has %v, and had %v", w.hosts[Near].values, w.hosts[Near].original)
			}
			in := map[string]knob.Value{}
			for _, c := range w.hosts[Far].changes {
				if !c.undone {
					in[c.id] = c.to
				}
			}
			named := map[string]knob.Value{}
			for _, c := range out.PossiblyCommitted {
				if c.Side != Far || c.From == c.To {
					t.Errorf("%+v may stay", c)
				}
				named[c.ID] = c.To
			}
			if !maps.Equal(in, named) || len(in) == 0 {
				t.Errorf("%v are in force, and %v may stay", in, named)
			}
			if len(stored) <= len(named) {
				t.Errorf("%v was stored before the commit: the changes of the near host are missing", stored)
			}
			if said := (&session{out: out}).conclusion(); !strings.Contains(said, "may stay") {
				t.Error(said)
			}
		})
	}
}

// TestCommittedIsCertain checks that a run which ends well leaves nothing uncertain.
func TestCommittedIsCertain(t *testing.T) {
	w := longFatPath()
	out, err := runDefault(t.Context(), configFor(w), w, longFatCandidates(), nil)
	if err != nil || out.State != StateCommitted || out.PossiblyCommitted != nil {
		t.Errorf("%v, %s, %v", err, out.State, out.PossiblyCommitted)
	}
}
