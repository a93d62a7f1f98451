package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
