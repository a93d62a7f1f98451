//go:build unix && !aix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	make := func(name string, mode fs.FileMode) {
		t.Helper()
		if err := os.Mkdir(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(name), mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	make("own", 0o755)
	make("open", 0o777)
	make("sticky", 0o777|fs.ModeSticky)
	for _, name := range []string{"open/inside", "sticky/inside"} {
		make(name, 0o755)
	}
	for link, to := range map[string]string{
		"own/link": at("own"), "leads": at("open/inside"), "open/link": at("own"),
		"own/chain": at("open/link"), "own/up": "../open/../own", "own/loop": "loop",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, reason := range map[string]string{
		"own": "", "own/link": "", "sticky/inside": "",
		"open": "every user can change it", "open/inside": "every user", "sticky": "every user",
		// A link in a safe place that leads to an unsafe one, and the reverse.
		"leads": "every user", "open/link": "every user",
		// A safe link to a safe place, by way of a link that another user can replace; and up again.
		"own/chain": "every user", "own/up": "every user", "own/loop": "too many",
	} {
		err := OS().(Truster).Trusted(at(name))
		if (err == nil) != (reason == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (errors.Is(err, fs.ErrPermission) == (name == "own/loop") ||
			!strings.Contains(err.Error(), reason)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := OS().(Truster).Trusted(at("nosuch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(at("own"), 65533, -1); err != nil {
			t.Fatal(err)
		}
		if err := OS().(Truster).Trusted(at("own/link")); err == nil || !strings.Contains(err.Error(), "user 65533") {
			t.Errorf("a directory of another user: %v", err)
		}
	}
}

func TestGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	for name, text := range map[string]string{
		passwd: "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n" +
			"other:x:1001:1001::/home/other:/bin/sh\nbroken\n",
		group: "root:x:0:\nstaff:x:50:\nme:x:1000:\nother:x:1001:\nshared:x:60:me,other\nours:x:61:me,root\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := owners{[]int{0, 1000}, passwd, group}
	for gid, want := range map[int]bool{0: true, 50: true, 1000: true, 61: true, 1001: false, 60: false, 99: false} {
		if got := o.own(gid); got != want {
			t.Errorf("group %d: %v", gid, got)
		}
	}
	o.group = filepath.Join(dir, "nosuch")
	if o.own(50) {
		t.Error("no file, and yet trusted")
	}
}

// TestLinksAreNotFollowed has a link where this package would read, write or lock a file, and a
// pipe where it would read one.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := os.WriteFile(victim, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	disk := OS()
	if _, err := disk.ReadFile(pipe); !errors.Is(err, errNoFile) {
		t.Errorf("read a pipe: %v", err)
	}
	_, create := disk.Create(link, 0o600)
	_, add := disk.OpenAppend(link, 0o600)
	_, read := disk.ReadFile(link)
	_, lock := disk.Lock(link)
	for what, err := range map[string]error{"create": create, "append": add, "read": read, "lock": lock} {
		if !errors.Is(err, errSymlink) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "old" {
		t.Errorf("the file behind the link is %q, %v", b, err)
	}
}
