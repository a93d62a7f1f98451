package alert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/unit"
)

// AllRules is the name of a [Config] that is not a rule: its receivers and intervals apply to all
// rules without their own.
const AllRules = "*"

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

// severities are those of the timeline.
var severities = []timeline.Severity{"info", "notice", "warning", "critical"}

// Config is one rule. Empty fields have defaults. A rule with the name of one in a rule file or in
// [Defaults] takes every field that is empty from there.
type Config struct {
	Name string `json:"name" yaml:"name"`                   // letters, digits, '.', '_' and '-'; or AllRules
	Off  bool   `json:"off,omitempty" yaml:"off,omitempty"` // the hub does not evaluate this rule

	Query string `json:"query,omitempty" yaml:"query,omitempty"` // PromQL; fires for every series of its result
	// code of a finding, instead of a query; fires while the verdict holds
	Finding string `json:"finding,omitempty" yaml:"finding,omitempty"`

	// between two evaluations; default 15s. The hub evaluates a slow query less often
	Every unit.Span `json:"every,omitempty" yaml:"every,omitempty"`
	// how long it must hold before it fires; default at once
	For unit.Span `json:"for,omitempty" yaml:"for,omitempty"`
	// how long it must be gone before it is resolved; default at once
	KeepFiringFor unit.Span `json:"keep_firing_for,omitempty" yaml:"keep_firing_for,omitempty"`

	// info, notice, warning or critical; default warning
	Severity timeline.Severity `json:"severity,omitempty" yaml:"severity,omitempty"`
	// Text is one line for people. {{LABEL}} is the value of a label, {{value}} that of the series;
	// {{value:bits_per_second}}, {{value:bytes}}, {{value:percent}} and {{value:seconds}} write the
	// value with its unit.
	Text string `json:"text,omitempty" yaml:"text,omitempty"`
	// more labels of its alerts, for receivers that route by them
	Labels map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	// Annotations are Go templates as in Prometheus's rule files, which alone can set them.
	Annotations map[string]string `json:"-" yaml:"-"`

	Webhooks []Webhook `json:"webhooks,omitempty" yaml:"webhooks,omitempty"`
	// url is that of the Alertmanager, without /api/v2/alerts
	Alertmanagers []Webhook `json:"alertmanagers,omitempty" yaml:"alertmanagers,omitempty"`
	// a program and its arguments; reads the message on standard input
	Exec []string `json:"exec,omitempty" yaml:"exec,omitempty"`
	// then the hub kills its process group; default 10s, at most 5m
	ExecTimeout unit.Span `json:"exec_timeout,omitempty" yaml:"exec_timeout,omitempty"`
	// between two messages with nothing new; default 4h
	RepeatEvery unit.Span `json:"repeat_every,omitempty" yaml:"repeat_every,omitempty"`

	// at the same time; default 100, at most 1000
	MaxAlerts int `json:"max_alerts,omitempty" yaml:"max_alerts,omitempty"`
}

// Webhook is a receiver that the hub notifies by HTTP.
type Webhook struct {
	URL string `json:"url" yaml:"url"`
	// holds the token of the Authorization header; read before every message
	BearerTokenFile string `json:"bearer_token_file,omitempty" yaml:"bearer_token_file,omitempty"`
	// more headers, and the files that hold their values
	HeaderFiles map[string]string `json:"header_files,omitempty" yaml:"header_files,omitempty"`
	// certificates in PEM, trusted instead of the system's
	CAFile  string    `json:"ca_file,omitempty" yaml:"ca_file,omitempty"`
	Timeout unit.Span `json:"timeout,omitempty" yaml:"timeout,omitempty"` // of one message; default 10s, at most 5m
}

// Validate returns what is wrong with a rule, as one sentence with its name and what to write
// instead. It knows the rules that come with the hub.
func (c Config) Validate() error { return c.validate(Defaults()) }

