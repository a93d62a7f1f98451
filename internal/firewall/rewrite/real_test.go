package rewrite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestReal: rules that others wrote are equal after the rewrite, changed or not, and so is their
// text.
func TestReal(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/xtables/*.v4", "testdata/bsd/*.ipfw", "testdata/bsd/*.pf"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) < 2 {
			t.Fatalf("%d files %s: %v", len(some), pattern, err)
		}
		files = append(files, some...)
	}
	limits := equal.Usual()
	limits.Steps = 100_000
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, err := read.Any(b)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		proven(t, filepath.Base(file), before, limits)
	}
}

func proven(t *testing.T, name string, before *ruleset.Ruleset, limits equal.Limits) rewrite.Result {
	t.Helper()
	got := rewrite.Optimise(before, limits)
	if got.Proof.Answer != equal.Equal || len(got.Kept) > 0 {
		t.Errorf("%s: %s %s, kept %v", name, got.Proof.Answer, got.Proof.What, got.Kept)
	}
	old, now, _ := rewrite.PerPacket(before, got.Rules)
	if now > old+0.01 {
		t.Errorf("%s: %.1f rules per packet before, %.1f after", name, old, now)
	}
	t.Logf("%s: %d chains changed, %.1f rules per packet before, %.1f after", name, len(got.Changed), old, now)
	if before.Program == ruleset.IPTablesLegacy || before.Program == ruleset.IPTablesNFT {
		var text strings.Builder
		if err := rewrite.Write(&text, got.Rules); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := read.Any([]byte(text.String())); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
	}
	return got
}
