package schedule

import (
	"regexp"
	"testing"

	"github.com/linerate/linerate/hub/internal/alert"
)

// TestRulesKnowOurNames checks the queries of the hub's rules against the series of measurements.
func TestRulesKnowOurNames(t *testing.T) {
	known, asked := make(map[string]bool), 0
	for _, m := range Metrics() {
		known[m.Name] = true
	}
	for _, rule := range alert.Defaults() {
		for _, name := range regexp.MustCompile(`linerate_measurement_[a-z0-9_]+`).FindAllString(rule.Query, -1) {
			asked++
			if !known[name] {
				t.Errorf("rule %s asks for %s, which no measurement makes", rule.Name, name)
			}
		}
	}
	if asked == 0 {
		t.Error("no rule asks for measurements")
	}
}
