package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/wire"
)

// peerFlags are the flags of peers add.
type peerFlags struct {
	tuning  tuningFlag
	expires string
	address string
}

// peersCommand is the group that manages the keys of a serve that stays.
func (a *app) peersCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "peers",
		Short: "Manage the hosts that `serve --peers` answers: a key, rights and an expiry for each",
		Long: `Manage the hosts that ` + "`linerate serve --peers`" + ` answers. Each peer has a name, a key of its
own, rights and an expiry. The keys survive restarts of serve, so that schedules go on. A running
serve applies every change within a second. A revoked peer loses its connections.

The peers are in one file, which only its owner may read: of the service
(` + servicePeers + `) for root, in the state directory for other users, or
with --state, and elsewhere with --file. Where another user owns its directory, as the service
does, root works with that user's rights.`,
		Example: `  linerate peers add hub
  linerate peers add lab --allow-tuning=d2,'ethtool:eth1/*' --expires 90d
  linerate peers list
  linerate peers revoke hub`,
	}
	c.PersistentFlags().StringVar(&file, "file", "", "file of the peers")
	c.AddCommand(a.peersAddCommand(&file), a.peersListCommand(&file), a.peersRevokeCommand(&file))
	return c
}

func (a *app) peersAddCommand(file *string) *cobra.Command {
	var f peerFlags
	c := &cobra.Command{
		Use:         "add NAME",
		Annotations: exits(exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Make a key for a peer, and print the line to paste on its side",
		Long: `Make a key for a peer, and print the line to paste on its side. The key is printed this one time.
The peer may run tests; --allow-tuning also lets it change settings of this host on trial, as the
flag of serve does. To change what a peer may do, edit its entry in the file; for another key,
revoke the peer and add it again.`,
		Example: `  linerate peers add hub --address far.example.net:7070
  linerate peers add lab --allow-tuning=d2,'ethtool:eth1/*' --expires 90d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.peersAdd(cmd.Context(), *file, args[0], f)
		},
	}
	c.Flags().Var(&f.tuning, "allow-tuning",
		"let the peer change settings of this host, as trials: of which `CLASS` of disturbance at most (d0 to d4), and "+
			"only those that match a pattern, as in d2,ethtool:eth1/*")
	c.Flags().Lookup("allow-tuning").NoOptDefVal = knob.DefaultClass.String()
	c.Flags().StringVar(&f.expires, "expires", "",
		"how long the key is valid, such as 12h or 90d (default: until it is revoked)")
	c.Flags().StringVar(&f.address, "address", "",
		"HOST[:PORT] at which the peer reaches this host (default: its first address, port 7070)")
	return c
}

func (a *app) peersListCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:         "list",
		Annotations: exits(exitNotPermitted),
		Short:       "List the peers: what each may do, when its key expires, its last use",
		RunE: func(*cobra.Command, []string) error {
			f, err := a.openPeers(*file)
			if err != nil {
				return err
			}
			return a.printPeers(f, func(*report.PeersDocument) {})
		},
	}
}

func (a *app) peersRevokeCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:         "revoke NAME",
		Annotations: exits(exitNotPermitted, exitLocked, exitInterrupted),
		Short:       "Remove the key of a peer; a running serve closes its connections",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.openPeers(*file)
			if err != nil {
				return err
			}
			name := args[0]
			if err := f.Edit(cmd.Context(), func(peers []roster.Peer) ([]roster.Peer, error) {
				for i := range peers {
					if peers[i].Name == name {
						return append(peers[:i], peers[i+1:]...), nil
					}
				}
				return nil, flagError{fmt.Errorf("revoke: no peer %q is in %s", name, f.Path),
					"`linerate peers list` names the peers"}
			}); err != nil {
				return err
			}
			return a.printPeers(f, func(d *report.PeersDocument) { d.Revoked = name })
		},
	}
}

// peersAdd makes a peer.
func (a *app) peersAdd(ctx context.Context, file, name string, f peerFlags) error {
	if err := roster.ValidName(name); err != nil {
		return usageError{err}
	}
	address, err := f.pastedAddress()
	if err != nil {
		return usageError{err}
	}
	now := time.Now().UTC().Truncate(time.Second)
	p := roster.Peer{Name: name, Key: wire.NewKey(), Tuning: f.tuning.allowed, Added: now}
	if f.expires != "" {
		life, err := unit.ParseSpan(f.expires)
		if err != nil || life.Duration() < time.Second {
			return usagef("--expires %s: want a time such as 12h or 90d", f.expires)
		}
		p.Expires = now.Add(life.Duration())
	}
	at, err := a.openPeers(file)
	if err != nil {
		return err
	}
	if err := at.Edit(ctx, func(peers []roster.Peer) ([]roster.Peer, error) {
		for i := range peers {
			if peers[i].Name == name {
				return nil, flagError{fmt.Errorf("add: a peer %q is in %s already", name, at.Path),
					"revoke it first for a new key, or choose another name"}
			}
		}
		return append(peers, p), nil
	}); err != nil {
		return err
	}
	err = a.printPeers(at, func(d *report.PeersDocument) {
		d.Added = &report.PeerAdded{Name: name, Key: p.Key.String(), Address: address, Command: pasted(p.Key, address)}
	})
	if err != nil { // the key was not printed whole, and it is printed only once
		back := at.Edit(context.WithoutCancel(ctx), func(peers []roster.Peer) ([]roster.Peer, error) {
			return slices.DeleteFunc(peers, func(o roster.Peer) bool { return o.Key == p.Key }), nil
		})
		return errors.Join(fmt.Errorf("add %s: print its key: %w", name, err), back)
	}
	return nil
}

// pastedAddress returns the HOST:PORT of the line to paste.
func (f peerFlags) pastedAddress() (string, error) {
	if f.address == "" {
		return net.JoinHostPort(wire.HostAddresses()[0].String(), strconv.Itoa(peer.DefaultPort)), nil
	}
	t, err := peer.ParseTarget(f.address)
	if err != nil || t.SSH != nil {
		return "", fmt.Errorf("--address %s: want HOST or HOST:PORT", f.address)
	}
	return t.Addr, nil
}

// openPeers returns the file of the peers. Root takes the rights of the user who owns its
// directory: then no link in that directory can lead root elsewhere, and the file belongs to the
// user who reads it.
func (a *app) openPeers(name string) (roster.File, error) {
	f, err := a.peersFile(name)
	if err != nil || os.Geteuid() != 0 {
		return f, err
	}
	info, err := os.Stat(filepath.Dir(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil // made by the first edit
	}
	if err != nil {
		return f, err
	}
	if uid, gid, known := durable.Owner(info); known && uid != 0 {
		return f, sys.Become(uid, gid)
	}
	return f, nil
}

// printPeers prints the peers after what a command did, which fill adds.
func (a *app) printPeers(f roster.File, fill func(*report.PeersDocument)) error {
	peers, err := f.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	uses, err := f.Uses()
	if err != nil {
		// The list is right without them.
		a.warn("the last uses are missing: %v", err)
	}
	now := time.Now()
	entries := make([]report.PeerEntry, len(peers))
	for i := range peers {
		p, e := &peers[i], &entries[i]
		e.Name, e.AllowTuning, e.Expired = p.Name, p.Tuning != nil, p.Expired(now)
		if p.Tuning != nil {
			e.Tuning = p.Tuning.String()
		}
		if !p.Added.IsZero() {
			e.Added = &p.Added
		}
		if !p.Expires.IsZero() {
			e.Expires = &p.Expires
		}
		if u, used := uses[p.Key.ID()]; used {
			e.LastUse, e.LastFrom = &u.Time, u.From
		}
	}
	doc := report.NewPeers(a.envelope(""), f.Path, entries)
	fill(doc)
	return a.print(doc, func(s text.Style) error { return text.Peers(a.out, doc, s) })
}
