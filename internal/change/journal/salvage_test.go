package journal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
)

// TestSalvage: of a journal with one damaged record everything else is known, a repaired journal
// takes trials back, and the damaged one stays for a person to look at.
func TestSalvage(t *testing.T) {
	mem, k, c := durable.NewMem(), host(), &clock{}
	o := options(mem, k, c)
	j := open(t, o)
	first := apply(t, j, journal.Request{}, mtu, "9000")[0]
	if err := j.Commit(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	apply(t, j, journal.Request{}, rmem, "B")
	apply(t, j, journal.Request{}, ring, "512")
	j.Close()
	data, err := mem.ReadFile("/state/journal.log")
	if err != nil {
		t.Fatal(err)
	}
	starts := frames(data) // intent, applied, commit, then two records for each trial
	for name, test := range map[string]struct {
		damage  func([]byte) []byte
		known   string
		missing int
	}{
		"record of the second": {func(b []byte) []byte { b[starts[3]+40] ^= 1; return b }, "0001 committed, 0003 trial", 2},
		"header":               {func(b []byte) []byte { b[3] ^= 1; return b }, "0001 committed, 0002 trial, 0003 trial", 0},
		"the end":              {func(b []byte) []byte { return b[:starts[5]] }, "0001 committed, 0002 trial", 2},
		"all":                  {func([]byte) []byte { return nil }, "", 7},
	} {
		t.Run(name, func(t *testing.T) {
			disk, host := mem.CrashClone(1, nil), k.clone()
			if err := durable.Replace(disk, "/state/journal.log", test.damage(bytes.Clone(data)), 0o644); err != nil {
				t.Fatal(err)
			}
			o := options(disk, host, c)
			if _, err := journal.Open(o); !errors.Is(err, journal.ErrCorrupt) {
				t.Fatalf("not noticed: %v", err)
			}
			got, err := journal.Salvage(disk, "/state")
			var known []string
			for _, c := range got.Changes {
				known = append(known, c.ID+" "+string(c.State))
			}
			if err != nil || strings.Join(known, ", ") != test.known || got.MissingRecords != test.missing {
				t.Errorf("knows %q and misses %d, %v", known, got.MissingRecords, err)
			}
			aside, err := journal.Repair(o)
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := disk.ReadFile(aside); err != nil || !bytes.Equal(kept, test.damage(bytes.Clone(data))) {
				t.Errorf("%s: %v", aside, err)
			}
			j := open(t, o)
			if _, err := j.Recover(t.Context()); err != nil {
				t.Error(err)
			}
			for _, c := range j.Changes() {
				if c.State == journal.Trial {
					t.Errorf("still in trial: %+v", c)
				}
			}
			j.Close()
			if aside, err := journal.Repair(o); err != nil || aside != "" {
				t.Errorf("repair of a sound journal: %q, %v", aside, err)
			}
		})
	}
}
