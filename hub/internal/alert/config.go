package alert

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/unit"
)

// Everybody is the name of a [Config] that is no rule: its receivers and intervals are those of all
// rules that have none of their own.
const Everybody = "*"

// Bounds of what can be configured.
const (
	MaxRules       = 256
	MaxReceivers   = 8 // of one rule
	maxAlertsBound = 1000
	maxName        = 64
	minEvery       = time.Second
	maxTime        = 31 * 24 * time.Hour
)

// The defaults of rules.
const (
	defaultEvery     = 15 * time.Second
	defaultMaxAlerts = 100
	defaultRepeat    = 4 * time.Hour
	defaultTimeout   = 10 * time.Second // of a receiver
)

// Config is one rule. Fields left empty have defaults. A rule that has the name of one in
// [Defaults] has from it all that is left empty.
type Config struct {
	Name string `json:"name" yaml:"name"`                   // letters, digits, '.', '_' and '-'; or Everybody
	Off  bool   `json:"off,omitempty" yaml:"off,omitempty"` // this rule is not watched

	Query   string `json:"query,omitempty" yaml:"query,omitempty"`     // PromQL; fires for every series that it gives
	Finding string `json:"finding,omitempty" yaml:"finding,omitempty"` // code of a finding, instead of a query; fires while the verdict holds

	Every         unit.Span `json:"every,omitempty" yaml:"every,omitempty"`                     // between two looks; default 15s. A rule whose query is slow is asked less often
	For           unit.Span `json:"for,omitempty" yaml:"for,omitempty"`                         // how long it must hold before it fires; default at once
	KeepFiringFor unit.Span `json:"keep_firing_for,omitempty" yaml:"keep_firing_for,omitempty"` // how long it must be gone before it counts as resolved; default at once

	Severity timeline.Severity `json:"severity,omitempty" yaml:"severity,omitempty"` // info, notice, warning or critical; default warning
	// Text is one line for people. {{LABEL}} stands for the value of a label, {{value}} for that of
	// the series; {{value:bits_per_second}}, {{value:bytes}}, {{value:percent}} and
	// {{value:seconds}} say it with its unit.
	Text   string            `json:"text,omitempty" yaml:"text,omitempty"`
	Labels map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"` // more labels of its alerts, for receivers that sort by them

	Webhooks    []Webhook `json:"webhooks,omitempty" yaml:"webhooks,omitempty"`
	Exec        []string  `json:"exec,omitempty" yaml:"exec,omitempty"`                 // a program and its arguments; gets the message on standard input
	ExecTimeout unit.Span `json:"exec_timeout,omitempty" yaml:"exec_timeout,omitempty"` // then its process group is killed; default 10s, 5m at the most
	RepeatEvery unit.Span `json:"repeat_every,omitempty" yaml:"repeat_every,omitempty"` // between two messages of which nothing is new; default 4h

	MaxAlerts int `json:"max_alerts,omitempty" yaml:"max_alerts,omitempty"` // at the same time; default 100, 1000 at the most
}

// Webhook is a receiver that is told by HTTP.
type Webhook struct {
	URL             string            `json:"url" yaml:"url"`
	BearerTokenFile string            `json:"bearer_token_file,omitempty" yaml:"bearer_token_file,omitempty"` // holds what goes into the header Authorization; read before every message
	HeaderFiles     map[string]string `json:"header_files,omitempty" yaml:"header_files,omitempty"`           // more headers, and the files that hold their values
	CAFile          string            `json:"ca_file,omitempty" yaml:"ca_file,omitempty"`                     // certificates in PEM that are trusted instead of the system's
	Timeout         unit.Span         `json:"timeout,omitempty" yaml:"timeout,omitempty"`                     // of one message; default 10s, 5m at the most
}

