package clitest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Describe writes a command and those below it, with the help that a user sees.
func Describe(w *bytes.Buffer, c *cobra.Command) {
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
		Describe(w, sub)
	}
}

// Cell is a text within a table of a page.
func Cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Generated holds a file to what it is generated from, or writes it when update says so.
func Generated(t *testing.T, name string, want []byte, update bool) {
	t.Helper()
	if update {
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
