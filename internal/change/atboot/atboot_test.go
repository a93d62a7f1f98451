package atboot_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/atboot"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

var inits = []atboot.Init{atboot.Systemd, atboot.SysV, atboot.OpenRC}

// tree returns names, modes and contents below a directory.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case d.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(name)
		default:
			var b []byte
			b, err = os.ReadFile(name)
			text = string(b)
		}
		rel, _ := filepath.Rel(root, name)
		found[rel] = info.Mode().String() + " " + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestText compares the files with what was looked at, and given to `systemd-analyze verify` and
// `sh -n`.
func TestText(t *testing.T) {
	for _, init := range inits {
		for _, state := range []string{"", "/srv/state"} {
			text, err := atboot.Text(atboot.Options{Root: "/", Init: init, Program: "/usr/local/bin/linerate",
				State: state})
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join("testdata", string(init)+strings.ReplaceAll(state, "/", "-")+".golden")
			if *update {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if init != atboot.Systemd {
				if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
			}
		}
	}
}

// TestInstallAndBack: installing twice changes nothing the second time, and uninstalling leaves the
// files that were there before.
func TestInstallAndBack(t *testing.T) {
	for _, init := range inits {
		t.Run(string(init), func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "etc/init.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "etc/init.d/networking"), []byte("#!/bin/sh\n"),
				0o755); err != nil {
				t.Fatal(err)
			}
			before := tree(t, root)
			o := atboot.Options{Root: root, Init: init, Program: "/usr/bin/linerate"}
			first, err := atboot.Install(o)
			if err != nil || !first.Changed || len(first.Links) == 0 {
				t.Fatal(first, err)
			}
			installed := tree(t, root)
			if len(installed) < len(before)+1+len(first.Links) {
				t.Errorf("%d files after %d", len(installed), len(before))
			}
			for _, link := range first.Links {
				// An absolute link is one of the host and not of its image.
				if target, err := os.Readlink(link); err != nil || !filepath.IsAbs(target) &&
					filepath.Join(filepath.Dir(link), target) != first.Path {
					t.Errorf("%s leads to %s, %v", link, target, err)
				}
			}
			if again, err := atboot.Install(o); err != nil || again.Changed || !cmp.Equal(installed, tree(t, root)) {
				t.Errorf("the second time: %+v, %v", again, err)
			}
			// Another version of ours is replaced, and stays removable.
			o.Program = "/opt/linerate"
			if newer, err := atboot.Install(o); err != nil || !newer.Changed {
				t.Errorf("a newer one: %+v, %v", newer, err)
			}
			gone, err := atboot.Uninstall(atboot.Options{Root: root, Init: init})
			if err != nil || !gone.Changed {
				t.Errorf("uninstall: %+v, %v", gone, err)
			}
			if diff := cmp.Diff(before, tree(t, root)); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
			if gone, err := atboot.Uninstall(o); err != nil || gone.Changed {
				t.Errorf("uninstall again: %+v, %v", gone, err)
			}
		})
	}
}

// TestDirectoriesOfOthers: a directory that existed before the installation stays, even if it is
// empty. So does one that now holds files of another program.
func TestDirectoriesOfOthers(t *testing.T) {
	root := t.TempDir()
	wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		t.Fatal(err)
	}
	o := atboot.Options{Root: root, Init: atboot.Systemd, Program: "/usr/bin/linerate"}
	install := func() {
		t.Helper()
		if _, err := atboot.Install(o); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, root)
	install()
	if _, err := atboot.Uninstall(o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, root)); diff != "" {
		t.Errorf("an empty directory (-before +after):\n%s", diff)
	}
	if err := os.Remove(wants); err != nil {
		t.Fatal(err)
	}
	install()
	theirs := filepath.Join(wants, "theirs.service")
	if err := os.WriteFile(theirs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := atboot.Uninstall(o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}

// TestNotOurs: a file that a user has edited is neither replaced nor removed.
func TestNotOurs(t *testing.T) {
	for _, init := range inits {
		root := t.TempDir()
		o := atboot.Options{Root: root, Init: init, Program: "/usr/bin/linerate"}
		r, err := atboot.Install(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(r.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.Path, append(text, "# mine\n"...), 0o755); err != nil {
			t.Fatal(err)
		}
		before := tree(t, root)
		o.Program = "/opt/linerate"
		if _, err := atboot.Install(o); !errors.Is(err, atboot.ErrNotOurs) {
			t.Errorf("install: %v", err)
		}
		if _, err := atboot.Uninstall(o); !errors.Is(err, atboot.ErrNotOurs) {
			t.Errorf("uninstall: %v", err)
		}
		if diff := cmp.Diff(before, tree(t, root)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	}
}

// TestDetect finds the init system by what it leaves in a root directory.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		file string
		want atboot.Init
	}{{"usr/lib/systemd/systemd", atboot.Systemd}, {"lib/systemd/systemd", atboot.Systemd},
		{"sbin/openrc-run", atboot.OpenRC}, {"etc/init.d/x", atboot.SysV}} {
		root := t.TempDir()
		if _, err := atboot.Detect(root); !errors.Is(err, atboot.ErrNoInit) {
			t.Errorf("an empty root: %v", err)
		}
		name := filepath.Join(root, c.file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := atboot.Detect(root); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.file, got, err)
		}
	}
}

// TestPlainPaths: a path that an init system could take for more than a name is refused before
// anything is written.
func TestPlainPaths(t *testing.T) {
	for _, bad := range []string{"linerate", "/usr/bin/line rate", "/x;id", "/x\nExecStart=/bin/sh", "/%n",
		"/$(id)", "/'", ""} {
		root := t.TempDir()
		if _, err := atboot.Install(atboot.Options{Root: root, Init: atboot.Systemd, Program: bad}); err == nil ||
			len(tree(t, root)) > 1 {
			// the root itself
			t.Errorf("%q: %v", bad, err)
		}
	}
}
