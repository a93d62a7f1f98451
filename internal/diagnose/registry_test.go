package diagnose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/disks"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/resolvers"
)

const pages = "../../docs/findings"

// TestGeneratedPages checks that docs/findings has one page per code, and no others. -update writes
// them.
func TestGeneratedPages(t *testing.T) {
	if *update {
		if err := os.MkdirAll(pages, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"README.md"}
	var index strings.Builder
	index.WriteString("# Findings\n\nEvery code that `linerate diagnose` may give, those of `linerate disk` " +
		"(disk-), of `linerate resolver diagnose` (resolver-) " +
		"and of the switches that `linerate-hub` reads (switch-, loss-at-switch); `linerate diagnose " +
		"--explain CODE` prints the same text. Codes never change meaning.\n\n| code | in " +
		"short | rule |\n|---|---|---|\n")
	for _, e := range evidence.Registry() {
		file := string(e.Code) + ".md"
		want = append(want, file)
		golden(t, filepath.Join(pages, file), []byte(evidence.Page(e)))
		rule := "yes"
		if !e.Rule {
			rule = "reserved"
		}
		index.WriteString("| [" + string(e.Code) + "](" + file + ") | " + e.Title + " | " + rule + " |\n")
	}
	golden(t, filepath.Join(pages, "README.md"), []byte(index.String()))
	entries, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("%s/%s belongs to no code", pages, e.Name())
		}
	}
}

// TestRegistry checks the form of the registry: unique codes, whole sentences, a full explanation
// for every code with a rule, and a place for every rule in the order of certainty.
func TestRegistry(t *testing.T) {
	rules := []evidence.Code{evidence.LinkRateReached, evidence.MeasurementUnreliable, evidence.NoTraffic,
		evidence.LocalDrops, evidence.Healthy}
	rules = append(rules, disks.Codes()...)
	rules = append(rules, resolvers.Codes()...)
	// Package switches of the hub, which this module does not import, gives these; its own test
	// compares them.
	rules = append(rules, evidence.SwitchHalfDuplex, evidence.SwitchPortErrors, evidence.SwitchPortDiscards,
		evidence.LossAtSwitch)
	for _, r := range diagnose.Rules() {
		rules = append(rules, r.Code)
	}
	seen := map[evidence.Code]bool{}
	for _, e := range evidence.Registry() {
		if seen[e.Code] {
			t.Errorf("the registry has %s twice", e.Code)
		}
		seen[e.Code] = true
		if e.Title == "" || strings.HasSuffix(e.Title, ".") || !strings.HasSuffix(e.Meaning, ".") {
			t.Errorf("%s: title %q, meaning %q", e.Code, e.Title, e.Meaning)
		}
		if e.Rule != slices.Contains(rules, e.Code) {
			t.Errorf("%s: rule is %v in the registry", e.Code, e.Rule)
		}
		if e.Rule && (e.Shows == "" || e.ConfusedWith == "" || e.Remedy == "") {
			t.Errorf("%s has a rule but no full explanation", e.Code)
		}
	}
	for _, code := range rules {
		if !seen[code] {
			t.Errorf("%s is not in the registry", code)
		}
	}
	for _, r := range diagnose.Rules() {
		if evidence.Order(r.Code) < 0 {
			t.Errorf("%s has no place in the order of certainty", r.Code)
		}
	}
	if _, ok := evidence.Explain("no-such-code"); ok {
		t.Error("Explain knows a code that does not exist")
	}
}
