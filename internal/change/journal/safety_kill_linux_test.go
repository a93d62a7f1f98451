package journal_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// randomKills is how often each kind of writer is killed at random; LINERATE_KILL_ROUNDS sets
// another number. TestKillAtEveryStep is the complete sweep; random kills add the moments between
// its steps.
const randomKills = 40

// lane is one world in which writers of live knobs are killed, one after the other.
type lane struct {
	t      *testing.T
	dir    string
	before snapshot

	kills, inForce int
	slowest        time.Duration
}

// start starts a part of the test binary in the world of this thread.
func (l *lane) start(env string, args ...string) *exec.Cmd {
	l.t.Helper()
	return journaltest.Start(l.t, strings.Fields(env), append([]string{"live"}, args...)...)
}

func newLane(t *testing.T) *lane { return &lane{t: t, dir: t.TempDir(), before: takeSnapshot(t)} }

// accountFor checks that nothing is in trial and that the world is as it was, but for what was
// committed; and that undo --all makes it as it was to the byte.
func (l *lane) accountFor(state, what string) {
	l.t.Helper()
	j, err := journaltest.OpenSoon(processOptions("live", state))
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
	defer j.Close()
	again, err := j.Recover(l.t.Context())
	if err != nil {
		l.t.Fatalf("%s: recover: %v", what, err)
	}
	if len(again) != 0 {
		log, _ := os.ReadFile(filepath.Join(state, "guard.log"))
		if !journaltest.WithoutStorage(state) {
			l.t.Fatalf("%s: something was left to recover: %+v\nguard.log:\n%s", what, again, log)
		}
		l.t.Logf("%s: the guard went on without its storage, and left to recovery: %+v\n%s", what, again, log)
	}
	committed := false
	for _, c := range j.Changes() {
		if c.State == journal.Trial {
			l.t.Fatalf("%s: still in trial: %+v", what, c)
		}
		committed = committed || c.State == journal.Committed
	}
	if !committed {
		l.identical(what)
	}
	outcomes, err := j.UndoAll(l.t.Context())
	if err != nil {
		l.t.Fatalf("%s: undo --all: %v", what, err)
	}
	for _, o := range outcomes {
		// A committed change holds its value to the last, so each one really goes back.
		if !o.Restored && !strings.Contains(o.Change.Note, "stands on top") {
			l.t.Fatalf("%s: undo --all: %+v", what, o)
		}
	}
	l.identical(what + ", undo --all")
}

func (l *lane) identical(what string) {
	l.t.Helper()
	if d := l.before.differences(takeSnapshot(l.t)); len(d) != 0 {
		l.t.Fatalf("%s: unaccounted for:\n%s", what, strings.Join(d, "\n"))
	}
}

// randomKill lets a writer change, commit and undo, and kills it at a random moment after its first
// change.
func (l *lane) randomKill(mode string, random *rand.Rand) {
	l.t.Helper()
	state := filepath.Join(l.dir, strconv.Itoa(l.kills))
	command := l.start("", "writer", state, mode)
	out, err := command.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		l.t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		l.t.Fatalf("writer: %v", err)
	}
	wait := time.Duration(random.IntN(20_000)) * time.Microsecond
	at := time.Now().Add(wait)
	if !journaltest.KillAfter(l.t, "writer", command, wait) {
		l.t.Fatal("the writer ended before the kill")
	}
	l.kills++
	what := fmt.Sprintf("kill %d of a writer (%s)", l.kills, mode)
	if strings.HasSuffix(mode, "unguarded") {
		// No guard runs, so a value in force at the moment of the kill is still in force.
		if len(l.before.differences(takeSnapshot(l.t))) != 0 {
			l.inForce++
		}
		j, err := journaltest.OpenSoon(processOptions("live", state))
		if err != nil {
			l.t.Fatalf("%s: %v", what, err)
		}
		if _, err := j.Recover(l.t.Context()); err != nil {
			l.t.Fatalf("%s: %v", what, err)
		}
		j.Close()
	} else {
		journaltest.GuardEnds(l.t, state)
	}
	l.slowest = max(l.slowest, time.Since(at))
	l.accountFor(state, what)
}

// TestThousandKills kills writers of real settings (sysctls, features, channels, MTU, queue
// lengths, queueing disciplines, routes, steering) with SIGKILL at random moments. With a guard
// everything goes back automatically, without one at the next start. The journal accounts for every
// change.
func TestThousandKills(t *testing.T) {
	rounds := journaltest.Rounds(t, randomKills)
	for _, kind := range []string{"", " unguarded"} {
		t.Run("guarded"+strings.Replace(kind, " ", "-", 1), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func() {
				l := newLane(t)
				random := rand.New(rand.NewPCG(6, uint64(rounds)))
				// A kill while nothing is in force shows little, so it does not count fully: the
				// test goes on until a quarter of the rounds hit a change.
				for i := 0; i < rounds || kind != "" && l.inForce < rounds/4; i++ {
					l.randomKill([]string{"trial", "commit"}[i%2]+kind, random)
				}
				t.Logf("%d kills, slowest recovery %v, nothing unaccounted for", l.kills,
					l.slowest.Round(time.Millisecond))
				if kind != "" {
					t.Logf("%d kills while a change was in force", l.inForce)
				}
			})
		})
	}
}

// TestKillAtEveryStep kills the writer before each of its accesses to disk and knobs in turn, then
// the guard, then the recovery. The process that is left, at last the next start, restores
// everything.
func TestKillAtEveryStep(t *testing.T) {
	for _, part := range []struct {
		name, env, mode string
		least           int // steps that there are, so that a counter that does not count is noticed
	}{
		{"writer", "DIES_AT_WRITER=%d", "life", 100},
		{"writer-unguarded", "DIES_AT_WRITER=%d", "life unguarded", 100},
		{"guard", "DIES_AT_WRITER=70 DIES_AT_GUARD=%d", "life", 20},
		{"recovery", "DIES_AT_WRITER=70 DIES_AT_RECOVERY=%d", "life unguarded", 20},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func() {
				l := newLane(t)
				for n := 1; ; n++ {
					if !l.killAtStep(part.env, part.mode, n) {
						if n < part.least {
							t.Errorf("only %d steps", n-1)
						}
						t.Logf("killed before each of %d steps", n-1)
						return
					}
				}
			})
		})
	}
}

// killAtStep plays a life, and reports whether a process died at step n.
func (l *lane) killAtStep(env, mode string, n int) (died bool) {
	l.t.Helper()
	state := filepath.Join(l.dir, strconv.Itoa(n))
	env = fmt.Sprintf(env, n)
	what := fmt.Sprintf("%s, %s", env, mode)
	err := l.start(env, "writer", state, mode).Run()
	journaltest.GuardEnds(l.t, state)
	switch {
	case strings.Contains(env, "RECOVERY"):
		journaltest.Killed(l.t, "writer", err)
		died = journaltest.Killed(l.t, "recovery", l.start(env, "recover", state).Run())
	case strings.Contains(env, "GUARD"):
		// A guard that dies before it has answered is none: the writer says so and touches nothing.
		if died = journaltest.Died("GUARD", state); !died || n > 5 {
			journaltest.Killed(l.t, "writer", err)
		}
	default:
		died = journaltest.Killed(l.t, "writer", err)
	}
	if env != fmt.Sprintf("DIES_AT_WRITER=%d", n) || strings.HasSuffix(mode, "unguarded") {
		if err := l.start("", "recover", state).Run(); err != nil {
			l.t.Fatalf("%s: recovery: %v", what, err)
		}
	}
	l.accountFor(state, what)
	return died
}
