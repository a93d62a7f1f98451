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

// TestMuteElsewhere checks what a finding does not explain: a busy CPU or a full ring of the other
// host, and the run itself where the fault is too small or too long ago.
func TestMuteElsewhere(t *testing.T) {
	at := func(code evidence.Code, where string) evidence.Finding {
		return evidence.Finding{Code: code, Where: where, Severity: evidence.Warning}
	}
	aside := at(evidence.DriverFault, "near")
	aside.Aside = true
	for _, c := range []struct {
		name           string
		cause, symptom evidence.Finding
		stays          bool
	}{
		{"steal, and programs of the other host", at(evidence.CPUSteal, "near"), at(evidence.CPUSaturated, "far"), true},
		{"steal of this host", at(evidence.CPUSteal, "near"), at(evidence.CPUSaturated, "near"), false},
		{"one queue of the near host, and the ring of the far one", at(evidence.RSSImbalance, "near"),
			at(evidence.RXRingOverrun, "far"), true},
		{"an emulated NIC, and the far host's programs", at(evidence.EmulatedNIC, "near"),
			at(evidence.CPUSaturated, "far"), true},
		{"single segments keep both CPUs busy", at(evidence.OffloadsOff, "near"),
			at(evidence.SoftirqCPUSaturated, "far"), false},
		{"but not with programs", at(evidence.OffloadsOff, "near"), at(evidence.CPUSaturated, "far"), true},
		{"a queue that the flow filled", at(evidence.QdiscDrops, "near"), at(evidence.PathLoss, "path"), false},
		{"a driver that hung before", aside, at(evidence.PathLoss, "path"), true},
	} {
		found := mute([]evidence.Finding{c.cause, c.symptom}, symptomsOf(Rules()))
		if stays := len(found) == 2; stays != c.stays {
			t.Errorf("%s: the symptom stays: %v", c.name, stays)
		}
	}
	first := arrange([]evidence.Finding{aside, at(evidence.PathLoss, "path")})[0]
	if first.Code != evidence.PathLoss {
		t.Errorf("the first finding is %s", first.Code)
	}
}
