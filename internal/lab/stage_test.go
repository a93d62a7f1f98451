package lab

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/lab/scenario"
)

func TestRuleset(t *testing.T) {
	text := ruleset(scenario.Firewall{Rules: 300, Conntrack: true})
	if n := strings.Count(text, "drop\n"); n != 300 {
		t.Errorf("%d rules, want 300", n)
	}
	for _, want := range []string{"ct state invalid counter", "ip saddr 198.18.0.0 drop", "ip saddr 198.18.1.43 drop"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}
