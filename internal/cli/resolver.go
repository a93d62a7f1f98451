package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/resolver/answer"
	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// resolverCommand is the commands about name servers.
func (a *app) resolverCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "resolver",
		Short: "Measure name servers with every answer checked, name what limits one, and tune its options",
		Long: "Measure how fast a name server answers, name what limits it, tune its options, compare what they do,\n" +
			"and answer queries for practice.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.resolverMeasureCommand(), a.resolverDiagnoseCommand(), a.resolverTuneCommand(), a.resolverLabCommand(),
		a.resolverAnswerCommand())
	return c
}

// nameFlags say what is asked for.
type nameFlags struct {
	file        string
	model       names.Model
	types       string
	dnssec      bool
	ednsBytes   uint16
	noRecursion bool
}

func (n *nameFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&n.file, "names", "", "file of questions, - for standard input: a name and a type a line, as for "+
		"dnsperf, and optionally the expected response code or address; a query log of BIND, Unbound or dnsmasq; or a "+
		"packet capture (pcap, pcapng)")
	f.StringVar(&n.model.Domain, "domain", "bench.test", "without --names: the zone of the names; it has a wildcard "+
		"below live and nothing below gone")
	f.IntVar(&n.model.Population, "population", 10_000, "without --names: names that are asked for repeatedly")
	f.Float64Var(&n.model.Exponent, "zipf", 1, "without --names: exponent of their popularity; 0: all are equal")
	f.Float64Var(&n.model.HitRatio, "hit-ratio", 1, "without --names: share of queries for these names; the others ask "+
		"for names that no cache has")
	f.Float64Var(&n.model.NXRatio, "nx-ratio", 0, "without --names: share of these names that do not exist")
	f.StringVar(&n.types, "types", "A", "without --names: record types and weights, as A=70,AAAA=30")
	f.Uint64Var(&n.model.Seed, "seed", 1, "without --names: the same seed asks the same questions; "+
		"if it is not given, those that no cache has are new in each run")
	f.BoolVar(&n.dnssec, "dnssec", false, "ask for signatures (the DO bit)")
	f.Uint16Var(&n.ednsBytes, "edns-bytes", 1232, "largest answer over UDP that the queries allow; 0: no EDNS")
	f.BoolVar(&n.noRecursion, "no-recursion", false, "do not ask for recursion, for authoritative servers")
}

// set reads or makes the questions.
func (n *nameFlags) set(a *app) (*names.Set, error) {
	o := message.QueryOptions{Recursion: !n.noRecursion, UDPBytes: n.ednsBytes, DNSSECOK: n.dnssec}
	if n.dnssec && n.ednsBytes == 0 {
		return nil, usagef("--dnssec needs EDNS: leave --edns-bytes 0 out")
	}
	if n.file == "" {
		types, err := names.ParseShares(n.types)
		if err != nil {
			return nil, usageError{err}
		}
		n.model.Types = types
		return n.model.New(o)
	}
	in, err := a.openInput(n.file)
	if err != nil {
		return nil, err
	}
	defer in.Close() // opened for reading
	set, err := names.Read(io.LimitReader(in, mostOfNames), o)
	var unread *fs.PathError
	if errors.As(err, &unread) {
		return nil, unread // it names the file
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", n.file, err)
	}
	return set, nil
}

// mostOfNames bounds a file of questions in octets.
const mostOfNames = 1 << 30

