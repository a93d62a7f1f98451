package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
)

// ofInterface are changes of a0 that name the interface in every way that there is.
var ofInterface = []string{
	"link:a0/mtu", "9000", "link:a0/txqueuelen", "500", "sysctl:net.ipv4.conf.a0.rp_filter", "1",
	"qdisc:a0/root", "pfifo",
	"ethtool:a0/feature.tx-tcp-segmentation", "off", "queue:a0/rx-0/rps_cpus", "1",
}

// must runs commands, and ends the test when one fails.
func must(t *testing.T, script string) {
	t.Helper()
	if err := run(script); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

func liveJournal(t *testing.T, state string) *journal.Journal {
	t.Helper()
	o := processOptions("live", state)
	o.Unguarded = true
	j, err := journaltest.OpenSoon(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// TestInterfaceIsRenamed: an interface gets another name while trials are in force, and another
// interface gets the old one. Undo and recovery find the right one, and a change under the new name
// knows the first value.
func TestInterfaceIsRenamed(t *testing.T) {
	for _, way := range []string{"undo", "recovery", "a second change"} {
		t.Run(way, func(t *testing.T) {
			inWorld(t, func() {
				before, state := takeSnapshot(t), t.TempDir()
				j := liveJournal(t, state)
				apply(t, j, journal.Request{}, ofInterface...)
				// The second name is the old one of the other: code that goes by names writes to
				// the wrong interface.
				must(t, `ip link set a0 down; ip link set b0 down
					ip link set a0 name lan0; ip link set b0 name a0
					ip link set lan0 up; ip link set a0 up`)
				if err := j.Commit(t.Context(), "1"); err != nil {
					t.Errorf("commit under another name: %v", err)
				}
				var outcomes []journal.Outcome
				var err error
				switch way {
				case "undo":
					outcomes, err = j.UndoAll(t.Context())
				case "recovery":
					j.Close()
					j = liveJournal(t, state)
					if outcomes, err = j.Recover(t.Context()); err == nil {
						var committed []journal.Outcome
						committed, err = j.UndoAll(t.Context())
						outcomes = append(outcomes, committed...)
					}
				default:
					second := apply(t, j, journal.Request{}, "link:lan0/mtu", "8000")[0]
					if second.From != "9000" || second.Original != "1500" {
						t.Errorf("%+v", second)
					}
					outcomes, err = j.UndoAll(t.Context())
				}
				if err != nil || len(outcomes) < len(ofInterface)/2 {
					t.Errorf("%+v, %v", outcomes, err)
				}
				for _, o := range outcomes {
					if !o.Restored || !strings.HasPrefix(string(o.Change.Knob), "link:lan0/") &&
						!strings.Contains(o.Change.Note, "its interface is called lan0 now") {
						t.Errorf("%+v", o)
					}
				}
				must(t, `ip link set a0 down; ip link set lan0 down
					ip link set a0 name b0; ip link set lan0 name a0
					ip link set a0 up; ip link set b0 up
					ip route add 10.50.0.0/16 via 10.9.0.2 dev a0 initcwnd 12`) // The link took its route down with it.
				settle()
				if d := before.differences(takeSnapshot(t)); len(d) != 0 {
					t.Errorf("unaccounted for:\n%s", strings.Join(d, "\n"))
				}
			})
		})
	}
}

// TestInterfaceIsRemoved: a change on an interface that is gone is over, and reported. A new
// interface with the same name is left alone.
func TestInterfaceIsRemoved(t *testing.T) {
	for name, again := range map[string]bool{"for good": false, "another one comes": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func() {
				j := liveJournal(t, t.TempDir())
				apply(t, j, journal.Request{}, ofInterface...)
				want := "undone; the knob no longer exists"
				must(t, "ip link del a0")
				if again {
					must(t, "ip link add a0 mtu 9000 txqueuelen 500 type veth peer name b0")
					want = "undone; the interface is gone"
				}
				if err := j.Commit(t.Context(), "1"); err == nil {
					t.Error("a change of an interface that is gone was committed")
				}
				var before snapshot
				if again {
					before = takeSnapshot(t)
				}
				outcomes, err := j.UndoAll(t.Context())
				if err != nil || len(outcomes) != len(ofInterface)/2 {
					t.Errorf("%+v, %v", outcomes, err)
				}
				for _, o := range outcomes {
					if o.Restored || o.Error != "" || !strings.HasPrefix(o.Change.Note, want) {
						t.Errorf("%+v", o)
					}
				}
				if again {
					if d := before.differences(takeSnapshot(t)); len(d) != 0 {
						t.Errorf("the new interface was touched:\n%s", strings.Join(d, "\n"))
					}
				}
				// The journal goes on as if nothing had been.
				if left, err := j.Recover(t.Context()); err != nil || len(left) != 0 {
					t.Errorf("%+v, %v", left, err)
				}
			})
		})
	}
}

// TestOtherClock: a time namespace (time_namespaces(7)) is the one place where CLOCK_BOOTTIME can
// be another. Ahead, a trial ends early, which is the safe side; behind, it is left to the guard of
// its own time.
func TestOtherClock(t *testing.T) {
	for name, test := range map[string]struct {
		offset string
		want   knob.Value
	}{"ahead": {"86400", "1500"}, "behind": {"-60", "9000"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func() {
				state := t.TempDir()
				o := processOptions("live", state)
				o.Unguarded, o.Mode = true, journal.Deadline
				j := open(t, o)
				apply(t, j, journal.Request{For: 20 * time.Second}, "link:a0/mtu", "9000")
				j.Close()
				must(t, "unshare --time --boottime "+test.offset+" "+os.Args[0]+" live recover "+state)
				if v, err := o.Backend.Read(t.Context(), "link:a0/mtu"); err != nil || v != test.want {
					t.Errorf("%s, %v", v, err)
				}
			})
		})
	}
}

