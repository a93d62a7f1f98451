package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/recursor"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
	"github.com/linerate/linerate/internal/resolver/server"
	"github.com/linerate/linerate/internal/resolver/world"
)

// resolverTuneFlags are those of `resolver tune`.
type resolverTuneFlags struct {
	config  string
	server  string
	names   string
	count   int
	allow   string
	knobs   string
	p99     time.Duration
	budget  time.Duration
	seed    uint64
	lab     string
	plant   []string
	workers int
	fresh   bool
	inside  bool
}

// resolverTuneCommand is the experiment on a name server.
func (a *app) resolverTuneCommand() *cobra.Command {
	var f resolverTuneFlags
	c := &cobra.Command{
		Use:         "tune",
		Annotations: exits(exitPartial, exitRolledBack, exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Try options of a name server one at a time; keep only what is proven",
		Long: `Try options in the configuration of a name server that runs on this host (BIND, Unbound or Knot
Resolver): size of the cache, threads, receive buffers. One option at a time is tried in randomised
pairs; it stays only if it is proven to help, and everything else goes back to the same bytes.

A change passes named-checkconf or unbound-checkconf, then the server takes it by reload or restart,
and its own log must not complain. A guard undoes trials when this command ends in any way.

The server is restarted before each segment, some dozens of times, so that each begins with an empty
cache: its clients lose queries. Run it where that is permitted, and say so with --allow d2.

What counts is the capacity: the sound answers per second that the server's CPU time permits. A busy
machine does not change it. --p99-limit adds a bound for the latency.

--lab runs the same experiment in a closed world, where --plant adds lines to the configuration of a
recursor as a fault; it also measures how long a changed record stays hidden (--fresh). That needs a
zone whose record may change, so it is not offered for a server of your own.`,
		Example: "  linerate resolver tune --config /etc/bind/named.conf --names queries.txt --allow d2\n" +
			"  linerate resolver tune --lab bind --plant 'max-cache-size 100K;' --fresh\n" +
			"  linerate resolver tune --lab unbound --plant 'num-threads: 1'",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.resolverTune(cmd, f) },
	}
	s := c.Flags()
	s.StringVar(&f.config, "config", "", "configuration file of the running server")
	s.StringVar(&f.server, "server", "127.0.0.1:53", "where it answers: an address of this host")
	s.StringVar(&f.names, "names", "", "questions that the server can answer, a name and a type a line")
	s.IntVar(&f.count, "name-count", 7000, "with --lab: names that the load asks for")
	s.StringVar(&f.allow, "allow", "d1", "highest disturbance; an experiment needs d2, because it restarts the server")
	s.StringVar(&f.knobs, "knobs", "", "try only options that match one of these comma-separated globs")
	s.DurationVar(&f.p99, "p99-limit", 0, "keep nothing under which the 99th percentile is above this")
	s.DurationVar(&f.budget, "budget", 20*time.Minute, "time for the whole run")
	s.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a new one)")
	s.StringVar(&f.lab, "lab", "", "run in a closed world with this recursor: bind, unbound or knot-resolver")
	s.StringArrayVar(&f.plant, "plant", nil, "with --lab: a line of the configuration; repeatable")
	s.IntVar(&f.workers, "workers", 0, "with --lab: threads of BIND (default: one for each CPU)")
	s.BoolVar(&f.fresh, "fresh", false, "with --lab: measure how long a changed record stays hidden")
	s.BoolVar(&f.inside, "inside", false, "run in the present namespace, which must be new")
	_ = s.MarkHidden("inside") // it exists
	return c
}

func (f *resolverTuneFlags) check() error {
	lab := f.lab != ""
	switch {
	case !lab && f.config == "":
		return usagef("give --config FILE, the configuration of the running server, or --lab")
	case lab && (f.config != "" || f.names != ""):
		return usagef("--lab has a configuration and names of its own: leave --config and --names out")
	case !lab && (len(f.plant) > 0 || f.workers != 0 || f.fresh):
		return usagef("--plant, --workers and --fresh need --lab")
	case lab && !slices.Contains(world.Recursors(), world.Recursor(f.lab)):
		return usagef("--lab %q: want bind, unbound or knot-resolver", f.lab)
	case !lab && f.names == "":
		return usagef("give --names FILE: questions that the server can answer")
	case f.count < 1 || f.count > 1_000_000:
		return usagef("--name-count %d: want 1 to 1000000", f.count)
	case f.workers < 0 || f.workers > 1024:
		return usagef("--workers %d: want 1 to 1024", f.workers)
	case f.budget <= 0 || f.budget > 50*time.Minute:
		return usagef("--budget %v: must be longer than 0s and at most 50m", f.budget)
	case f.p99 < 0:
		return usagef("--p99-limit must not be negative")
	}
	allow, err := knob.ParseDisturbance(f.allow)
	if err != nil {
		return usagef("--allow %q: not one of d0, d1, d2, d3", f.allow)
	}
	if !lab && allow < knob.DisturbsBriefLoss {
		return usagef("the server is restarted before each segment, and its clients lose queries: " +
			"permit that with --allow d2")
	}
	return nil
}

