package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/dialect"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/lease"
	"github.com/linerate/linerate/internal/wire"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen      string
	key         keyFlags
	keyExpires  time.Duration
	keyClients  int
	tuning      tuningFlag
	peers       string // file of the peers; defaultPeers: the usual one; empty: one key for all
	once        bool
	stdio       bool
	accept      string
	copying     bool
	maxDuration time.Duration
	maxBytes    string
	maxRate     string
	maxClients  int
	atOnce      int
}

// serveCommand answers tests. Tuning is off unless this side allows it: permission to change a host
// is more than permission to measure it, and its administrator grants it.
func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	var c *cobra.Command
	c = &cobra.Command{
		Use:         "serve",
		Annotations: exits(exitNotPermitted),
		Short:       "Answer tests from other hosts; print the line to paste on the other side",
		Long: `Answer tests from other hosts that know the key. Every start makes and prints a new key, unless
--key, --key-file or the environment (LINERATE_KEY) gives one. Both sides derive mutual TLS 1.3
authentication from it. A client without the key gets no answer. Limits on time, bytes and
clients always apply.

The key is valid for a day, and only for the first host that uses it: --key-expires and
--key-clients change that, for example for schedules that measure for months or for many senders.
Give it to the other host as LINERATE_KEY or in a file: every user there can read the arguments
of a command. sudo drops the environment: use --key-file or --key - with it.

--peers instead answers the hosts that ` + "`linerate peers add`" + ` has made keys for: each has a key, an
expiry and rights of its own, which survive a restart. --once serves one client, prints nothing but
the line to paste, and ends with that client.

Tests that fill the link run one after the other, first come, first served; a waiting client
sees its place in the queue. --at-once lets several run together, to measure many senders into
one host. ping and mtu run beside them.

--accept also answers other programs on their own ports. These have no key, and can only run
tests, within the same limits.

Without --allow-tuning no other host can change this one. With it, every change goes through
this host's own journal: when the connection to the other side is lost, every trial is undone.
A commit has to be confirmed over a new connection; if none gets through, the change goes back.
--allow-tuning alone permits what disturbs new connections at most (d1); --allow-tuning=CLASS,PATTERN,…
widens and narrows that, and this host enforces it.`,
		Example: `  linerate serve
  linerate serve --allow-tuning --listen 192.0.2.7:7070
  linerate serve --allow-tuning=d2,'sysctl:net.ipv4.*','ethtool:eth1/*'
  linerate serve --accept iperf3,iperf2=5002 --max-duration 1m --max-rate 1Gb/s
  linerate serve --once
  linerate peers add hub && linerate serve --peers`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fit(c.Flags().Changed); err != nil {
				return err
			}
			return a.serve(cmd.Context(), f)
		},
	}
	c.Flags().StringVar(&f.listen, "listen", ":7070",
		"address to listen on, HOST:PORT; control and data use the same port")
	f.key.add(c.Flags(), "use this key instead of a new one")
	c.Flags().DurationVar(&f.keyExpires, "key-expires", 24*time.Hour,
		"how long the key is valid; then every client is closed (0: until serve ends)")
	c.Flags().IntVar(&f.keyClients, "key-clients", 1, "hosts that may use the key, the first ones that do (0: any number)")
	c.Flags().Var(&f.tuning, "allow-tuning",
		"let the other side change settings of this host, as trials in this host's journal: of which `CLASS` of disturbance "+
			"at most (d0 to d4), and only those that match a pattern, as in d2,ethtool:eth1/*")
	c.Flags().Lookup("allow-tuning").NoOptDefVal = knob.DefaultClass.String()
	c.Flags().StringVar(&f.peers, "peers", "",
		"answer the peers in this `FILE`, each with a key of its own (default: the file of linerate peers)")
	c.Flags().Lookup("peers").NoOptDefVal = defaultPeers
	c.Flags().BoolVar(&f.once, "once", false,
		"serve one client, print only the line to paste, and end when that client leaves")
	c.Flags().BoolVar(&f.stdio, "stdio", false,
		"serve one client over standard input and output, as ssh:// targets do")
	c.Flags().StringVar(&f.accept, "accept", "",
		"also answer these programs: NAME[=PORT],... of "+strings.Join(dialect.Names(), ", "))
	c.Flags().BoolVar(&f.copying, "copy", false,
		"with --accept: copy every byte, as other programs do, so that figures and cost are comparable")
	c.Flags().DurationVar(&f.maxDuration, "max-duration", 10*time.Minute, "longest test")
	c.Flags().StringVar(&f.maxBytes, "max-bytes", "", "most bytes of one test, such as 500G (default 1 TB)")
	c.Flags().StringVar(&f.maxRate, "max-rate", "", "highest rate of a test, such as 1Gb/s (default: no limit)")
	c.Flags().IntVar(&f.maxClients, "max-clients", 1024, "clients connected at once")
	c.Flags().IntVar(&f.atOnce, "at-once", 1, "tests that may fill the link at the same time")
	return c
}

