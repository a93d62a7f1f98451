package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/knob"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/wire"
)

// Tuning is off unless it is asked for on this side: who may measure a host is a smaller question than who may change
// it, and the answer belongs to whoever runs it.
func (a *app) serveCommand() *cobra.Command {
	var (
		listen string
		key    string
		tuning bool
		stdio  bool
	)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Answer tests from other hosts; print the line to paste on the other side",
		Long: `Answer tests from other hosts that know the key. The key is made anew at every start and
printed; both sides derive mutual TLS 1.3 authentication from it. Nobody without the key
gets an answer. Caps on time, bytes and clients always apply.

Nothing on this host can be changed from afar unless --allow-tuning is given, and then only
through this host's own journal: when the other side vanishes, every trial is taken back.`,
		Example: "  linerate serve\n  linerate serve --allow-tuning --listen 192.0.2.7:7070",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.serverOptions(tuning)
			if err != nil {
				return err
			}
			if stdio {
				return a.serveStdio(cmd.Context(), o)
			}
			k, err := a.serveKey(key)
			if err != nil {
				return err
			}
			l, err := wire.Listen(cmd.Context(), listen, k)
			if err != nil {
				return err
			}
			defer l.Close()
			if err := a.announce(l, k, tuning); err != nil {
				return err
			}
			o.Listener = l
			return peer.Serve(cmd.Context(), o)
		},
	}
	c.Flags().StringVar(&listen, "listen", ":7070", "address to listen on, HOST:PORT; control and data use the same port")
	c.Flags().StringVar(&key, "key", "", "use this key instead of a new one (also LINERATE_KEY)")
	c.Flags().BoolVar(&tuning, "allow-tuning", false, "let the other side change settings of this host, as trials in this host's journal")
	c.Flags().BoolVar(&stdio, "stdio", false, "speak over standard input and output; this is what ssh:// targets start")
	return c
}

func (a *app) serveKey(flag string) (wire.Key, error) {
	if text := a.key(flag); text != "" {
		k, err := wire.ParseKey(text)
		if err != nil {
			return k, usageError{err}
		}
		return k, nil
	}
	return wire.NewKey(), nil
}

// serverOptions is what this host offers: tests always, its knobs only when allowed.
//
// The journal is opened when the first client wants to change something and not at start, so that a server that only
// answers tests does not lock out `linerate set` on its own host. Lease, since trials live no longer than the
// connection that made them.
func (a *app) serverOptions(tuning bool) (peer.ServerOptions, error) {
	dir, err := a.stateDir()
	if err != nil {
		return peer.ServerOptions{}, err
	}
	return peer.ServerOptions{
		Backend: knob.NewLive(), Version: version, AllowTuning: tuning,
		OpenJournal: func() (*journal.Journal, error) {
			return journal.Open(journalOptions(dir, journal.Lease, peer.FarSide))
		},
		History: a.history,
		Log:     func(message string) { fmt.Fprintf(a.err, "%s %s\n", time.Now().Format(time.TimeOnly), message) },
	}, nil
}

// serveStdio answers the one client at the other end of ssh; its messages have standard output to themselves.
//
// There is no key: ssh has authenticated the other side, and the process ends with the connection.
func (a *app) serveStdio(ctx context.Context, o peer.ServerOptions) error {
	in, inOK := a.in.(io.ReadCloser)
	out, outOK := a.out.(io.WriteCloser)
	if !inOK || !outOK {
		return errors.New("serve: standard input and output are not pipes")
	}
	return peer.ServeStdio(ctx, in, out, o)
}

// announce prints the lines a person needs on the other side. The first line is also what scripts wait for.
//
// The key is printed in full, once, on the terminal of whoever started the server; it is worth nothing when the
// server ends.
func (a *app) announce(l *wire.Listener, k wire.Key, tuning bool) error {
	allow := ""
	if !tuning {
		allow = " (tests only; --allow-tuning lets it tune this host too)"
	}
	_, err := fmt.Fprintf(a.out, "listening on %s%s\non the other host:\n  linerate measure THIS-HOST:%d --key %s\n",
		l.Addr(), allow, l.Port(), k)
	return err
}
