package daemon

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/spelling"
)

// explainFlag makes a mistyped flag a mistake with a hint.
func explainFlag(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := spelling.Flags(c.Flags(), unknown.GetSpecifiedName()); len(near) > 0 {
			hint = spelling.Meant("--", near)
		}
	}
	return usageError{hinted{err, hint}}
}

// unknownCommand refuses a word that is no command of a group, and names those that are similar.
func unknownCommand(of *cobra.Command, word string) error {
	path := of.CommandPath()
	hint := fmt.Sprintf("`%s --help` lists the commands", path)
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := spelling.Near(names, word); len(near) > 0 {
		hint = spelling.Meant(path+" ", near)
	}
	return usageError{hinted{fmt.Errorf("unknown command %q", word), hint}}
}