// serve answers until ctx ends.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	o, limits, err := a.serverOptions(f)
	if err != nil {
		return err
	}
	o.Gate = admission.New(limits)
	if f.stdio {
		return a.serveStdio(ctx, o)
	}
	var k wire.Key
	var ring *wire.Keyring
	if f.peers != "" {
		if o.Peers, err = a.followPeers(f.peers, o.Log); err != nil {
			return err
		}
		ring = o.Peers.Keys()
	} else {
		if k, err = a.serveKey(f.key); ctx.Err() != nil {
			return nil // Ctrl-C is the normal end, before the key is typed too
		} else if err != nil {
			return err
		}
		if ring, err = wire.NewKeyring(k); err != nil {
			return err
		}
	}
	// Most memory of an idle server with a thousand clients is garbage that is not collected yet.
	// It allocates nothing while it measures, so collecting ten times as often costs a moment per
	// new client and saves a third of the memory.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
	l, err := openPort(ctx, f.listen, ring)
	if err != nil {
		return listenError(err, "--listen :PORT")
	}
	defer l.Close()
	others, err := a.listenDialects(ctx, f, o)
	if err != nil {
		return listenError(err, "--accept NAME=PORT")
	}
	if err := a.announce(l, k, f, o.Peers, others.Places()); err != nil {
		return err
	}
	a.showNotices() // those of --json would wait for the end
	o.Listener = l
	servers := []func(context.Context) error{func(ctx context.Context) error { return peer.Serve(ctx, o) }}
	if len(others.Places()) > 0 {
		servers = append(servers, others.Serve)
	}
	if f.tuning.allowed != nil {
		servers = append(servers, func(ctx context.Context) error { return a.watchOverdue(ctx, o.Log) })
	}
	return serveAll(ctx, servers...)
}

// listenError adds what to do about a port that cannot be opened.
func listenError(err error, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return flagError{err, fmt.Sprintf("does another server run here already? %s opens another port", flag)}
	case errors.Is(err, fs.ErrPermission):
		return flagError{err, fmt.Sprintf("only root may open ports below 1024; %s opens another one", flag)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return flagError{err, "--listen needs an address of this host, or only a port"}
	}
	return err
}

// serveAll runs servers until ctx ends or one of them fails; then all end.
func serveAll(ctx context.Context, servers ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(servers))
	for _, serve := range servers {
		go func() { ended <- serve(ctx) }()
	}
	var errs []error
	for range servers {
		errs = append(errs, <-ended)
		cancel()
	}
	return errors.Join(errs...)
}

// listenDialects opens the ports of the other programs, on the addresses that --listen names;
// without --accept there are none.
func (a *app) listenDialects(ctx context.Context, f serveFlags, o peer.ServerOptions) (*dialect.Servers, error) {
	var accept []dialect.Acceptance
	if f.accept != "" {
		var err error
		if accept, err = dialect.ParseAccept(f.accept); err != nil {
			return nil, usageError{err}
		}
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, err // checked before
	}
	return dialect.Listen(ctx, accept, dialect.Options{Host: host, Gate: o.Gate, Copy: f.copying,
		Sample: o.Root.Counters, Log: o.Log})
}

// serveKey returns the key that the user chose, or a new one.
func (a *app) serveKey(f keyFlags) (wire.Key, error) {
	text, err := a.key(f)
	if err != nil {
		return wire.Key{}, err
	}
	if text != "" {
		k, err := wire.ParseKey(text)
		if err != nil {
			return k, usageError{flagError{err, "leave --key out: serve makes a key and prints it"}}
		}
		return k, nil
	}
	return wire.NewKey(), nil
}

