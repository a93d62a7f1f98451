package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linerate/linerate/internal/base/spelling"
	"github.com/linerate/linerate/internal/base/unit"
)

// iperf3Flags maps the long flags of iperf3, which users type from habit, to those of linerate. The
// letters are the same.
var iperf3Flags = map[string]string{
	"affinity":   "--cpu",
	"bandwidth":  "--rate",
	"bitrate":    "--rate",
	"congestion": "--cc",
	"omit":       "--warm-up",
	"set-mss":    "--mss",
	"streams":    "--parallel",
	"time":       "--duration",
	"version4":   "--ipv4",
	"version6":   "--ipv6",
	"zerocopy":   "--send sendfile",
}

// iperf3Letters maps the letters of iperf3 that linerate lacks to what has their place.
var iperf3Letters = map[string]string{
	"c": "the far host is the argument: linerate measure HOST",
	"f": "figures choose their own prefix; --json has bits per second",
	"F": "payload is generated; --send sendfile reads it from a file in memory",
	"k": "--bytes (-n) sends an amount of bytes",
	"p": "the port follows the host: linerate measure HOST:PORT",
	"s": "linerate serve answers tests",
	"V": "--json prints every figure",
	"Z": "--send sendfile; without it the fastest way is chosen",
}

// flagError is an error with a hint.
type flagError struct {
	error
	hint string
}

func (e flagError) Unwrap() error { return e.error }

// Hint returns what the user can do next.
func (e flagError) Hint() string { return e.hint }

// asksJSON reports whether arguments ask for JSON. The parser of flags stops at a mistake, and what
// stands behind it counts too.
func asksJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "-J", "--json", "--json-lines":
			return true
		case "--": // what follows is another command's
			return false
		}
	}
	return false
}

// explainFlag turns an error of the flag library into a sentence of linerate with a hint.
func explainFlag(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if ours, ok := iperf3Flags[unknown.GetSpecifiedName()]; ok && c.Name() == "measure" {
			hint = fmt.Sprintf("it is %s here; `%s --help` lists the flags", ours, c.CommandPath())
		} else if near := spelling.Flags(c.Flags(), unknown.GetSpecifiedName()); len(near) > 0 {
			hint = spelling.Meant("--", near)
		}
		letter := unknown.GetSpecifiedName()
		if meant, ok := iperf3Letters[letter]; ok && unknown.GetSpecifiedShortnames() != "" && c.Name() == "measure" {
			hint = meant
		}
	case errors.As(err, &value):
		text := fmt.Sprintf("--%s %s: ", value.GetFlag().Name, value.GetValue())
		switch value.GetFlag().Value.Type() {
		case "duration":
			if errors.Is(err, errNegative) {
				return usagef("%smust not be negative", text)
			}
			if _, err := unit.ParseSeconds(value.GetValue()); errors.Is(err, unit.ErrLong) {
				return usagef("%stoo long: write a time of less than 292 years, as in 24h", text)
			}
			return usagef("%swrite a time, as in 10 (seconds), 500ms or 1m30s", text)
		case "int":
			return usagef("%swrite a whole number", text)
		case "uint16":
			return usagef("%swrite a whole number from 0 to 65535", text)
		case "uint64":
			return usagef("%swrite a whole number, 0 or more", text)
		case "float64":
			return usagef("%swrite a number, as in 0.5 or 1000", text)
		case "bool":
			return usagef("%swrite true or false, or the flag alone", text)
		default:
			// A kind of this program says in its own words what it takes.
			return usageError{flagError{fmt.Errorf("--%s: %w", value.GetFlag().Name, errors.Unwrap(value)), hint}}
		}
	}
	return usageError{flagError{err, hint}}
}