// resolverMeasureCommand loads a name server.
func (a *app) resolverMeasureCommand() *cobra.Command {
	var (
		ask       nameFlags
		o         load.Options
		far       targetFlags
		transport string
		closed    bool
		ramp      bool
		confirmed bool
		farPort   uint16
		runs      uint64
	)
	c := &cobra.Command{
		Use:         "measure SERVER",
		Annotations: exits(exitPartial, exitNotPermitted, exitUnreachable, exitInterrupted),
		Short:       "Ask a name server at a rate and check every answer",
		Long: `Ask a name server (HOST or HOST:PORT) at a rate, from many ports, and check every answer: id, question,
response code, EDNS, compression, and the content where --names says what to expect. Answers that are
late, wrong, doubled, or sent by another address count by kind, and never as answers.

By default the load is an open loop: a query is due at its time whether or not earlier ones were
answered, and its latency counts from then. So a server that stalls shows the stall in every query that
was due meanwhile. --closed keeps a number of queries outstanding instead, as dnsperf does, and finds
the rate that a server reaches. --ramp finds the highest rate that it holds.

A load ends after --duration, or after --queries or --runs through the file of --names, whichever comes
first. With one of these two, --duration is an hour unless you give it.

A load can disturb a server and its network. linerate sends one only to an address of this host, to one
where ` + "`linerate serve`" + ` runs and whose key you give (--key), or with --i-run-this-server.`,
		Example: "  linerate resolver measure 127.0.0.1 --names queries.txt --rate 20000\n" +
			"  linerate resolver measure 127.0.0.1 --ramp --p99-limit 5ms --domain bench.test\n" +
			"  linerate resolver measure ns1.example.org --transport tls --closed --i-run-this-server",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given(cmd.Flags(), "rate", "outstanding", "first-rate", "loss-limit", "duration", "timeout",
				"interval", "sockets", "workers", "runs"); err != nil {
				return err
			}
			switch {
			case closed && ramp:
				return usagef("--closed and --ramp: give one of them")
			case closed:
				o.Mode = load.Closed
			case ramp:
				o.Mode = load.Ramp
			}
			if changed := cmd.Flags().Changed; o.Mode != load.Open && o.Mode != "" && changed("rate") {
				return usagef("--rate is of the open loop: leave it out with --closed and --ramp")
			} else if !closed && changed("outstanding") {
				return usagef("--outstanding is of --closed")
			}
			o.Transport = load.Transport(transport)
			err := resolverFlagsFit(cmd.Flags().Changed, o)
			if err != nil {
				return err
			}
			if o.Server, err = resolveServer(cmd.Context(), args[0], o.Transport.Port()); err != nil {
				return err
			}
			if o.Names, err = ask.set(a); err != nil {
				return err
			}
			if runs > 0 {
				if o.Queries = runs * uint64(o.Names.Len()); o.Queries/runs != uint64(o.Names.Len()) {
					return usagef("--runs %d: too many", runs)
				}
			}
			if o.Seed = ask.model.Seed; !cmd.Flags().Changed("seed") {
				o.FreshFrom = rand.Uint64() // the last run's names may be in a cache
			}
			if o, err = o.Filled(); err != nil {
				return err
			}
			p, err := a.newProgress()
			if err != nil {
				return err
			}
			defer p.Done()
			if err := a.mayLoad(cmd.Context(), o.Server.Addr(), farPort, far, confirmed, p); err != nil {
				return err
			}
			result, err := load.Run(cmd.Context(), o, func(i load.Interval) {
				show := p.Step
				if p.Mode() != progress.Lines {
					show = p.Status
				}
				show("%s: %s queries/s, %s answers/s, p50 %s, p99 %s", unit.FormatSeconds(i.AtSeconds),
					unit.FormatCount(i.QueriesPerSecond), unit.FormatCount(i.AnswersPerSecond), unit.FormatSeconds(i.P50),
					unit.FormatSeconds(i.P99))
			})
			p.Done()
			if err != nil {
				return err
			}
			doc := report.NewResolver(a.envelope(""), result)
			if err := a.print(doc, func(s text.Style) error { return text.Resolver(a.out, doc, s) }); err != nil {
				return err
			}
			_, gone := result.WentAway()
			switch {
			case cmd.Context().Err() != nil:
				return cmd.Context().Err()
			case result.Answers == 0, gone:
				return statusError{status: exitPartial}
			}
			return nil
		},
	}
	ask.add(c)
	far.add(c)
	f := c.Flags()
	f.StringVar(&transport, "transport", "udp", "udp, tcp, tls (RFC 7858) or https (RFC 8484, HTTP/2)")
	f.Float64Var(&o.Rate, "rate", 1000, "queries per second of the open loop")
	f.BoolVar(&closed, "closed", false, "keep --outstanding queries waiting instead of a rate")
	f.IntVar(&o.Outstanding, "outstanding", 100, "queries that --closed keeps waiting")
	f.BoolVar(&ramp, "ramp", false, "double the rate until the server no longer holds it, then search between")
	f.Float64Var(&o.FirstRate, "first-rate", 1000, "first rate of --ramp, in queries per second")
	f.Float64Var(&o.MostLoss, "loss-limit", 0.01, "share of queries without a sound answer that --ramp accepts")
	f.DurationVar(&o.MostP99, "p99-limit", 0, "99th percentile of the latency that --ramp accepts; 0: any")
	f.DurationVar(&o.Duration, "duration", 0, "length of the load (default 10s; one hour with --queries or "+
		"--runs), or of each rate of --ramp (default 2s)")
	f.Uint64Var(&o.Queries, "queries", 0, "end after this many queries")
	f.Uint64Var(&runs, "runs", 0, "with --names: end after this many runs through the file, like dnsperf -n")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "a query without an answer after this time is lost")
	f.DurationVar(&o.Interval, "interval", time.Second, "time between interim results")
	f.IntVar(&o.Sockets, "sockets", 16, "source ports, or connections")
	f.IntVar(&o.Workers, "workers", 1, "threads that send and receive over UDP")
	f.IntVar(&o.PerConnection, "queries-per-connection", 0, "replace a connection after this many queries; 0: never")
	f.StringVar(&o.ServerName, "server-name", "", "tls, https: verify the certificate for this name; empty: do not verify")
	f.StringVar(&o.Path, "path", "/dns-query", "https: path of the requests")
	f.Uint16Var(&farPort, "serve-port", 7070, "with --key: port of linerate serve on the server")
	f.BoolVar(&confirmed, "i-run-this-server", false, "confirm that you may load this server and the network to it")
	return c
}

