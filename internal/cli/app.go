package cli

import (
	"bytes"
	"cmp"
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
	"github.com/linerate/linerate/internal/base/spelling"
	"github.com/linerate/linerate/internal/base/visible"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report/text"
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

	args  []string        // as typed, without the name of the program
	ended <-chan struct{} // closed by the signal that ends the command

	json bool
	// of the commands that streaming and forScripts extend
	jsonLines      bool
	lines          *lines // nil: --json-lines was not given
	format, output string
	overwrite      bool
	state          string
	progress       string

	unhelped error    // why the help that was asked for was not shown
	notices  []string // of warn, kept for the end

	// path replaces the path to the far host in an experiment; nil: the real one. Only tests set
	// it.
	path func(*peer.Client) loop.FarHost
	// lease is the name of the lease; empty: that of this host. Only tests set it: another one may
	// run on the same machine.
	lease string
}

// Main runs the command line args (args[0] is the program's name) and returns the exit status.
//
// SIGHUP is among the signals because a tune over ssh ends with the session, and its trial changes
// must be undone then too. A second Ctrl-C kills the process: undo has a deadline of its own, and
// the guard cleans up after a killed process.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	return newApp(in, out, errw).run(args[1:])
}

// ending returns the signals that end a command. Go's runtime would receive a SIGHUP that nohup(1)
// or a shell's trap has made this process ignore.
func ending() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// newApp returns an app whose texts pass the filter. Standard error always does: it is for readers.
// Standard output does where it is a terminal, which also gets colours; a file or a pipe gets what
// the command prints.
func newApp(in io.Reader, out, errw io.Writer) *app {
	if terminal(out) {
		out = visible.NewWriter(out, true)
	}
	return &app{in: in, out: out, err: visible.NewWriter(errw, false), env: os.Getenv}
}

// raw returns the stream behind the filter, for what draws on a terminal itself, and for messages
// that are no text.
func raw(w io.Writer) io.Writer {
	if filtered, ok := w.(*visible.Writer); ok {
		return filtered.Below()
	}
	return w
}

// run runs one command line until it ends or a signal arrives, and returns the exit status.
func (a *app) run(args []string) int {
	return a.execute(a.treeFor(args), args)
}

// treeFor builds the tree for one command line.
func (a *app) treeFor(args []string) *cobra.Command {
	root := a.tree()
	if completes(args) {
		a.complete(root)
	}
	return root
}

func (a *app) execute(root *cobra.Command, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), ending()...)
	defer stop()
	// Only this signal: the end of a session may send SIGHUP twice, and SIGTERM with it.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	a.args, a.ended = args, ctx.Done()
	root.SetArgs(args)
	return a.finish(interruption(ctx, cmp.Or(root.ExecuteContext(ctx), a.unhelped)))
}

// rootCommand builds the tree of commands with everything that any of them needs: for pages and
// tests.
func (a *app) rootCommand() *cobra.Command {
	root := a.tree()
	a.complete(root)
	finishHelps(root)
	return root
}

