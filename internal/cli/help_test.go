package cli

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// widestHelp bounds the explanation of a command. The width check of the sources lets raw strings
// be as wide as they are.
const widestHelp = 110

// TestHelp checks that every command that a user sees explains itself in lines of bounded width,
// and ends with the table of exit statuses that scripts need.
func TestHelp(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Long, "\n\nEXIT STATUS\n  0 ok · 1 failed · 2 usage") {
			t.Errorf("%s: short help %q, long help:\n%s", c.CommandPath(), c.Short, c.Long)
		}
		for line := range strings.Lines(c.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widestHelp {
				t.Errorf("%s: a line of %d columns, at most %d: %s", c.CommandPath(), n, widestHelp, line)
			}
		}
		// A word between backquotes becomes the name of the value.
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); strings.Contains(value, " ") {
				t.Errorf("%s --%s: the help calls its value %q", c.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(a.rootCommand())
}
