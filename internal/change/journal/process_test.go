//go:build unix

package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// The test binary plays four parts. Started as `TEST KNOBS guard …` it is a guard, as `TEST KNOBS
// writer STATE MODE` a writer, as `TEST KNOBS recover STATE` the next start, else the test. KNOBS
// is a directory of files, or live: the knobs of the namespace.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[2] {
		case "guard":
			journaltest.Finish(guardProcess(os.Args[1], os.Args[3:]))
		case "writer":
			journaltest.Finish(writerProcess(os.Args[1], os.Args[3], os.Args[4]))
		case "patient":
			journaltest.Finish(patientProcess(os.Args[1], os.Args[3]))
		case "recover":
			journaltest.Finish(recoverProcess(os.Args[1], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// processOptions opens the journal of the processes. Those with files as
// knobs share a clock that the test can put forward, and a boot id, which not every system has.
func processOptions(knobs, state string) journal.Options {
	if knobs == "live" {
		return journal.Options{Dir: state, Backend: live.New(), Catalog: knob.Catalogue()}
	}
	return journal.Options{Dir: state, Backend: fileKnobs{knobs}, BootID: "this boot", Boottime: func() time.Duration {
		ahead, _ := os.ReadFile(filepath.Join(knobs, aheadName)) // Absent until a test turns the clock.
		hours, _ := strconv.Atoi(string(ahead))
		return time.Duration(time.Now().UnixNano()) + time.Duration(hours)*time.Hour
	}}
}

// aheadName is a file among the knobs: how many hours the clock of all processes is ahead.
const aheadName = "clock ahead"

// mortal makes a process kill itself right before its Nth access to the disk or to a knob, when the
// environment says DIES_AT_PART=N.
func mortal(part string, o journal.Options) journal.Options {
	die := journaltest.Mortal(part, o.Dir)
	if die == nil {
		return o
	}
	o.FS = durable.NewFaulty(durable.OS(), func(durable.Op) error { die(); return nil })
	o.Backend = journaltest.MortalKnobs{Backend: o.Backend, Die: die}
	return o
}

// handshakePatience is what patientProcess gives its guard to answer.
const handshakePatience = 4 * time.Second

// patientProcess starts a guard, which is a script.
func patientProcess(script, state string) error {
	_, err := journal.StartGuard(context.Background(), journal.GuardOptions{Exe: script, Dir: state,
		Handshake: handshakePatience})
	return err
}

// recoverProcess is the next start.
func recoverProcess(knobs, state string) error {
	j, err := journaltest.OpenSoon(mortal("RECOVERY", processOptions(knobs, state)))
	if err != nil {
		return err
	}
	_, err = j.Recover(context.Background())
	return errors.Join(err, j.Close())
}

// guardProcess does what the hidden command of the program does.
func guardProcess(knobs string, args []string) error {
	journal.WaitForSystemd(journaltest.Patience)
	return journaltest.Guard(args, func(state string) journal.Options {
		return mortal("GUARD", processOptions(knobs, state))
	})
}

// writerProcess changes knobs and says what it does, one line before and one after each step.
func writerProcess(knobs, state, mode string) error {
	ctx := context.Background()
	o := mortal("WRITER", processOptions(knobs, state))
	o.Guard = &journal.GuardOptions{Args: []string{knobs}, Handshake: journaltest.Patience}
	mode, o.Unguarded = strings.CutSuffix(mode, " unguarded")
	if mode == "set" {
		o.Mode = journal.Deadline
	}
	j, err := journal.Open(o)
	if err != nil {
		return err
	}
	if _, err := j.Recover(ctx); err != nil {
		return err
	}
	request := journal.Request{Reason: "a test"}
	switch mode {
	case "set":
		request.For = time.Hour
		if _, err := j.Apply(ctx, request, settings(rmem, "tuned", mtu, "9000")...); err != nil {
			return err
		}
		fmt.Println("applied")
		return j.Close()
	case "hang":
		request.For = time.Hour
		if _, err := j.Apply(ctx, request, settings(rmem, "tuned", mtu, "9000")...); err != nil {
			return err
		}
		fmt.Println("applied")
		return untilKilled(j)
	case "idle":
		if _, err := j.Apply(ctx, request, settings("link:a0/mtu", "9000", "route:10.50.0.0/16/initcwnd",
			"20")...); err != nil {
			return err
		}
		fmt.Println("applied")
		return untilKilled(j)
	case "life":
		return wholeLife(ctx, j)
	}
	// Until it is killed.
	for i := 0; ; i++ {
		id := []knob.ID{rmem, mtu, ring}[i%3]
		value := fmt.Sprintf("%s-%d", id, i)
		if knobs == "live" {
			at := liveKnobs[i%len(liveKnobs)]
			id, value = at.id, at.values[i/len(liveKnobs)%2]
		}
		changes, err := j.Apply(ctx, request, settings(string(id), value)...)
		if err != nil {
			return err
		}
		fmt.Println("applied", i)
		if len(changes) == 0 {
			continue // Committed earlier.
		}
		if mode == "commit" && rand.IntN(2) == 0 {
			fmt.Println("committing", id, value)
			if err := j.Commit(ctx, changes[0].ID); err != nil {
				return err
			}
			fmt.Println("committed", id, value)
			continue
		}
		if rand.IntN(2) == 0 {
			if _, err := j.Undo(ctx, changes[0].ID); err != nil {
				return err
			}
		}
	}
}

// untilKilled waits for the end of this process with its journal open. A plain `select {}` leaves
// the journal to the garbage collector, which closes the pipe to the guard: its writer then seems
// to have died.
func untilKilled(j *journal.Journal) error {
	runtime.GC()                  // what may happen at any time happens here
	<-context.Background().Done() // never; the compiler does not know, and keeps the journal
	return j.Close()
}

// liveKnobs are those of the world of the tests, of every kind that a namespace has, with two
// values each that are not the ones at first.
var liveKnobs = []struct {
	id     knob.ID
	values [2]string
}{
	{rmem, [2]string{"4096 131072 33554430", "8192 131072 6291456"}},
	{"link:a0/mtu", [2]string{"9000", "1400"}},
	{"ethtool:a0/feature.tx-tcp-segmentation", [2]string{"off", "off"}},
	{"qdisc:a0/root", [2]string{"pfifo", "pfifo_fast"}},
	{"route:10.50.0.0/16/initcwnd", [2]string{"20", "30"}},
	{"sysctl:net.ipv4.conf.a0.rp_filter", [2]string{"1", "2"}},
	{"link:b0/txqueuelen", [2]string{"500", "2000"}},
	{"ethtool:a0/channels.rx", [2]string{"1", "1"}},
	{"queue:a0/rx-0/rps_cpus", [2]string{"1", "3"}},
	{"sysctl:net.ipv4.tcp_congestion_control", [2]string{"reno", "reno"}},
	{"route:10.50.0.0/16/window", [2]string{"65535", "32768"}},
	{"sysctl:net.ipv4.tcp_notsent_lowat", [2]string{"131072", "16384"}},
}

// wholeLife is one life with everything in it that a journal does, in the same order every time.
func wholeLife(ctx context.Context, j *journal.Journal) error {
	apply := func(pairs ...string) func() error {
		return func() error {
			_, err := j.Apply(ctx, journal.Request{Reason: "a test"}, settings(pairs...)...)
			return err
		}
	}
	for _, step := range []func() error{
		apply(rmem, "4096 131072 33554430", "link:a0/mtu", "9000", "route:10.50.0.0/16/initcwnd", "20"),
		apply("qdisc:a0/root", "pfifo", "ethtool:a0/feature.tx-tcp-segmentation", "off"),
		apply(rmem, "8192 131072 6291456"),
		func() error { return j.Commit(ctx, "1", "2") },
		func() error { _, err := j.Undo(ctx, "6", "3"); return err },
		func() error { _, err := j.Undo(ctx, "2"); return err },
		apply("link:a0/mtu", "1400"),
		func() error { _, err := j.UndoTrials(ctx); return err },
		func() error { _, err := j.UndoAll(ctx); return err },
		apply("link:b0/txqueuelen", "500"), // Left to the guard.
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return j.Close()
}

// stage is a host whose knobs are files, with a state directory.
type stage struct {
	t            *testing.T
	knobs, state string
}

func newStage(t *testing.T) stage {
	s := stage{t, t.TempDir(), filepath.Join(t.TempDir(), "state")}
	journaltest.AwaitGuards(t, s.state)
	for id, v := range host().values {
		if err := (fileKnobs{s.knobs}).Write(t.Context(), id, v); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s stage) values() values {
	s.t.Helper()
	found := values{}
	for id := range host().values {
		v, err := fileKnobs{s.knobs}.Read(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		found[id] = v
	}
	return found
}

// start starts a writer.
func (s stage) start(mode string) (*exec.Cmd, *bufio.Reader) {
	s.t.Helper()
	command := journaltest.Start(s.t, nil, s.knobs, "writer", s.state, mode)
	out, err := command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = command.Process.Kill() // It is gone, unless the test broke off.
		_ = command.Wait()
	})
	return command, bufio.NewReader(out)
}

// settled waits until the guard has ended, opens the journal, and checks that nothing is left in
// trial. A guard has the time a test has. recorded is false if the guard went on without its
// storage, which took longer than a guard waits: then recovery has done the rest.
func (s stage) settled() (j *journal.Journal, recorded bool) {
	s.t.Helper()
	journaltest.GuardEnds(s.t, s.state)
	j, err := journaltest.OpenSoon(processOptions(s.knobs, s.state))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { j.Close() })
	recorded = !journaltest.WithoutStorage(s.state)
	if !recorded {
		outcomes, err := j.Recover(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Logf("the guard went on without its storage, and left to recovery: %+v\n%s", outcomes, s.guardLog())
	}
	for _, c := range j.Changes() {
		if c.State == journal.Trial {
			s.t.Fatalf("the guard did nothing: %+v\n%s", c, s.guardLog())
		}
	}
	return j, recorded
}

// hourPasses puts the clock of all processes forward, past every deadline of the tests.
func (s stage) hourPasses() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.knobs, aheadName), []byte("2"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) guardLog() string {
	data, _ := os.ReadFile(filepath.Join(s.state, "guard.log")) // For messages only.
	return string(data)
}

// TestKillWriter kills a writer at a random moment, again and again. The guard brings every knob
// back; what was committed stays.
func TestKillWriter(t *testing.T) {
	t.Parallel()
	var slowest time.Duration
	rounds := testenv.Sample(24, 4)
	for round := range rounds {
		mode := []string{"trial", "commit"}[round%2]
		s := newStage(t)
		command, out := s.start(mode)
		if line, err := out.ReadString('\n'); err != nil || line != "applied 0\n" {
			t.Fatalf("writer said %q, %v", line, err)
		}
		time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond) // Any moment will do.
		killed := time.Now()
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		j, _ := s.settled()
		slowest = max(slowest, time.Since(killed))

		// Each knob holds what was last committed, or what was being committed when the writer
		// died.
		allowed := map[knob.ID][]string{}
		for id, v := range host().values {
			allowed[id] = []string{string(v)}
		}
		for line := range strings.Lines(string(said)) {
			word := strings.Fields(line)
			switch {
			case !strings.HasSuffix(line, "\n"): // Cut off by the kill.
			case word[0] == "committing":
				allowed[knob.ID(word[1])] = append(allowed[knob.ID(word[1])], word[2])
			case word[0] == "committed":
				allowed[knob.ID(word[1])] = []string{word[2]}
			}
		}
		found := s.values()
		for id, v := range found {
			ok := false
			for _, a := range allowed[id] {
				ok = ok || a == string(v)
			}
			if !ok {
				t.Errorf("round %d (%s): %s holds %q, allowed %q\n%s", round, mode, id, v, allowed[id], s.guardLog())
			}
		}
		if again, err := j.Recover(t.Context()); err != nil || len(again) != 0 {
			t.Errorf("round %d: second recovery: %+v, %v", round, again, err)
		}
		if diff := cmp.Diff(found, s.values()); diff != "" {
			t.Errorf("round %d: second recovery: %s", round, diff)
		}
		for id, v := range j.Originals() {
			if v != host().values[id] {
				t.Errorf("round %d: original of %s is %q", round, id, v)
			}
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(host().values, s.values()); diff != "" {
			t.Errorf("round %d: undo all: %s", round, diff)
		}
		j.Close()
	}
	t.Logf("everything was back %v after the kill at the latest", slowest.Round(time.Millisecond))
}

// TestStoppedWriter: a writer that hangs past its lease is ended by its guard.
func TestStoppedWriter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	command, out := s.start("hang")
	if line, err := out.ReadString('\n'); err != nil || line != "applied\n" {
		t.Fatalf("writer said %q, %v", line, err)
	}
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.hourPasses()
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("the writer ended by %v", err)
	}
	j, recorded := s.settled()
	if diff := cmp.Diff(host().values, s.values()); diff != "" {
		t.Error(diff)
	}
	for _, c := range j.Changes() {
		if recorded && c.Note != "undone by guard: deadline passed" {
			t.Errorf("%+v", c)
		}
	}
	if log := s.guardLog(); !strings.Contains(log, "asking it to end") {
		t.Errorf("log of the guard:\n%s", log)
	}
}

// TestTrialOutlivesItsWriter: set ends, its trial stays until the deadline.
func TestTrialOutlivesItsWriter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	command, _ := s.start("set")
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	changes, err := journal.History(durable.OS(), s.state)
	if err != nil || len(changes) != 2 || changes[0].State != journal.Trial || changes[1].State != journal.Trial {
		t.Fatalf("%+v, %v", changes, err)
	}
	s.hourPasses()
	j, recorded := s.settled()
	if diff := cmp.Diff(host().values, s.values()); diff != "" {
		t.Error(diff)
	}
	for _, c := range j.Changes() {
		if recorded && c.Note != "undone by guard: deadline passed" {
			t.Errorf("%+v", c)
		}
	}
}
