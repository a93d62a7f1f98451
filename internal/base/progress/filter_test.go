package progress_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/progress"
)

// TestTextsAreFiltered checks that only the line itself may write sequences, and no text in it.
func TestTextsAreFiltered(t *testing.T) {
	t.Parallel()
	for _, mode := range []progress.Mode{progress.Lines, progress.All, progress.Live} {
		var b bytes.Buffer
		p := progress.New(&b, mode)
		p.Step("%s came", "\x1b[2J\u202efar")
		p.Status("waits for %s", "\x1b]0;x\x07\u200f\nfar")
		p.Done()
		got := strings.ReplaceAll(b.String(), "\r\x1b[K", "") // its own
		if strings.ContainsAny(got, "\x1b\x07\u202e\u200f\r") {
			t.Errorf("mode %v: %q", mode, got)
		}
	}
}
