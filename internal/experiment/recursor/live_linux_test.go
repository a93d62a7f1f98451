package recursor_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/experiment/recursor"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
	"github.com/linerate/linerate/internal/resolver/world"
)

// inRoom runs f in a network namespace with a real recursor.
func inRoom(t *testing.T, kind world.Recursor, plant []string, f func(room *world.Room)) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	if _, err := kind.Find(); err != nil {
		testenv.Missing(t, testenv.Peers, err)
	}
	nltest.InNetNS(t, func() {
		if err := world.Furnish(); err != nil {
			t.Error(err)
			return
		}
		room, err := world.Open(t.Context(), kind, filepath.Join(t.TempDir(), "server"), plant, 1)
		if err != nil {
			t.Error(err)
			return
		}
		defer room.Close()
		f(room)
	})
}

// open opens a journal. A process that a killed writer had just forked has its lock until the exec.
func open(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		j, err := journal.Open(journal.Options{Dir: dir, Backend: knob.Catalogued{Backend: live.New()},
			Catalog: knob.Catalogue(), Unguarded: true})
		if err == nil {
			return j
		}
		if !errors.Is(err, journal.ErrLocked) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Every candidate of every program is applied to the real server, is in force, and goes back to the
// same bytes and the same command line.
func TestOptionsOfRealServers(t *testing.T) {
	for kind, plant := range map[world.Recursor][]string{world.BIND: {"max-cache-size 100K;"},
		world.Unbound: {"num-threads: 1"}, world.Knot: {"cache.min_ttl(0)", "cache.max_ttl(2)"}} {
		t.Run(string(kind), func(t *testing.T) {
			inRoom(t, kind, plant, func(room *world.Room) {
				text, err := os.ReadFile(room.Config())
				if err != nil {
					t.Error(err)
					return
				}
				first, err := nameserver.Find(kind.Kind(), room.Config())
				if err != nil {
					t.Error(err)
					return
				}
				j := open(t, filepath.Join(t.TempDir(), "state"))
				defer j.Close()
				for _, c := range recursor.Candidates(kind.Kind(), room.Config(), 2) {
					changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: c.Knob, Value: c.Levels[0]})
					if err != nil || len(changes) != 1 || changes[0].To != c.Levels[0] {
						t.Errorf("apply %s: %+v, %v", c.Knob, changes, err)
						continue
					}
					if _, err := j.Undo(t.Context(), changes[0].ID); err != nil {
						t.Errorf("undo %s: %v", c.Knob, err)
					}
					now, err := os.ReadFile(room.Config())
					s, findErr := nameserver.Find(kind.Kind(), room.Config())
					if err != nil || string(now) != string(text) || findErr != nil || !slices.Equal(s.Args, first.Args) {
						t.Errorf("after undo of %s: %q %v, %q, %v", c.Knob, s.Args, findErr, now, err)
					}
				}
				refuse(t, j, kind, room, string(text))
			})
		})
	}
}

// refuse tries values that the checker or the server refuses: nothing changes, and the server runs.
func refuse(t *testing.T, j *journal.Journal, kind world.Recursor, room *world.Room, text string) {
	t.Helper()
	bad := map[world.Recursor][2]string{world.BIND: {"max-cache-size", "many"}, world.Unbound: {"num-threads", "-1"},
		world.Knot: {"cache.size", "many"}}[kind]
	id := recursor.ID(kind.Kind(), room.Config(), bad[0])
	_, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: id, Value: knob.Value(bad[1])})
	now, readErr := os.ReadFile(room.Config())
	if _, findErr := nameserver.Find(kind.Kind(), room.Config()); err == nil || readErr != nil || findErr != nil ||
		string(now) != text {
		t.Errorf("%s=%s: %v; server: %v; %q, %v", id, bad[1], err, findErr, now, readErr)
	}
	t.Logf("refused: %v", err)
}

// killed is the variable with the configuration that a writer to be killed works on.
const killed = "LINERATE_TEST_RECURSOR"

// TestWriterToKill is the process that TestKilledWriter kills; alone it does nothing.
func TestWriterToKill(t *testing.T) {
	config := os.Getenv(killed)
	if config == "" {
		return
	}
	j := open(t, filepath.Join(filepath.Dir(config), "state"))
	for { // until it is killed
		for _, c := range recursor.Candidates(nameserver.Named, config, 2) {
			changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: c.Knob, Value: c.Levels[0]})
			if err == nil {
				_, err = j.Undo(t.Context(), changes[0].ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A writer is killed at random moments. After recovery the server runs with the old bytes and the
// old command line.
func TestKilledWriter(t *testing.T) {
	inRoom(t, world.BIND, []string{"max-cache-size 100K;"}, func(room *world.Room) {
		text, err := os.ReadFile(room.Config())
		if err != nil {
			t.Error(err)
			return
		}
		first, err := nameserver.Find(nameserver.Named, room.Config())
		if err != nil {
			t.Error(err)
			return
		}
		for range 6 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestWriterToKill$")
			cmd.Env = append(os.Environ(), killed+"="+room.Config())
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Duration(100+rand.IntN(1500)) * time.Millisecond)
			_ = cmd.Process.Kill() // it may have failed already, which its status shows
			var ended *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &ended) || ended.Exited() {
				t.Errorf("the writer ended before it was killed: %v\n%s", err, said.String())
				return
			}
			j := open(t, filepath.Join(filepath.Dir(room.Config()), "state"))
			outcomes, err := j.Recover(t.Context())
			if err != nil {
				t.Errorf("recover: %v", err)
			}
			_ = j.Close() // nothing is unwritten
			now, err := os.ReadFile(room.Config())
			s, findErr := nameserver.Find(nameserver.Named, room.Config())
			if err != nil || string(now) != string(text) || findErr != nil || !slices.Equal(s.Args, first.Args) {
				t.Errorf("after %d outcomes: %q, %v; %q, %v", len(outcomes), s.Args, findErr, now, err)
			}
		}
	})
}
