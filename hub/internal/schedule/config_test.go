package schedule

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

func span(d time.Duration) unit.Span { return unit.Span(d) }

func TestConfigProblemsNameTheSchedule(t *testing.T) {
	good := Config{Name: "s", Target: "far", KeyFile: "/k", Every: span(time.Minute)}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	half := span(31 * time.Second)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"name", func(c *Config) { c.Name = "a/b" }, "schedule a/b: name"},
		{"no target", func(c *Config) { c.Target = "" }, "schedule s: no target"},
		{"target", func(c *Config) { c.Target = "gopher://far" }, "gopher:// is not known"},
		{"no key", func(c *Config) { c.KeyFile = "" }, "no key: write key_file:"},
		{"key for another program", func(c *Config) { c.Target = "iperf3://far" }, "iperf3:// needs no key"},
		{"test", func(c *Config) { c.Test = "dance" }, `test "dance": write one of suite, stream`},
		{"no interval", func(c *Config) { c.Every = 0 }, "no interval: write every:"},
		{"too often", func(c *Config) { c.Every = span(time.Second) }, "every 1s: write 10s to 31d"},
		{"jitter", func(c *Config) { c.Jitter = &half }, "jitter 31s: write no more than half of every, which is 30s"},
		{"direction", func(c *Config) { c.Test, c.Direction = "ping", "down" }, "direction: ping has none"},
		{"direction of nothing", func(c *Config) { c.Test, c.Direction = "udp", "left" }, "write up, down or bidir"},
		{"duration", func(c *Config) { c.Duration = span(time.Hour) }, "duration 1h: write 1s to 2m"},
		{"limit", func(c *Config) { c.TimeLimit = span(time.Hour) }, "time_limit 1h: write 1s to 15m"},
		{"rate", func(c *Config) { c.Rate = "fast" }, `rate: "fast" is not a rate`},
		{"rate of ping", func(c *Config) { c.Test, c.Rate = "ping", "1M" }, "rate: ping sends no bulk"},
		{"bytes of the suite", func(c *Config) { c.Bytes = "1M" }, "bytes: only stream and udp"},
		{"a day of what", func(c *Config) { c.Test, c.BytesPerDay = "stream", "1G" }, "needs bytes or rate too"},
		{"a day of ping", func(c *Config) { c.Test, c.BytesPerDay = "ping", "1G" }, "ping has no bound of its own"},
		{"a day too short", func(c *Config) { c.Test, c.BytesPerDay, c.Rate = "stream", "1M", "1G" },
			"one run may cost"},
		{"interface alone", func(c *Config) { c.Interface = "eth0" }, "needs unless_busy_above"},
		{"interface", func(c *Config) { c.UnlessBusyAbove, c.Interface = "1G", "../x" }, "not the name of an interface"},
		{"streams", func(c *Config) { c.Test, c.Parallel = "stream", 5000 }, "5000 streams are not within"},
	} {
		bad := good
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "schedule ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestConfigList(t *testing.T) {
	a := Config{Name: "a", Target: "icmp://far", Every: span(time.Minute)}
	b, c := a, a
	b.Test = "ping" // what a does by default
	err := Validate([]Config{a, b, {}, {Name: "d", Target: "x", Every: 1}, c})
	for _, want := range []string{"schedule a: named twice", "schedule a: a measures the same target",
		"schedule 3 of the list: no name", "schedule d: no key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// TestConfigAsWritten parses the example of the guide, strictly as the hub does.
func TestConfigAsWritten(t *testing.T) {
	var configs []Config
	d := yaml.NewDecoder(bytes.NewReader([]byte(`
- name: office
  target: 192.0.2.7
  key_file: /etc/linerate/office.key
  test: stream
  direction: bidir
  every: 15m
  jitter: 0s
  rate: 50M
  bytes_per_day: 20G
  unless_busy_above: 500M
  interface: eth0
- {name: gateway, target: "icmp://192.0.2.1", every: 60, duration: 2s}
`)))
	d.KnownFields(true)
	if err := d.Decode(&configs); err != nil {
		t.Fatal(err)
	}
	if err := Validate(configs); err != nil {
		t.Fatal(err)
	}
	if c := configs[0]; c.jitter() != 0 || c.Every.Duration() != 15*time.Minute {
		t.Errorf("%+v", c)
	}
	if c := configs[1]; c.test() != "ping" || c.jitter() != 6*time.Second || c.Every.Duration() != time.Minute ||
		c.specs(amounts{})[0].Duration != 2*time.Second {
		t.Errorf("%+v", c)
	}
}

// TestSuiteWithARate checks that no test of a suite exceeds its rate.
func TestSuiteWithARate(t *testing.T) {
	c := Config{Name: "s", Target: "far", KeyFile: "/k", Every: span(time.Minute), Rate: "5M"}
	a, err := c.check()
	if err != nil {
		t.Fatal(err)
	}
	specs := c.specs(a)
	if len(specs) < 6 {
		t.Errorf("%d tests are left of the suite", len(specs))
	}
	for _, s := range specs {
		if s.Test == traffic.Load || s.Bulk() && s.RateBitsPerSec != 5e6 {
			t.Errorf("%s %s at %g b/s", s.Test, s.Direction, s.RateBitsPerSec)
		}
	}
}
