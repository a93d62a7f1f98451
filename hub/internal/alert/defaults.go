package alert

import (
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/unit"
)

// DiskFull is the code of the finding that the watcher makes of the state of the history itself.
const DiskFull = "history-disk-full"

// Defaults are the rules that come with the hub.
func Defaults() []Config {
	minutes := func(n int) unit.Span { return unit.Span(time.Duration(n) * time.Minute) }
	const warning, notice, critical = timeline.Severity("warning"), timeline.Severity("notice"),
		timeline.Severity("critical")
	return []Config{
		{
			// What was always lost is no news: three times as much as in the hour before is.
			// Packets that nobody here wanted are none that died.
			Name: "drops-rise", Severity: warning, For: minutes(1), KeepFiringFor: minutes(5),
			Query: `rate(linerate_interface_drops_total{place!="unwanted"}[5m]) > 1` +
				` unless rate(linerate_interface_drops_total{place!="unwanted"}[5m]) <= 3 * rate(linerate_interface_drops_total{place!="unwanted"}[1h] offset 5m)`,
			Text: "{{interface}} on {{host}} loses {{value}} packets a second ({{direction}}, {{place}}), three times as many as in the hour before",
		},
		{
			// One that is down for good is somebody's wish. The fine steps find the link that was
			// up for a moment, the coarse ones the day.
			Name: "link-down", Severity: critical, For: unit.Span(20 * time.Second),
			KeepFiringFor: unit.Span(time.Minute),
			Query:         `linerate_interface_up == 0 and (max_over_time(linerate_interface_up[5m]) == 1 or max_over_time(linerate_interface_up[1d:5m]) == 1)`,
			Text:          "{{interface}} on {{host}} is down and was up within the last day",
		},
		{
			Name: "link-slower", Severity: warning, Every: minutes(1), For: minutes(2), KeepFiringFor: minutes(5),
			Query: `linerate_interface_speed_bits_per_second > 0 and linerate_interface_speed_bits_per_second < max_over_time(linerate_interface_speed_bits_per_second[7d:10m])`,
			Text:  "{{interface}} on {{host}} runs at {{value:bits_per_second}}, and ran faster within the last week",
		},
		{
			Name: "retransmits", Severity: warning, For: minutes(5), KeepFiringFor: minutes(5),
			Query: `rate(linerate_tcp_retransmits_total[5m]) / rate(linerate_tcp_segments_sent_total[5m]) > 0.02 and rate(linerate_tcp_segments_sent_total[5m]) > 100`,
			Text:  "{{host}} sends {{value:percent}} of its TCP segments again",
		},
		{
			Name: "softirq-saturated", Severity: warning, For: minutes(1), KeepFiringFor: minutes(2),
			Query: `sum by (host, cpu) (rate(linerate_cpu_seconds_total{mode=~"softirq|irq"}[1m])) > 0.9`,
			Text:  "processor {{cpu}} of {{host}} spends {{value:percent}} of its time with interrupts of devices and what follows them",
		},
		{
			// Nine tenths of the lower tenth, because one in ten is below the lower tenth itself.
			// Twenty figures make a week.
			Name: "measurement-slower", Severity: warning, Every: minutes(1),
			Query: `last_over_time(linerate_measurement_throughput_bits_per_second[1d]) < 0.9 * quantile_over_time(0.1, linerate_measurement_throughput_bits_per_second[7d] offset 1h)` +
				` and count_over_time(linerate_measurement_throughput_bits_per_second[7d] offset 1h) >= 20`,
			Text: "{{test}} {{direction}} to {{target}} carries {{value:bits_per_second}}, less than nine of ten times in the last week",
		},
		{
			Name: "measurement-fails", Severity: warning, Every: minutes(1),
			Query: `last_over_time(linerate_measurement_success[1d]) == 0`,
			Text:  "{{test}} to {{target}} failed, and has not succeeded since",
		},
		{
			// Of the store itself, not of the history: what is full takes no figure that says so.
			Name: "history-disk-full", Severity: critical, KeepFiringFor: minutes(5),
			Finding: DiskFull,
			Text:    "the history of {{host}} cannot be written: {{title}}",
		},
	}
}