// serverOptions returns what this host offers (tests always, its knobs only when allowed) and the
// limits of all clients together.
//
// The journal is opened for the first client that changes something, not at start, so that a server
// that only answers tests does not lock out `linerate set` on its own host. Its mode is Lease,
// because a trial ends with the connection that made it.
func (a *app) serverOptions(f serveFlags) (peer.ServerOptions, admission.Limits, error) {
	native, all, err := f.limits()
	if err != nil {
		return peer.ServerOptions{}, all, usageError{err}
	}
	// A server that only answers tests stores nothing, and runs without a home directory.
	dir, err := a.stateDir()
	if err == nil && f.tuning.allowed != nil {
		// At start and not at the first change, when the user has long left this terminal.
		err = journal.Trusted(durable.OS(), dir)
	}
	if err != nil && f.tuning.allowed != nil {
		return peer.ServerOptions{}, all, fmt.Errorf("serve --allow-tuning: %w", err)
	}
	log := func(message string) {
		fmt.Fprintf(a.err, "%s %s\n", time.Now().Format(time.TimeOnly), admission.OneLine(message))
	}
	return peer.ServerOptions{
		Backend: live.New(), Version: version, Tuning: f.tuning.allowed,
		MaxClients: f.maxClients, AtOnce: f.atOnce, Limits: native, Lease: &lease.Lease{},
		KeyExpires: f.keyExpires, KeyClients: f.keyClients, Once: f.once,
		OpenJournal: func() (*journal.Journal, error) {
			backend := hazard.Backend{Backend: live.New(), Warn: func(h hazard.Hazard) { log("a client sets " + h.String()) }}
			return openSoon(journalOptions(dir, backend, journal.Lease, peer.FarSide))
		},
		History: a.history,
		Log:     log,
	}, all, nil
}

// limits returns what the flags allow one linerate test, and all tests of all programs together.
func (f serveFlags) limits() (traffic.Limits, admission.Limits, error) {
	native := traffic.Limits{MaxDuration: f.maxDuration}
	all := admission.Limits{
		Duration: f.maxDuration,
		// Light linerate tests and reflectors run beside the heavy tests.
		Clients: f.atOnce + maxBeside, ClientsPerSource: f.atOnce + maxBeside/2,
	}
	_, port, err := net.SplitHostPort(f.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return native, all, fmt.Errorf("--listen %s: want HOST:PORT or :PORT, with a port from 0 to 65535", f.listen)
	case f.maxDuration < 100*time.Millisecond:
		return native, all, fmt.Errorf("--max-duration %v is shorter than the shortest test, 100ms", f.maxDuration)
	case f.keyClients < 0:
		return native, all, fmt.Errorf("--key-clients %d: want a number of hosts, or 0 for any", f.keyClients)
	case f.maxClients < 1:
		return native, all, fmt.Errorf("--max-clients %d: want at least 1", f.maxClients)
	case f.atOnce < 1 || f.atOnce > maxAtOnce:
		return native, all, fmt.Errorf("--at-once %d: want 1 to %d", f.atOnce, maxAtOnce)
	}
	if f.maxBytes != "" {
		n, err := unit.ParseBytes(f.maxBytes)
		if err != nil || n < 1 {
			return native, all, fmt.Errorf("--max-bytes %q: want an amount such as 500G", f.maxBytes)
		}
		native.MaxBytes, all.Bytes = int64(n), int64(n)
	}
	if f.maxRate != "" {
		r, err := unit.ParseBitRate(f.maxRate)
		if err != nil || r <= 0 {
			return native, all, fmt.Errorf("--max-rate %q: want a rate such as 1Gb/s", f.maxRate)
		}
		native.MaxBitsPerSecond, all.BitsPerSecond = float64(r), float64(r)
	}
	return native, all, nil
}

const (
	// maxAtOnce bounds --at-once; each heavy test may have a thread for every stream.
	maxAtOnce = 64
	// maxBeside is how many tests may be served beside those that fill the link.
	maxBeside = 32
)

