package capture

import (
	"regexp"
	"strings"
	"testing"
)

func TestScrubber(t *testing.T) {
	s := NewScrubber("db7.acme.example", "vm", "")
	for _, in := range []string{"db7.acme.example", "vm"} {
		if got := s.Host(in); got == in || got == "" {
			t.Errorf("host %q stays %q", in, got)
		}
	}
	if got := s.Host("localhost"); got != "localhost" {
		t.Errorf("localhost is %q", got)
	}
	if got := s.Text("vm at 203.0.114.7 is 52:54:00:12:34:56"); !strings.HasPrefix(got, "vm at ") ||
		strings.Contains(got, "203.0.114.7") || strings.Contains(got, "52:54") {
		t.Errorf("text %q", got)
	}
	// As words: the digits of a replacement may read db7.
	if got := s.Sentence("read vm: db7 at 203.0.114.7 refused"); regexp.MustCompile(`\b(vm|db7)\b`).MatchString(got) ||
		strings.Contains(got, "203.0.114.7") {
		t.Errorf("sentence %q", got)
	}
	// One address is one replacement, wherever it stands.
	if text, sentence := s.Text("203.0.114.7"), s.Sentence("203.0.114.7"); text != sentence {
		t.Errorf("%s and %s", text, sentence)
	}
	if other := NewScrubber().Text("203.0.114.7"); other == s.Text("203.0.114.7") {
		t.Error("two scrubbers have one key")
	}
}
