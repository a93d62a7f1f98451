package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/spelling"
)

// parameter is one argument in the first line of a command's help.
type parameter struct {
	name           string // such as TARGET
	optional, many bool
}

// parameters reads the arguments of a command from its Use, in which [X] is optional, X... is one
// or more, X|y is an X or the word y, and --flag X is a flag.
func parameters(use string) []parameter {
	var all []parameter
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "--") {
			i++ // the flag's value
			continue
		}
		if word == "[--" { // what follows belongs to another program
			all = append(all, parameter{name: strings.Trim(words[i+1], "[].|"), optional: true, many: true})
			break
		}
		p := parameter{optional: strings.HasPrefix(word, "["), many: strings.Contains(word, "...")}
		p.name, _, _ = strings.Cut(strings.Trim(word, "[]."), "|")
		all = append(all, p)
	}
	return all
}

// given reports a flag with an empty part, or with zero where zero stands for a default that the
// user cannot have meant.
func given(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		f := flags.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		switch text := strings.Trim(f.Value.String(), "[]"); {
		case slices.Contains(strings.Split(text, ","), ""):
			return usagef("--%s: a value is missing", name)
		case text == "0" || text == "0s":
			return usagef("--%s %s: must be more than 0", name, text)
		}
	}
	return nil
}

// asInUse refuses arguments that the Use of their command does not have, and those it lacks. So the
// first line of the help cannot differ from what the command takes.
func asInUse(c *cobra.Command, args []string) error {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	all := parameters(c.Use)
	help := fmt.Sprintf("`%s --help` says more", c.CommandPath())
	line := strings.TrimSuffix(c.UseLine(), " [flags]")
	for i, p := range all {
		switch {
		case i < len(args) && strings.TrimSpace(args[i]) == "":
			// The shell passes an empty argument for a variable that is not set.
			return flagError{fmt.Errorf("%s: %s is empty", name, p.name), line + "; " + help}
		case i >= len(args) && !p.optional:
			return flagError{fmt.Errorf("%s: %s is missing", name, p.name), line + "; " + help}
		}
	}
	switch {
	case len(args) <= len(all), len(all) > 0 && all[len(all)-1].many:
		return nil
	case len(all) == 0:
		return flagError{fmt.Errorf("%s takes no argument, not %s", name, and(args)), help}
	case len(all) == 1:
		return flagError{fmt.Errorf("%s: one %s at a time, not %s", name, all[0].name, and(args)), help}
	}
	return flagError{fmt.Errorf("%s: what is %s for?", name, and(args[len(all):])), line + "; " + help}
}

// and lists words for a sentence; of many, the first ones.
func and(words []string) string {
	const most = 4
	if n := len(words) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// checked returns the check of a command's arguments: its own one first, which knows what its users
// mean, then the one that its Use implies. It also refuses flags without a value, except those that
// linerate gives its own processes. All errors are of usage (exit status 2).
func checked(own cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		var err error
		if name := spelling.Valueless(c.Flags()); name != "" && !c.Hidden {
			return usagef("--%s: a value is missing", name)
		}
		if own != nil {
			err = own(c, args)
		}
		var hinted flagError
		if errors.As(err, &hinted) {
			return usageError{err}
		}
		if group(c) {
			err = unknownCommand(c, args)
		} else if wrong := asInUse(c, args); wrong != nil {
			err = wrong
		}
		if err != nil {
			return usageError{err}
		}
		return nil
	}
}

// group reports whether a command only holds others: it takes no argument of its own.
func group(c *cobra.Command) bool { return c.HasSubCommands() && len(parameters(c.Use)) == 0 }

// unknownCommand refuses a word that is no command of a group, and suggests one with a similar name
// or the one that has this name in other tools.
func unknownCommand(of *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	path := of.CommandPath()
	hint := fmt.Sprintf("%s --help lists the commands", path)
	if !of.HasSubCommands() {
		hint = path + " --help"
	}
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := spelling.Near(names, words[0]); len(near) > 0 {
		hint = spelling.Meant(path+" ", near)
	}
	if of.HasParent() {
		return usageError{flagError{fmt.Errorf("%s has no command %q", path, words[0]), hint}}
	}
	switch strings.ToLower(words[0]) {
	case "get", "show", "read", "list":
		hint = "linerate knobs --current NAME reads a setting, linerate inspect shows the host"
	case "test", "iperf", "iperf3", "netperf", "bench":
		hint = "linerate measure TARGET"
	case "check", "advice":
		hint = "linerate check-advice FILE"
	}
	return usageError{flagError{fmt.Errorf("unknown command %q", words[0]), hint}}
}
