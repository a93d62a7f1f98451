package daemon

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/fleet/desk"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/switches/snmp"
	"github.com/linerate/linerate/hub/internal/web"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/release"
	"github.com/linerate/linerate/internal/base/spelling"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/base/visible"
	"github.com/linerate/linerate/internal/report"
)

// version is printed by `linerate-hub version` and written into every document.
var version = release.Version()

// Where the hub listens, and where it looks for `linerate agent`.
const (
	DefaultListen = "127.0.0.1:7071"
	DefaultAgent  = "/run/linerate/agent.sock"
)

//go:embed linerate-hub.service
var unitFile string

// app holds the streams and the environment of a command.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	args     []string // as typed, without the program's name
	json     bool

	unhelped error // why the help that was asked for was not shown
}

// The exit statuses are those of linerate, so that scripts can treat both programs the same.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitPartial      = 3
	exitRolledBack   = 5
	exitNotPermitted = 10
	exitLocked       = 11
	exitUnreachable  = 12
)

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main runs the command line args (args[0] is the program's name) and returns the exit status.
// Ctrl-C and SIGTERM end the daemon normally.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{in: in, out: out, err: visible.NewWriter(errw, false), env: os.Getenv, args: args[1:]}
	root := a.rootCommand()
	root.SetArgs(a.args)
	return a.finish(cmp.Or(root.ExecuteContext(ctx), a.unhelped))
}

func exitStatus(err error) int {
	var usage usageError
	var unreachable *join.UnreachableError
	var refusal *member.Refusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errPartial), errors.Is(err, errHalted), errors.Is(err, errNotAll),
		errors.Is(err, errNotUndone):
		return exitPartial
	case errors.Is(err, errTakenBack):
		return exitRolledBack
	case errors.Is(err, durable.ErrLocked):
		return exitLocked
	case errors.Is(err, desk.ErrNoHub), errors.Is(err, snmp.ErrSilent), errors.As(err, &unreachable):
		return exitUnreachable
	case errors.Is(err, fs.ErrPermission), errors.As(err, &refusal):
		return exitNotPermitted
	}
	return exitFailed
}

// finish prints the error, if any, and returns the exit status.
func (a *app) finish(err error) int {
	status := exitStatus(err)
	if err == nil {
		return status
	}
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	var hint string
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) {
		hint = h.Hint()
	}
	report.NewError(text, hint, status).Print(a.err, "linerate-hub", a.json)
	return status
}

const exitHelp = `
EXIT STATUS
  0 ok · 1 failed · 2 usage · 10 not permitted · 11 the history is open in another process
`

// runFlags are the flags of the daemon. A flag that is not given leaves the value of the file, or
// the default.
type runFlags struct {
	config string
	log    string
	flags  Config
	keep   string
	size   string
}

