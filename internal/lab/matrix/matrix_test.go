package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/report"
)

func names(cases []Case) (all []string) {
	for _, c := range cases {
		all = append(all, c.Name())
	}
	return all
}

func TestSelect(t *testing.T) {
	scenarios := []scenario.Scenario{
		{Name: "sound", Short: true},
		{Name: "old", Faults: map[string][]scenario.Setting{"far": {{Knob: "sysctl:x", Value: "1"}}},
			Levels: map[scenario.Level]scenario.Fault{scenario.Mild: {}}},
		{Name: "new", Levels: map[scenario.Level]scenario.Fault{scenario.Gross: {}, scenario.Plain: {}}, Short: true},
		{Name: "card", Ground: scenario.Guest, Levels: map[scenario.Level]scenario.Fault{scenario.Gross: {}}},
	}
	for name, c := range map[string]struct {
		filter Filter
		want   []string
	}{
		"all":       {Filter{}, []string{"sound", "old/mild", "old/gross", "new/plain", "new/gross", "card/gross"}},
		"only":      {Filter{Only: regexp.MustCompile("^o")}, []string{"old/mild", "old/gross"}},
		"level":     {Filter{Level: scenario.Plain}, []string{"new/plain"}},
		"namespace": {Filter{Ground: scenario.Namespace, Level: scenario.Gross}, []string{"old/gross", "new/gross"}},
		"guest":     {Filter{Ground: scenario.Guest}, []string{"card/gross"}},
		"short":     {Filter{Short: true}, []string{"sound", "new/gross"}},
	} {
		if d := cmp.Diff(c.want, names(Select(scenarios, c.filter))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for _, bad := range []func() error{
		func() error { _, err := ParseLevel("heavy"); return err },
		func() error { _, err := ParseGround("moon"); return err },
	} {
		if bad() == nil {
			t.Error("accepted")
		}
	}
}

func TestJudge(t *testing.T) {
	one := scenario.Expectation{Finding: "a"}
	also := scenario.Expectation{Finding: "a", Also: []string{"b"}, Why: "both are true"}
	pair := scenario.Expectation{Finding: "a", Both: []string{"a", "b"}}
	for name, c := range map[string]struct {
		expect scenario.Expectation
		level  scenario.Level
		found  string // code, then its severity
		right  bool
		rank   int
		warned bool
	}{
		"first":        {one, scenario.Gross, "a warning", true, 1, true},
		"second":       {one, scenario.Gross, "c warning a notice", false, 2, true},
		"absent":       {one, scenario.Gross, "c info", false, 0, false},
		"also":         {also, scenario.Gross, "b notice a info", true, 1, false},
		"pair":         {pair, scenario.Gross, "b warning c info a critical", true, 3, true},
		"half a pair":  {pair, scenario.Gross, "a warning c info", false, 0, true},
		"sound":        {one, "", "a info", true, 1, false},
		"sound warned": {one, "", "a info c warning", false, 1, true},
		"no findings":  {one, "", "", false, 0, false},
	} {
		var findings []report.MatrixFinding
		for words := regexp.MustCompile(`\S+`).FindAllString(c.found, -1); len(words) > 1; words = words[2:] {
			findings = append(findings, report.MatrixFinding{Code: words[0], Severity: words[1]})
		}
		document, err := json.Marshal(map[string]any{"findings": findings})
		if err != nil {
			t.Fatal(err)
		}
		tried := Case{scenario.Scenario{Expect: c.expect}, c.level}
		m := begin(tried, 1, Options{})
		m.Document = document
		if judge(&m, tried); m.Right != c.right || m.Rank != c.rank || m.Warned != c.warned {
			t.Errorf("%s: right %v, rank %d, warned %v", name, m.Right, m.Rank, m.Warned)
		}
	}
	m := report.MatrixCase{Document: []byte("{")}
	if judge(&m, Case{}); m.Reason == "" || m.Right {
		t.Errorf("half a document: %+v", m)
	}
}

// player answers for guests.
type player struct{ err error }

func (p player) Play(_ context.Context, cases []Case, runs int, each func(report.MatrixCase)) error {
	for _, c := range cases {
		for run := range runs {
			m := begin(c, run+1, Options{})
			m.Document = json.RawMessage(`{"findings":[]}`)
			each(m)
		}
	}
	return p.err
}

func TestGuestsAreAsked(t *testing.T) {
	cases := []Case{{scenario.Scenario{Name: "card", Ground: scenario.Guest}, scenario.Gross}}
	all, err := Run(t.Context(), cases, Options{})
	if err != nil || len(all) != 1 || !all[0].Skipped || all[0].Reason == "" {
		t.Errorf("without guests: %v %+v", err, all)
	}
	dir := filepath.Join(t.TempDir(), "verdicts")
	all, err = Run(t.Context(), cases, Options{Runs: 2, Guest: player{}, Out: dir})
	if err != nil || len(all) != 2 || all[1].Run != 2 || all[0].Document != nil {
		t.Errorf("%v %+v", err, all)
	}
	for _, name := range []string{"card.gross.json", "card.gross.2.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	broken := errors.New("no guest")
	if _, err := Run(t.Context(), cases, Options{Guest: player{broken}}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestScenariosNameFindings checks every expected code against the registry of findings: an unknown
// code could never be found.
func TestScenariosNameFindings(t *testing.T) {
	scenarios, err := scenario.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	sounds, pairs, seen := 0, 0, map[string]bool{}
	for _, s := range scenarios {
		if seen[s.Name] {
			t.Errorf("%s: twice", s.Name)
		}
		seen[s.Name] = true
		for _, code := range slices.Concat([]string{s.Expect.Finding}, s.Expect.Also, s.Expect.Both) {
			if _, ok := evidence.Explain(evidence.Code(code)); !ok {
				t.Errorf("%s: no finding has the code %q", s.Name, code)
			}
		}
		switch {
		case s.Sound():
			sounds++
		case len(s.Expect.Both) > 0:
			pairs++
		default:
			planted[s.Expect.Finding] = true
		}
		for _, l := range scenario.Levels {
			if s.World.Card != "" {
				continue // the cards themselves may be what is wrong
			}
			if f, ok := s.Fault(l); ok && len(f.Settings)+len(f.Firewall)+len(f.TC)+len(f.Work) == 0 && f.Link == nil {
				t.Errorf("%s/%s: nothing is wrong", s.Name, l)
			}
		}
	}
	t.Logf("%d scenarios: %d codes planted, %d sound worlds, %d pairs", len(scenarios), len(planted), sounds, pairs)
	if sounds < 5 || pairs < 6 {
		t.Errorf("%d sound worlds and %d pairs: want 5 and 6 at least", sounds, pairs)
	}
	if len(Select(scenarios, Filter{Short: true})) < 5 {
		t.Error("the short form has fewer than five cases")
	}
}
