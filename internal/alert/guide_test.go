package alert

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestGuide reads every configuration that the guide shows, strictly as the hub does.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/hub-alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Fatal("the page shows no configuration")
	}
	for _, b := range blocks {
		var file struct {
			Alerts []Config `yaml:"alerts"`
		}
		d := yaml.NewDecoder(bytes.NewReader(b[1]))
		d.KnownFields(true)
		if err := d.Decode(&file); err != nil || len(file.Alerts) == 0 {
			t.Errorf("%v in\n%s", err, b[1])
			continue
		}
		if err := Validate(file.Alerts); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
}
