package follow

import (
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/agent"
)

// TestRealHost reads changes and runs from a real journal and store of runs, through package agent.
func TestRealHost(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t)
	h.f.o.Source = agent.Local{Dir: dir}
	j, err := journal.Open(journal.Options{
		Dir: dir, Unguarded: true, BootID: "boot-a",
		Backend:  knob.NewMemory(map[knob.ID]knob.Value{"sysctl:net.core.rmem_max": "200000"}),
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} },
		Now:      func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	h.look(time.Second)
	if _, err := j.Apply(t.Context(), journal.Request{},
		knob.Setting{Knob: "sysctl:net.core.rmem_max", Value: "300000"}); err != nil {
		t.Fatal(err)
	}
	h.look(time.Second)
	const title = "0001 12:00:00 | sysctl:net.core.rmem_max: 200000 → 300000 | "
	h.want(timeline.Change, title+"trial | linerate undo 0001 --state "+dir)
	if err := j.Commit(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	h.look(time.Second)
	h.want(timeline.Change, title+"committed | linerate undo 0001 --state "+dir)
	if err := runs.In(durable.OS(), dir, runs.Tunes, 0).Save("20261122-110000-0001",
		[]byte(`{"schema":"linerate.tune/1","time":"2026-11-22T11:20:00Z","goal":"latency",`+
			`"state":"undone"}`)); err != nil {
		t.Fatal(err)
	}
	h.look(time.Second)
	h.want(timeline.Run, "20261122-110000-0001 11:00:00-11:20:00 | tune for latency: nothing to tune | undone | ")
}
