package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/report"
)

// TestDocumentsAreHarmless prints a document with hostile names to a terminal: the bytes are ASCII
// where a terminal would obey, and mean the same.
func TestDocumentsAreHarmless(t *testing.T) {
	t.Parallel()
	name := "\x1b]0;x\x07 \u009b31m \u202egpj.exe\u200f \U000e0041 Grüße"
	var b bytes.Buffer
	if err := report.Encode(&b, map[string]string{"name": name}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07\u009b\u202e\u200f\U000e0041") ||
		!strings.Contains(got, "Grüße") {
		t.Errorf("printed %q", got)
	}
	var back map[string]string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["name"] != name {
		t.Errorf("read back %q, %v", back["name"], err)
	}
}
