package journal_test

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// An option in a file is not forgotten at a restart: a trial goes back afterwards, a committed
// change stays and can be undone, and a value of another program is left alone.
func TestOptionsInFilesOutliveTheBoot(t *testing.T) {
	const option knob.ID = "named:/etc/bind/named.conf/max-cache-size"
	for _, c := range []struct {
		name           string
		commit         bool
		foreign        knob.Value
		recovered, end knob.Value
	}{
		{"a trial", false, "", "100K", "100K"},
		{"a trial that another program has changed", false, "9M", "9M", "9M"},
		{"a committed change", true, "", "256M", "100K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKnobs(map[knob.ID]knob.Value{option: "100K"})
			o := options(durable.NewMem(), k, &clock{})
			j, err := journal.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := j.Apply(t.Context(), journal.Request{For: time.Minute}, knob.Setting{Knob: option, Value: "256M"})
			if err == nil && c.commit {
				err = j.Commit(t.Context(), changes[0].ID)
			}
			if err != nil || k.get(option) != "256M" {
				t.Fatalf("%v, %s", err, k.get(option))
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if c.foreign != "" {
				k.set(option, c.foreign)
			}
			o.BootID = "boot-2"
			if j, err = journal.Open(o); err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if _, err := j.Recover(t.Context()); err != nil || k.get(option) != c.recovered {
				t.Errorf("recovered to %s, %v; want %s", k.get(option), err, c.recovered)
			}
			if _, err := j.Undo(t.Context(), changes[0].ID); err != nil || k.get(option) != c.end {
				t.Errorf("undone to %s, %v; want %s", k.get(option), err, c.end)
			}
		})
	}
}
