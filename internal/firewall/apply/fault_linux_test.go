package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestForeignChange: rules that another program adds during a change stay in force, and the change
// is not made.
func TestForeignChange(t *testing.T) {
	inNamespace(t, func() {
		tr := newTraffic(t, ruleset.NFT)
		defer tr.end()
		p := tr.plan()
		ctx := context.Background()
		for _, at := range []string{"begin", "transaction"} {
			for _, how := range []string{"insert", "add"} {
				before := listed(t)
				b := &apply.Tables{Dir: t.TempDir()}
				if err := b.Add(p); err != nil {
					t.Fatal(err)
				}
				b.Step = func(step string) {
					if step == at {
						nft(t, how+" rule ip account count meta mark 99 counter comment \"foreign\"")
					}
				}
				tr.start()
				err := b.Write(ctx, p.ID(), p.To())
				if !errors.Is(err, apply.ErrChanged) {
					t.Fatalf("%s at %s: %v", how, at, err)
				}
				tr.pause()
				if now := listed(t); strings.Count(now, "foreign") != 1 || strings.Contains(now, "linerate: ") {
					t.Errorf("%s at %s, %v: before\n%s\nafter\n%s", how, at, err, before, now)
				}
				if v, err := b.Read(ctx, p.ID()); err != nil || v == p.From() || v == p.To() {
					t.Errorf("%s at %s: the table holds %s, %v", how, at, v, err)
				}
				for _, c := range tr.account().Chains {
					for _, r := range c.Rules {
						if r.Comment == "foreign" {
							nft(t, "delete rule ip account count handle "+number(r.Handle))
						}
					}
				}
				if v, err := b.Read(ctx, p.ID()); err != nil || v != p.From() {
					t.Errorf("%s at %s: without the rule the table holds %s, %v", how, at, v, err)
				}
			}
		}
		// Another table is no concern of this one.
		b := &apply.Tables{Dir: t.TempDir()}
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
		nft(t, "add table ip other\nadd chain ip other c\nadd rule ip other c counter\n")
		if err := b.Write(ctx, p.ID(), p.To()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailingNFT: nft fails in either transaction, at once or because it gets half of the text.
// The rules in force are whole, and the next write goes on without a lost packet.
func TestFailingNFT(t *testing.T) {
	inNamespace(t, func() {
		tr := newTraffic(t, ruleset.NFT)
		defer tr.end()
		p := tr.plan()
		b := &apply.Tables{Dir: t.TempDir()}
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
		bin, path := t.TempDir(), os.Getenv("PATH")
		defer os.Setenv("PATH", path)
		ctx := context.Background()
		for _, fault := range []string{"echo 'Error: Could not process rule: Cannot allocate memory' >&2; exit 1",
			`head -c 300 | PATH="$REAL" nft -f -`} {
			for _, c := range []struct {
				at   string
				want knob.Value
			}{{"transaction", p.From()}, {"end", p.To()}} {
				script := "#!/bin/sh\nREAL='" + path + "'\ncase \"$1\" in -f) " + fault +
					";; *) PATH=\"$REAL\" exec nft \"$@\";; esac\n"
				if err := os.WriteFile(filepath.Join(bin, "nft"), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				b.Step = func(step string) {
					if step == c.at {
						_ = os.Setenv("PATH", bin+":"+path)
					}
				}
				tr.start()
				if err := b.Write(ctx, p.ID(), p.To()); err == nil {
					t.Fatalf("%s: no error", c.at)
				}
				if err := os.Setenv("PATH", path); err != nil {
					t.Fatal(err)
				}
				if v, err := b.Read(ctx, p.ID()); err != nil || v != c.want {
					t.Errorf("%s: the table holds %s, %v", c.at, v, err)
				}
				b.Step = nil
				if err := b.Write(ctx, p.ID(), p.From()); err != nil {
					t.Fatal(err)
				}
				tr.exact("after a fault at " + c.at)
			}
		}
	})
}

// TestStorage: without storage for the old rules nothing is planned, and a damaged plan is no plan.
func TestStorage(t *testing.T) {
	plan := &apply.Plan{Program: ruleset.NFT, Family: "ip", Table: "t",
		States: []apply.State{{Value: "1"}, {Value: "2"}}}
	full := durable.NewFaulty(durable.NewMem(), durable.FailAt(1, os.ErrPermission))
	b := &apply.Tables{Dir: "/state/firewall", FS: full}
	if err := b.Add(plan); !errors.Is(err, os.ErrPermission) {
		t.Errorf("read-only: %v", err)
	}
	mem := durable.NewMem()
	b = &apply.Tables{Dir: "/state/firewall", FS: mem}
	if err := b.Add(plan); err != nil {
		t.Fatal(err)
	}
	packed, err := b.Carry(plan.ID())
	if err != nil {
		t.Fatal(err)
	}
	other := &apply.Tables{}
	if err := other.Accept(plan.ID(), packed); err != nil {
		t.Error(err)
	}
	if err := other.CheckWrite(t.Context(), plan.ID(), "2"); err != nil {
		t.Error(err)
	}
	if err := other.CheckWrite(t.Context(), plan.ID(), "3"); !errors.Is(err, knob.ErrInvalid) {
		t.Errorf("%v", err)
	}
	for cut := range len(packed) {
		if err := other.Accept(plan.ID(), packed[:cut]); err == nil {
			t.Errorf("%d bytes of %d are taken for a plan", cut, len(packed))
		}
	}
	forged := *plan
	two := []apply.Line{{Text: "accept\nflush ruleset"}}
	forged.States = []apply.State{{Value: "1", Chains: []apply.Chain{{Name: "c", Rules: two}}},
		{Value: "2"}}
	if err := b.Add(&forged); err != nil {
		t.Fatal(err)
	}
	if _, err := (&apply.Tables{Dir: "/state/firewall", FS: mem}).Carry(plan.ID()); err == nil {
		t.Error("a line with two commands is taken for a rule")
	}
}
