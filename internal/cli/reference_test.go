package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/knob"
)

var update = flag.Bool("update", false, "write generated pages and goldens instead of comparing them")

// TestGeneratedReference holds docs/reference to the command tree and the catalogue; `make gen` writes it.
func TestGeneratedReference(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var commands bytes.Buffer
	commands.WriteString("# Commands\n\nGenerated from the command tree; do not edit.\n")
	describe(&commands, a.rootCommand())
	generated(t, "../../docs/reference/commands.md", commands.Bytes())

	var knobs bytes.Buffer
	knobs.WriteString("# Knobs\n\nGenerated from the catalogue; do not edit. `linerate knobs NAME` shows one in full.\n\n" +
		"| knob | what it is | scope | disturbance | default |\n|---|---|---|---|---|\n")
	for _, d := range knob.Catalogue().All() {
		fmt.Fprintf(&knobs, "| `%s` | %s | %s | d%d | %s |\n", d.Pattern, cell(d.Title), d.Scope, int(d.Disturbance), cell(d.Default))
	}
	generated(t, "../../docs/reference/knobs.md", knobs.Bytes())
}

// describe writes a command and those below it, with the help that a user sees.
func describe(w *bytes.Buffer, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	var help bytes.Buffer
	c.SetOut(&help)
	c.InitDefaultHelpFlag()
	if err := c.Help(); err != nil {
		panic(err) // writing to a buffer
	}
	fmt.Fprintf(w, "\n## %s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(help.String()))
	for _, sub := range c.Commands() {
		describe(w, sub)
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func generated(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; run make gen", err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("%s is stale, run make gen (-have +want):\n%s", name, diff)
	}
}
