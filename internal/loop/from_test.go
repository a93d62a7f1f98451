package loop

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/snapshot"
)

// opened is a fixture host of package capture.
func opened(t *testing.T, name string) *snapshot.File {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "capture", "testdata", "hosts", name+".capture"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A host that cannot be reached is judged by what was sent of it: since its start where it is one moment.
func TestFrom(t *testing.T) {
	v, err := From(t.Context(), opened(t, "i40e-x710"))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Findings) == 0 || v.Near.Name == "" || len(v.Watched) != 1 {
		t.Fatalf("verdict %+v", v)
	}
	span := v.Watched[0]
	if !span.SinceBoot || span.Seconds < 86400 || span.Counters["Tcp.RetransSegs"] != 51702 || len(span.Interrupts) == 0 || len(span.PerCPU) != 4 {
		t.Errorf("%v seconds since boot %v, %d interrupts, %d processors, %d retransmits", span.Seconds, span.SinceBoot, len(span.Interrupts), len(span.PerCPU), span.Counters["Tcp.RetransSegs"])
	}
	if !strings.Contains(strings.Join(v.Near.Warnings, "\n"), "32 bits") {
		t.Errorf("warnings %q", v.Near.Warnings)
	}
}

func TestFromRefuses(t *testing.T) {
	one, other := opened(t, "i40e-x710"), opened(t, "bond-40-vlans")
	if _, err := From(t.Context(), one, other); !errors.Is(err, snapshot.ErrNotTogether) {
		t.Errorf("two hosts: %v", err)
	}
	if _, err := From(t.Context(), one, one); !errors.Is(err, snapshot.ErrNotTogether) {
		t.Errorf("the same moment twice: %v", err)
	}
	if _, err := From(t.Context()); err == nil {
		t.Error("nothing is judged")
	}
}
