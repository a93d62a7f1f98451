package record_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/linerate/linerate/hub/internal/record"
)

// union returns an expression of n selectors in a tree, which nests less than a chain does.
func union(n, from int) string {
	if n == 1 {
		return fmt.Sprintf(`label_replace({b!=""},"z","%d","","")`, from)
	}
	return "(" + union(n/2, from) + " or " + union(n-n/2, from+n/2) + ")"
}

// TestExpressionBombs sends queries that took minutes or gigabytes although they are short.
func TestExpressionBombs(t *testing.T) {
	s := open(t, record.Options{})
	some(t, s, 20, 0, 60)
	replace := func(re string) string { return fmt.Sprintf(`label_replace({b!=""},"z","$1","__name__","%s")`, re) }
	wide := fmt.Sprintf(`label_replace(%s,"a","%s","","")`, union(350, 0), strings.Repeat("x", 4000))
	for _, l := range []string{"b", "c", "d"} {
		wide = fmt.Sprintf(`label_replace(%s,"%s","$1","a","(.*)")`, wide, l)
	}
	for name, query := range map[string]string{
		"groups":           replace(strings.Repeat("(.*a|b.*)?", 2500)),
		"few groups":       replace(strings.Repeat("(.*a|b.*)?", 21)),
		"repeats":          replace("(x{1,10}){1,100}" + strings.Repeat("y{1,10}", 100)),
		"steps in a union": strings.ReplaceAll(union(100, 0), `"",""`, `"b","`+strings.Repeat("(a.*b|c.*d)*", 20)+`"`),
		"large labels":     wide,
		"matcher":          `{b=~"x` + strings.Repeat("(.*a|b.*)?", 2500) + `"}`,
		"matchers": `{b=~"x` + strings.Repeat("(.*a|b.*)?", 300) + `"} or ` +
			`{b=~"y` + strings.Repeat("(.*a|b.*)?", 300) + `"}`,
		"repeats in matchers": `{b=~"x` + strings.Repeat("(x{1,10}){1,100}", 1900) + `"}`,
		"sorted windows":      "quantile_over_time(0.5,vector(1)[5h:1s])",
	} {
		if len(query) > 32<<10 {
			t.Fatalf("%s has %d bytes", name, len(query))
		}
		if _, err := s.Matrix(t.Context(), query, noon, noon.Add(10_000*time.Second), time.Second); !errors.Is(err,
			record.ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("enp%ds0f%d", i, i%4))
	}
	for name, query := range map[string]string{
		"a choice of names": `{b=~"` + strings.Join(names, "|") + `"}`,
		"part of a name":    replace(`(?:linerate_)?([^_]+)_.*`),
		"bounded repeats":   `{b=~"eth[0-9]{1,3}(\\.[0-9]{1,4})?"}`,
		"twenty of them":    strings.TrimSuffix(strings.Repeat("sum by (z) ("+replace("([^_]+)_(.*)")+") + ", 20), " + "),
		"a day's quantile":  "quantile_over_time(0.95,linerate_test_total[1h])",
	} {
		if _, err := s.Matrix(t.Context(), query, noon, noon.Add(10_000*time.Second), time.Second); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := labels.MustNewMatcher(labels.MatchRegexp, "b", strings.Repeat("(.*a|b.*)?", 300))
	if err := record.BoundedMatchers(m, m); !errors.Is(err, record.ErrTooMuch) {
		t.Errorf("matchers of a list: %v", err)
	}
}

// TestHiddenRepeats hides repetitions from a reader of the query's bytes, none of which its parser
// overlooks: it took 128 MB for each of them.
func TestHiddenRepeats(t *testing.T) {
	bomb := strings.Repeat("x", 250) + "{1000}"
	for name, query := range map[string]string{
		"escaped":      `{a=~"` + strings.NewReplacer("{", `\x7b`, "}", `\175`).Replace(bomb) + `"}`,
		"digits too":   `{a=~"` + strings.ReplaceAll(bomb, "{1000}", `\u007b\x31000}`) + `"}`,
		"negative":     `{a=~"` + bomb + `",b!="{-99999999}"}`,
		"overflow":     `{a=~"` + bomb + `",b!="` + strings.Repeat("{9999999999}", 2000) + `"}`,
		"in a comment": "a # \"\n{a=~'" + bomb + "'}",
	} {
		if err := record.BoundedRepeats(query); !errors.Is(err, record.ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := record.BoundedRepeats(`{a=~"eth[0-9]\x7b1,3}"} # ` + strings.Repeat("{1000}", 500)); err != nil {
		t.Error(err)
	}
}

// TestAlertsHaveAPlace takes all places of users' queries: the hub's own are still answered.
func TestAlertsHaveAPlace(t *testing.T) {
	s := open(t, record.Options{Queries: record.Bounds{Concurrent: 1}})
	defer s.Occupy()()
	if v, err := s.Vector(t.Context(), "1", noon); err != nil || len(v) != 1 {
		t.Errorf("%v, %v", v, err)
	}
}