// Validate tells what is wrong with a rule, as one sentence with its name and what to write
// instead.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("alert %s: %s", cmp.Or(c.Name, "without a name"), fmt.Sprintf(format, args...))
	}
	if !goodName(c.Name) && c.Name != Everybody {
		return bad("name %q: write 1 to %d letters, digits, '.', '_' or '-'", c.Name, maxName)
	}
	whole := c.complete()
	switch {
	case c.Name == Everybody && (c.Query != "" || c.Finding != "" || c.Off || c.Text != "" || c.Severity != ""):
		return bad("%s is no rule: write webhooks, exec, repeat_every and their like, which then go for all rules without their own", Everybody)
	case c.Name == Everybody:
	case whole.Query == "" && whole.Finding == "":
		return bad("nothing to watch: write query: and PromQL, or finding: and its code (or the name of a rule that comes with the hub: %s)", strings.Join(defaultNames(), ", "))
	case c.Query != "" && c.Finding != "":
		return bad("query and finding: write one of them")
	case whole.Finding != "" && !goodName(whole.Finding):
		return bad("finding %q: is no code of a finding", c.Finding)
	}
	if c.Severity != "" && !slices.Contains([]timeline.Severity{"info", "notice", "warning", "critical"}, c.Severity) {
		return bad("severity %q: write info, notice, warning or critical", c.Severity)
	}
	for _, t := range []struct {
		key        string
		value      unit.Span
		least, top time.Duration
	}{
		{"every", c.Every, minEvery, 24 * time.Hour}, {"for", c.For, 0, maxTime},
		{"keep_firing_for", c.KeepFiringFor, 0, maxTime},
		{"repeat_every", c.RepeatEvery, time.Minute, maxTime},
		{"exec_timeout", c.ExecTimeout, time.Second, 5 * time.Minute},
	} {
		if d := t.value.Duration(); d != 0 && (d < t.least || d > t.top) {
			return bad("%s %v: write %v to %v", t.key, t.value, unit.Span(t.least), unit.Span(t.top))
		}
	}
	if c.MaxAlerts < 0 || c.MaxAlerts > maxAlertsBound {
		return bad("max_alerts %d: write 1 to %d", c.MaxAlerts, maxAlertsBound)
	}
	for name := range c.Labels {
		if !goodLabel(name) || name == "alertname" || name == "severity" {
			return bad("labels: %q cannot be one: write letters, digits and '_'; alertname and severity are set by the rule", name)
		}
	}
	if problem := badText(c.Text); problem != "" {
		return bad("text: %s", problem)
	}
	if len(c.Webhooks) > MaxReceivers {
		return bad("webhooks: %d are more than %d", len(c.Webhooks), MaxReceivers)
	}
	for _, w := range c.Webhooks {
		if problem := w.problem(); problem != "" {
			return bad("%s", problem)
		}
	}
	switch {
	case c.ExecTimeout != 0 && len(c.Exec) == 0:
		return bad("exec_timeout: goes with exec, write that too or leave it out")
	case len(c.Exec) > 0 && !filepath.IsAbs(c.Exec[0]):
		return bad("exec %q: write the whole path of the program; there is no shell, and no PATH to look in", c.Exec[0])
	case slices.ContainsFunc(c.Exec, func(s string) bool { return strings.ContainsRune(s, 0) }):
		return bad("exec: an argument holds a zero byte")
	}
	return nil
}

// problem tells what is wrong with a receiver.
func (w Webhook) problem() string {
	u, err := url.Parse(w.URL)
	switch d := w.Timeout.Duration(); {
	case w.URL == "":
		return "webhooks: one has no url"
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Sprintf("webhooks: %q is no address: write https://HOST/PATH", w.URL)
	case u.User != nil:
		return fmt.Sprintf("webhooks: %s holds a password: put it into a file and name that in header_files or bearer_token_file", u.Redacted())
	case d != 0 && (d < time.Second || d > 5*time.Minute):
		return fmt.Sprintf("webhooks: %s: timeout %v: write 1s to 5m", w.URL, w.Timeout)
	}
	for name, file := range w.HeaderFiles {
		if name == "" || strings.ContainsFunc(name,
			func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return fmt.Sprintf("webhooks: %s: header_files: %q is no name of a header", w.URL, name)
		}
		if file == "" {
			return fmt.Sprintf("webhooks: %s: header_files: %s has no file", w.URL, name)
		}
	}
	return ""
}

