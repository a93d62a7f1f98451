package journal_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
)

// bench is a guard in this process, on a fake clock, with the test as its writer.
type bench struct {
	t      *testing.T
	fsys   *durable.Mem
	on     durable.FS // fsys, with faults
	host   *knobs
	clock  *bubbleClock
	writer *journal.Journal
	life   *io.PipeWriter
	done   chan error
	log    bytes.Buffer
	mu     sync.Mutex
	ended  []bool // calls of EndWriter, with force
	loud   []string
	dies   bool          // the writer ends when it is asked to
	date   time.Duration // by which the date has jumped
	stop   context.CancelFunc
	adjust []func(*journal.Options)
}

// bubbleClock is CLOCK_BOOTTIME inside a synctest bubble; the host can sleep, which Go's timers do
// not notice.
type bubbleClock struct {
	mu    sync.Mutex
	start time.Time
	slept time.Duration
	pause time.Duration // how long the next reader of the clock stands still, once
}

func (c *bubbleClock) Boottime() time.Duration {
	c.mu.Lock()
	pause := c.pause
	c.pause = 0
	c.mu.Unlock()
	time.Sleep(pause)
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.start) + c.slept
}

func (c *bubbleClock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}

func newBench(t *testing.T, mode journal.Mode, lease time.Duration) *bench {
	t.Helper()
	return newBenchOn(t, mode, lease, func(fsys durable.FS) durable.FS { return fsys })
}

func newBenchOn(t *testing.T, mode journal.Mode, lease time.Duration, faults func(durable.FS) durable.FS,
	adjust ...func(*journal.Options)) *bench {
	t.Helper()
	b := &bench{t: t, fsys: durable.NewMem(), host: host(), clock: &bubbleClock{start: time.Now()},
		done: make(chan error, 1), adjust: adjust}
	b.on = faults(b.fsys)
	b.writer = open(t, b.options(mode))
	life, lifeWriter := io.Pipe()
	ready, readyWriter := io.Pipe()
	b.life = lifeWriter
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	go func() {
		b.done <- journal.RunGuard(ctx, journal.GuardConfig{
			Journal: b.options(""), Mode: mode, Session: b.writer.Session(), For: lease,
			Life: life, Ready: readyWriter, Log: &b.log,
			Alarm: func(text string) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.loud = append(b.loud, text)
			},
			EndWriter: func(force bool) {
				b.mu.Lock()
				b.ended = append(b.ended, force)
				b.mu.Unlock()
				if b.dies || force {
					b.die()
				}
			},
		})
	}()
	line, err := bufio.NewReader(ready).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("answer %q, %v", line, err)
	}
	return b
}

func (b *bench) options(mode journal.Mode) journal.Options {
	o := options(b.on, b.host, nil)
	o.Boottime, o.Mode = b.clock.Boottime, mode
	o.Now = func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return dayOne().Add(b.date)
	}
	for _, f := range b.adjust {
		f(&o)
	}
	return o
}

// die is what kill -9 leaves: no lock, no pipe, no word. Closing the journal writes nothing.
func (b *bench) die() {
	b.writer.Close()
	b.life.Close()
}

func (b *bench) say(message string) {
	b.t.Helper()
	if _, err := io.WriteString(b.life, message+"\n"); err != nil {
		b.t.Fatal(err)
	}
}

// jump sets the date.
func (b *bench) jump(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.date += d
}

// calls are those of EndWriter so far.
func (b *bench) calls() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ended)
}

// alarms are the lines that had to reach a person.
func (b *bench) alarms() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.loud)
}

// running reports whether the guard is still at it, once it has nothing to do right now.
func (b *bench) running() bool {
	synctest.Wait()
	return len(b.done) == 0
}

// end waits for the guard, and checks that it succeeded, that the host is as it was, and what the
// changes say of their end.
func (b *bench) end(notes ...string) {
	b.t.Helper()
	if err := <-b.done; err != nil {
		b.t.Errorf("guard: %v", err)
	}
	if diff := cmp.Diff(host().values, b.host.clone().values); diff != "" {
		b.t.Error(diff)
	}
	changes, err := journal.History(b.fsys, "/state")
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.Note)
	}
	if diff := cmp.Diff(notes, got); diff != "" {
		b.t.Error(diff)
	}
	if b.t.Failed() {
		b.t.Logf("log of the guard:\n%s", b.log.String())
	}
}

func TestGuardWriterDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Lease, 0)
		apply(t, b.writer, journal.Request{}, rmem, "B", mtu, "9000")
		apply(t, b.writer, journal.Request{}, rmem, "C")
		time.Sleep(time.Hour) // Of the bubble's clock. Without a deadline a lease lasts.
		if !b.running() || b.host.get(rmem) != "C" {
			t.Fatal("the guard did not wait")
		}
		b.die()
		b.end("undone by guard: writer died", "undone by guard: writer died", "undone by guard: writer died")
		if !strings.Contains(b.log.String(), "writer died: taking trials back") {
			t.Errorf("log:\n%s", b.log.String())
		}
	})
}

func TestGuardLeavesWhatIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Lease, 0)
		changes := apply(t, b.writer, journal.Request{}, rmem, "B", mtu, "9000")
		if err := b.writer.Commit(t.Context(), changes[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.writer.Undo(t.Context(), changes[1].ID); err != nil {
			t.Fatal(err)
		}
		writes := b.host.writes
		b.die()
		if err := <-b.done; err != nil || b.host.writes != writes || b.host.get(rmem) != "B" || b.log.Len() != 0 {
			t.Errorf("%v, %v, log %q", err, b.host.clone().values, b.log.String())
		}
	})
}

func TestGuardLeaseDeadline(t *testing.T) {
	for _, dies := range []bool{true, false} {
		t.Run(fmt.Sprintf("polite end works %v", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, journal.Lease, time.Minute)
				b.dies = dies
				apply(t, b.writer, journal.Request{}, rmem, "B")
				for range 5 {
					time.Sleep(50 * time.Second)
					b.say(fmt.Sprintf("extend %d", b.clock.Boottime()+time.Minute))
				}
				if !b.running() {
					t.Fatal("the extended lease ended")
				}
				begin := b.clock.Boottime()
				b.end("undone by guard: deadline passed")
				took := b.clock.Boottime() - begin
				want, calls := time.Minute, []bool{false}
				if !dies {
					want, calls = time.Minute+5*time.Second, []bool{false, true}
				}
				if took < want || took > want+time.Second || cmp.Diff(calls, b.calls()) != "" {
					t.Errorf("ended after %v by %v", took, b.calls())
				}
			})
		})
	}
}

// TestGuardForgivesAPause: a guard that stood still for longer than the grace of its writer lets a
// writer end that stood still as long.
func TestGuardForgivesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Lease, time.Minute)
		apply(t, b.writer, journal.Request{}, rmem, "B")
		for len(b.calls()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		b.clock.mu.Lock()
		b.clock.pause = 10 * time.Second
		b.clock.mu.Unlock()
		b.say("extend 1") // the guard reads the clock after it
		time.Sleep(10*time.Second + 100*time.Millisecond)
		b.die()
		b.end("undone by guard: deadline passed")
		if diff := cmp.Diff([]bool{false}, b.calls()); diff != "" {
			t.Errorf("calls of EndWriter, with force:\n%s", diff)
		}
	})
}

// TestGuardSparesTheIdle: a deadline is about trials, not about the writer, which may outlive it
// when it has none.
func TestGuardSparesTheIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Lease, time.Minute)
		b.dies = true
		changes := apply(t, b.writer, journal.Request{}, rmem, "B", mtu, "9000")
		if _, err := b.writer.Undo(t.Context(), changes[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := b.writer.Commit(t.Context(), changes[1].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !b.running() || len(b.calls()) != 0 {
			t.Fatalf("an idle writer was ended: %v", b.calls())
		}
		// The deadline still holds for a trial that comes without a new one.
		begin := b.clock.Boottime()
		apply(t, b.writer, journal.Request{}, rmem, "C")
		if err := <-b.done; err != nil || b.host.get(rmem) != "A" || b.clock.Boottime()-begin > 2*time.Second {
			t.Errorf("%v, %s after %v", err, b.host.get(rmem), b.clock.Boottime()-begin)
		}
	})
}

func TestGuardCountsSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Lease, time.Hour)
		b.dies = true
		apply(t, b.writer, journal.Request{}, rmem, "B")
		time.Sleep(time.Second)
		if !b.running() {
			t.Fatal("ended early")
		}
		b.clock.suspend(2 * time.Hour)
		awake := time.Now()
		b.end("undone by guard: deadline passed")
		if late := time.Since(awake); late > time.Second {
			t.Errorf("%v late", late)
		}
	})
}

