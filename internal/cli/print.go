package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// envelope begins a document of this program on this host.
//
// Commands that have a snapshot pass its name, which is the one in the rest of the document.
func (a *app) envelope(name string) report.Envelope {
	if name == "" {
		name, _ = os.Hostname() // an unknown host name is simply absent from the document
	}
	return report.NewEnvelope(version, name)
}

// print writes the one document of a command: JSON when asked, else text.
//
// One line of JSON, so that documents of several runs appended to one file are still one a line.
func (a *app) print(doc any, show func(text.Style) error) error {
	if a.json {
		return report.Encode(a.out, doc)
	}
	return show(text.Style{Colour: a.colour(a.out)})
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "linerate %s\n", version)
			return err
		},
	}
}