// chosen reports whether an option is to be tried.
func (f *resolverTuneFlags) chosen(id knob.ID) bool {
	return f.knobs == "" || slices.ContainsFunc(strings.Split(f.knobs, ","), func(pattern string) bool {
		ok, err := filepath.Match(pattern, id.Attribute())
		return ok && err == nil
	})
}

// choose refuses an experiment without an option to try: it would restart the server in vain.
func (f *resolverTuneFlags) choose(kind nameserver.Kind) error {
	var known []string
	for _, c := range recursor.Candidates(kind, "", 1) {
		if f.chosen(c.Knob) {
			return nil
		}
		known = append(known, c.Knob.Attribute())
	}
	return usagef("--knobs %q: none of %s matches", f.knobs, strings.Join(known, ", "))
}

func (a *app) resolverTune(cmd *cobra.Command, f resolverTuneFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.lab == "" {
		return a.resolverTuneHere(cmd, f)
	}
	kind := world.Recursor(f.lab)
	if err := f.choose(kind.Kind()); err != nil {
		return err
	}
	if _, err := kind.Find(); err != nil {
		return flagError{err, "install it: the Debian packages are bind9, unbound and knot-resolver"}
	}
	if !f.inside {
		return a.enterWorld(cmd)
	}
	return a.resolverTuneLab(cmd, f, kind)
}

// resolverTuneHere tunes a server of this host.
func (a *app) resolverTuneHere(cmd *cobra.Command, f resolverTuneFlags) error {
	at, err := netip.ParseAddrPort(f.server)
	if err != nil {
		return usagef("--server %q: want ADDRESS:PORT", f.server)
	}
	if !isLocal(at.Addr()) {
		return usagef("--server %s: not an address of this host, and an experiment loads it", at)
	}
	config, err := filepath.Abs(f.config)
	if err != nil {
		return err
	}
	if _, err := os.Stat(config); err != nil {
		return err
	}
	kind, err := recursor.Present(config)
	if err != nil {
		return flagError{err, "start the server with this file; -c of its command line names it"}
	}
	if err := answersAt(kind, config, at); err != nil {
		return flagError{err, "give --server, the address and port of its listen options"}
	}
	if err := f.choose(kind); err != nil {
		return err
	}
	file, _, err := a.openFile(f.names)
	if err != nil {
		return err
	}
	defer file.Close() // opened for reading
	set, err := names.Read(file, message.QueryOptions{Recursion: true, UDPBytes: 1232})
	if err != nil {
		return fmt.Errorf("read %s: %w", f.names, err)
	}
	j, err := a.openForTune(cmd.Context(), "resolver tune")
	if err != nil {
		return err
	}
	defer j.Close()
	run := report.ResolverTuneRun{Program: string(kind), Config: config, Server: at.String()}
	o := recursor.Options{Kind: kind, Config: config, Server: at, Warm: set, Names: set}
	return a.recursorRun(cmd, f, o, j, run, nil)
}

// answersAt returns an error if another program than the one with a configuration answers at an
// address: its load would be measured with the CPU time of a server that does nothing.
func answersAt(kind nameserver.Kind, config string, at netip.AddrPort) error {
	running, err := nameserver.Find(kind, config)
	if err != nil {
		return err
	}
	owners := server.Processes(at)
	if len(owners) == 0 || slices.Contains(owners, running.PID) {
		return nil // this user may see no owner
	}
	return fmt.Errorf("%w: another program than %s with %s answers at %s", recursor.ErrNoServer, kind, config, at)
}

// resolverTuneLab tunes a recursor in a closed world.
func (a *app) resolverTuneLab(cmd *cobra.Command, f resolverTuneFlags, kind world.Recursor) error {
	ctx := cmd.Context()
	if err := world.Furnish(); err != nil {
		return err
	}
	own, err := scratch.New("resolver")
	if err != nil {
		return err
	}
	defer own.Close() // configurations and the journal of the world alone
	dir := own.Path
	version, err := kind.Version(ctx)
	if err != nil {
		return err
	}
	o := recursor.Options{Kind: kind.Kind()}
	if o.Warm, o.Names, err = world.Names(f.count); err != nil {
		return err
	}
	room, err := world.Open(ctx, kind, filepath.Join(dir, "server"), f.plant, f.workers)
	if err != nil {
		return err
	}
	closed := false
	end := func() {
		if !closed {
			room.Close()
		}
		closed = true
	}
	defer end()
	o.Config, o.Server = room.Config(), room.Server()
	j, err := journal.Open(journalOptions(filepath.Join(dir, "state"), live.New(), journal.Lease, "near"))
	if err != nil {
		return err
	}
	defer j.Close()
	run := report.ResolverTuneRun{Program: string(kind.Kind()), Version: version, Config: o.Config,
		Server: o.Server.String()}
	var fresh func(*tune.Outcome, *progress.Line) ([]report.FreshRow, error)
	if f.fresh {
		fresh = func(out *tune.Outcome, p *progress.Line) ([]report.FreshRow, error) {
			end() // its addresses are needed
			return freshRows(ctx, kind, filepath.Join(dir, "fresh"), f.plant, out, p)
		}
	}
	return a.recursorRun(cmd, f, o, j, run, fresh)
}