// A date that jumps ten years forward or back ends no trial early or late.
func TestGuardIgnoresTheDate(t *testing.T) {
	const decade = 10 * 365 * 24 * time.Hour
	for name, by := range map[string]time.Duration{"forward": decade, "back": -decade} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, journal.Deadline, 0)
				apply(t, b.writer, journal.Request{For: time.Minute}, rmem, "B")
				b.say("detach")
				b.die()
				time.Sleep(10 * time.Second)
				b.jump(by)
				time.Sleep(49 * time.Second)
				if !b.running() || b.host.get(rmem) != "B" {
					t.Fatal("ended early")
				}
				b.end("undone by guard: deadline passed")
				if now := b.clock.Boottime(); now < time.Minute || now > time.Minute+time.Second {
					t.Errorf("ended at %v", now)
				}
			})
		})
	}
}

// readOnly refuses to write a knob.
func readOnly(knob knobID) func(op string, id knobID) error {
	return func(op string, id knobID) error {
		if op == "write" && id == knob {
			return syscall.EROFS
		}
		return nil
	}
}

func TestGuardDeadlineMode(t *testing.T) {
	start := func(t *testing.T) (*bench, []journal.Change) {
		b := newBench(t, journal.Deadline, 0)
		changes := apply(t, b.writer, journal.Request{For: time.Minute}, rmem, "B")
		changes = append(changes, apply(t, b.writer, journal.Request{For: 3 * time.Minute}, mtu, "9000")...)
		return b, changes
	}
	t.Run("each trial ends at its time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.say("detach")
			b.die()
			time.Sleep(59 * time.Second)
			if !b.running() || b.host.get(rmem) != "B" {
				t.Fatal("ended early")
			}
			time.Sleep(2 * time.Second)
			if !b.running() || b.host.get(rmem) != "A" || b.host.get(mtu) != "9000" {
				t.Fatalf("after the first deadline: %v", b.host.clone().values)
			}
			b.end("undone by guard: deadline passed", "undone by guard: deadline passed")
			if now := b.clock.Boottime(); now < 3*time.Minute || now > 3*time.Minute+time.Second {
				t.Errorf("ended at %v", now)
			}
		})
	})
	t.Run("a writer that hangs is ended at the first deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			time.Sleep(59 * time.Second)
			if !b.running() || len(b.calls()) != 0 {
				t.Fatal("ended early")
			}
			b.end("undone by guard: deadline passed", "undone by guard: deadline passed")
			if now := b.clock.Boottime(); now < time.Minute || now > time.Minute+8*time.Second ||
				cmp.Diff([]bool{false, true}, b.calls()) != "" {
				t.Errorf("ended at %v by %v", now, b.calls())
			}
		})
	})
	t.Run("ends when nothing is left in trial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, changes := start(t)
			b.say("detach")
			b.die()
			other := open(t, b.options(journal.Lease))
			if out, err := other.Recover(t.Context()); err != nil || len(out) != 0 {
				t.Fatalf("recovery of a trial that is guarded: %+v, %v", out, err)
			}
			if err := other.Commit(t.Context(), changes[0].ID); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Undo(t.Context(), changes[1].ID); err != nil {
				t.Fatal(err)
			}
			if err := <-b.done; err != nil || b.clock.Boottime() > 2*time.Second {
				t.Errorf("%v at %v", err, b.clock.Boottime())
			}
			if b.host.get(rmem) != "B" || b.host.get(mtu) != "1500" {
				t.Error(b.host.clone().values)
			}
		})
	})
	t.Run("a writer that dies has promised nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.die()
			b.end("undone by guard: writer died", "undone by guard: writer died")
		})
	})
	t.Run("asked to end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.stop()
			time.Sleep(time.Second)
			if !b.running() {
				t.Fatal("left a living writer alone")
			}
			b.say("detach")
			b.die()
			b.end("undone by guard: the guard was asked to stop", "undone by guard: the guard was asked to stop")
		})
	})
	t.Run("does not wait for the holder of the journal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.say("detach")
			b.die()
			other := open(t, b.options(journal.Lease))
			apply(t, other, journal.Request{}, rmem, "C")
			time.Sleep(time.Hour)
			// What the holder has put on top of a trial keeps that trial from the knob.
			if !b.running() || b.host.get(rmem) != "C" || b.host.get(mtu) != "1500" {
				t.Fatalf("after an hour: %v", b.host.clone().values)
			}
			if out, err := other.UndoAll(t.Context()); err != nil || len(out) != 3 {
				t.Fatalf("%+v %v", out, err)
			}
			other.Close()
			b.end("undone", "undone; the old value was there already", "undone")
			if !strings.Contains(b.log.String(), fmt.Sprintf("process %d has open", os.Getpid())) {
				t.Errorf("log:\n%s", b.log.String())
			}
		})
	})
	t.Run("one that expires while another goes back", func(t *testing.T) {
		// Each access to the storage takes 20 ms, so the second deadline passes at every step.
		for later := 10 * time.Millisecond; later < time.Second; later += 10 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := &storage{}
				b := newBenchOn(t, journal.Deadline, 0, s.on)
				apply(t, b.writer, journal.Request{For: time.Minute}, rmem, "B")
				apply(t, b.writer, journal.Request{For: time.Minute + later}, mtu, "9000")
				b.say("detach")
				b.die()
				s.set(func(durable.Op) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				})
				b.end("undone by guard: deadline passed", "undone by guard: deadline passed")
				if t.Failed() {
					t.Logf("%v later", later)
				}
			})
			if t.Failed() {
				return
			}
		}
	})
	t.Run("a refusal that lasts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			until := b.clock.Boottime() + 40*time.Minute
			b.host.before = func(op string, id knobID) error {
				if op == "write" && id == mtu && b.clock.Boottime() < until {
					return syscall.EROFS
				}
				return nil
			}
			b.say("detach")
			b.die()
			time.Sleep(3*time.Minute + 10*time.Second)
			synctest.Wait()
			if len(b.alarms()) != 1 || b.host.get(rmem) != "A" || b.host.get(mtu) != "9000" {
				t.Errorf("alarms %q, knobs %v", b.alarms(), b.host.clone().values)
			}
			b.end("undone by guard: deadline passed", "undone by guard: deadline passed; finished by guard")
			if now := b.clock.Boottime(); now > until+2*time.Minute {
				t.Errorf("ended at %v", now)
			}
		})
	})
	t.Run("a refusal that lasts delays no other trial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.host.before = readOnly(rmem)
			b.say("detach")
			b.die()
			time.Sleep(3*time.Minute + 2*time.Second)
			synctest.Wait()
			if b.host.get(mtu) != "1500" {
				t.Errorf("2 s after the second deadline: %v", b.host.clone().values)
			}
			b.stop()
			<-b.done
		})
	})
	t.Run("a refusal that lasts, and the guard is asked to end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			b.host.before = readOnly(mtu)
			b.die()
			time.Sleep(time.Minute)
			if !b.running() {
				t.Fatal("gave up")
			}
			b.stop()
			time.Sleep(10 * time.Second)
			if b.running() || b.host.get(rmem) != "A" {
				t.Error("the guard stays")
			}
		})
	})
	t.Run("a refusal is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := start(t)
			refusals := 0
			b.host.before = func(op string, _ knobID) error {
				if op == "write" && refusals < 3 {
					refusals++
					return errBusy
				}
				return nil
			}
			b.die()
			b.end("undone by guard: writer died", "undone by guard: writer died; finished by guard")
		})
	})
}