// validate is Validate with the rules that c may take fields from.
func (c Config) validate(known []Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("alert %s: %s", cmp.Or(c.Name, "without a name"), fmt.Sprintf(format, args...))
	}
	if !goodName(c.Name) && c.Name != AllRules {
		return bad("name %q: write 1 to %d letters, digits, '.', '_' or '-'", c.Name, maxName)
	}
	whole := c.complete(known)
	switch {
	case c.Name == AllRules && (c.Query != "" || c.Finding != "" || c.Off || c.Text != "" || c.Severity != ""):
		return bad("%s is not a rule: write only webhooks, alertmanagers, exec, repeat_every and the like, "+
			"which then apply to all rules without their own", AllRules)
	case c.Name == AllRules:
	case whole.Query == "" && whole.Finding == "":
		return bad("nothing to watch: write query: and PromQL, or finding: and its code "+
			"(or the name of a rule in rule_files, or of one that comes with the "+
			"hub: %s)", strings.Join(defaultNames(), ", "))
	case c.Query != "" && c.Finding != "":
		return bad("query and finding: write one of them")
	case whole.Finding != "" && !goodName(whole.Finding):
		return bad("finding %q: not a code of a finding", c.Finding)
	}
	if c.Severity != "" && c.Annotations == nil && !slices.Contains(severities, c.Severity) {
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
			return bad("labels: %q cannot be one: write letters, digits and '_'; the rule sets alertname and severity",
				name)
		}
	}
	if c.Query != "" {
		if _, err := c.expression(); err != nil {
			return err
		}
	}
	if _, err := template(c.Text); err != nil {
		return bad("text: %s", err)
	}
	for key, hooks := range map[string][]Webhook{"webhooks": c.Webhooks, "alertmanagers": c.Alertmanagers} {
		if len(hooks) > MaxReceivers {
			return bad("%s: %d are more than %d", key, len(hooks), MaxReceivers)
		}
		for _, w := range hooks {
			if problem := w.problem(); problem != "" {
				return bad("%s: %s", key, problem)
			}
		}
	}
	switch {
	case c.ExecTimeout != 0 && len(c.Exec) == 0:
		return bad("exec_timeout: needs exec: write that too, or leave exec_timeout out")
	case len(c.Exec) > 0 && !filepath.IsAbs(c.Exec[0]):
		return bad("exec %q: write the whole path of the program: the hub uses no shell and no PATH", c.Exec[0])
	case slices.ContainsFunc(c.Exec, func(s string) bool { return strings.ContainsRune(s, 0) }):
		return bad("exec: an argument holds a zero byte")
	}
	return nil
}

// problem returns what is wrong with a receiver, or "".
func (w Webhook) problem() string {
	u, err := url.Parse(w.URL)
	switch d := w.Timeout.Duration(); {
	case w.URL == "":
		return "one has no url"
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Sprintf("%q is not an address: write https://HOST/PATH", w.URL)
	case u.User != nil:
		return fmt.Sprintf("%s holds a password: put it into a file and name that file in header_files or "+
			"bearer_token_file", u.Redacted())
	case d != 0 && (d < time.Second || d > 5*time.Minute):
		return fmt.Sprintf("%s: timeout %v: write 1s to 5m", w.URL, w.Timeout)
	}
	for name, file := range w.HeaderFiles {
		if name == "" || strings.ContainsFunc(name,
			func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return fmt.Sprintf("%s: header_files: %q is not the name of a header", w.URL, name)
		}
		if file == "" {
			return fmt.Sprintf("%s: header_files: %s has no file", w.URL, name)
		}
	}
	return ""
}

// Validate returns what is wrong with a configuration: with each rule, with rules together, and
// with the rule files.
func Validate(configs []Config, ruleFiles ...string) error {
	_, err := Rules(configs, ruleFiles...)
	return err
}

