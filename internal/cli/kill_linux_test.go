package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/wire"
)

// killRounds is how often a tune is killed; LINERATE_KILL_ROUNDS asks for another number.
const killRounds = 50

// TestKillTune kills `linerate tune` with SIGKILL at random moments. Every time all settings of
// both hosts must be restored — near by the guard, far because the peer is gone — and a recovery
// afterwards must find nothing to do. The path is simulated: the kills hit the writes of an
// experiment, not its traffic.
func TestKillTune(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	rounds := killRounds
	if s := os.Getenv("LINERATE_KILL_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	const worlds = 5
	for w := range worlds {
		// The fault is alternately far and near: the receiver's window is far, the sender's buffer
		// near.
		t.Run(fmt.Sprint("world-", w), func(t *testing.T) {
			t.Parallel()
			k := newKillWorld(t, w%2 == 0)
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range rounds / worlds {
				k.round(t, moment(i%4), time.Duration(random.Int64N(int64(time.Second))))
			}
			if k.inForce == 0 {
				t.Error("no kill fell while a change was in force: the test shows nothing")
			}
			t.Logf("%d kills, %d of them while a change was in force, %d runs had ended before", rounds/worlds,
				k.inForce, k.ended)
		})
	}
}

// moment is the part of a tune in which the kill falls: anywhere, after the first trial has begun,
// or while a change of one of the hosts is in force, which is the dangerous part.
type moment int

const (
	anywhere moment = iota
	inTrial
	nearInForce
	farInForce
)

// TestFarDies kills the far process with SIGKILL while its change is in force: the far guard
// restores the value, and the near tune ends with the status for an unreachable peer.
func TestFarDies(t *testing.T) {
	t.Parallel()
	k := newKillWorld(t, true)
	tune, said := k.holdFar(t, k.Far().Address, farWindow)
	// The lock of the far journal holds the number of its process, in the far host's own numbering.
	if err := k.Far().Exec(t.Context(), "sh", "-c", `kill -9 $(cat "$0")`,
		filepath.Join(k.state, "far", "lock")).Run(); err != nil {
		t.Fatal(err)
	}
	var exit *lab.ExitError
	if err := tune.Wait(); !errors.As(err, &exit) || exit.Code != 12 {
		t.Errorf("tune ended with %v, want exit status 12\n%s", err, said)
	}
	await(t, "every setting to come back", func() bool { return cmp.Equal(k.before, k.settings(t)) })
	for _, h := range []*lab.Host{k.Near(), k.Far()} {
		k.recovers(t, h)
	}
}

type killWorld struct {
	*lab.Running
	state   string
	key     string
	before  [2]map[string]string
	inForce int
	ended   int
}

// The settings that are wrong in these worlds, and the host that has each.
const (
	nearBuffer = "sysctl:net.ipv4.tcp_wmem"
	farWindow  = "sysctl:net.ipv4.tcp_rmem"

	near, far = 0, 1
)

func newKillWorld(t *testing.T, far bool) *killWorld {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	p := link.Params{RateBitsPerSec: 200e6, DelaySeconds: 0.005}
	state := t.TempDir() // removed after the end of the world, whose guards write there
	running, err := lab.Up(t.Context(), scenario.World{Topology: scenario.Pair, Link: &scenario.Link{ToFar: p}})
	if err != nil {
		t.Fatal(err) // not a skip: the project is tested in worlds
	}
	t.Cleanup(func() { running.Close() })
	k := &killWorld{Running: running, state: state, key: wire.NewKey().String()}
	host, fault := running.Near(), scenario.Setting{Knob: nearBuffer, Value: "4096 16384 32768"}
	if far {
		host, fault = running.Far(), scenario.Setting{Knob: farWindow, Value: "4096 32768 65536"}
	}
	if err := host.Set(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	stop, err := running.Serve(context.WithoutCancel(t.Context()), k.key, filepath.Join(k.state, "far"), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("far side:\n%s", log)
		}
	})
	k.before = k.settings(t)
	return k
}

func (k *killWorld) command(ctx context.Context, h *lab.Host, args ...string) *lab.Cmd {
	c := h.Command(ctx, append(args, "--state", filepath.Join(k.state, h.Name))...)
	c.Env = []string{"LINERATE_KEY=" + k.key}
	return c
}

