package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp checks that every command that a user sees explains itself, and ends with the table of
// exit statuses that scripts need.
func TestHelp(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Long, "\n\nEXIT STATUS\n  0 ok · 1 failed · 2 usage") {
			t.Errorf("%s: short help %q, long help:\n%s", c.CommandPath(), c.Short, c.Long)
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(a.rootCommand())
}
