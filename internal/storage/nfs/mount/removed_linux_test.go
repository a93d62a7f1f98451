package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemoved: a stale handle is that of a removed file only where its name is gone too.
func TestRemoved(t *testing.T) {
	here := filepath.Join(t.TempDir(), "here")
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := here + "-gone"
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{here, nil, false}, {here, unix.ESTALE, false}, {gone, unix.ESTALE, true}, {gone, unix.EIO, false},
		{gone, fmt.Errorf("open: %w", unix.ENOENT), true},
	} {
		if got := removed(c.name, c.err); got != c.want {
			t.Errorf("%s, %v: %t", filepath.Base(c.name), c.err, got)
		}
	}
}
