package sample

import (
	"regexp"
	"strings"
	"testing"
)

// Each metric is named as Prometheus wants it, and says in one sentence which file of the kernel it
// is read from.
func TestCatalogue(t *testing.T) {
	name := regexp.MustCompile(`^linerate(_[a-z][a-z0-9]*)+$`)
	source := regexp.MustCompile(`/proc/|/sys/|RTM_GET|ethtool`)
	seen := make(map[string]bool)
	for _, m := range Metrics() {
		if !name.MatchString(m.Name) || seen[m.Name] {
			t.Errorf("%s: a name of another form, or twice", m.Name)
		}
		seen[m.Name] = true
		if counts := strings.HasSuffix(m.Name, "_total"); counts != (m.Kind == Counter) {
			t.Errorf("%s: kind %d", m.Name, m.Kind)
		}
		if !strings.HasSuffix(m.Help, ".") || strings.Contains(m.Help, "\n") || !source.MatchString(m.Help) &&
			!strings.HasPrefix(m.Name, "linerate_sample_") {
			t.Errorf("%s: %q is not one sentence that names its source", m.Name, m.Help)
		}
	}
	if len(seen) < 50 {
		t.Errorf("%d metrics", len(seen))
	}
	Metrics()[0] = nil
	if Metrics()[0] == nil {
		t.Error("the catalogue can be changed from outside")
	}
}
