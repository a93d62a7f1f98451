package cli

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands returns every command of the tree, hidden ones too.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, commands(sub)...)
	}
	return all
}

func testTree() *cobra.Command {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: func(string) string { return "" }}
	return a.rootCommand()
}

// TestArgumentsInWords gives every command zero to four arguments. It takes those that the first
// line of its help has; for others the error names the argument that is missing, or those that are
// too many.
func TestArgumentsInWords(t *testing.T) {
	count := regexp.MustCompile(`arg\(s\)|arguments? received|accepts|requires`)
	for _, c := range commands(testTree()) {
		least, most := 0, 0
		for _, p := range parameters(c.Use) {
			if most++; !p.optional {
				least++
			}
			if p.many {
				most += 10
			}
		}
		for n := range 5 {
			var args []string
			for i := range n {
				args = append(args, "word"+strconv.Itoa(i))
			}
			err := c.ValidateArgs(args)
			if fits := n >= least && n <= most; (err == nil) != fits {
				t.Errorf("%s with %d arguments: %v; its help says %q", c.CommandPath(), n, err, c.Use)
			}
			if err == nil {
				continue
			}
			said := err.Error()
			if exitStatus(err) != exitUsage || count.MatchString(said) || hintOf(err) == "" {
				t.Errorf("%s with %d arguments: status %d, %q, hint %q", c.CommandPath(), n, exitStatus(err), said,
					hintOf(err))
			}
			var wanted []string
			switch {
			case n < least:
				wanted = []string{parameters(c.Use)[n].name, "missing"}
			case c.HasSubCommands():
				wanted = args[:1]
			default:
				wanted = args[most:]
			}
			for _, word := range wanted {
				if !strings.Contains(said, word) {
					t.Errorf("%s with %d arguments does not name %s: %q", c.CommandPath(), n, word, said)
				}
			}
		}
	}
}

// TestParameters reads the forms that a first line of help has.
func TestParameters(t *testing.T) {
	for use, want := range map[string][]parameter{
		"inspect":                        nil,
		"measure TARGET":                 {{name: "TARGET"}},
		"knobs [PATTERN]":                {{name: "PATTERN", optional: true}},
		"set KNOB=VALUE...":              {{name: "KNOB=VALUE", many: true}},
		"export --format FORMAT [ID...]": {{name: "ID", optional: true, many: true}},
		"run SCENARIO|all":               {{name: "SCENARIO"}},
		"up WORLD [-- COMMAND...]":       {{name: "WORLD"}, {name: "COMMAND", optional: true, many: true}},
		"compare A B":                    {{name: "A"}, {name: "B"}},
	} {
		if got := parameters(use); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", use, got, want)
		}
	}
}

// TestEmptyArgument refuses the empty argument that a shell passes for a variable that is not set.
func TestEmptyArgument(t *testing.T) {
	for _, c := range commands(testTree()) {
		for n, p := range parameters(c.Use) {
			args := slices.Repeat([]string{"word"}, n)
			err := c.ValidateArgs(append(args, ""))
			if err == nil || exitStatus(err) != exitUsage || !strings.Contains(err.Error(), p.name+" is empty") {
				t.Errorf("%s with an empty %s: %v", c.CommandPath(), p.name, err)
			}
		}
	}
}

// TestEmptyAndNegativeFlag gives every flag of every command the empty value, and those that take a
// time one before now. A flag whose help says what empty means takes it.
func TestEmptyAndNegativeFlag(t *testing.T) {
	tree := testTree() // without any flag given; making one costs most of this test
	refused := func(path, value string, f *pflag.Flag) {
		c, _, err := tree.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		if err = c.ParseFlags([]string{"--" + f.Name + "=" + value}); err != nil {
			err = explainFlag(c, err) // the flag has not taken the value
		} else {
			tree = testTree()
			err = c.ValidateArgs(slices.Repeat([]string{"word"}, len(parameters(c.Use))))
		}
		if exitStatus(err) != exitUsage || !strings.Contains(err.Error(), "--"+f.Name) {
			t.Errorf("%s --%s=%s: %v", path, f.Name, value, err)
		}
	}
	for _, c := range commands(testTree()) {
		if c.Hidden || c.DisableFlagParsing || c.Name() == "help" || c.HasParent() && c.Parent().Hidden {
			continue
		}
		all := c.LocalFlags()
		all.AddFlagSet(c.InheritedFlags())
		all.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(f.Usage, "empty:") {
				refused(c.CommandPath(), "", f)
			}
			if f.Value.Type() == "duration" {
				refused(c.CommandPath(), "-1s", f)
			}
		})
	}
}
