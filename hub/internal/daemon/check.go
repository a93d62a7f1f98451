package daemon

import (
	"fmt"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/internal/report"
)

func (a *app) printCheck(c Config, file string) error {
	rules, err := alert.Rules(c.Alerts, c.RuleFiles...)
	if err != nil {
		return usageError{err}
	}
	doc := report.NewHubCheck(report.NewEnvelope(version, c.Host), report.HubCheckDocument{
		File: file, Listen: c.Listen, Data: c.Data, RetentionSeconds: c.Retention.Duration().Seconds(),
		MaxSizeBytes: int64(c.MaxSize),
	})
	for i := range c.Schedules {
		doc.Schedules = append(doc.Schedules, c.Schedules[i].Name)
	}
	for i := range rules {
		doc.Alerts = append(doc.Alerts, rules[i].Name)
	}
	for i := range c.Switches {
		doc.Switches = append(doc.Switches, c.Switches[i].Name)
	}
	for _, w := range c.RemoteWrites {
		doc.RemoteWrites = append(doc.RemoteWrites, w.URL)
	}
	if a.json {
		return report.Encode(a.out, doc)
	}
	if file == "" {
		file = "no configuration file"
	}
	fmt.Fprintf(a.out, "%s: valid\n", file)
	fmt.Fprintf(a.out, "listens on %s, keeps %v of samples in %s, at most %d bytes\n", c.Listen, c.Retention, c.Data,
		int64(c.MaxSize))
	_, err = fmt.Fprintf(a.out, "%d schedules, %d alert rules, %d remote write receivers, %d switches\n",
		len(c.Schedules), len(rules), len(c.RemoteWrites), len(c.Switches))
	return err
}
