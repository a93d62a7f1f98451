package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// iperf3Flags are the flags of iperf3 that hands type unasked, and what they are called here.
var iperf3Flags = map[string]string{
	"A": "--cpu", "affinity": "--cpu",
	"b": "--rate", "bitrate": "--rate", "bandwidth": "--rate",
	"C": "--cc", "congestion": "--cc",
	"i": "--interval",
	"J": "--json",
	"l": "--length",
	"M": "--mss", "set-mss": "--mss",
	"N": "--no-delay",
	"n": "--bytes",
	"O": "--warm-up", "omit": "--warm-up",
	"P": "--parallel", "streams": "--parallel",
	"R": "--reverse",
	"S": "--tos",
	"t": "--duration", "time": "--duration",
	"u": "--test udp", "udp": "--test udp",
	"w": "--window",
}

// flagError is a complaint about a flag, with what to do.
type flagError struct {
	error
	hint string
}

func (e flagError) Unwrap() error { return e.error }

// Hint is what to do next.
func (e flagError) Hint() string { return e.hint }

// explainFlag turns the words of the flag library into ours: what is wrong, and what there is
// instead.
func explainFlag(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		// For a group of letters the name is the first one that is unknown.
		if ours, ok := iperf3Flags[unknown.GetSpecifiedName()]; ok && c.Name() == "measure" {
			hint = fmt.Sprintf("it is %s here; `%s --help` lists the flags", ours, c.CommandPath())
		}
	case errors.As(err, &value):
		text := fmt.Sprintf("--%s %s: ", value.GetFlag().Name, value.GetValue())
		switch value.GetFlag().Value.Type() {
		case "duration":
			return usagef("%swrite a time with its unit, as in 500ms, 10s or 1m30s", text)
		case "int":
			return usagef("%swrite a whole number", text)
		}
	}
	return usageError{flagError{err, hint}}
}
