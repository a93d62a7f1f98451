package alert

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/base/unit"
)

// strict reads a list of rules as the hub reads its configuration.
func strict(t *testing.T, text string) []Config {
	t.Helper()
	var configs []Config
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	d.KnownFields(true)
	if err := d.Decode(&configs); err != nil {
		t.Fatal(err)
	}
	return configs
}

func TestConfigProblemsNameTheRule(t *testing.T) {
	good := Config{Name: "r", Query: "up == 0"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"bad name", func(c *Config) { c.Name = "../x" }, "alert ../x: name"},
		{"nothing to watch", func(c *Config) { c.Query = "" }, "alert r: nothing to watch: write query:"},
		{"both", func(c *Config) { c.Finding = "mtu-small" }, "write one of them"},
		{"severity", func(c *Config) { c.Severity = "page" }, "write info, notice, warning or critical"},
		{"every", func(c *Config) { c.Every = unit.Span(time.Millisecond) }, "every 1ms: write 1s to 1d"},
		{"for", func(c *Config) { c.For = -1 }, "for -1ns: write 0s to 31d"},
		{"repeat", func(c *Config) { c.RepeatEvery = unit.Span(time.Second) }, "repeat_every 1s: write 1m to 31d"},
		{"too many", func(c *Config) { c.MaxAlerts = 5000 }, "write 1 to 1000"},
		{"label", func(c *Config) { c.Labels = map[string]string{"a-b": "x"} }, `"a-b" cannot be one`},
		{"label of ours", func(c *Config) { c.Labels = map[string]string{"severity": "x"} },
			`"severity" cannot be one`},
		{"text", func(c *Config) { c.Text = "{{ a b }}" }, "{{a b}}: write {{value}} or the name of a label"},
		{"form", func(c *Config) { c.Text = "{{value:stones}}" }, "the forms of a value are"},
		{"no url", func(c *Config) { c.Webhooks = []Webhook{{}} }, "one has no url"},
		{"ftp", func(c *Config) { c.Webhooks = []Webhook{{URL: "ftp://far/x"}} }, "write https://HOST/PATH"},
		{"password", func(c *Config) { c.Webhooks = []Webhook{{URL: "https://me:secret@far/x"}} }, "holds a password"},
		{"header", func(c *Config) {
			c.Webhooks = []Webhook{{URL: "https://far", HeaderFiles: map[string]string{"A B": "/f"}}}
		}, `"A B" is not the name of a header`},
		{"no shell", func(c *Config) { c.Exec = []string{"mail me"} }, "write the whole path of the program"},
		{"all are no rule", func(c *Config) { c.Name = AllRules }, "* is not a rule"},
	} {
		bad := good
		c.change(&bad)
		err := bad.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "alert ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in the error: %v", c.name, err)
		}
	}
}