// TestGuardSurvivesItsGroup ends the control group of a writer, as the end of a login session or
// `systemctl stop` does: every process in it dies at once. The guard has a group of its own and
// puts everything back.
func TestGuardSurvivesItsGroup(t *testing.T) {
	t.Run("made by the guard",
		func(t *testing.T) { inWorld(t, func() { endGroup(t, "", "is in a control group of its own: ") }) })
	t.Run("given by systemd", func(t *testing.T) {
		inWorld(t, func() {
			// A stand-in for systemd and the way to it, which checks its orders as far as it needs
			// them.
			bin := t.TempDir()
			must(t, "mount -t tmpfs none /run; mkdir -p /run/systemd/system")
			if err := os.WriteFile(filepath.Join(bin, "busctl"), []byte(`#!/bin/sh -e
				[ "$6 $7 $9 ${11} ${12} ${13}" = 'StartTransientUnit ssa(sv)a(sa(sv)) fail PIDs au 1' ]
				mkdir "$GROUPS_AT/$8"
				echo "${14}" > "$GROUPS_AT/$8/cgroup.procs"`), 0o755); err != nil {
				t.Fatal(err)
			}
			endGroup(t, "PATH="+bin+":"+os.Getenv("PATH"),
				"is in a control group of its own, which systemd gave: /linerate-guard-")
		})
	})
	t.Run("systemd does not answer", func(t *testing.T) {
		inWorld(t, func() {
			bin := t.TempDir()
			must(t, "mount -t tmpfs none /run; mkdir -p /run/systemd/system")
			if err := os.WriteFile(filepath.Join(bin, "busctl"), []byte("#!/bin/sh\necho no bus >&2\nexit 1\n"),
				0o755); err != nil {
				t.Fatal(err)
			}
			endGroup(t, "PATH="+bin+":"+os.Getenv("PATH"), "is in a control group of its own: ")
		})
	})
}

// endGroup starts a writer in a control group, ends the group, and checks that its guard has lived
// on and done its work.
func endGroup(t *testing.T, env, want string) {
	before, state, groups := takeSnapshot(t), t.TempDir(), t.TempDir()
	must(t, "mount -t cgroup2 none "+groups)
	top := filepath.Join(groups, filepath.Base(filepath.Dir(state))) // No other test has that name.
	session := filepath.Join(top, "session")
	must(t, "mkdir -p "+session)
	defer func() {
		// A group goes when the last process in it has ended, which is a moment after it has let go
		// of its files.
		for run("find "+top+" -depth -type d -exec rmdir {} +") != nil && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	l := &lane{t: t}
	// The root that the writer and its guard see is top, so that nothing is made outside of it.
	command := l.start("STATE="+state+" TOP="+top+" GROUPS_AT="+groups+" "+env, "")
	command.Path, command.Args = "/bin/sh", []string{"sh", "-ec", `
		echo $$ > $TOP/cgroup.procs
		exec unshare --cgroup --mount sh -ec '
			echo $$ > $TOP/session/cgroup.procs
			umount ` + groups + `
			mount -t cgroup2 none ` + groups + `
			exec ` + os.Args[0] + ` live writer $STATE idle'`}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Process.Kill() // It is gone by then, unless the test broke off.
	said := make([]byte, 64)
	n, err := out.Read(said)
	if err != nil {
		t.Fatalf("writer: %v", err)
	}
	if len(before.differences(takeSnapshot(t))) == 0 {
		t.Errorf("nothing was in force after %q\nlog of the guard:\n%s", said[:n],
			stage{t, "live", state}.guardLog())
	}
	if err := os.WriteFile(filepath.Join(session, "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if !journaltest.Killed(l.t, "writer", command.Wait()) {
		t.Error("the writer ended without the kill")
	}
	journaltest.GuardEnds(t, state)
	log := stage{t, "live", state}.guardLog()
	if !strings.Contains(log, want) || strings.Count(log, "control group") != 1 {
		t.Errorf("log of the guard:\n%s", log)
	}
	if d := before.differences(takeSnapshot(t)); len(d) != 0 {
		t.Errorf("unaccounted for:\n%s\nlog of the guard:\n%s", strings.Join(d, "\n"), log)
	}
	if left, err := filepath.Glob(filepath.Join(top, "linerate-guard-*")); err != nil || len(left) != 0 &&
		!strings.Contains(want, "systemd") {
		t.Errorf("groups left behind: %q, %v", left, err)
	}
}

// TestReadOnlyState: where the journal cannot be written, nothing is changed.
func TestReadOnlyState(t *testing.T) {
	inWorld(t, func() {
		before, state := takeSnapshot(t), t.TempDir()
		j := liveJournal(t, state)
		apply(t, j, journal.Request{}, "link:a0/mtu", "9000")
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.Close()
		must(t, "mount --bind "+state+" "+state+"; mount -o remount,bind,ro "+state)
		// The journal opens, because undo must work; only a new change is refused.
		ro := liveJournal(t, state)
		if _, err := ro.Apply(t.Context(), journal.Request{},
			settings("link:a0/mtu", "9000")...); !errors.Is(err, unix.EROFS) ||
			!errors.Is(err, journal.ErrUnwritable) {
			t.Errorf("apply: %v", err)
		}
		ro.Close()
		if d := before.differences(takeSnapshot(t)); len(d) != 0 {
			t.Errorf("unaccounted for:\n%s", strings.Join(d, "\n"))
		}
		// What was written there before can still be read.
		if changes, err := journal.History(durable.OS(), state); err != nil || len(changes) != 1 {
			t.Errorf("%+v, %v", changes, err)
		}
	})
}
