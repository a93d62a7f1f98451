package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// layer is a change as the model sees it: what lies above the first value of a knob.
type layer struct {
	id        string
	value     knob.Value
	committed bool
}

// lives is how many random lives a property is tried over.
func lives() uint64 { return uint64(testenv.Sample(60, 15)) }

// TestRandomLives compares journals with a model that is a stack of layers per knob, over random
// lives with crashes in between.
func TestRandomLives(t *testing.T) {
	for seed := range lives() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			mem, k := durable.NewMem(), host()
			stacks := map[knob.ID][]layer{}
			j := open(t, options(mem, k, &clock{}))
			ids := []knob.ID{rmem, mtu, ring}
			check := func(what string) {
				t.Helper()
				want := host().values
				live := 0
				for id, stack := range stacks {
					if len(stack) > 0 {
						want[id] = stack[len(stack)-1].value
					}
					live += len(stack)
				}
				if diff := cmp.Diff(want, k.values); diff != "" {
					t.Fatalf("%s: %s", what, diff)
				}
				for _, c := range j.Changes() {
					if c.State != journal.Undone {
						live--
					}
				}
				if live != 0 {
					t.Fatalf("%s: %d changes too few in the journal", what, live)
				}
			}
			for n := range 80 {
				id := ids[rng.IntN(len(ids))]
				stack := stacks[id]
				switch action := rng.IntN(10); {
				case action < 4:
					value := fmt.Sprint("value ", n)
					c := apply(t, j, journal.Request{}, string(id), value)
					stacks[id] = append(stack, layer{c[0].ID, knob.Value(value), false})
					check("apply")
				case action < 6 && len(stack) > 0:
					i := rng.IntN(len(stack))
					if err := j.Commit(t.Context(), stack[i].id); err != nil {
						t.Fatal(err)
					}
					stack[i].committed = true
					check("commit")
				case action < 9 && len(stack) > 0:
					i := rng.IntN(len(stack))
					if _, err := j.Undo(t.Context(), stack[i].id); err != nil {
						t.Fatal(err)
					}
					stacks[id] = slices.Delete(stack, i, i+1)
					check("undo")
				case action == 9:
					j.Close()
					mem = mem.CrashClone(0, nil)
					j = open(t, options(mem, k, &clock{}))
					check("crash")
					if _, err := j.Recover(t.Context()); err != nil {
						t.Fatal(err)
					}
					for id, stack := range stacks {
						stacks[id] = slices.DeleteFunc(stack, func(l layer) bool { return !l.committed })
					}
					check("recover")
				}
			}
			if _, err := j.UndoAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			clear(stacks)
			check("undo all")
		})
	}
}

// FuzzJournal opens journals with arbitrary records, one per line. One that makes no sense is
// refused as such; any other can be recovered, and a second recovery finds nothing to do.
func FuzzJournal(f *testing.F) {
	mem, k := durable.NewMem(), host()
	j, err := journal.Open(options(mem, k, &clock{}))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range script() {
		if err := s.do(f.Context(), j); err != nil {
			f.Fatal(err)
		}
	}
	records, _, err := durable.ReadMarkedLog(mem, "/state/journal.log")
	if err != nil {
		f.Fatal(err)
	}
	var lines []string
	for _, r := range records {
		// Shorter, so that the fuzzer changes what matters.
		lines = append(lines,
			strings.ReplaceAll(string(r), strings.Repeat("long enough to spread over sectors ", 20), "why"))
	}
	for n := range lines {
		if n%5 == 0 {
			f.Add(strings.Join(lines[:n+1], "\n"))
		}
	}
	f.Add(`{"kind":"base","next":7,"originals":[{"boot_id":"boot-1","knob":"link:eth0/mtu","value":"1500"}]}`)
	f.Add(`{"kind":"kept","entry":{"id":"0003","knob":"link:eth0/mtu","from":"1400","to":"1500","state":"trial",` +
		`"boot_id":"boot-1","phase":"undoing"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		mem, k := durable.NewMem(), host()
		if err := durable.MkdirAll(mem, "/state", 0o755); err != nil {
			t.Fatal(err)
		}
		var records [][]byte
		for line := range strings.Lines(text) {
			records = append(records, []byte(line))
		}
		if err := durable.RewriteMarkedLog(mem, "/state/journal.log", records); err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(options(mem, k, &clock{}))
		if err != nil {
			var format *journal.FormatError
			if !errors.As(err, &format) || format.Record < 0 || format.Record >= len(records) {
				t.Fatal(err)
			}
			return
		}
		defer j.Close()
		if _, err := j.Recover(t.Context()); err != nil && !errors.Is(err, journal.ErrNeedsRecovery) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		if again, err := j.Recover(t.Context()); err != nil || len(again) != 0 {
			t.Fatalf("second recovery: %+v, %v", again, err)
		}
		stored, err := journal.History(mem, "/state")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(j.Changes(), stored); diff != "" {
			t.Fatal(diff)
		}
	})
}

// BenchmarkApplyUndo is one change and its undoing on the disk of the temporary directory: four
// syncs.
func BenchmarkApplyUndo(b *testing.B) {
	o := options(durable.OS(), host(), &clock{})
	o.Dir = b.TempDir()
	j := open(b, o)
	for b.Loop() {
		apply(b, j, journal.Request{}, rmem, "B")
		if _, err := j.UndoTrials(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHistory reads a journal as long as one gets before it is rewritten.
func BenchmarkHistory(b *testing.B) {
	mem := durable.NewMem()
	j := open(b, options(mem, host(), &clock{}))
	for {
		info, err := mem.Stat("/state/journal.log")
		if err != nil {
			b.Fatal(err)
		}
		if info.Size() > 512<<10 {
			break
		}
		apply(b, j, journal.Request{Reason: "a reason as commands give"}, rmem, "B")
		if _, err := j.UndoTrials(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := journal.History(mem, "/state"); err != nil {
			b.Fatal(err)
		}
	}
}