// Validate tells what is wrong with rules that go together, each of which may be right by itself.
// It is the check of a configuration.
func Validate(configs []Config) error {
	if len(configs) > MaxRules {
		return fmt.Errorf("alerts: %d rules are more than %d", len(configs), MaxRules)
	}
	names := make(map[string]bool)
	var all []error
	for i, c := range configs {
		switch {
		case c.Name == "":
			all = append(all, fmt.Errorf(
				"alert %d of the list: no name: write name: and a word that tells it from others", i+1))
			continue
		case names[c.Name]:
			all = append(all, fmt.Errorf("alert %s: named twice: give each its own name", c.Name))
		}
		names[c.Name] = true
		if err := c.Validate(); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Rules gives the rules to watch: those of the configuration, and after them those of [Defaults]
// that it says nothing of. Fields left empty are filled in.
func Rules(configs []Config) ([]Config, error) {
	if err := Validate(configs); err != nil {
		return nil, err
	}
	var everybody Config
	if i := slices.IndexFunc(configs, func(c Config) bool { return c.Name == Everybody }); i >= 0 {
		everybody = configs[i]
	}
	var rules []Config
	for _, c := range append(slices.Clone(configs), Defaults()...) {
		known := slices.ContainsFunc(rules, func(r Config) bool { return r.Name == c.Name })
		if c.Name == Everybody || known {
			continue
		}
		rules = append(rules, c.complete().filled(everybody))
	}
	return slices.DeleteFunc(rules, func(c Config) bool { return c.Off }), nil
}

// complete is c with what the rule of its name that comes with the hub has where c has nothing.
func (c Config) complete() Config {
	all := Defaults()
	i := slices.IndexFunc(all, func(d Config) bool { return d.Name == c.Name })
	if i < 0 {
		return c
	}
	d := all[i]
	if c.Query == "" && c.Finding == "" {
		c.Query, c.Finding = d.Query, d.Finding
	}
	c.Every, c.For, c.KeepFiringFor = cmp.Or(c.Every, d.Every), cmp.Or(c.For, d.For),
		cmp.Or(c.KeepFiringFor, d.KeepFiringFor)
	c.Severity, c.Text = cmp.Or(c.Severity, d.Severity), cmp.Or(c.Text, d.Text)
	return c
}

// filled is c with what goes for all rules where c has nothing, and then the defaults.
func (c Config) filled(all Config) Config {
	// Who names one receiver for a rule means that one alone.
	if len(c.Webhooks) == 0 && len(c.Exec) == 0 {
		c.Webhooks, c.Exec, c.ExecTimeout = all.Webhooks, all.Exec, all.ExecTimeout
	}
	if c.Labels == nil {
		c.Labels = all.Labels
	}
	c.Every = cmp.Or(c.Every, all.Every, unit.Span(defaultEvery))
	c.RepeatEvery = cmp.Or(c.RepeatEvery, all.RepeatEvery, unit.Span(defaultRepeat))
	c.KeepFiringFor = cmp.Or(c.KeepFiringFor, all.KeepFiringFor)
	c.MaxAlerts = cmp.Or(c.MaxAlerts, all.MaxAlerts, defaultMaxAlerts)
	c.Severity = cmp.Or(c.Severity, "warning")
	c.Text = cmp.Or(c.Text, c.Name)
	return c
}

func defaultNames() []string {
	var names []string
	for _, d := range Defaults() {
		names = append(names, d.Name)
	}
	return names
}

func goodName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && name[0] != '-' &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
				strings.ContainsRune("._-", r))
		})
}

// goodLabel tells the names that labels may have.
func goodLabel(name string) bool {
	return name != "" && len(name) <= maxName && !(name[0] >= '0' && name[0] <= '9') &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
		})
}
