package diagnose

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// TestProfiled checks that findings about processors name the stages of the profile, the firewall's
// its own share, and that other findings and other hosts stay as they are.
func TestProfiled(t *testing.T) {
	c := &evidence.Case{Watched: []evidence.Span{{Side: "near", Profile: &evidence.Profile{Event: "cpu-clock",
		Samples: 900, Stages: []evidence.StageShare{{Name: "GRO", Share: 0.4, Low: 0.36, High: 0.44},
			{Name: "TCP rx", Share: 0.3, Low: 0.27, High: 0.33}, {Name: "netfilter", Share: 0.2, Low: 0.17, High: 0.23},
			{Name: "copy", Share: 0.1, Low: 0.08, High: 0.12}}}}}}
	found := []evidence.Finding{{Code: evidence.SoftirqCPUSaturated, Where: "near"},
		{Code: evidence.FirewallCost, Where: "near"}, {Code: evidence.PathLoss, Where: "near"},
		{Code: evidence.CPUSaturated, Where: "far"}}
	none := &evidence.Case{}
	if !WantsProfile(none, found, "near") || WantsProfile(none, found[2:3], "near") ||
		WantsProfile(none, found[:3], "far") {
		t.Error("a profile is wanted where a processor is the limit, and only there")
	}
	profiled(c, found)
	for i, want := range []int{3, 1, 0, 0} {
		if got := len(found[i].Evidence); got != want {
			t.Errorf("%s: %d shares, want %d", found[i].Code, got, want)
		}
	}
	e := found[1].Evidence[0]
	if !strings.Contains(e.Name, "in netfilter (17") || e.Value != 0.2 || e.Source != "900 samples of cpu-clock" {
		t.Errorf("%+v", e)
	}
}
