package apply_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
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

// TestLock: no program of iptables-legacy comes between the reading of a table and its transaction.
func TestLock(t *testing.T) {
	inNamespace(t, func() {
		tr := newTraffic(t, ruleset.IPTablesLegacy)
		defer tr.end()
		p := tr.plan()
		refused := 0
		b := &apply.Tables{Dir: t.TempDir(), Step: func(step string) {
			lock, err := durable.OS().Lock(os.Getenv("XTABLES_LOCKFILE"))
			if refused++; !errors.Is(err, durable.ErrLocked) {
				t.Errorf("%s: %v, %v", step, lock, err)
			}
			if step != "transaction" {
				return
			}
			out, err := exec.Command("iptables-legacy", "-w", "1", "-t", "raw", "-A", "PREROUTING", "-s",
				"192.0.2.1").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "holding the xtables lock") {
				t.Errorf("%v: %s", err, out)
			}
		}}
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
		tr.start()
		if err := b.Write(t.Context(), p.ID(), p.To()); err != nil || refused < 6 {
			t.Errorf("%d refused, %v", refused, err)
		}
		tr.exact("with a refused command")
		b.Step = nil
		// A rule that came before is another program's, and stays.
		sh(t, "iptables-legacy -t raw -I PREROUTING 1 -s 192.0.2.1")
		if err := b.Write(t.Context(), p.ID(), p.From()); !errors.Is(err, apply.ErrChanged) {
			t.Errorf("%v", err)
		}
	})
}

// TestRefusedMatches: rules of iptables that count by themselves are not put in force again.
func TestRefusedMatches(t *testing.T) {
	for match, refused := range map[string]bool{"-m quota --quota 5000": true, "-m connlimit --connlimit-above 3": true,
		"-m statistic --mode nth --every 3": true, "-m statistic --mode random --probability 0.5": false} {
		text := strings.Replace(xtAccounting(), "COMMIT", "-A OTHER "+match+" -j DROP\nCOMMIT", 1)
		text = strings.Replace(text, "-A", ":OTHER - [0:0]\n-A", 1)
		before, err := read.IPTables(strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := rewrite.Optimise(before, equal.Usual())
		// The rehearsal is cancelled before it starts a program.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = apply.Rehearse(ctx, before.Program, before.Tables[0], got.Rules.Tables[0])
		if len(got.Changed) == 0 || err == nil || errors.Is(err, apply.ErrRefused) != refused {
			t.Errorf("%s: %d chains changed, %v", match, len(got.Changed), err)
		}
	}
}

// TestFailingProgram: nft or iptables-restore fails in either transaction, at once or because it
// gets half of the text. The rules in force are whole, and the next write goes on without a lost
// packet.
func TestFailingProgram(t *testing.T) {
	for _, program := range []ruleset.Program{ruleset.NFT, ruleset.IPTablesLegacy} {
		t.Run(string(program), func(t *testing.T) { testFailing(t, program) })
	}
}

func testFailing(t *testing.T, program ruleset.Program) {
	name, write := "nft", "-f"
	if program != ruleset.NFT {
		name, write = read.XTables(program, "ip", "restore"), "--noflush"
	}
	inNamespace(t, func() {
		tr := newTraffic(t, program)
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
			`head -c 300 | PATH="$REAL" ` + name + ` "$@"`} {
			for _, c := range []struct {
				at   string
				want knob.Value
			}{{"transaction", p.From()}, {"end", p.To()}} {
				script := "#!/bin/sh\nREAL='" + path + "'\ncase \"$1\" in " + write + ") " + fault +
					";; *) PATH=\"$REAL\" exec " + name + " \"$@\";; esac\n"
				if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
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