func (a *app) rootCommand() *cobra.Command {
	var (
		f           runFlags
		showVersion bool
	)
	root := &cobra.Command{
		Use:   "linerate-hub",
		Short: "Keep the history of this host, and show what changed and why",
		Long: `linerate-hub samples this host every second without any privilege, keeps the samples, and shows them on a
page: rates, packets, drops by place, CPUs and interrupts, with every change, tune, measurement, reboot and verdict
on the same timeline. It answers Prometheus's queries, so that Grafana can use it as a data source.

Start it and open http://` + DefaultListen + `/. Any other address requires a password or client certificates.`,
		Example: "  linerate-hub\n  linerate-hub --retention 30d --max-size 10GB\n" +
			"  linerate-hub password --data /srv/hub && linerate-hub --data /srv/hub --listen 0.0.0.0:7071\n" +
			"  linerate-hub unit > /etc/systemd/system/linerate-hub.service",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if name := spelling.Valueless(cmd.Flags()); name != "" {
				return usageError{fmt.Errorf("--%s: a value is missing", name)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			c, _, err := a.configured(&f)
			if err != nil {
				return err
			}
			logger, err := a.logger(f.log)
			if err != nil {
				return err
			}
			return Run(cmd.Context(), c, Options{Logger: logger, Notify: a.env("NOTIFY_SOCKET")})
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.json = a.json || slices.Contains(a.args, "--json") // also behind the mistake
		return explainFlag(c, err)
	})
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document, and errors as JSON")
	root.PersistentFlags().StringVar(&f.config, "config", "",
		"configuration file (default hub.yaml in /etc/linerate-hub, if it exists)")
	root.PersistentFlags().StringVar(&f.flags.Data, "data", "",
		"directory of the history (default /var/lib/linerate-hub for root and systemd, otherwise "+
			"$XDG_STATE_HOME/linerate-hub)")
	flags := root.Flags()
	flags.BoolVar(&showVersion, "version", false, "print the version, as 'linerate-hub version' does")
	flags.StringVar(&f.flags.Listen, "listen", "", "address of the page and the APIs (default "+DefaultListen+")")
	flags.StringSliceVar(&f.flags.Names, "name", nil,
		"a name under which browsers may open the page; may be repeated")
	flags.StringVar(&f.keep, "retention", "", "how long the hub keeps samples (default 15d)")
	flags.StringVar(&f.size, "max-size", "", "what samples may take on disk (default 4GB)")
	flags.StringVar(&f.flags.PasswordFile, "password-file", "",
		"file that 'linerate-hub password' wrote (default password in the history's directory, if it exists)")
	flags.StringVar(&f.flags.Certificate, "tls-certificate", "",
		"certificate of the page (default: the hub makes one where TLS needs it)")
	flags.StringVar(&f.flags.Key, "tls-key", "", "key of the certificate")
	flags.StringVar(&f.flags.ClientCA, "client-ca", "", "certificate of the authority that signs the "+
		"certificates of clients")
	flags.StringVar(&f.flags.State, "state", "",
		"directory of linerate's journal, runs and measurements (also LINERATE_STATE; default /var/lib/linerate)")
	flags.StringVar(&f.flags.Agent, "agent", "",
		"socket of 'linerate agent', for a hub that may not read that directory (default "+DefaultAgent+")")
	flags.StringVar(&f.log, "log", "text", "format of the log on standard error: text, json")

	flags.StringVar(&f.flags.Fleet.Join, "fleet", "",
		"address where other hosts join this hub, such as 0.0.0.0:7072; the bus is one port higher")

	for _, c := range []*cobra.Command{a.checkCommand(&f), a.passwordCommand(&f), a.unitCommand(), a.versionCommand()} {
		c.Args = noArguments
		finishHelp(c)
		root.AddCommand(c)
	}
	root.AddCommand(withExits(a.inviteCommand(&f), exitUnreachable), withExits(a.joinCommand(), exitUnreachable),
		withExits(a.leaveCommand()), withExits(a.nodeCommand()))
	root.AddCommand(a.switchCommand(&f))
	root.AddCommand(a.fleetCommand(&f))
	finishHelp(root)
	a.prepareHelp(root)
	return root
}

// prepareHelp makes `help NOSUCH` and `NOSUCH --help` mistakes; cobra answers both with the help of
// the program and status 0. It also reports a help that cannot be written, which cobra ignores.
func (a *app) prepareHelp(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			a.unhelped = noArguments(c, words)
			return
		}
		var page bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&page)
		show(c, args)
		c.SetOut(out)
		_, a.unhelped = page.WriteTo(out)
	})
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, words []string) error {
			of, rest, err := root.Find(words)
			if err == nil {
				err = noArguments(of, rest)
			}
			if err != nil {
				return err
			}
			return of.Help()
		},
	})
}

// noArguments refuses the words that follow a command.
func noArguments(c *cobra.Command, words []string) error {
	switch {
	case len(words) == 0:
		return nil
	case c.HasSubCommands():
		return unknownCommand(c, words[0])
	}
	return usageError{fmt.Errorf("%s takes no argument, not %s", c.Name(), strings.Join(words, " "))}
}

// finishHelp adds the exit statuses to the help of a command.
func finishHelp(c *cobra.Command) { c.SetHelpTemplate(c.HelpTemplate() + exitHelp) }

