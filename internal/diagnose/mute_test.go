package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// TestMute checks that a cause mutes its symptoms and lists them, and that unrelated findings stay.
func TestMute(t *testing.T) {
	found := mute([]evidence.Finding{{Code: evidence.WindowScalingOff}, {Code: evidence.ReceiveWindowLimited},
		{Code: evidence.PathLoss}, {Code: evidence.SendBufferLimited}}, symptomsOf(Rules()))
	var codes []evidence.Code
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	if diff := cmp.Diff([]evidence.Code{evidence.WindowScalingOff, evidence.PathLoss}, codes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]evidence.Code{evidence.ReceiveWindowLimited, evidence.SendBufferLimited},
		found[0].Causes); diff != "" {
		t.Errorf("causes (-want +got)\n%s", diff)
	}
}
