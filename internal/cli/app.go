package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/base/release"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer"
)

// version is printed by `linerate version` and written into every document.
var version = release.Version()

// app is what a command knows of the world around it.
//
// A command gets all of the outside world from here, the environment included, and reads no package
// variable: two commands in one test process do not disturb each other.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string

	json     bool
	state    string
	progress string

	// path replaces the path to the far host in an experiment; nil: the real one. Only tests set it.
	path func(*peer.Client) loop.FarHost
}

// Main runs the command line args (args[0] is the program's name) and returns the exit status.
//
// SIGHUP is among the signals because a tune over ssh ends with the session: the trial changes have
// to go back then as well. A second Ctrl-C is not waited for, as undoing has a deadline of its own
// and a killed process is cleaned up by its guard.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	return (&app{in: in, out: out, err: errw, env: os.Getenv}).run(args[1:])
}

// run runs one command line until it ends or a signal arrives, and returns the exit status.
func (a *app) run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	// An interruption is told only when it made the command fail: `serve` and `lab up` are ended
	// with Ctrl-C in the normal way, and that is success.
	if ctx.Err() != nil && err != nil {
		err = errors.Join(errInterrupted, err)
	}
	return a.finish(err)
}

// Cobra prints neither errors nor usage: finish prints the one sentence, on the stream and in the
// form that --json asks for. Typing errors in flags and arguments become usageError, so that their
// exit status is 2 wherever they are found.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "linerate",
		Short: "Find what keeps a host from its line rate, prove the remedy, undo anything",
		Long: `linerate measures what a path carries, names what limits it with evidence, tries one
change at a time under a controlled experiment, keeps only what is proven to help,
and can always undo it.

Start with ` + "`linerate demo`" + `: the whole loop in a private world on this machine.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(explainFlag)
	root.SuggestionsMinimumDistance = 2 // cobra sets it only where it prints suggestions itself
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one JSON document on standard output and nothing else")
	flags.StringVar(&a.state, "state", "",
		"directory for the journal and the runs (also LINERATE_STATE; default /var/lib/linerate for root, else $XDG_STATE_HOME/linerate)")
	flags.StringVar(&a.progress, "progress", "auto",
		"progress on standard error: auto (a terminal gets it), lines, all (what a terminal would rewrite as lines too), off")

	// The order is that of the work on a host, from looking to changing to cleaning up.
	for _, c := range []*cobra.Command{
		a.inspectCommand(), a.topCommand(), a.serveCommand(), a.measureCommand(), a.diagnoseCommand(), a.tuneCommand(),
		a.reportCommand(), a.setCommand(), a.undoCommand(), a.confirmCommand(), a.historyCommand(), a.persistCommand(),
		a.recoverCommand(), a.exportCommand(),
		a.knobsCommand(), a.checkAdviceCommand(), a.demoCommand(), a.labCommand(), a.agentCommand(), a.versionCommand(),
		a.guardCommand(), a.labHostCommand(), a.labWorkCommand(),
	} {
		if c.Args == nil {
			c.Args = cobra.NoArgs
		}
		c.Args = asUsage(c.Args)
		for _, sub := range c.Commands() {
			sub.Args = asUsage(sub.Args)
			finishHelp(sub)
		}
		finishHelp(c)
		root.AddCommand(c)
	}
	return root
}

// unknownCommand refuses a first word that is no command, and names the one that was probably
// meant: by its letters, or by what other tools call it.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "linerate --help lists the commands"
	near := root.SuggestionsFor(args[0])
	switch strings.ToLower(args[0]) {
	case "get", "show", "read", "list":
		hint = "linerate knobs --current NAME reads a setting, linerate inspect shows the host"
	case "test", "iperf", "iperf3", "netperf", "bench":
		hint = "linerate measure TARGET"
	case "check", "advice":
		hint = "linerate check-advice FILE"
	default:
		if len(near) > 0 {
			hint = "did you mean linerate " + strings.Join(near, " or linerate ") + "?"
		}
	}
	return usageError{flagError{fmt.Errorf("unknown command %q", args[0]), hint}}
}

// finishHelp ends every command's help with the section that scripts need.
//
// It is added by code and not typed into each command, so that the table can never be missing or
// old in one of them.
func finishHelp(c *cobra.Command) {
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\nEXIT STATUS\n" + exitStatusHelp
}

// asUsage marks a complaint about arguments as one of usage (exit status 2).
//
// A nil check of a command means "no arguments" by now; sub-commands without one take any.
func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())}
		}
		return nil
	}
}

// stateDir is where this user's journal lives (design §4).
//
// The order is flag, environment, then the place that the system has for such data: /var/lib for
// root (Filesystem Hierarchy Standard, variable state), XDG_STATE_HOME for a user (XDG Base
// Directory Specification), because a journal is state that must survive a reboot, and neither
// cache nor configuration. sudo keeps HOME on some systems, which is why root never looks there:
// two directories would be two journals of one host.
func (a *app) stateDir() (string, error) {
	if a.state != "" {
		return filepath.Abs(a.state)
	}
	if dir := a.env("LINERATE_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/lib/linerate", nil
	}
	if dir := a.env("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "linerate"), nil
	}
	home := a.env("HOME")
	if home == "" {
		return "", errors.New("find the state directory: neither XDG_STATE_HOME nor HOME is set; use --state DIR")
	}
	return filepath.Join(home, ".local", "state", "linerate"), nil
}

// terminal tells whether w is a terminal of a person.
//
// A buffer of a test and a pipe are none.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour tells whether output on w may be coloured.
//
// NO_COLOR counts when it is set to anything (no-color.org); TERM=dumb is what editors and simple
// consoles say.
func (a *app) colour(w io.Writer) bool {
	return a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" && terminal(w)
}

// key gives the one-time key: the flag first, then the environment.
//
// The environment is the better place: a flag stands in the list of processes for everybody on the
// host.
func (a *app) key(flag string) string {
	if flag != "" {
		return flag
	}
	return strings.TrimSpace(a.env("LINERATE_KEY"))
}
