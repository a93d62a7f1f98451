package daemon

import (
	"os"
	"regexp"
	"testing"
)

// TestGuideSettings parses every configuration in the guide as the hub does; all must be valid.
func TestGuideSettings(t *testing.T) {
	for _, name := range []string{"hub.md", "hub-alerts.md", "hub-schedules.md"} {
		page, err := os.ReadFile("../../../docs/guide/" + name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no settings", name)
		}
		for _, block := range blocks {
			if _, err := ParseConfig(block[1]); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, block[1])
			}
		}
	}
}