// recursorRun runs the experiment and prints its document.
func (a *app) recursorRun(cmd *cobra.Command, f resolverTuneFlags, o recursor.Options, j *journal.Journal,
	run report.ResolverTuneRun, fresh func(*tune.Outcome, *progress.Line) ([]report.FreshRow, error)) error {
	p, err := a.newProgress()
	if err != nil {
		return err
	}
	defer p.Done()
	o.P99Limit = f.p99
	o.Tune = tune.DefaultConfig()
	o.Tune.Budget, o.Tune.Asked, o.Tune.Seed = f.budget, f.budget, f.seed
	o.Tune.AllowedDisturbance = knob.DisturbsBriefLoss
	// Two looks fewer than for a network: the capacity is quiet, and each segment restarts the server.
	o.Tune.Looks = []int{6, 10, 16}
	if f.seed == 0 {
		o.Tune.Seed = rand.Uint64()
	}
	o.Only = f.chosen
	host := loop.Near{Journal: j, Backend: live.New(), For: leaseFor(f.budget)}
	began := time.Now()
	run.Outcome, err = recursor.Run(cmd.Context(), o, host, func(e tune.Event) {
		switch e.Kind {
		case tune.EventSegment:
			p.Status("%s: %s answers/s of CPU time", e.Arm, unit.FormatCount(e.Objective))
		case tune.EventEstimate:
			p.Status("%s", e.Text)
		default:
			p.Step("%s", e.Text)
		}
	})
	run.Duration = time.Since(began)
	if err != nil {
		p.Done()
		if errors.Is(err, fs.ErrPermission) {
			return flagError{err, "run it as root, or as the user who owns the server and its configuration"}
		}
		return tuneError{err, run.Outcome.State != tune.StateUndone}
	}
	for _, c := range j.Changes() {
		if slices.ContainsFunc(run.Outcome.Kept, func(k tune.Change) bool { return k.ID == c.ID }) {
			run.Changes = append(run.Changes, c)
		}
	}
	if fresh != nil {
		if run.Fresh, err = fresh(run.Outcome, p); err != nil {
			return err
		}
	}
	p.Done()
	doc := report.NewResolverTune(a.envelope(""), run)
	if err := a.print(doc, func(s text.Style) error { return text.ResolverTune(a.out, doc, s) }); err != nil {
		return err
	}
	return tuneStatus(run.Outcome)
}

// freshRows measures how long a changed record stays hidden before, after, and with the shorter
// times that trade speed for it.
func freshRows(ctx context.Context, kind world.Recursor, dir string, plant []string, out *tune.Outcome,
	p *progress.Line) ([]report.FreshRow, error) {
	after := append([]string{}, plant...)
	for _, k := range out.Kept {
		if option := k.Knob.Attribute(); option != nameserver.Workers {
			after = nameserver.WithLine(kind.Kind(), after, option, string(k.To))
		}
	}
	short := map[world.Recursor]string{world.BIND: "max-cache-ttl", world.Unbound: "cache-max-ttl",
		world.Knot: "cache.max_ttl"}[kind]
	rows := []report.FreshRow{{Name: "before", Options: append([]string{}, plant...)}}
	if out.Baseline != nil {
		rows[0].AnswersPerSecond = out.Baseline.Objective
	}
	if len(out.Kept) > 0 {
		row := report.FreshRow{Name: "after", Options: after}
		if out.Final != nil {
			row.AnswersPerSecond = rows[0].AnswersPerSecond * out.Final.Ratio
		}
		rows = append(rows, row)
	}
	rows = append(rows, report.FreshRow{Name: "after, and " + short + " 60",
		Options: nameserver.WithLine(kind.Kind(), after, short, "60")})
	for i := range rows {
		p.Status("%s: waiting until a change is seen", rows[i].Name)
		var err error
		rows[i].FreshSeconds, err = world.Fresh(ctx, kind, fmt.Sprintf("%s-%d", dir, i), rows[i].Options)
		if err != nil {
			return rows, fmt.Errorf("measure freshness %s: %w", rows[i].Name, err)
		}
	}
	return rows, nil
}
