package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// seconds is the value of a duration flag that also takes a plain number, as iperf3 and ping do.
type seconds struct{ pflag.Value }

// errNegative refuses a time below 0: a flag without a lower bound of its own would take it for 0,
// or for a time that is over.
var errNegative = errors.New("negative")

// Set takes 10 and 0.5 as seconds, and everything else as [time.ParseDuration] does.
func (s seconds) Set(text string) error {
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	if strings.HasPrefix(text, "-") {
		return errNegative
	}
	return s.Value.Set(text)
}

// plainSeconds lets every duration of a set of flags be a plain number.
func plainSeconds(flags *pflag.FlagSet) {
	sorted := flags.SortFlags
	flags.SortFlags = false // the order is of no matter here, and every command would pay for it
	defer func() { flags.SortFlags = sorted }()
	flags.VisitAll(func(f *pflag.Flag) {
		if _, done := f.Value.(seconds); !done && f.Value.Type() == "duration" {
			f.Value = seconds{f.Value}
			if f.DefValue == "0s" {
				f.DefValue = "0" // which the help leaves out for values that pflag does not know
			}
		}
	})
}
