package journal_test

import (
	"errors"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// Blocks of several changes in one file of the host come out again in any order, and the file is as
// before to the byte; what others wrote in between stays.
func TestBlocks(t *testing.T) {
	for _, before := range []string{"a=1\n", "a=1", "\n\n"} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			disk := durable.NewMem()
			etc(t, disk)
			if err := durable.Replace(disk, "/etc/sysctl.conf", []byte(before), 0o640); err != nil {
				t.Fatal(err)
			}
			original := tree(t, disk, "/etc")
			ids := []knob.ID{"sysctl:net.inet.tcp.sendbuf_max", "sysctl:net.inet.tcp.recvbuf_max"}
			k := newKnobs(map[knob.ID]knob.Value{ids[0]: "1", ids[1]: "1"})
			j := open(t, options(disk, k, &clock{}))
			changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: ids[0], Value: "2"},
				knob.Setting{Knob: ids[1], Value: "2"})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range changes {
				names = append(names, c.ID)
			}
			if err := j.Commit(t.Context(), names...); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				f := journal.Marked("/etc/sysctl.conf", name, "x=2\n", 0o640)
				if _, err := j.Persist(t.Context(), "/", journal.Plan{ID: name, Files: []journal.File{f}}); err != nil {
					t.Fatal(err)
				}
			}
			for i, at := range order {
				if _, err := j.Undo(t.Context(), names[at]); err != nil {
					t.Fatal(err)
				}
				// What remains is whole: no line is glued to another.
				got, err := disk.ReadFile("/etc/sysctl.conf")
				left := before + "\n# linerate begin " + names[order[1]] + "\nx=2\n# linerate end " + names[order[1]] + "\n"
				if i == 0 && (err != nil || string(got) != left) {
					t.Errorf("after one undo: %q, %v", got, err)
				}
			}
			after := tree(t, disk, "/etc")
			if after["/etc/sysctl.conf"] != original["/etc/sysctl.conf"] {
				t.Errorf("%q came back as %q", original["/etc/sysctl.conf"], after["/etc/sysctl.conf"])
			}
		}
	}
}

// A journal is a file, which may be forged: a block goes only into two files, and with its marks.
func TestBlocksAreChecked(t *testing.T) {
	disk := durable.NewMem()
	etc(t, disk)
	if err := durable.Replace(disk, "/etc/sysctl.conf", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const id = knob.ID("sysctl:net.inet.tcp.sendbuf_max")
	j := open(t, options(disk, newKnobs(map[knob.ID]knob.Value{id: "1"}), &clock{}))
	changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: id, Value: "2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), changes[0].ID); err != nil {
		t.Fatal(err)
	}
	good := journal.Marked("/etc/sysctl.conf", changes[0].ID, "x=1\n", 0o644)
	bare, elsewhere, missing := good, good, good
	bare.Content, elsewhere.Path, missing.Path = "x=1\n", "/etc/hosts", "/etc/rc.conf"
	for _, f := range []journal.File{bare, elsewhere} {
		_, err := j.Persist(t.Context(), "/", journal.Plan{ID: changes[0].ID, Files: []journal.File{f}})
		if !errors.Is(err, journal.ErrNotOurs) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := j.Persist(t.Context(), "/", journal.Plan{ID: changes[0].ID, Files: []journal.File{missing}}); err == nil {
		t.Error("a block for a file that the host lacks")
	}
}
