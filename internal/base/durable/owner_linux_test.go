package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
)

// TestForOwner replaces a file as root in a directory of another user, who has to read it.
func TestForOwner(t *testing.T) {
	testenv.Need(t, testenv.NetNS) // which only root may make
	dir := t.TempDir()
	const user, group = 61_184, 61_185
	if err := os.Chown(dir, user, group); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "membership.json")
	for _, text := range []string{"first", "second"} {
		if err := durable.Replace(durable.ForOwner(), name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if uid, gid, known := durable.Owner(st); !known || uid != user || gid != group || st.Mode() != 0o600 {
			t.Errorf("%s: %v of %d:%d", text, st.Mode(), uid, gid)
		}
	}
	if _, err := durable.ForOwner().Create(name, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists is emptied: %v", err)
	}
}
