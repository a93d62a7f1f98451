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

// app holds the streams, the environment and the global flags of one command.
//
// A command reads no package variable, so that two commands in one test process do not disturb each
// other.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string

	json     bool
	state    string
	progress string

	// path replaces the path to the far host in an experiment; nil: the real one. Only tests set
	// it.
	path func(*peer.Client) loop.FarHost
}

// Main runs the command line args (args[0] is the program's name) and returns the exit status.
//
// SIGHUP is among the signals because a tune over ssh ends with the session, and its trial changes
// must be undone then too. A second Ctrl-C kills the process: undo has a deadline of its own, and
// the guard cleans up after a killed process.
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
	// An interruption is an error only when it made the command fail: Ctrl-C is the normal end of
	// `serve` and `lab up`.
	if ctx.Err() != nil && err != nil {
		err = errors.Join(errInterrupted, err)
	}
	return a.finish(err)
}

// rootCommand builds the tree of commands. A new command adds one line to its list.
//
// Cobra prints neither errors nor usage: finish prints the one sentence, on the stream and in the
// form that --json asks for. Mistakes in flags and arguments become usageError, so that their exit
// status is always 2.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "linerate",
		Short: "Find what keeps a host from its line rate, prove the remedy, undo anything",
		Long: `linerate measures what a network path carries, names what limits it with evidence, tries one
change at a time in a controlled experiment, keeps only what is proven to help, and can always
undo it.

Start with ` + "`linerate demo`" + `, which runs the whole loop in a private world on this machine.`,
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
		"directory of the journal and the stored runs (also LINERATE_STATE; default /var/lib/linerate for root, "+
			"$XDG_STATE_HOME/linerate for other users)")
	flags.StringVar(&a.progress, "progress", "auto",
		"progress on standard error: auto (only on a terminal), lines, all (also what a terminal would rewrite), off")

	// The order follows the work on a host: look, change, clean up.
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

// unknownCommand refuses a first word that is no command, and suggests one with a similar name or
// the one that has this name in other tools.
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

// finishHelp ends a command's help with the table of exit statuses. Code adds it, so that no
// command lacks it or has an old one.
func finishHelp(c *cobra.Command) {
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\nEXIT STATUS\n" + exitStatusHelp
}

// asUsage turns an error about arguments into one of usage (exit status 2). A nil check accepts any
// arguments.
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

// stateDir returns the directory of this user's journal and runs.
//
// The flag comes first, then the environment, then the system's directory for state: /var/lib for
// root (Filesystem Hierarchy Standard), XDG_STATE_HOME for other users (XDG Base Directory
// Specification). A journal is state that must survive a reboot, neither cache nor configuration.
// sudo keeps HOME on some systems, so root never looks there: two directories would be two journals
// of one host.
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

// terminal reports whether w is a terminal; pipes and the buffers of tests are not.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour reports whether output on w may be coloured.
//
// NO_COLOR counts when it is set to anything (no-color.org). Editors and simple consoles set
// TERM=dumb.
func (a *app) colour(w io.Writer) bool {
	return a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" && terminal(w)
}

// key returns the one-time key: that of the flag, or that of the environment.
//
// The environment is the better place, because every user of the host can read flags in the process
// list.
func (a *app) key(flag string) string {
	if flag != "" {
		return flag
	}
	return strings.TrimSpace(a.env("LINERATE_KEY"))
}
