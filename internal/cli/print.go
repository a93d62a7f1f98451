package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// envelope returns the header of a document. Commands that have a snapshot pass its host name,
// which the rest of the document has too.
func (a *app) envelope(name string) report.Envelope {
	if name == "" {
		name, _ = os.Hostname() // an unknown host name is absent from the document
	}
	return report.NewEnvelope(version, name)
}

// print writes the document of a command: as one line of JSON with --json, so that a file can
// collect several, otherwise as text.
func (a *app) print(doc any, show func(text.Style) error) error {
	if a.lines != nil {
		return a.lines.document(report.LineResult, doc)
	}
	if a.json {
		return report.Encode(a.out, doc)
	}
	return show(a.style())
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	doc := report.NewVersion(a.envelope(""), "linerate")
	return a.print(doc, func(text.Style) error {
		_, err := fmt.Fprintf(a.out, "%s %s\n", doc.Program, doc.Linerate)
		return err
	})
}
