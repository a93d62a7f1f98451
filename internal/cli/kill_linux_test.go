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

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/wire"
)

// killRounds is how often a tune is killed; LINERATE_KILL_ROUNDS asks for another number.
const killRounds = 50

// TestKillTune kills `linerate tune` with SIGKILL at random moments. Every time all settings of
// both hosts must come back — the near ones by the guard, the far ones because the peer is gone —
// and a recovery afterwards must find nothing to do.
func TestKillTune(t *testing.T) {
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
		// Near and far knobs by turns: the receiver's window is far, the sender's buffer near.
		t.Run(fmt.Sprint("world-", w), func(t *testing.T) {
			t.Parallel()
			k := newKillWorld(t, w%2 == 0)
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range rounds / worlds {
				k.round(t, moment(i%3), time.Duration(random.Int64N(int64(4*time.Second))))
			}
			if k.inForce == 0 {
				t.Error("no kill fell while a change was in force: the test shows nothing")
			}
			t.Logf("%d kills, %d of them while a change was in force, %d runs had ended before", rounds/worlds,
				k.inForce, k.ended)
		})
	}
}

// moment is from when on a kill may fall: anywhere, after the first trial has begun, or at once
// when a change is in force, where the danger is.
type moment int

const (
	anywhere moment = iota
	inTrial
	inForce
)

// TestFarDies kills the far process with SIGKILL while its change is in force: the far guard puts
// the value back, and the near tune ends by itself with the status for an unreachable peer.
func TestFarDies(t *testing.T) {
	k := newKillWorld(t, true)
	tune := k.command(t.Context(), k.Near(), "tune", k.Far().Address, "--duration", "100ms", "--warm-up", "60ms",
		"--progress", "lines")
	said := &syncBuffer{}
	tune.Stderr = said
	if err := tune.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "a far change to be in force", func() bool { return !cmp.Equal(k.before, k.settings(t)) })
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

func newKillWorld(t *testing.T, far bool) *killWorld {
	t.Helper()
	p := link.Params{RateBitsPerSec: 200e6, DelaySeconds: 0.005}
	running, err := lab.Up(t.Context(), scenario.World{Topology: scenario.Pair, Link: &scenario.Link{ToFar: p}})
	if err != nil {
		t.Fatal(err) // not a skip: worlds are what this project is tested in
	}
	t.Cleanup(func() { running.Close() })
	k := &killWorld{Running: running, state: t.TempDir(), key: wire.NewKey().String()}
	host, fault := running.Near(), scenario.Setting{Knob: "sysctl:net.ipv4.tcp_wmem", Value: "4096 16384 32768"}
	if far {
		host, fault = running.Far(), scenario.Setting{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 32768 65536"}
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

// round starts a tune, kills it a while after its start, after the start of its first trial or when
// a change is in force, and waits for everything to be as it was.
func (k *killWorld) round(t *testing.T, from moment, after time.Duration) {
	t.Helper()
	tune := k.command(t.Context(), k.Near(), "tune", k.Far().Address, "--duration", "100ms", "--warm-up", "60ms",
		"--progress", "lines")
	said := &syncBuffer{}
	tune.Stderr = said
	if err := tune.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- tune.Wait() }()
	if from != anywhere {
		await(t, "the first trial to begin",
			func() bool { return strings.Contains(said.String(), "try ") || len(done) > 0 })
	}
	if from == inForce {
		await(t, "a change to be in force", func() bool { return !cmp.Equal(k.before, k.settings(t)) || len(done) > 0 })
		after /= 40 // Within the segments of that trial.
	}
	select {
	case <-time.After(after): // the random moment is the point of the test
		if !cmp.Equal(k.before, k.settings(t)) {
			k.inForce++
		}
		if err := tune.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-done
	case err := <-done:
		if err != nil {
			t.Fatalf("tune: %v: %s", err, said)
		}
		k.ended++
		for _, h := range []*lab.Host{k.Near(), k.Far()} {
			if _, err := k.command(t.Context(), h, "undo", "--all").Output(); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(t, "every setting to come back", func() bool { return cmp.Equal(k.before, k.settings(t)) })
	for _, h := range []*lab.Host{k.Near(), k.Far()} {
		k.recovers(t, h)
	}
	if diff := cmp.Diff(k.before, k.settings(t)); diff != "" {
		t.Fatalf("killed after %v: recovery changed something (-before +now):\n%s", after, diff)
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

// await polls until a condition holds; far beyond the guard's deadline it gives up.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
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
