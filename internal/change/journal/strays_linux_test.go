package journal_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// TestStrayGuard: where the journal of a trial is gone, the next command has the guard take the
// trial back from memory before it begins a new journal, which would take the tried value for the
// original.
func TestStrayGuard(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*testing.T, journal.Options){
		"log and mark removed": func(t *testing.T, o journal.Options) {
			for _, file := range []string{"journal.log", "journal.log.mark"} {
				if err := os.Remove(filepath.Join(o.Dir, file)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"directory removed": func(t *testing.T, o journal.Options) {
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Fatal(err)
			}
		},
		"repaired without the change": func(t *testing.T, o journal.Options) {
			if err := os.Truncate(filepath.Join(o.Dir, "journal.log"), 40); err != nil {
				t.Fatal(err)
			}
			if _, err := journaltest.RepairSoon(o); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			o := processOptions(s.knobs, s.state)
			o.Mode, o.Guard = journal.Deadline,
				&journal.GuardOptions{Exe: os.Args[0], Args: []string{s.knobs}, Handshake: journaltest.Patience}
			j := open(t, o)
			apply(t, j, journal.Request{For: time.Hour}, rmem, "B", mtu, "9000")
			guard := guardOf(t, j)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if strays := journal.Strays(durable.OS(), o.Dir); strays != nil {
				t.Errorf("strays with a journal: %v", strays)
			}
			happens(t, o)
			strays := journal.Strays(durable.OS(), o.Dir)
			if name != "repaired without the change" && !slices.Equal(strays, []int{guard.PID()}) {
				t.Errorf("strays %v, want guard %d", strays, guard.PID())
			}
			again, err := journaltest.OpenSoon(o) // a slow guard makes it wait longer than it has patience
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			<-guard.Exited()
			if diff := cmp.Diff(host().values, s.values()); diff != "" {
				t.Error(diff)
			}
			if c := apply(t, again, journal.Request{For: time.Hour}, rmem, "C")[0]; c.From != "A" || c.Original != "A" {
				t.Errorf("the new journal takes %s for the original: %+v", c.Original, c)
			}
			if _, err := again.UndoAll(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
