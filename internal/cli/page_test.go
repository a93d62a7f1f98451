package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestPageOfEarlierRun: a page stays until the next one of its name is written.
func TestPageOfEarlierRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "result.html")
	write := func(text string) error {
		p, err := newPage("html", name)
		if err != nil {
			return err
		}
		defer p.discard()
		if text == "" {
			return nil // the run failed
		}
		return p.write(func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	for _, step := range []struct{ write, want string }{{"", ""}, {"the first", "the first"}, {"", "the first"},
		{"2nd", "2nd"}} {
		err := write(step.write)
		got, readErr := os.ReadFile(name)
		if err != nil || string(got) != step.want || errors.Is(readErr, os.ErrNotExist) != (step.want == "") {
			t.Errorf("after %q: %q, %v, %v", step.write, got, err, readErr)
		}
	}
}
