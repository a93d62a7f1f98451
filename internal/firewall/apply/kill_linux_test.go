package apply_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// The test binary plays three parts: started as `TEST guard …` it is a guard, as `TEST writer STATE
// ID VALUE MODE` it applies rules and takes them back, else it is the test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			journaltest.Finish(journaltest.Guard(os.Args[2:], func(state string) journal.Options {
				return options(state, "GUARD")
			}))
		case "writer":
			journaltest.Finish(writer(os.Args[2], knob.ID(os.Args[3]), knob.Value(os.Args[4]), os.Args[5]))
		}
	}
	os.Exit(m.Run())
}

func options(state string, part string) journal.Options {
	tables := &apply.Tables{Dir: filepath.Join(state, "firewall")}
	if die := journaltest.Mortal(part, state); die != nil {
		tables.Step = func(string) { die() }
	}
	return journal.Options{Dir: state, Backend: apply.Host{Backend: knob.NewMemory(nil), Tables: tables},
		Normalize: func(_ knob.ID, v knob.Value) (knob.Value, error) { return v, nil },
		Boottime: func() time.Duration {
			if _, err := os.Stat(os.Getenv(later)); err == nil {
				return sys.Boottime() + 2*span
			}
			return sys.Boottime()
		}}
}

// later is the variable with the name of a file. When it is there, the clock of all parts is past
// every deadline.
const later = "LINERATE_TEST_LATER"

// span is the time of all trials.
const span = time.Hour

// writer applies, says so, and takes back. In the mode "commit" it commits in between.
func writer(state string, id knob.ID, value knob.Value, mode string) error {
	o := options(state, "WRITER")
	o.Mode, o.Guard = journal.Lease, &journal.GuardOptions{Handshake: journaltest.Patience}
	if mode == "deadline" {
		o.Mode = journal.Deadline
	}
	j, err := journal.Open(o)
	if err != nil {
		return err
	}
	defer j.Close()
	ctx := context.Background()
	changes, err := j.Apply(ctx, journal.Request{For: span}, knob.Setting{Knob: id, Value: value})
	if err != nil {
		return err
	}
	fmt.Println("applied")
	switch mode {
	case "deadline":
		return nil
	case "commit":
		if err := j.Commit(ctx, changes[0].ID); err != nil {
			return err
		}
	}
	_, err = j.Undo(ctx, changes[0].ID)
	return err
}

// victim is the world of the kills.
type victim struct {
	*traffic
	state  string
	plan   *apply.Plan
	kills  int
	inside int // kills that left something to do
	carry  uint64
}

func newVictim(t *testing.T, tr *traffic) *victim {
	v := &victim{traffic: tr, state: t.TempDir(), plan: tr.plan()}
	if err := (&apply.Tables{Dir: filepath.Join(v.state, "firewall")}).Add(v.plan); err != nil {
		t.Fatal(err)
	}
	return v
}

// start starts a writer.
func (v *victim) start(mode string, env ...string) *exec.Cmd {
	return journaltest.Start(v.t, env, "writer", v.state, string(v.plan.ID()), string(v.plan.To()), mode)
}

// accounted checks after a kill that the old rules are in force, that nothing of ours is left but
// carried counts, and that every packet was counted once.
func (v *victim) accounted(what string) {
	v.t.Helper()
	journaltest.GuardEnds(v.t, v.state)
	j, err := journaltest.OpenSoon(options(v.state, "NONE"))
	if err != nil {
		v.t.Fatalf("%s: %v", what, err)
	}
	ctx := context.Background()
	outcomes, err := j.Recover(ctx)
	if err != nil {
		v.t.Fatalf("%s: recover: %v", what, err)
	}
	v.inside += len(outcomes)
	if _, err := j.UndoAll(ctx); err != nil {
		v.t.Fatalf("%s: undo: %v", what, err)
	}
	if err := j.Close(); err != nil {
		v.t.Fatal(err)
	}
	v.carry = max(v.carry, v.exact(what))
	text := v.rules()
	left := func(s string) bool { return strings.Contains(text, s) }
	if left("linerate: ") || left("linerate_base") || left("@count") || left(":PREROUTING-") {
		log, _ := os.ReadFile(filepath.Join(v.state, "guard.log"))
		v.t.Fatalf("%s: not as before:\n%s\n%s", what, text, log)
	}
	if v.program == ruleset.IPTablesLegacy && !left(":PREROUTING DROP [77:7700]") {
		v.t.Fatalf("%s: the policy has another count:\n%s", what, text)
	}
	b := options(v.state, "NONE").Backend
	if now, err := b.Read(ctx, v.plan.ID()); err != nil || now != v.plan.From() {
		v.t.Fatalf("%s: the table holds %s, %v", what, now, err)
	}
	v.traffic.start()
}

