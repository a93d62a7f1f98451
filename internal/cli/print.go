package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/report"
)

// envelope begins a document of this program on this host.
func (a *app) envelope(name string) report.Envelope {
	if name == "" {
		name, _ = os.Hostname() // an unknown host name is simply absent from the document
	}
	return report.NewEnvelope(version, name)
}

// print writes the one document of a command: JSON when asked, else text.
func (a *app) print(doc any, text func(report.Style) error) error {
	if a.json {
		return report.Encode(a.out, doc)
	}
	return text(report.Style{Colour: a.colour(a.out)})
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
