package guesttest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is what a test binary prints with -test.v.
const sample = `=== RUN   TestA
    a_test.go:7: note: asked for 100, got 104
    a_test.go:9: something odd
--- PASS: TestA (0.01s)
=== RUN   TestB
=== RUN   TestB/one
=== PAUSE TestB/one
--- FAIL: TestB (0.00s)
    --- SKIP: TestB/one (0.00s)
    --- PASS: TestB/two (0.00s)
FAIL
`

func TestRead(t *testing.T) {
	passed, skipped, rest, notes := read(sample)
	if passed != 2 || skipped != 1 || !cmp.Equal(notes, []string{"asked for 100, got 104"}) {
		t.Errorf("%d passed, %d skipped, notes %q", passed, skipped, notes)
	}
	want := "    a_test.go:9: something odd\n--- FAIL: TestB (0.00s)\n    --- SKIP: TestB/one (0.00s)\nFAIL\n"
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Errorf("lines that explain a failure (-want +got):\n%s", diff)
	}
}

func TestOnly(t *testing.T) {
	if got, want := only("TestA/loaded_(1)"), `^TestA$/^loaded_\(1\)$`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