// resolverFlagsFit refuses flags that would do nothing. One of them is --server-name: a user who
// gives it believes that a certificate is verified.
func resolverFlagsFit(changed func(string) bool, o load.Options) error {
	if changed("queries") && changed("runs") {
		return usagef("--queries and --runs: give one of them")
	}
	encrypted := o.Transport == load.TLS || o.Transport == load.HTTPS
	for _, x := range [...]struct {
		fits  bool
		needs string
		flags []string
	}{
		{o.Mode == load.Ramp, "--ramp", []string{"first-rate", "loss-limit", "p99-limit"}},
		{encrypted, "--transport tls or https", []string{"server-name"}},
		{o.Transport == load.HTTPS, "--transport https", []string{"path"}},
		{o.Transport != load.UDP, "--transport tcp, tls or https", []string{"queries-per-connection"}},
		{o.Transport == load.UDP, "--transport udp", []string{"workers"}},
		{o.Mode != load.Ramp, "a load without --ramp", []string{"queries", "runs"}},
		{changed("names"), "--names", []string{"runs"}},
		{!changed("names"), "questions of its own: leave --names out", []string{"domain", "population", "zipf", "hit-ratio",
			"nx-ratio", "types"}},
	} {
		for _, name := range x.flags {
			if !x.fits && changed(name) {
				return usagef("--%s needs %s", name, x.needs)
			}
		}
	}
	return nil
}

// resolveServer reads HOST or HOST:PORT and looks a name up.
func resolveServer(ctx context.Context, server string, port uint16) (netip.AddrPort, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(server, "["), "]")
	if at, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(at.Unmap(), port), nil
	}
	if h, p, err := net.SplitHostPort(server); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return netip.AddrPort{}, usagef("server %q: want HOST or HOST:PORT with a port from 1 to 65535", server)
		}
		host, port = h, uint16(n)
	}
	if at, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(at.Unmap(), port), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		err = fmt.Errorf("look up server: %w", err)
		if dns := (*net.DNSError)(nil); errors.As(err, &dns) && ctx.Err() == nil {
			return netip.AddrPort{}, statusError{exitUnreachable, oneSentence(err), "is the name right? An address works too"}
		}
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(found[0].Unmap(), port), nil
}

