package apply_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/apply"
)

// The test binary plays three parts: started as `TEST guard …` it is a guard, as `TEST writer STATE
// ID VALUE MODE` it applies rules and takes them back, else it is the test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			finish(guard(os.Args[2:]))
		case "writer":
			finish(writer(os.Args[2], knob.ID(os.Args[3]), knob.Value(os.Args[4]), os.Args[5]))
		}
	}
	os.Exit(m.Run())
}

func finish(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// aliveName is a file that a guard has locked as long as it lives.
const aliveName = "guard is alive"

func options(state string, part string) journal.Options {
	tables := &apply.Tables{Dir: filepath.Join(state, "firewall"), Step: mortal(part)}
	return journal.Options{Dir: state, Backend: apply.Host{Backend: knob.NewMemory(nil), Tables: tables},
		Normalize: func(_ knob.ID, v knob.Value) (knob.Value, error) { return v, nil }}
}

// mortal kills the process by SIGKILL at its Nth step when the environment says DIES_AT_PART=N.
func mortal(part string) func(string) {
	n, err := strconv.Atoi(os.Getenv("DIES_AT_" + part))
	if err != nil {
		return nil
	}
	var mu sync.Mutex
	return func(string) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

func guard(args []string) error {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[strings.TrimPrefix(args[i], "--")] = args[i+1]
	}
	alive, err := durable.OS().Lock(filepath.Join(flags["state"], aliveName))
	if err != nil {
		return err
	}
	defer alive.Close()
	span, err := time.ParseDuration(flags["deadline"])
	if err != nil {
		return err
	}
	return journal.RunGuard(context.Background(), journal.GuardConfig{Journal: options(flags["state"], "GUARD"),
		Mode: journal.Mode(flags["mode"]), Session: flags["session"], For: span})
}

// writer applies, says so, and takes back. In the mode "commit" it commits in between.
func writer(state string, id knob.ID, value knob.Value, mode string) error {
	o := options(state, "WRITER")
	o.Mode, o.Guard = journal.Lease, &journal.GuardOptions{}
	if mode == "deadline" {
		o.Mode = journal.Deadline
	}
	j, err := journal.Open(o)
	if err != nil {
		return err
	}
	defer j.Close()
	ctx := context.Background()
	span := time.Hour
	if mode == "deadline" {
		span = 4 * time.Second
	}
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
	v := &victim{traffic: tr, state: t.TempDir(), plan: accountPlan(t)}
	if err := (&apply.Tables{Dir: filepath.Join(v.state, "firewall")}).Add(v.plan); err != nil {
		t.Fatal(err)
	}
	return v
}

// start starts a writer.
func (v *victim) start(mode string, env ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], "writer", v.state, string(v.plan.ID()), string(v.plan.To()), mode)
	c.Env, c.Stderr = append(os.Environ(), env...), v.t.Output()
	return c
}

// over waits until no guard is left.
func (v *victim) over() {
	v.t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		alive, err := durable.OS().Lock(filepath.Join(v.state, aliveName))
		if err == nil {
			_ = alive.Close()
			return
		}
		if !errors.Is(err, durable.ErrLocked) || time.Now().After(until) {
			v.t.Fatalf("the guard does not end: %v", err)
		}
	}
}

// accounted checks after a kill that the old rules are in force, that nothing of ours is left but
// carried counts, and that every packet was counted once.
func (v *victim) accounted(what string) {
	v.t.Helper()
	v.over()
	j, err := journal.Open(options(v.state, "NONE"))
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
	text := listed(v.t)
	left := func(s string) bool { return strings.Contains(text, s) }
	if left("linerate: ") || left("linerate_base") || left("@count") {
		log, _ := os.ReadFile(filepath.Join(v.state, "guard.log"))
		v.t.Fatalf("%s: not as before:\n%s\n%s", what, text, log)
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
		env = append(env, "DIES_AT_WRITER=6") // for the guard to have something to do
	}
	err := v.start(mode, env...).Run()
	v.over()
	v.accounted(fmt.Sprintf("%s, %s killed at step %d", mode, part, n))
	v.kills++
	return err != nil
}

// TestKill kills writers and guards while packets arrive: at every step, and at random moments.
func TestKill(t *testing.T) {
	inNamespace(t, func() {
		tr := newTraffic(t)
		defer tr.end()
		v := newVictim(t, tr)
		v.traffic.start()
		steps, random := 0, 4
		if testenv.Provided(testenv.Soak) {
			random = 200
		}
		if n, err := strconv.Atoi(os.Getenv("LINERATE_KILL_ROUNDS")); err == nil {
			random = n
		}
		for _, mode := range []string{"trial", "commit"} {
			if mode == "commit" && random < 200 {
				continue
			}
			for n := 0; v.atStep(mode, "WRITER", n); n++ {
				steps++
			}
		}
		if steps < 8 {
			t.Errorf("a writer has only %d steps", steps)
		}
		for n := 0; n < 4 || random >= 200 && n < 10; n++ {
			v.atStep("trial", "GUARD", n)
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
			time.Sleep(time.Duration(rng.Int64N(int64(whole)))) // any moment will do
			_ = c.Process.Kill()
			_ = c.Wait()
			v.accounted(fmt.Sprintf("%s, random kill %d", mode, n))
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
		tr := newTraffic(t)
		defer tr.end()
		v := newVictim(t, tr)
		v.traffic.start()
		c := v.start("deadline")
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
