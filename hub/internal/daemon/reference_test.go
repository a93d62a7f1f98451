package daemon

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli/clitest"
	"github.com/linerate/linerate/internal/host/sample"
)

var update = flag.Bool("update", false, "write generated pages instead of comparing them")

// TestGeneratedReference compares docs/reference with the commands and metrics of the hub; `make
// gen` writes it.
func TestGeneratedReference(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var commands bytes.Buffer
	commands.WriteString("# linerate-hub\n\nGenerated from the command tree; do not edit.\n")
	clitest.Describe(&commands, a.rootCommand())
	clitest.Generated(t, "../../../docs/reference/hub.md", commands.Bytes(), *update)

	var metrics bytes.Buffer
	metrics.WriteString(
		"# Metrics\n\nGenerated from the catalogues; do not edit. Every series has the label `host` besides " +
			"those named. A counter counts from the start of the hub: a restart is a\n" +
			"reset to zero, and what was counted before is not in it. `linerate-hub` answers queries of them at " +
			"`/api/v1/query` and `/api/v1/query_range`, and shows the last values at\n`/metrics`.\n\n" +
			"| metric | kind | labels | what it is |\n|---|---|---|---|\n")
	for _, m := range AllMetrics() {
		kind := "counter"
		if m.Kind == sample.Gauge {
			kind = "gauge"
		}
		fmt.Fprintf(&metrics, "| `%s` | %s | %s | %s |\n", m.Name, kind, strings.Join(m.Labels, ", "),
			clitest.Cell(m.Help))
	}
	clitest.Generated(t, "../../../docs/reference/metrics.md", metrics.Bytes(), *update)
}

// TestMetrics checks the names against Prometheus's conventions: each name once, _total for
// counters only, and no label twice.
func TestMetrics(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range AllMetrics() {
		switch {
		case seen[m.Name]:
			t.Errorf("%s: twice", m.Name)
		case !regexp.MustCompile(`^linerate(_[a-z0-9]+)+$`).MatchString(m.Name):
			t.Errorf("%s: not in the form of a metric's name", m.Name)
		case (m.Kind == sample.Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s: counters and only they end in _total", m.Name)
		case m.Help == "" || !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: help is not a sentence: %q", m.Name, m.Help)
		}
		seen[m.Name] = true
		labels := map[string]bool{"host": true}
		for _, l := range m.Labels {
			if labels[l] {
				t.Errorf("%s: label %s twice", m.Name, l)
			}
			labels[l] = true
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d metrics: catalogues are missing", len(seen))
	}
}
