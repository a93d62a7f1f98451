package journal_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
)

// TestHearProbe: storage counts as silent only when the process that tries it has begun and hangs.
func TestHearProbe(t *testing.T) {
	never, always := func() bool { return false }, func() bool { return true }
	for name, test := range map[string]struct {
		answers string
		stays   bool // the process hangs after its answers
		thaw    func() bool
		silent  bool
		within  time.Duration
	}{
		"answers":        {"begins\nends\n", false, always, false, 0},
		"writes in vain": {"begins\n", false, never, false, 0},
		"frozen":         {"begins\n", true, always, true, time.Second},
		"hangs":          {"begins\n", true, never, true, 10 * time.Second},
		"does not begin": {"", true, always, false, 10 * time.Second},
		"cannot start":   {"no such flag\n", false, never, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out io.Reader = strings.NewReader(test.answers)
				if test.stays {
					more, writer := io.Pipe()
					out = io.MultiReader(out, more)
					defer writer.Close()
				}
				began := time.Now()
				err := journal.HearProbe(out, test.thaw)
				if errors.Is(err, journal.ErrSilent) != test.silent {
					t.Error(err)
				}
				if took := time.Since(began); took != test.within {
					t.Errorf("took %v, want %v", took, test.within)
				}
			})
		})
	}
}
