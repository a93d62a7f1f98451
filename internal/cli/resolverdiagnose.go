package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/resolver/server"
)

// kinds are the values of --kind.
var kinds = []server.Kind{server.BIND, server.Unbound, server.Knot, server.PowerDNS, server.Dnsmasq, server.Resolved}

// resolverDiagnoseFlags say which server is observed, and how.
type resolverDiagnoseFlags struct {
	target   server.Target
	kind     string
	keyFile  string
	from     []string
	failOn   string
	duration time.Duration
	verbose  bool
}

// resolverDiagnoseCommand names what limits a name server.
func (a *app) resolverDiagnoseCommand() *cobra.Command {
	var f resolverDiagnoseFlags
	c := &cobra.Command{
		Use:         "diagnose [SERVER]",
		Annotations: exits(exitFinding, exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Name what limits a name server, with evidence",
		Long: `Name what limits a name server at its present load. SERVER is where it answers, by default
127.0.0.1:53. Each finding shows its numbers, their sources, and the explanations that were ruled out.
Nothing is changed, no counter is reset, and no load is sent.

linerate reads the server's own counters twice, --duration apart. For a server on this host it also
reads the drops of its sockets, and the CPU time, waits and writes of its processes; root sees those
of other users' processes. It finds where the server shows its counters by the sockets on which its
processes listen:

  bind               the statistics channel, and ` + "`rndc status`" + `
  unbound            the control socket
  knot-resolver      the control sockets; the module stats must be loaded
  powerdns-recursor  the control socket, or the API with --statistics and --api-key-file
  dnsmasq            queries of class CHAOS
  systemd-resolved   its monitor socket (systemd 254 or later)

--statistics names another place: a URL, the path of a socket, or HOST:PORT.

--from reads what the server printed instead: one file counts since the server's start, of a later
second one only the difference counts. It recognises the pages of BIND's statistics channel, its
statistics file, ` + "`rndc status`, `unbound-control stats_noreset` and `rec_control get-all`" + `. It also
recognises the API of PowerDNS, stats.list() and the pages of Knot Resolver, dnsmasq's records as
dig prints them, and ` + "`resolvectl statistics`.",
		Example: "  linerate resolver diagnose\n" +
			"  linerate resolver diagnose 192.0.2.53 --statistics http://192.0.2.53:8053\n" +
			"  unbound-control stats_noreset | linerate resolver diagnose --from -\n" +
			"  linerate resolver diagnose --from monday.json --from tuesday.json --fail-on warning",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			o, err := f.observation(cmd, a, args)
			if err != nil {
				return err
			}
			doc := report.NewResolverDiagnose(a.envelope(""), o)
			if err := a.print(doc, func(s text.Style) error {
				return text.ResolverDiagnose(a.out, doc, s, f.verbose)
			}); err != nil {
				return err
			}
			return failOnSeverity(f.failOn, doc.Findings)
		},
	}
	flags := c.Flags()
	flags.DurationVar(&f.duration, "duration", 5*time.Second, "how long to observe the server, at most 10m")
	flags.StringVar(&f.kind, "kind", "", "program of the server, if its process does not show it: "+words(kinds))
	flags.StringVar(&f.target.Endpoint, "statistics", "", "where the server shows its counters: URL, path of a socket, "+
		"or HOST:PORT")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file with the key of PowerDNS Recursor's API")
	flags.StringVar(&f.target.RNDCConfig, "rndc-config", "", "configuration file of rndc, for rndc status")
	flags.StringArrayVar(&f.from, "from", nil, "read what the server printed, - for standard input; repeat it for a "+
		"later reading")
	flags.StringVar(&f.failOn, "fail-on", "",
		"exit with 4 when a finding is at or above this severity: info, notice, warning, critical")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print all evidence of all findings")
	return c
}

// mostObserved bounds an observation; for longer times two readings can be saved.
const mostObserved = 10 * time.Minute

// check refuses flags that contradict each other or the arguments.
func (f *resolverDiagnoseFlags) check(cmd *cobra.Command, args []string) error {
	f.target.Kind = server.Kind(f.kind)
	known := f.kind == ""
	for _, k := range kinds {
		known = known || f.target.Kind == k
	}
	switch {
	case !known:
		return usagef("--kind %q: want one of %s", f.kind, words(kinds))
	case f.failOn != "" && severityRank(evidence.Severity(f.failOn)) < 0:
		return usagef("--fail-on %q: not one of info, notice, warning, critical", f.failOn)
	case f.duration <= 0 || f.duration > mostObserved:
		return usagef("--duration %v: want up to 10m; for longer times save two readings and give --from twice", f.duration)
	case len(f.from) > 2:
		return usagef("--from: give one reading, or an earlier and a later one")
	case len(f.from) > 0 && len(args) > 0:
		return usagef("--from reads files: leave SERVER out")
	}
	if s, err := os.Stat(f.target.Endpoint); err == nil && s.Mode().Type() == fs.ModeSocket {
		// Without its directories the path of a socket looks like a host.
		if f.target.Endpoint, err = filepath.Abs(f.target.Endpoint); err != nil {
			return err
		}
	}
	for _, live := range []string{"duration", "statistics", "api-key-file", "rndc-config", "kind"} {
		if len(f.from) > 0 && cmd.Flags().Changed(live) {
			return usagef("--from reads files: leave --%s out", live)
		}
	}
	return nil
}

// observation reads files, or a server.
func (f *resolverDiagnoseFlags) observation(cmd *cobra.Command, a *app, args []string) (server.Observation, error) {
	var none server.Observation
	if len(f.from) > 0 {
		var readings []server.Statistics
		for _, name := range f.from {
			b, err := a.readBounded(name, server.MostBytes)
			if err != nil {
				return none, fmt.Errorf("resolver diagnose: %w", err)
			}
			s, err := server.Parse(b)
			if err != nil {
				return none, fmt.Errorf("resolver diagnose: read %s: %w", name, err)
			}
			readings = append(readings, s)
		}
		if len(readings) == 1 {
			return server.Recorded(readings[0], nil)
		}
		return server.Recorded(readings[0], &readings[1])
	}
	if f.keyFile != "" {
		const longest = 4096 // octets of a key; of a longer file the server refuses the beginning
		b, err := a.readBounded(f.keyFile, longest)
		if err != nil {
			return none, fmt.Errorf("resolver diagnose: %w", err)
		}
		f.target.APIKey = strings.TrimSpace(string(b))
	}
	at := "127.0.0.1:53"
	if len(args) > 0 {
		at = args[0]
	}
	var err error
	if f.target.Address, err = resolveServer(cmd.Context(), at, 53); err != nil {
		return none, err
	}
	p, err := a.newProgress()
	if err != nil {
		return none, err
	}
	defer p.Done()
	p.Status("observing %s for %v", f.target.Address, f.duration)
	o, err := server.Observe(cmd.Context(), f.target, f.duration)
	switch {
	case errors.Is(err, server.ErrNoServer):
		return none, flagError{err, "give the server's address, or --kind and --statistics for a server elsewhere"}
	case errors.Is(err, fs.ErrPermission) && f.kind == "":
		return none, flagError{err, "run it as root, or give --kind and --statistics"}
	case errors.Is(err, server.ErrOtherProgram):
		return none, flagError{err, "give --kind if it is one under another name"}
	}
	return o, err
}