func (k *killWorld) settings(t *testing.T) (s [2]map[string]string) {
	t.Helper()
	for i, h := range []*lab.Host{k.Near(), k.Far()} {
		var err error
		if s[i], err = h.Settings(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// running is a tune that has been started.
type running struct {
	*lab.Cmd
	ended chan error // receives once
}

// tune starts a tune of some knobs over a fast simulated path to a target.
func (k *killWorld) tune(t *testing.T, target, knobs string) (tune *running, said *syncBuffer) {
	t.Helper()
	return k.tuneAt(t, "fast", target, knobs)
}

// tuneAt starts a tune over a simulated path of a pace, see [cli.SimulatedPath].
func (k *killWorld) tuneAt(t *testing.T, pace, target, knobs string) (tune *running, said *syncBuffer) {
	t.Helper()
	c := k.command(t.Context(), k.Near(), "tune", target, "--knobs", knobs, "--thorough", "--progress", "lines")
	c.Env = append(c.Env, cli.SimulatedPath+"="+pace,
		"PATH="+filepath.Join(k.state, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	said = &syncBuffer{}
	c.Stderr = said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	tune = &running{c, make(chan error, 1)}
	go func() { tune.ended <- c.Wait() }()
	return tune, said
}

// hold starts a tune that stays in a test while a change of one side is in trial, and waits for
// that or for the end of the tune.
func (k *killWorld) hold(t *testing.T, side int, target, knobs string) (tune *running, said *syncBuffer) {
	t.Helper()
	pace := [...]string{near: "hold-near", far: "hold"}[side]
	tune, said = k.tuneAt(t, pace, target, knobs)
	await(t, "a change to be in force", func() bool {
		return tune.over() || !cmp.Equal(k.before[side], k.settings(t)[side])
	})
	return tune, said
}

// holdFar starts a tune that stays in a test while a far change is in trial, and waits for that.
func (k *killWorld) holdFar(t *testing.T, target, knobs string) (tune *running, said *syncBuffer) {
	t.Helper()
	tune, said = k.hold(t, far, target, knobs)
	if tune.over() {
		t.Fatalf("tune ended before a far change was in force: %v\n%s", tune.Wait(), said)
	}
	return tune, said
}

// Wait returns what the tune ended with.
func (r *running) Wait() error { return <-r.ended }

// over reports whether the tune has ended.
func (r *running) over() bool { return len(r.ended) > 0 }

func signal(t *testing.T, tune *running, s syscall.Signal) {
	t.Helper()
	if err := tune.Signal(s); err != nil && !tune.over() {
		t.Fatal(err)
	}
}

// round starts a tune, kills it a while after its start, after the start of its first trial or
// while a change is in force, and waits until every setting is back.
func (k *killWorld) round(t *testing.T, from moment, after time.Duration) {
	t.Helper()
	var tune *running
	var said *syncBuffer
	const knobs = farWindow + "," + nearBuffer
	switch from {
	case anywhere:
		tune, said = k.tune(t, k.Far().Address, knobs)
	case inTrial:
		tune, said = k.tune(t, k.Far().Address, knobs)
		await(t, "the first trial to begin",
			func() bool { return strings.Contains(said.String(), "try ") || tune.over() })
	default:
		side := map[moment]int{nearInForce: near, farInForce: far}[from]
		if tune, said = k.hold(t, side, k.Far().Address, knobs); !tune.over() {
			k.inForce++
		}
		after = 0
	}
	select {
	case <-time.After(after): // the random moment is the point of the test
		signal(t, tune, syscall.SIGKILL)
		_ = tune.Wait() // killed, or ended a moment before
	case err := <-tune.ended:
		if err != nil {
			t.Fatalf("tune: %v: %s", err, said)
		}
		k.ended++
	}
	for _, h := range []*lab.Host{k.Near(), k.Far()} {
		k.undoCommitted(t, h)
	}
	await(t, "every setting to come back", func() bool { return cmp.Equal(k.before, k.settings(t)) })
	for _, h := range []*lab.Host{k.Near(), k.Far()} {
		k.recovers(t, h)
	}
	if diff := cmp.Diff(k.before, k.settings(t)); diff != "" {
		t.Fatalf("killed after %v: recovery changed something (-before +now):\n%s", after, diff)
	}
}

// undoCommitted undoes the changes of a tune that ended before the kill. A guard does not revert
// committed changes.
func (k *killWorld) undoCommitted(t *testing.T, h *lab.Host) {
	t.Helper()
	out, err := k.command(t.Context(), h, "history", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte(`"state":"committed"`)) {
		return
	}
	if _, err := k.command(t.Context(), h, "undo", "--all", "--here").Output(); err != nil {
		t.Fatal(err)
	}
}

// recovers runs recover until it has the journal, and then once more: the second must find nothing
// to do.
func (k *killWorld) recovers(t *testing.T, h *lab.Host) {
	t.Helper()
	var out []byte
	await(t, "the journal of "+h.Name+" to be free", func() bool {
		var err error
		out, err = k.command(t.Context(), h, "recover", "--json").Output()
		return err == nil
	})
	out, err := k.command(t.Context(), h, "recover", "--json").Output()
	if err != nil {
		t.Fatalf("second recovery of %s: %v", h.Name, err)
	}
	var doc struct {
		Outcomes []json.RawMessage `json:"outcomes"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Outcomes) != 0 {
		t.Fatalf("second recovery of %s did something (%v): %s", h.Name, err, out)
	}
}

// await polls until a condition holds. Its bound only ends a test that hangs: the guard and a lost
// peer take seconds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// syncBuffer is a buffer that a command writes while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