// atStep kills a writer or a guard at a step; false if it has no such step.
func (v *victim) atStep(mode, part string, n int) bool {
	v.t.Helper()
	env := []string{fmt.Sprintf("DIES_AT_%s=%d", part, n)}
	if part == "GUARD" {
		env = append(env, "DIES_AT_WRITER=7") // for the guard to have something to do
	}
	what := fmt.Sprintf("%s, %s killed at step %d", mode, part, n)
	killed := journaltest.Killed(v.t, what, v.start(mode, env...).Run())
	v.accounted(what)
	v.kills++
	return killed
}

// TestKill kills writers and guards while packets arrive: at every step, and at random moments.
func TestKill(t *testing.T) {
	for _, program := range programs {
		t.Run(string(program), func(t *testing.T) { testKill(t, program) })
	}
}

func testKill(t *testing.T, program ruleset.Program) {
	inNamespace(t, func() {
		tr := newTraffic(t, program)
		defer tr.end()
		v := newVictim(t, tr)
		v.traffic.start()
		soak := testenv.Provided(testenv.Soak)
		random := 1
		if soak {
			random = 200
		}
		random = journaltest.Rounds(t, random)
		modes, guards := []string{"trial"}, 2
		if soak {
			modes, guards = []string{"trial", "commit"}, 10
		}
		for _, mode := range modes {
			n := 1
			// The suite kills before each step of one program, and of the others where rules are half-way.
			for soak || program == ruleset.IPTablesLegacy || n < 8 {
				if !v.atStep(mode, "WRITER", n) {
					break
				}
				if n++; !soak && program != ruleset.IPTablesLegacy && n == 2 {
					n = 4
				}
			}
			if n < 8 {
				t.Errorf("a writer has only %d steps", n-1)
			}
		}
		for n := range guards {
			v.atStep("trial", "GUARD", 2*n+1)
		}
		began := time.Now()
		if err := v.start("commit").Run(); err != nil {
			t.Fatal(err)
		}
		whole := time.Since(began)
		v.accounted("whole")
		rng := rand.New(rand.NewPCG(1, 2))
		for n := range random {
			mode := []string{"trial", "commit"}[n%2]
			c := v.start(mode)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%s, random kill %d", mode, n)
			journaltest.KillAfter(t, what, c, time.Duration(rng.Int64N(int64(whole))))
			v.accounted(what)
			v.kills++
		}
		t.Logf("%d kills, of which %d left work to recovery; %d packets, at most %d carried; a whole run took %v", v.kills,
			v.inside, tr.total(), v.carry, whole)
	})
}

// TestGuardWithoutFiles: the guard restores rules and counters at the deadline by its memory,
// although the state directory is gone.
func TestGuardWithoutFiles(t *testing.T) {
	inNamespace(t, func() {
		tr := newTraffic(t, ruleset.IPTablesLegacy)
		defer tr.end()
		v := newVictim(t, tr)
		v.traffic.start()
		passes := filepath.Join(t.TempDir(), "later")
		c := v.start("deadline", later+"="+passes)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "applied\n" {
			t.Fatalf("%q, %v", said, err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		away := filepath.Join(t.TempDir(), "gone")
		if err := os.Rename(v.state, away); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(passes, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tables := &apply.Tables{Dir: filepath.Join(away, "firewall")}
		for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			now, err := tables.Read(context.Background(), v.plan.ID())
			if err != nil {
				t.Fatal(err)
			}
			if now == v.plan.From() {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("the guard did nothing: %s", now)
			}
		}
		v.exact("after the guard")
	})
}
