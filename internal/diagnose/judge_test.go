package diagnose_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixture is one case with the expected verdict. Hand-made and recorded cases have the same form.
type fixture struct {
	Why    string          `json:"why"`             // what the case is, one sentence
	Expect evidence.Code   `json:"expect"`          // first finding
	Where  string          `json:"where,omitempty"` // of the first finding
	Then   []evidence.Code `json:"then,omitempty"`  // the findings after it, in order; empty: not checked
	Never  []evidence.Code `json:"never,omitempty"` // look-alikes that must not appear
	Case   evidence.Case   `json:"case"`
}

// fixtures returns every case by name. Tests share the cases and must not change them.
var fixtures = sync.OnceValues(readFixtures)

func readFixtures() (map[string]fixture, error) {
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil {
		return nil, err
	}
	all := map[string]fixture{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var f fixture
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = f
	}
	if len(all) == 0 {
		return nil, errors.New("no cases below testdata")
	}
	return all, nil
}

// TestJudge checks the verdict on every case, and compares the whole findings with golden files, so
// that a change of words or numbers is visible.
func TestJudge(t *testing.T) {
	all, err := fixtures()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			found := diagnose.Judge(f.Case)
			checkShape(t, found)
			var codes []evidence.Code
			for _, x := range found {
				codes = append(codes, x.Code)
			}
			if codes[0] != f.Expect {
				t.Errorf("%s\nfirst finding is %s, want %s; all: %v\n%s", f.Why, codes[0], f.Expect, codes,
					found[0].Title)
			}
			if f.Where != "" && found[0].Where != f.Where {
				t.Errorf("the place is %s, want %s", found[0].Where, f.Where)
			}
			if len(f.Then) > 0 && !slices.Equal(codes[1:], f.Then) {
				t.Errorf("then %v, want %v", codes[1:], f.Then)
			}
			for _, never := range f.Never {
				if slices.Contains(codes, never) {
					t.Errorf("%s fired on its look-alike; all: %v", never, codes)
				}
			}
			got, err := json.MarshalIndent(found, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/cases/"+name+".golden", append(got, '\n'))
		})
	}
}

// sentence is the form of every title, rejected alternative and remedy: it begins with a capital
// and ends with a full stop. unreadable matches numbers in a form that users do not read.
var (
	sentence   = regexp.MustCompile(`^[A-Z0-9].*\.$`)
	unreadable = regexp.MustCompile(`NaN|Inf|%!|\d{7,}|e[+-]\d\d`)
	anyNumber  = regexp.MustCompile(`[0-9]`)
)

// checkShape checks what every finding promises.
func checkShape(t *testing.T, found []evidence.Finding) {
	t.Helper()
	if len(found) == 0 {
		t.Fatal("no finding at all")
	}
	for _, f := range found {
		if _, ok := evidence.Explain(f.Code); !ok {
			t.Errorf("%s is not in the registry", f.Code)
		}
		if f.Confidence <= 0 || f.Confidence >= 1 {
			t.Errorf("%s: confidence %v", f.Code, f.Confidence)
		}
		if f.Where == "" || len(f.Evidence) == 0 || f.Rejected == nil || f.Remedy.Knobs == nil {
			t.Errorf("%s: something is missing: %+v", f.Code, f)
		}
		for _, s := range append([]string{f.Title, f.Remedy.Text}, f.Rejected...) {
			if !sentence.MatchString(s) || unreadable.MatchString(s) {
				t.Errorf("%s: not a plain sentence: %q", f.Code, s)
			}
		}
		for _, s := range f.Rejected {
			if !anyNumber.MatchString(s) && !strings.Contains(s, "no local counter") &&
				!strings.Contains(s, "Not measured") {
				t.Errorf("%s: rejected without a number: %q", f.Code, s)
			}
		}
		for _, e := range f.Evidence {
			if e.Name == "" || e.Source == "" {
				t.Errorf("%s: evidence without name or source: %+v", f.Code, e)
			}
			switch e.Value.(type) {
			case float64, string, bool:
			default:
				t.Errorf("%s: evidence %s is a %T", f.Code, e.Name, e.Value)
			}
		}
		if len(f.Remedy.Settings) > 5 {
			t.Errorf("%s: %d candidates are too many for one experiment", f.Code, len(f.Remedy.Settings))
		}
		for _, c := range f.Remedy.Settings {
			if c.Side != "near" && c.Side != "far" || len(c.Levels) == 0 || c.Why == "" ||
				!slices.Contains(f.Remedy.Knobs, string(c.Knob)) {
				t.Errorf("%s: candidate %+v", f.Code, c)
			}
		}
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), -update accepts it:\n%s", file, diff)
	}
}
