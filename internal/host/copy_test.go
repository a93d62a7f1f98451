package host_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/hostfs"
)

// TestCopy: a copy of an archive is the same host, a copy of the copy is the same copy, and a
// process's environment is in neither.
func TestCopy(t *testing.T) {
	for _, name := range []string{"ixgbe-server-6.1", "veth-container-6.18"} {
		t.Run(name, func(t *testing.T) {
			entries := unpack(t, filepath.Join("testdata", "hosts", name+".txtar"))
			root := inMemory(append(entries,
				hostfs.Entry{Name: "proc/1/environ", Content: []byte("PASSWORD=hunter2\x00container=lxc\x00")}))
			first := copied(t, root)
			if diff := cmp.Diff(string(everything(t, root)), string(everything(t, inMemory(first)))); diff != "" {
				t.Errorf("(-host +copy):\n%s", diff)
			}
			if diff := cmp.Diff(first, copied(t, inMemory(first))); diff != "" {
				t.Errorf("(-copy +copy of the copy):\n%s", diff)
			}
			for _, e := range first {
				if e.Name == "proc/1/environ" && string(e.Content) != "container=lxc\x00" {
					t.Errorf("environment %q", e.Content)
				}
			}
		})
	}
}

func copied(t testing.TB, root host.Root) []hostfs.Entry {
	t.Helper()
	entries, err := root.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
