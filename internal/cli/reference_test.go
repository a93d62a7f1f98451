package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/cli/clitest"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/top"
)

var update = flag.Bool("update", false, "write generated pages and goldens instead of comparing them")

// TestGeneratedReference compares docs/reference with the command tree and the catalogue; `make
// gen` writes it.
func TestGeneratedReference(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var commands bytes.Buffer
	commands.WriteString("# Commands\n\nGenerated from the command tree; do not edit.\n")
	clitest.Describe(&commands, a.rootCommand())
	clitest.Generated(t, "../../docs/reference/commands.md", commands.Bytes(), *update)

	clitest.Generated(t, "../../docs/reference/exit-status.md", exitPage(a.rootCommand()), *update)

	var knobs bytes.Buffer
	knobs.WriteString("# Knobs\n\nGenerated from the catalogue; do not edit. `linerate knobs NAME` shows one " +
		"in full.\n\n" +
		"| knob | what it is | scope | disturbance | default |\n|---|---|---|---|---|\n")
	for _, d := range knob.Catalogue().All() {
		fmt.Fprintf(&knobs, "| `%s` | %s | %s | d%d | %s |\n", d.Pattern, clitest.Cell(d.Title), d.Scope,
			int(d.Disturbance), clitest.Cell(d.Default))
	}
	clitest.Generated(t, "../../docs/reference/knobs.md", knobs.Bytes(), *update)
}

// exitPage returns the page of exit statuses: what each means, and which commands can end with it.
func exitPage(root *cobra.Command) []byte {
	var page bytes.Buffer
	page.WriteString("# Exit statuses\n\nGenerated from the command tree; do not edit. Scripts may rely on them. " +
		"With `--json` and `--json-lines` an error is one object on standard error, of the schema " +
		"[linerate.error/1](../schema/linerate.error.1.json), with the status in it. " +
		"Every command can end with 0, 1 and 2; its help " +
		"lists what else.\n\n| status | meaning | commands |\n|---|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(exitMeanings)) {
		// In the order of the tree; a command that means something else by it is in a row of its own.
		var meanings []string
		users := map[string][]string{}
		for _, c := range commands(root) {
			of := strings.Fields(c.Annotations[exitsOf])
			if !c.HasParent() || c.Hidden || !slices.Contains(of, strconv.Itoa(status)) {
				continue
			}
			meaning := meaningFor(c, status)
			if users[meaning] == nil {
				meanings = append(meanings, meaning)
			}
			users[meaning] = append(users[meaning], "`"+strings.TrimPrefix(c.CommandPath(), "linerate ")+"`")
		}
		if len(meanings) == 0 {
			fmt.Fprintf(&page, "| %d | %s | all |\n", status, exitMeanings[status])
		}
		for _, meaning := range meanings {
			fmt.Fprintf(&page, "| %d | %s | %s |\n", status, meaning, strings.Join(users[meaning], " · "))
		}
	}
	return page.Bytes()
}

// documents are those of the wings above report; report lists its own.
var documents = []report.Described{
	{Name: top.Schema, Value: top.Document{}},
}

// TestGeneratedSchemas compares docs/schema with the document types; `make gen` writes it.
func TestGeneratedSchemas(t *testing.T) {
	const dir = "../../docs/schema"
	files, err := report.SchemaFiles(documents...)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		clitest.Generated(t, filepath.Join(dir, name), content, *update)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ours := files[e.Name()]; !ours && strings.HasSuffix(e.Name(), ".json") {
			t.Errorf("%s/%s belongs to no document", dir, e.Name())
		}
	}
}