// Rules returns the rules to evaluate, complete: those of the configuration, then those of the rule
// files and of [Defaults] whose names the configuration does not have.
func Rules(configs []Config, ruleFiles ...string) ([]Config, error) {
	files, err := readRuleFiles(ruleFiles)
	if err != nil {
		return nil, err
	}
	known := slices.Concat(files, Defaults())
	if err := errors.Join(validateAll(configs, known), validateAll(files, known)); err != nil {
		return nil, err
	}
	var everybody Config
	if i := slices.IndexFunc(configs, func(c Config) bool { return c.Name == AllRules }); i >= 0 {
		everybody = configs[i]
	}
	var rules []Config
	for _, c := range slices.Concat(configs, known) {
		if c.Name == AllRules || slices.ContainsFunc(rules, func(r Config) bool { return r.Name == c.Name }) {
			continue
		}
		rules = append(rules, c.complete(known).filled(everybody))
	}
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("alerts: %d rules are more than %d", len(rules), MaxRules)
	}
	return slices.DeleteFunc(rules, func(c Config) bool { return c.Off }), nil
}

// validateAll validates the rules of one source.
func validateAll(configs, known []Config) error {
	names := make(map[string]bool)
	var all []error
	for i, c := range configs {
		switch {
		case c.Name == "":
			all = append(all, fmt.Errorf("alert %d of the list: no name: write name: and a unique word", i+1))
			continue
		case names[c.Name]:
			all = append(all, fmt.Errorf("alert %s: named twice: give each its own name", c.Name))
		}
		names[c.Name] = true
		if err := c.validate(known); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// complete returns c with its empty fields taken from the known rule of its name.
func (c Config) complete(known []Config) Config {
	i := slices.IndexFunc(known, func(d Config) bool { return d.Name == c.Name })
	if i < 0 {
		return c
	}
	d := known[i]
	if c.Query == "" && c.Finding == "" {
		c.Query, c.Finding = d.Query, d.Finding
	}
	c.Every, c.For, c.KeepFiringFor = cmp.Or(c.Every, d.Every), cmp.Or(c.For, d.For),
		cmp.Or(c.KeepFiringFor, d.KeepFiringFor)
	c.Severity, c.MaxAlerts = cmp.Or(c.Severity, d.Severity), cmp.Or(c.MaxAlerts, d.MaxAlerts)
	if c.Labels == nil && len(d.Labels) > 0 {
		c.Labels = d.Labels
	}
	if c.Text == "" {
		c.Annotations = d.Annotations
	}
	return c
}

// filled returns c with its empty fields taken from what applies to all rules, and then from the
// defaults. A rule with one receiver of its own has only its own.
func (c Config) filled(all Config) Config {
	if len(c.Webhooks)+len(c.Alertmanagers)+len(c.Exec) == 0 {
		c.Webhooks, c.Alertmanagers, c.Exec, c.ExecTimeout = all.Webhooks, all.Alertmanagers, all.Exec, all.ExecTimeout
	}
	if c.Labels == nil {
		c.Labels = all.Labels
	}
	c.Every = cmp.Or(c.Every, all.Every, unit.Span(defaultEvery))
	c.RepeatEvery = cmp.Or(c.RepeatEvery, all.RepeatEvery, unit.Span(defaultRepeat))
	c.KeepFiringFor = cmp.Or(c.KeepFiringFor, all.KeepFiringFor)
	c.MaxAlerts = cmp.Or(c.MaxAlerts, all.MaxAlerts, defaultMaxAlerts)
	c.Severity = cmp.Or(c.Severity, "warning")
	return c
}

// annotations returns the templates of the rule's annotations; "summary" is one of them.
func (c Config) annotations() map[string]string {
	all := maps.Clone(c.Annotations)
	if all == nil {
		all = make(map[string]string)
	}
	if c.Text != "" {
		all["summary"], _ = template(c.Text) // validated
	}
	all["summary"] = cmp.Or(all["summary"], all["description"], c.Name)
	return all
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

// goodLabel reports whether a label can have this name.
func goodLabel(name string) bool {
	return name != "" && len(name) <= maxName && !(name[0] >= '0' && name[0] <= '9') &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
		})
}
