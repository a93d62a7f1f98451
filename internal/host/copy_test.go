package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
)

// TestCopy: an archive in memory is the one in a directory, and a process's environment is in neither.
func TestCopy(t *testing.T) {
	for _, name := range []string{"ixgbe-server-6.1", "veth-container-6.18"} {
		t.Run(name, func(t *testing.T) {
			root := host.Root{Dir: unpack(t, filepath.Join("testdata", "hosts", name+".txtar"))}
			plant(t, root.Dir, "proc/1/environ", []byte("PASSWORD=hunter2\x00container=lxc\x00"))
			dir := t.TempDir()
			if err := root.Save(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			entries, err := root.Copy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			inMemory := make(map[string]string)
			for _, e := range entries {
				switch {
				case e.Target != "":
					inMemory[e.Name] = "-> " + e.Target
				case !e.Directory:
					inMemory[e.Name] = string(e.Content)
				}
			}
			if diff := cmp.Diff(written(t, dir), inMemory); diff != "" {
				t.Errorf("(-directory +memory):\n%s", diff)
			}
			if environ := inMemory["proc/1/environ"]; environ != "" && environ != "container=lxc\x00" {
				t.Errorf("environment %q", environ)
			}
		})
	}
}

// written reads the files and links below a directory.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		}
		b, err := os.ReadFile(path)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