func TestGuardRefusesToStart(t *testing.T) {
	for name, change := range map[string]func(*journal.GuardConfig, *durable.Mem){
		"mode":    func(c *journal.GuardConfig, _ *durable.Mem) { c.Mode = "x" },
		"session": func(c *journal.GuardConfig, _ *durable.Mem) { c.Session = "" },
		"corrupt": func(_ *journal.GuardConfig, m *durable.Mem) {
			if err := durable.Replace(m, "/state/journal.log", []byte("not a log, but long enough"),
				0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := durable.NewMem()
			if err := durable.MkdirAll(mem, "/state", 0o755); err != nil {
				t.Fatal(err)
			}
			ready, readyWriter := io.Pipe()
			config := journal.GuardConfig{
				Journal: options(mem, host(), &clock{}), Mode: journal.Lease, Session: "s",
				Life: strings.NewReader(""), Ready: readyWriter, Log: io.Discard,
			}
			change(&config, mem)
			done := make(chan error, 1)
			go func() { done <- journal.RunGuard(t.Context(), config) }()
			line, _ := bufio.NewReader(ready).ReadString('\n')
			if err := <-done; err == nil || line == "ready\n" || line == "" {
				t.Errorf("answered %q, returned %v", line, err)
			}
		})
	}
}