// configured joins file, flags and defaults. It returns the name of the file that it read.
func (a *app) configured(f *runFlags) (Config, string, error) {
	c, name, err := configAt(f.config, a.env)
	if err != nil {
		return c, name, usageError{err}
	}
	set := func(to *string, given string) {
		if given != "" {
			*to = given
		}
	}
	g := &f.flags
	set(&c.Listen, g.Listen)
	set(&c.Data, g.Data)
	set(&c.PasswordFile, g.PasswordFile)
	set(&c.Certificate, g.Certificate)
	set(&c.Key, g.Key)
	set(&c.ClientCA, g.ClientCA)
	set(&c.State, g.State)
	set(&c.Agent, g.Agent)
	set(&c.Fleet.Join, g.Fleet.Join)
	if len(g.Names) > 0 {
		c.Names = g.Names
	}
	if f.keep != "" {
		d, err := unit.ParseSpan(f.keep)
		if err != nil || d <= 0 {
			return c, name, usageError{fmt.Errorf("--retention %q is not a duration: write 36h, 15d or 2w", f.keep)}
		}
		c.Retention = d
	}
	if f.size != "" {
		if err := c.MaxSize.parse(f.size); err != nil {
			return c, name, usageError{fmt.Errorf("--max-size %s: %w", f.size, err)}
		}
	}
	if err := c.fill(a.env, os.Geteuid() == 0); err != nil {
		return c, name, usageError{err}
	}
	if err := c.Validate(); err != nil {
		return c, name, usageError{err}
	}
	return c, name, nil
}

func (a *app) logger(form string) (*slog.Logger, error) {
	switch form {
	case "text":
		return slog.New(slog.NewTextHandler(a.err, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, nil)), nil
	}
	return nil, usageError{fmt.Errorf("--log %q: not one of text, json", form)}
}

func (a *app) checkCommand(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration, and print what follows from it",
		RunE: func(*cobra.Command, []string) error {
			c, name, err := a.configured(f)
			if err != nil {
				return err
			}
			return a.printCheck(c, name)
		},
	}
}

func (a *app) passwordCommand(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "password",
		Short: "Set the password of the page, from the first line of standard input",
		RunE: func(*cobra.Command, []string) error {
			c, _, err := a.configured(f)
			if err != nil {
				return err
			}
			line, err := a.readPassword()
			if err != nil {
				return err
			}
			name := c.passwordFile()
			if err := os.MkdirAll(c.Data, 0o700); err != nil {
				return err
			}
			if err := web.WritePassword(name, line); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "linerate-hub: password stored in %s; a running hub uses it after its next "+
				"start\n", name)
			return nil
		},
	}
}

// readPassword reads one line, from a terminal without echo.
func (a *app) readPassword() (string, error) {
	if file, ok := a.in.(*os.File); ok {
		if secret, ok, err := fromTerminal(file, a.err); ok {
			return secret, err
		}
	}
	line, err := bufio.NewReader(io.LimitReader(a.in, 1<<12)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (a *app) unitCommand() *cobra.Command {
	var ofNode bool
	c := &cobra.Command{
		Use:   "unit",
		Short: "Print the systemd unit, which runs the hub as a dynamic user in a sandbox",
		RunE: func(*cobra.Command, []string) error {
			own, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the path of this program: %w", err)
			}
			text := Unit(own)
			if ofNode {
				text = NodeUnit(own)
			}
			_, err = io.WriteString(a.out, text)
			return err
		},
	}
	c.Flags().BoolVar(&ofNode, "node", false, "the unit of 'linerate-hub node' instead")
	return c
}

// Unit returns the systemd unit of a hub whose program is at path.
func Unit(path string) string { return strings.ReplaceAll(unitFile, "@COMMAND@", path) }

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	name, _ := os.Hostname() // an unknown host name is absent from the document
	doc := report.NewVersion(report.NewEnvelope(version, name), "linerate-hub")
	if a.json {
		return report.Encode(a.out, doc)
	}
	_, err := fmt.Fprintf(a.out, "%s %s\n", doc.Program, doc.Linerate)
	return err
}
