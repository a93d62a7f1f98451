package daemon

import (
	"os"
	"regexp"
	"testing"
)

// TestGuideSettings reads every file of settings that the guide shows as the hub does, and wants
// all of them to be meant.
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
