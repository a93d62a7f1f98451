package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// sample is a host with a NIC, links of every kind, and entries that no file system allows.
func sample() []Entry {
	return []Entry{
		{Name: "proc/stat", Content: []byte("cpu 1\n")},
		{Name: "proc/empty"},
		{Name: "sys/devices/pci0000:00/0000:00:03.0/net/eth0/mtu", Content: []byte("1500\n")},
		{Name: "sys/class/net/eth0", Target: "../../devices/pci0000:00/0000:00:03.0/net/eth0"},
		{Name: "sys/devices/pci0000:00/0000:00:03.0/net/eth0/device", Target: "../../../0000:00:03.0"},
		{Name: "sys/bus/pci", Directory: true},
		{Name: "sys/loop/a", Target: "b"},
		{Name: "sys/loop/b", Target: "a"},
		{Name: "sys/up", Target: "../../etc/shadow"},
		{Name: "sys/absolute", Target: "/etc/shadow"},
		{Name: "proc/stat/below", Content: []byte("below a file\n")},
		{Name: "sys/class/net/eth0/below", Content: []byte("below a link\n")},
		{Name: "../outside", Content: []byte("x")},
		{Name: ".", Content: []byte("x")},
	}
}

// TestMemory checks the copy against the rules of package fs, and its results through links against
// those of a directory with the same content.
func TestMemory(t *testing.T) {
	m := NewMemory(sample())
	sound := NewMemory(slices.DeleteFunc(sample(), func(e Entry) bool {
		return strings.HasPrefix(e.Name, "sys/loop") || e.Name == "sys/up" || e.Name == "sys/absolute"
	}))
	if err := fstest.TestFS(sound, "proc/stat", "proc/empty", "sys/bus/pci", "sys/class/net/eth0",
		"sys/devices/pci0000:00/0000:00:03.0/net/eth0/mtu"); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	for _, e := range sample()[:10] {
		to := filepath.Join(dir, filepath.FromSlash(e.Name))
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		switch {
		case e.Directory:
			must(t, os.MkdirAll(to, 0o755))
		case e.Target != "":
			must(t, os.Symlink(e.Target, to))
		default:
			must(t, os.WriteFile(to, e.Content, 0o644))
		}
	}
	onDisk, err := OpenDir(dir)
	must(t, err)
	defer onDisk.Close()
	inMemory, err := Of(m)
	must(t, err)
	for _, name := range []string{
		"proc", "proc/stat", "proc/empty", "proc/none", "proc/stat/below", "sys/class/net/eth0",
		"sys/class/net/eth0/mtu", "sys/class/net/eth0/device",
		"sys/class/net/eth0/device/net/eth0/mtu", "sys/class/net/eth0/below", "sys/bus/pci", "sys/loop/a", "sys/up",
		"sys/up/x", "sys/absolute", "outside", "sys/../proc/stat",
	} {
		if diff := cmp.Diff(answers(onDisk, name), answers(inMemory, name)); diff != "" {
			t.Errorf("%s (-directory +memory):\n%s", name, diff)
		}
	}
}

// answers returns all results of a tree for one name.
func answers(t *Tree, name string) map[string]any {
	out := make(map[string]any)
	b, err := t.Read(name)
	out["read"], out["missing"] = string(b), errors.Is(err, fs.ErrNotExist)
	out["list"], err = t.List(name)
	out["listed"] = err == nil
	target, isLink := t.Link(name)
	out["link"], out["is link"] = target, isLink
	real, ok := t.Resolve(name)
	out["resolved"], out["is there"], out["exists"] = real, ok, t.Exists(name)
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecord checks that a copy contains the files that were read, at their real paths, with the
// links that lead to them, and no other files.
func TestRecord(t *testing.T) {
	entries := append(sample(), Entry{Name: "proc/1/environ", Content: []byte("PASSWORD=x\x00container=lxc\x00")},
		Entry{Name: "proc/self/net/dev", Content: []byte("lo\n")},
		Entry{Name: "proc/mounts", Content: []byte("secret\n")}, Entry{Name: "run/mark", Content: []byte("secret\n")})
	tree, err := Of(NewMemory(entries))
	must(t, err)
	rec := tree.Record()
	tree.Optional("sys/class/net/eth0/mtu")
	tree.Optional("proc/1/environ")
	_, err = tree.Net("dev")
	must(t, err)
	_, err = tree.Aside("proc/mounts")
	must(t, err)
	tree.Keep("proc/kept", []byte("a line of it\n"))
	tree.Exists("run/mark")
	_, err = tree.List("sys/class/net")
	must(t, err)
	tree.Stop()
	tree.Optional("proc/stat")
	tree.Keep("proc/later", nil)
	want := []Entry{
		{Name: "proc/1/environ", Content: []byte("container=lxc\x00")},
		{Name: "proc/kept", Content: []byte("a line of it\n")},
		{Name: "proc/net/dev", Content: []byte("lo\n")},
		{Name: "run/mark"},
		{Name: "sys/class/net", Directory: true},
		{Name: "sys/class/net/eth0", Target: "../../devices/pci0000:00/0000:00:03.0/net/eth0"},
		{Name: "sys/devices/pci0000:00/0000:00:03.0/net/eth0/mtu", Content: []byte("1500\n")},
	}
	if diff := cmp.Diff(want, rec.Entries()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzMemory checks that for any copy every call ends, and no result comes from outside.
func FuzzMemory(f *testing.F) {
	f.Add("a/b", "c", "a/b/c")
	f.Add("a", "a", "a/a/a")
	f.Add("proc/x", "../../..", "proc/x/etc")
	f.Add("proc/x", "/", "proc/x/proc/x")
	f.Fuzz(func(t *testing.T, link, target, name string) {
		m := NewMemory([]Entry{{Name: "proc/stat", Content: []byte("inside")}, {Name: link, Target: target},
			{Name: name, Content: []byte("inside")}})
		tree, err := Of(m)
		must(t, err)
		tree.Record()
		if b, err := tree.Read(name); err == nil && string(b) != "inside" && len(b) > 0 {
			t.Errorf("read %q", b)
		}
		tree.Resolve(name)
		tree.Exists(name)
		_, _ = tree.List(name)
	})
}