// serveStdio answers the one client at the other end of ssh. Standard output carries only its
// messages.
//
// It needs no key: ssh has authenticated the other side, and the process ends with the connection.
func (a *app) serveStdio(ctx context.Context, o peer.ServerOptions) error {
	in, inOK := a.in.(io.ReadCloser)
	out, outOK := raw(a.out).(io.WriteCloser)
	if !inOK || !outOK {
		return errors.New("serve: standard input and output are not pipes")
	}
	return peer.ServeStdio(ctx, in, out, o)
}

// announce prints what a user or a program needs on the other side. Scripts wait for the first
// line; with --json standard output carries one document and nothing more. Later events are
// reported on standard error.
//
// The key is printed in full, once, on the terminal that started the server; it is worthless when
// it has expired or the server ends.
func (a *app) announce(l *wire.Listener, k wire.Key, f serveFlags, peers *roster.Live, places []dialect.Place) error {
	doc := report.NewServe(a.envelope(""))
	for _, own := range l.Addresses() {
		doc.Addresses = append(doc.Addresses, own.String())
	}
	// A name that the user typed is the one that other hosts know too.
	host, _, _ := net.SplitHostPort(f.listen)
	if _, err := netip.ParseAddr(host); host == "" || err == nil {
		host = doc.Addresses[0]
	}
	doc.Listen, doc.Port, doc.AllowTuning = l.Addr().String(), l.Port(), f.tuning.allowed != nil
	doc.Tuning = f.tuning.String()
	for _, p := range places {
		doc.Accepting = append(doc.Accepting, report.ServeDialect{Dialect: p.Dialect, Listen: fmt.Sprint(p.Address)})
	}
	if peers != nil {
		return a.announcePeers(doc, peers)
	}
	doc.Key, doc.Command = k.String(), pasted(k, net.JoinHostPort(host, strconv.Itoa(l.Port())))
	doc.KeyClients = f.keyClients
	if f.keyExpires > 0 {
		until := time.Now().Add(f.keyExpires).UTC().Truncate(time.Second)
		doc.KeyExpires = &until
	}
	return a.print(doc, func(text.Style) error {
		if f.once {
			_, err := fmt.Fprintln(a.out, doc.Command)
			return err
		}
		allow := "tests only; --allow-tuning also lets clients tune this host"
		if doc.AllowTuning {
			allow = "clients with the key may also tune this host, on trial: " + doc.Tuning
		}
		if _, err := fmt.Fprintf(a.out, "listening on %s (%s)\non the other host:\n  %s\n", doc.Listen, allow,
			doc.Command); err != nil {
			return err
		}
		if further := doc.Addresses[1:]; len(further) > 0 {
			if _, err := fmt.Fprintln(a.out, "this host is also at", and(further)); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(a.out, keyValidity(doc)); err != nil {
			return err
		}
		return a.announceDialects(doc)
	})
}

// announceDialects prints the ports of the other programs.
func (a *app) announceDialects(doc *report.ServeDocument) error {
	for _, p := range doc.Accepting {
		if _, err := fmt.Fprintf(a.out, "accepting %s on %s\n", p.Dialect, p.Listen); err != nil {
			return err
		}
	}
	return nil
}

// keyValidity says for whom and for how long the key is good.
func keyValidity(doc *report.ServeDocument) string {
	whom := "for every host that knows it"
	switch {
	case doc.KeyClients == 1:
		whom = "for the first host that uses it"
	case doc.KeyClients > 1:
		whom = fmt.Sprintf("for the first %d hosts that use it", doc.KeyClients)
	}
	until := "until serve ends"
	if doc.KeyExpires != nil {
		until = "until " + doc.KeyExpires.Local().Format(time.DateTime)
	}
	return fmt.Sprintf("the key is valid %s, %s", whom, until)
}

// tuningFlag is --allow-tuning[=CLASS][,PATTERN…]. Older versions had a switch there, so true and
// false are understood too.
type tuningFlag struct{ allowed *knob.Permission }

func (f *tuningFlag) Set(text string) error {
	switch text {
	case "false":
		f.allowed = nil
		return nil
	case "true":
		text = knob.DefaultClass.String()
	}
	p, err := knob.ParsePermission(text)
	if err != nil {
		return err
	}
	f.allowed = &p
	return nil
}

// String returns the permission, or nothing.
func (f *tuningFlag) String() string {
	if f.allowed == nil {
		return ""
	}
	return f.allowed.String()
}

// Type is for the help.
func (f *tuningFlag) Type() string { return "permission" }