// mayLoad refuses a load on an address that is not this host's, unless the user has shown that it
// is theirs. Only then may a generator send it thousands of queries a second.
func (a *app) mayLoad(ctx context.Context, server netip.Addr, port uint16, far targetFlags, confirmed bool,
	p *progress.Line) error {
	if confirmed || isLocal(server) {
		return nil
	}
	client, err := a.connect(ctx, netip.AddrPortFrom(server, port).String(), far, p)
	switch {
	case errors.Is(err, peer.ErrNoKey):
		return flagError{fmt.Errorf("load %s: %w: the address is not of this host", server, fs.ErrPermission),
			"start `linerate serve` there and give its --key, or confirm with --i-run-this-server"}
	case err != nil:
		return fmt.Errorf("prove that %s may be loaded: %w", server, err)
	}
	return client.Close()
}

// isLocal reports whether an address is of this host.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, o := range own {
		if prefix, err := netip.ParsePrefix(o.String()); err == nil && prefix.Addr().Unmap() == a.WithZone("") {
			return true
		}
	}
	return false
}

// resolverAnswerCommand runs our own name server.
func (a *app) resolverAnswerCommand() *cobra.Command {
	var o answer.Options
	var listen, listenTLS, faults string
	c := &cobra.Command{
		Use:         "answer",
		Annotations: exits(exitInterrupted),
		Short:       "Answer queries by rule, or misbehave on request, for practice",
		Long: `Run a small name server on this host until Ctrl-C. Every name has an address, except those with a
label gone, which do not exist: that is what ` + "`resolver measure`" + ` without --names expects.

--faults makes every N-th answer wrong, in one of these ways:
  ` + inLines(answer.Names()) + `
--stall makes the server read nothing for a time.`,
		Example: "  linerate resolver answer --listen 127.0.0.1:5353 --faults twice=100,drop=1000\n" +
			"  linerate resolver answer --listen 127.0.0.1:5353 --stall 100ms --stall-after 2s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			late := o.Faults.LateBy
			if o.Faults, err = answer.ParseFaults(faults); err != nil {
				return usageError{err}
			}
			o.Faults.LateBy = late
			if o.Listen, err = netip.ParseAddrPort(listen); err != nil {
				return usagef("--listen %q: want ADDRESS:PORT", listen)
			}
			if listenTLS != "" {
				if o.ListenTLS, err = netip.ParseAddrPort(listenTLS); err != nil {
					return usagef("--listen-tls %q: want ADDRESS:PORT", listenTLS)
				}
			}
			s, err := answer.Start(o)
			if err != nil {
				return err
			}
			doc := report.NewResolverAnswer(a.envelope(""), s.Addr().String(), "")
			if at := s.AddrTLS(); at.IsValid() {
				doc.ListenTLS = at.String()
			}
			if err := a.print(doc, func(st text.Style) error { return text.ResolverAnswer(a.out, doc, st) }); err != nil {
				return errors.Join(err, s.Close())
			}
			return s.Serve(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:5353", "address and port of UDP and TCP")
	f.StringVar(&listenTLS, "listen-tls", "", "address and port of TLS; empty: none")
	f.StringVar(&faults, "faults", "", "wrong answers, as FAULT=N,FAULT=N for every N-th query")
	f.DurationVar(&o.Faults.LateBy, "late-by", time.Second, "how late the answers of the fault late are")
	f.DurationVar(&o.Delay, "delay", 0, "wait this long before each answer")
	f.DurationVar(&o.Stall, "stall", 0, "read nothing for this time, once")
	f.DurationVar(&o.StallAfter, "stall-after", time.Second, "begin the stall this long after the first query")
	f.Uint32Var(&o.TTL, "ttl", 60, "time to live of the records, in seconds")
	return c
}

// inLines joins names for an indented paragraph of help, with a line break after each eighth.
func inLines(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i%8 == 0:
			b.WriteString(",\n  ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}
