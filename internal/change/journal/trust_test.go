package journal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// TestForeignStateDirectory opens a journal that another user could have forged.
func TestForeignStateDirectory(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"every user may write to it": func(dir string) error { return os.Chmod(dir, 0o777) },
		"every user may write to a directory above": func(dir string) error {
			return os.Chmod(filepath.Dir(dir), 0o777)
		},
		"every user may write to the log": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "journal.log"), nil, 0o600),
				os.Chmod(filepath.Join(dir, "journal.log"), 0o666))
		},
		"the log is a link": func(dir string) error {
			return os.Symlink("/etc/hostname", filepath.Join(dir, "journal.log"))
		},
		"the lock is a link": func(dir string) error {
			return os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "lock"))
		},
		"another user owns it": func(dir string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(dir, 0o777)
			}
			return os.Chown(dir, 65533, 65533)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "above", "state")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			j, err := journal.Open(optionsOnDisk(dir))
			if err == nil {
				j.Close()
				t.Fatal("opened")
			}
			t.Log(err)
			if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
				t.Error("a file was made behind the link")
			}
		})
	}
}

func optionsOnDisk(dir string) journal.Options {
	o := options(durable.OS(), newHost(), &clock{})
	o.Dir = dir
	return o
}

// TestForgedFiles has a journal that names other files than those that linerate writes. Undo must
// neither remove them nor cut anything out of them.
func TestForgedFiles(t *testing.T) {
	const ours = "/etc/sysctl.d/90-linerate-0001.conf"
	for name, forged := range map[string]string{
		"another file":           "/etc/hosts",
		"a user's file":          "/etc/sysctl.d/10-theirs.conf",
		"through the directory":  "/etc/sysctl.d/../hosts",
		"linerate's own journal": "/var/lib/linerate/journal.log",
		"a name like ours":       "/etc/cron.d/90-linerate-0001.conf",
	} {
		t.Run(name, func(t *testing.T) {
			mem, k := durable.NewMem(), newHost()
			etc(t, mem)
			for _, dir := range []string{"/etc/cron.d", "/var/lib/linerate"} {
				if err := durable.MkdirAll(mem, dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			j := open(t, options(mem, k, &clock{}))
			c := apply(t, j, journal.Request{}, rmem, "B")[0]
			if err := j.Commit(t.Context(), c.ID); err != nil {
				t.Fatal(err)
			}
			const content = "localhost\n"
			if _, err := j.Persist(t.Context(), "/", journal.Plan{ID: c.ID,
				Files: []journal.File{{Path: ours, Content: content, Mode: 0o644}}}); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			for _, victim := range []string{forged, "/etc/hosts"} {
				if err := durable.Replace(mem, filepath.Clean(victim), []byte("127.0.0.1 "+content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			rewrite(t, mem, "/state/journal.log", ours, forged)
			before := tree(t, mem, "/etc")
			j = open(t, options(mem, k, &clock{}))
			out, err := j.UndoAll(t.Context())
			if !errors.Is(err, journal.ErrNotOurs) {
				t.Errorf("undo: %+v, %v", out, err)
			}
			if diff := cmp.Diff(before, tree(t, mem, "/etc")); diff != "" {
				t.Errorf("a forged journal changed files (-before +after):\n%s", diff)
			}
			if _, err := mem.Stat(filepath.Clean(forged)); errors.Is(err, fs.ErrNotExist) {
				t.Error("the file is gone")
			}
		})
	}
}

// rewrite replaces a text in every record of a log, with valid checksums, as an attacker would.
func rewrite(t *testing.T, disk durable.FS, path, from, to string) {
	t.Helper()
	records, _, err := durable.ReadMarkedLog(disk, path)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		records[i] = bytes.ReplaceAll(r, []byte(from), []byte(to))
	}
	if err := durable.RewriteMarkedLog(disk, path, records); err != nil {
		t.Fatal(err)
	}
}

// TestForgedKnob has a journal that names a setting which linerate never changes.
func TestForgedKnob(t *testing.T) {
	const victim, known = knob.ID("sysctl:kernel.core_pattern"), knob.ID("sysctl:net.ipv4.tcp_rmem")
	mem := durable.NewMem()
	host := knob.NewMemory(map[knob.ID]knob.Value{victim: "core", known: "B"})
	o := options(mem, knob.Catalogued{Backend: host}, &clock{})
	j := open(t, o)
	c := apply(t, j, journal.Request{}, string(known), "4096 131072 6291456")[0]
	if err := errors.Join(j.Commit(t.Context(), c.ID), j.Close()); err != nil {
		t.Fatal(err)
	}
	host2 := knob.NewMemory(map[knob.ID]knob.Value{victim: "4096 131072 6291456"})
	rewrite(t, mem, "/state/journal.log", string(known), string(victim))
	o.Backend = knob.Catalogued{Backend: host2}
	out, err := open(t, o).UndoAll(t.Context())
	if !errors.Is(err, knob.ErrUnknown) || host2.Values()[victim] != "4096 131072 6291456" {
		t.Errorf("undo of a forged journal: %+v, %v, %v", out, err, host2.Values())
	}
}
