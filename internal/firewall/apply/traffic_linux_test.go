package apply_test

import (
	"context"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// plan optimises the table of the accounting.
func (tr *traffic) plan() *apply.Plan {
	t := tr.t
	t.Helper()
	before := &ruleset.Ruleset{Program: tr.program, Tables: []*ruleset.Table{tr.account()}}
	got := rewrite.Optimise(before, equal.Usual())
	if len(got.Changed) == 0 || got.Proof.Answer != equal.Equal {
		t.Fatalf("nothing changes: %+v", got.Kept)
	}
	p, err := apply.Rehearse(context.Background(), tr.program, before.Tables[0], got.Rules.Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTraffic: while packets arrive, each is counted once, in both directions of the change, and
// none passes that should not.
func TestTraffic(t *testing.T) {
	some := programs[2:] // the suite kills writers of all three
	if testenv.Provided(testenv.Soak) {
		some = programs
	}
	for _, program := range some {
		t.Run(string(program), func(t *testing.T) { testTraffic(t, program) })
	}
}

func testTraffic(t *testing.T, program ruleset.Program) {
	inNamespace(t, func() {
		tr := newTraffic(t, program)
		defer tr.end()
		p := tr.plan()
		b := &apply.Tables{Dir: t.TempDir()}
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		rounds := 2
		if testenv.Provided(testenv.Soak) {
			rounds = 20
		}
		for range rounds {
			for _, v := range []knob.Value{p.To(), p.From()} {
				tr.start()
				began := time.Now()
				if err := b.Write(ctx, p.ID(), v); err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				carry := tr.exact(string(v))
				t.Logf("%s: %d packets in all, %d carried, %v", v, tr.total(), carry, took)
			}
		}
		// Without packets, what is carried goes to its counters.
		if err := b.Write(ctx, p.ID(), p.From()); err != nil {
			t.Fatal(err)
		}
		if carry := tr.exact("at rest"); carry != 0 {
			t.Errorf("%d packets are still carried", carry)
		}
	})
}