func TestConfigList(t *testing.T) {
	err := Validate([]Config{{Name: "a", Query: "x"}, {Query: "y"}, {Name: "a", Query: "z"}, {Name: "b"}})
	for _, want := range []string{"alert 2 of the list: no name", "alert a: named twice", "alert b: nothing to watch"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// TestDefaultsAreConfigs checks that nothing that comes with the hub would be refused, and that
// every field is filled in.
func TestDefaultsAreConfigs(t *testing.T) {
	if err := Validate(Defaults()); err != nil {
		t.Fatal(err)
	}
	rules, err := Rules(nil)
	if err != nil || len(rules) != len(Defaults()) {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, r := range rules {
		if r.Every == 0 || r.MaxAlerts == 0 || r.RepeatEvery == 0 || r.Severity == "" {
			t.Errorf("%s is not filled in: %+v", r.Name, r)
		}
	}
}

func TestRulesOfAConfiguration(t *testing.T) {
	rules, err := Rules(strict(t, `
- name: "*"
  repeat_every: 12h
  webhooks:
    - url: https://alerts.example.org/hook
      bearer_token_file: /etc/linerate/token
- name: link-down
  for: 2m
- name: retransmits
  off: true
- name: mine
  query: linerate_tcp_connections > 10000
  severity: notice
  labels: {team: network}
  exec: [/usr/local/bin/notify, --now]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) != len(Defaults()) { // one off, one more
		t.Errorf("%d rules, want %d", len(rules), len(Defaults()))
	}
	for _, r := range rules {
		switch r.Name {
		case "link-down":
			if r.For.Duration() != 2*time.Minute || r.Query == "" || r.Severity != "critical" || len(r.Webhooks) != 1 ||
				r.RepeatEvery.Duration() != 12*time.Hour {
				t.Errorf("the entry does not override the rule of the hub: %+v", r)
			}
		case "mine":
			if len(r.Webhooks) != 0 || len(r.Exec) != 2 || r.RepeatEvery.Duration() != 12*time.Hour {
				t.Errorf("a rule with a receiver of its own: %+v", r)
			}
		case "retransmits", AllRules:
			t.Errorf("%s is watched", r.Name)
		}
	}
}

// TestTexts renders texts of alerts: as Prometheus's rules render templates.
func TestTexts(t *testing.T) {
	labels := map[string]string{"interface": "eth0", "odd": "a\nb\x01 {{value}}"}
	for _, c := range []struct {
		text  string
		value float64
		want  string
	}{
		{"{{interface}} at {{value:bits_per_second}}", 1e9, "eth0 at 1Gb/s"},
		{"{{ interface }}: {{value}}", 12.3456, "eth0: 12.35"},
		{"{{nothing}} {{value:percent}}", 0.025, "unknown 2.5%"},
		{"{{odd}}", 1, "a b\x01 {{value}}"},
		{"left {{open", 1, "left {{open"},
		{"{{value:bytes}} in {{value:seconds}}", 2048, "2kiB in 34m 8s"},
	} {
		w := newWorld(t)
		w.start(Config{Name: "r", Finding: "mtu-small", Text: c.text})
		w.w.rules[0].Finding, w.w.rules[0].Query = "", "the series of this test"
		w.w.o.Query = func(context.Context, string, time.Time) ([]record.Labelled, error) {
			return []record.Labelled{{Labels: labels, Value: c.value}}, nil
		}
		w.w.Evaluate(t.Context())
		if all := w.w.Active(); len(all) != 1 || all[0].Text != c.want {
			t.Errorf("%q: %+v, want %q", c.text, all, c.want)
		}
	}
}

// TestRuleFiles reads rules in Prometheus's format, beside an entry in alerts: that overrides one.
func TestRuleFiles(t *testing.T) {
	name := write(t, `
groups:
  - name: mine
    interval: 30s
    limit: 7
    labels: {team: network}
    rules:
      - alert: ManyConnections
        expr: linerate_tcp_connections > 50000
        for: 5m
        labels: {severity: page}
        annotations:
          summary: '{{ $labels.host }} has {{ $value | humanize }} connections'
          runbook_url: https://example.org/{{ $labels.host }}
      - alert: SlowLink
        expr: linerate_finding{code="link-negotiated-low"}
`)
	rules, err := Rules([]Config{{Name: "SlowLink", Severity: "critical", For: minutes(1)}}, name)
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]Config)
	for _, r := range rules {
		byName[r.Name] = r
	}
	if len(rules) != len(Defaults())+2 {
		t.Errorf("%d rules", len(rules))
	}
	if r := byName["SlowLink"]; r.Finding != "link-negotiated-low" || r.Severity != "critical" ||
		r.Every.Duration() != 30*time.Second || r.For != minutes(1) {
		t.Errorf("%+v", r)
	}
	if r := byName["ManyConnections"]; r.MaxAlerts != 7 || r.Labels["team"] != "network" ||
		r.eventSeverity() != "warning" {
		t.Errorf("%+v", r)
	}
	w := newWorld(t)
	w.start(byName["ManyConnections"])
	w.series["linerate_tcp_connections > 50000"] = map[string]float64{"": 60000}
	w.look(5 * time.Minute)
	all := w.w.Active()
	if len(all) != 1 || all[0].State != Firing || all[0].Text != "near has 60k connections" ||
		all[0].Labels["severity"] != "page" || all[0].Annotations["runbook_url"] != "https://example.org/near" {
		t.Errorf("%+v", all)
	}
	for text, want := range map[string]string{
		"groups: [{name: a, rules: [{record: a:b, expr: up}]}]":   "no recording rules",
		"groups: [{name: a, rules: [{alert: A, expr: 'up =='}]}]": "parse error",
		"groups: [{name: a, rules: [{alert: A b, expr: " +
			"up}]}]": `alert "A b": write 1 to 64`,
		"groups: [{name: a, rules: [{alert: A, expr: up}, {alert: A, expr: up > 1}]}]": "alert A: named twice",
		"groups: [{name: a, query_offset: 1m, rules: [{alert: A, expr: up}]}]":         "write offset",
		"groups: [{name: a, rules: [{alert: A, expr: 'linerate_finding > " +
			"0'}]}]": "a finding stands alone",
		"groups: [{name: a, rules: [{alert: A, expr: up, annotations: {summary: '{{ $lab'}}]}]": "undefined variable",
		"groups: [{name: a, rules: [{alert: A, expr: '\"text\"'}]}]":                            "not a vector",
		"groups: [{name: a, rules: [{alert: A, expr: up, color: red}]}]":                        "color",
		"groups: [{name: a, interval: 1ms, rules: [{alert: A, expr: " +
			"up}]}]": "every 1ms: write 1s to 1d",
		"groups: [{name: a, limit: 5000, rules: [{alert: A, expr: up}]}]": "write 1 to 1000",
	} {
		if _, err := Rules(nil, write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Rules(nil, "/nonexistent/rules.yml"); err == nil {
		t.Error("a rule file that does not exist is no error")
	}
	if _, err := Rules(nil, "/nonexistent/*.yml"); err != nil {
		t.Errorf("a pattern without a match: %v", err)
	}
}

// TestPromtoolChecksTheDefaults holds that the rules of the hub are a rule file of Prometheus.
func TestPromtoolChecksTheDefaults(t *testing.T) {
	promtool := testenv.Program(t, "promtool")
	if out, err := exec.Command(promtool, "check", "rules", "default.rules.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
