package alert

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/unit"
)

// DiskFull is the code of the finding that the watcher derives from the state of the history.
const DiskFull = "history-disk-full"

// findingSeries is the series that rule files select findings by: linerate_finding{code="CODE"}.
// The watcher answers it from the verdicts of the hub and not from the history.
const findingSeries = "linerate_finding"

//go:embed default.rules.yml
var defaultRules []byte

var promQL = parser.NewParser(parser.Options{})

// Defaults returns the rules that come with the hub.
func Defaults() []Config { return slices.Clone(defaults()) }

var defaults = sync.OnceValue(func() []Config {
	configs, err := parseRuleFile("default.rules.yml", defaultRules)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return configs
})

// readRuleFiles reads rule files in Prometheus's format. A pattern may match several files, as in
// rule_files of Prometheus; one without wildcards must exist.
func readRuleFiles(patterns []string) ([]Config, error) {
	var configs []Config
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("rule_files: %q: %w", pattern, err)
		}
		if len(names) == 0 && !strings.ContainsAny(pattern, "*?[") {
			names = []string{pattern}
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("rule_files: %w", err)
			}
			more, err := parseRuleFile(name, content)
			if err != nil {
				return nil, err
			}
			configs = append(configs, more...)
		}
	}
	return configs, nil
}

// parseRuleFile returns the rules of one file.
func parseRuleFile(name string, content []byte) ([]Config, error) {
	groups, problems := rulefmt.Parse(content, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if len(problems) > 0 {
		return nil, fmt.Errorf("rule file %s: %w", name, errors.Join(problems...))
	}
	var configs []Config
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			c, err := ofRule(g, r)
			if err != nil {
				return nil, fmt.Errorf("rule file %s: group %s: %w", name, g.Name, err)
			}
			configs = append(configs, c)
		}
	}
	return configs, nil
}

// ofRule translates one rule of a group.
func ofRule(g rulefmt.RuleGroup, r rulefmt.Rule) (Config, error) {
	switch {
	case r.Record != "":
		return Config{}, fmt.Errorf("record %s: the hub has no recording rules: write the expression into the alert",
			r.Record)
	case g.QueryOffset != nil:
		return Config{}, errors.New("query_offset: the hub has none: write offset into the expressions")
	case !goodName(r.Alert):
		return Config{}, fmt.Errorf("alert %q: write 1 to %d letters, digits, '.', '_' or '-'", r.Alert, maxName)
	}
	c := Config{
		Name: r.Alert, Every: unit.Span(g.Interval), For: unit.Span(r.For), KeepFiringFor: unit.Span(r.KeepFiringFor),
		Labels: maps.Clone(g.Labels), Annotations: r.Annotations, MaxAlerts: g.Limit,
	}
	if c.Labels == nil {
		c.Labels = make(map[string]string)
	}
	maps.Copy(c.Labels, r.Labels)
	c.Severity = timeline.Severity(c.Labels["severity"])
	delete(c.Labels, "severity")
	delete(c.Labels, "alertname")
	code, err := findingOf(r.Expr)
	if err != nil {
		return Config{}, fmt.Errorf("alert %s: %w", r.Alert, err)
	}
	if c.Finding = code; code == "" {
		c.Query = r.Expr
	}
	return c, nil
}

// findingOf returns the code that an expression selects a finding by, or "" for a query of the
// history.
func findingOf(expr string) (code string, err error) {
	e, err := promQL.ParseExpr(expr)
	if err != nil {
		return "", err
	}
	for node := e; ; {
		if p, ok := node.(*parser.ParenExpr); ok {
			node = p.Expr
			continue
		}
		if s, ok := node.(*parser.VectorSelector); ok && s.Name == findingSeries {
			for _, m := range s.LabelMatchers {
				if m.Name == "code" && m.Type == labels.MatchEqual && goodName(m.Value) && len(s.LabelMatchers) == 2 {
					return m.Value, nil
				}
			}
		}
		break
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && s.Name == findingSeries {
			err = fmt.Errorf("expr: a finding stands alone: write %s{code=\"CODE\"}", findingSeries)
		}
		return nil
	})
	return "", err
}

// expression returns what the rule evaluates, as PromQL. The error wraps [record.ErrBadQuery].
func (c Config) expression() (parser.Expr, error) {
	expr, err := promQL.ParseExpr(cmp.Or(c.Query, fmt.Sprintf("%s{code=%q}", findingSeries, c.Finding)))
	if err == nil && expr.Type() != parser.ValueTypeVector && expr.Type() != parser.ValueTypeScalar {
		err = fmt.Errorf("it returns a %s, not a vector", parser.DocumentedType(expr.Type()))
	}
	if err != nil {
		return nil, fmt.Errorf("alert %s: query: %w: %w", c.Name, record.ErrBadQuery, err)
	}
	return expr, nil
}

// templated reports whether a label of the rule is a template: the labels of its alerts are then
// known only after the evaluation.
func (c Config) templated() bool {
	for _, value := range c.Labels {
		if strings.Contains(value, "{{") {
			return true
		}
	}
	return false
}

// eventSeverity returns the severity of the rule's events. Rule files may have other words, which
// are warnings in the timeline.
func (c Config) eventSeverity() timeline.Severity {
	if slices.Contains(severities, c.Severity) {
		return c.Severity
	}
	return "warning"
}
