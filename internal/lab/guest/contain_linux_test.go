package guest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestContainWithoutDisk: only a disk has a system.
func TestContainWithoutDisk(t *testing.T) {
	if _, err := Contain(t.Context(), Options{}); err == nil {
		t.Error("a container without a disk")
	}
}

// TestGroups: a control group that a killed program has left goes, with the groups in it, when
// another one is made, and one in use stays.
func TestGroups(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	used, err := newGroup()
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	left, err := newGroup()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(left.dir.Name(), "system.slice", "a.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := left.dir.Close(); err != nil { // as the end of its program does
		t.Fatal(err)
	}
	last, err := newGroup()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left.dir.Name()); !os.IsNotExist(err) {
		t.Errorf("the group that was left: %v", err)
	}
	for _, g := range []*group{used, last} {
		if _, err := os.Stat(g.dir.Name()); err != nil {
			t.Errorf("a group in use: %v", err)
		}
		if err := g.remove(); err != nil {
			t.Error(err)
		}
		if err := g.dir.Close(); err != nil {
			t.Error(err)
		}
	}
}
