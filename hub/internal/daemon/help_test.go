package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsNameTheirValues: pflag takes the first words in backquotes for the name of the value.
func TestFlagsNameTheirValues(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); strings.Contains(value, " ") {
				t.Errorf("%s --%s %s: a value has one word as its name", c.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look((&app{}).rootCommand())
}