// tree builds the tree of commands, without the ends of their help and without what the shell
// completes: every command line pays for the whole tree, and few need these. A new command joins a
// group.
//
// Cobra prints neither errors nor usage: finish prints the one sentence, on the stream and in the
// form that --json asks for. Mistakes in flags and arguments become usageError, so that their exit
// status is always 2.
func (a *app) tree() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "linerate",
		Short: "Find what keeps a host from its line rate, prove the remedy, undo anything",
		Long: `linerate measures what a network path carries and names what limits it, with evidence. It tries
one change at a time in a controlled experiment, keeps only what is proven to help, and can
always undo it.

Start with ` + "`linerate demo`" + `, which runs the whole loop in a private world on this machine.
` + "`linerate help TOPIC`" + ` explains a concept; ` + "`linerate help help`" + ` lists the topics.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.progressMode(); err != nil {
				return err
			}
			a.takeOverdue(cmd.Context(), cmd.Name())
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.json = a.json || asksJSON(a.args)
		return explainFlag(c, err)
	})
	root.Flags().BoolVar(&showVersion, "version", false, "print the version, as 'linerate version' does")
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.json, "json", "J", false, "print one JSON document on standard output and nothing else")
	flags.StringVar(&a.state, "state", "",
		"directory of the journal and the stored runs (also LINERATE_STATE; default /var/lib/linerate for root, "+
			"$XDG_STATE_HOME/linerate for other users)")
	flags.StringVar(&a.progress, "progress", "auto",
		"progress on standard error: auto (only on a terminal), lines, all (also what a terminal would rewrite), off")

	// The order follows the work on a host: look, find, change, and what the other end needs.
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Look and measure", []*cobra.Command{a.inspectCommand(), a.topCommand(), a.measureCommand(), a.reportCommand()}},
		{"Find the limit", []*cobra.Command{a.diagnoseCommand(), a.profileCommand(), a.checkAdviceCommand(),
			a.calcCommand()}},
		{"Change and undo", []*cobra.Command{a.tuneCommand(), a.applyCommand(), a.knobsCommand(), a.setCommand(),
			a.confirmCommand(), a.undoCommand(), a.historyCommand(), a.recoverCommand()}},
		{"Keep what is proven", []*cobra.Command{a.persistCommand(), a.exportCommand(), a.planCommand()}},
		{"Packet filters, name servers, storage", []*cobra.Command{a.firewallCommand(), a.resolverCommand(),
			a.diskCommand(), a.nfsCommand()}},
		{"The other end", []*cobra.Command{a.serveCommand(), a.peersCommand(), a.agentCommand(), a.fleetCommand()}},
		{"Practise", []*cobra.Command{a.demoCommand(), a.labCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	const about = "About linerate"
	root.AddGroup(&cobra.Group{ID: about, Title: about + ":"})
	root.SetHelpCommandGroupID(about)
	version := a.versionCommand()
	version.GroupID = about
	root.AddCommand(version, a.guardCommand(), a.labHostCommand(), a.labWorkCommand())
	root.InitDefaultCompletionCmd()
	a.prepareHelp(root)
	prepare(root)
	return root
}

// prepare gives a command and those below it what all have: the check of their arguments, and
// durations in plain seconds.
func prepare(c *cobra.Command) {
	plainSeconds(c.Flags())
	plainSeconds(c.PersistentFlags())
	c.Args = checked(c.Args)
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}

// prepareHelp makes `help NOSUCH` and `NOSUCH --help` mistakes; cobra answers both with the help of
// the group and status 0. It also reports a help that cannot be written, which cobra ignores.
func (a *app) prepareHelp(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); group(c) && len(words) > 0 {
			a.unhelped = unknownCommand(c, words)
			return
		}
		if asked := c.Flag("help"); a.json && group(c) && (asked == nil || !asked.Changed) {
			a.unhelped = usageError{flagError{fmt.Errorf("%s: COMMAND is missing", c.CommandPath()),
				c.CommandPath() + " --help lists the commands"}}
			return
		}
		var page bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&page)
		finishHelp(c)
		show(c, args)
		c.SetOut(out)
		_, a.unhelped = page.WriteTo(out)
	})
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Use, c.Run = "help [COMMAND...]", nil
		c.Short = "Show the help of a command, or explain a topic"
		c.Long = "Show the help of a command, or explain one of these topics:\n" + topicList()
		c.RunE = func(_ *cobra.Command, words []string) error {
			if len(words) == 1 {
				for _, t := range topics() {
					if t.name == words[0] {
						_, err := fmt.Fprintf(a.out, "%s\n\n%s\n", t.title, t.text)
						return err
					}
				}
			}
			of, rest, err := root.Find(words)
			if err == nil {
				err = unknownCommand(of, rest)
			}
			if near := nearTopics(words); err != nil && len(near) > 0 && !strings.HasPrefix(hintOf(err), "did you mean") {
				err = usageError{flagError{err, spelling.Meant("linerate help ", near)}}
			}
			if err != nil {
				return err
			}
			a.json = false // help is text
			return of.Help()
		}
	}
}

// finishHelp ends a command's help with the table of its exit statuses, once. Code adds it, so that
// no command lacks it.
func finishHelp(c *cobra.Command) {
	const title = "\n\nEXIT STATUS\n"
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	if !strings.Contains(c.Long, title) {
		c.Long += title + exitsHelp(c)
	}
}

// finishHelps does so for a command and those below it.
func finishHelps(c *cobra.Command) {
	finishHelp(c)
	for _, sub := range c.Commands() {
		finishHelps(sub)
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
	f, ok := raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// style returns how text on standard output may look. A terminal whose size is not known, such as a
// serial line, gets long lines as a file does.
func (a *app) style() text.Style {
	s := text.Style{Colour: a.colour(a.out)}
	if f, ok := raw(a.out).(*os.File); ok && terminal(a.out) {
		s.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return s
}

// colour reports whether output on w may be coloured.
//
// NO_COLOR counts when it is set to anything (no-color.org). Editors and simple consoles set
// TERM=dumb.
func (a *app) colour(w io.Writer) bool {
	return a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" && terminal(w)
}
