package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/conduct"
	"github.com/linerate/linerate/hub/internal/fleet/gather"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/join"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/internal/base/durable"
)

// Options are what a desk needs.
type Options struct {
	Dir     string // of keys, register and socket
	Join    string // HOST:PORT where hosts join
	Bus     string // HOST:PORT of the embedded bus; ignored with Servers
	Address string // HOST:PORT that invitations name; empty: Join
	Name    string // of the hub, for documents
	Version string
	Log     *slog.Logger

	Lifetime time.Duration // of identities; 0: join.DefaultLifetime
	MaxHosts int           // connections at the embedded bus; 0: 65 536
	Look     time.Duration // between two looks at a rollout; 0: a second

	// An external cluster, which trusts what [Resolver] prints.
	Servers    []string
	Roots      []byte // PEM
	ServerName string

	now func() time.Time // nil: the clock of the host; tests set it
}

// Desk is a running desk.
type Desk struct {
	o         Options
	log       *slog.Logger
	trust     *bus.Trust
	authority *bus.Authority
	register  *member.Registry
	hosts     *inventory.Store
	hub       *bus.Hub
	listener  net.Listener
	socket    *net.UnixListener
	control   *bus.Conn
	asks      *gather.Asker // small answers
	bulk      *gather.Asker // documents, over a connection of their own
	conductor *conduct.Conductor

	mu      sync.Mutex
	wanted  map[string]string // hash of the facts to fetch, by id
	queue   chan string
	renewed map[string]time.Time // when a stranger was asked to renew

	publishing  sync.Mutex
	unpublished bool // the servers may lack a revocation that is on disk

	shown     shown
	measuring sync.Mutex           // held by the one mesh that is measured
	seen      map[string]time.Time // when a member last spoke
}

// The directories below that of the fleet.
const (
	keysDir     = "keys"
	registerDir = "register"
	rolloutsDir = "rollouts"
	socketName  = "control.sock"
)

// SilentAfter is when a host counts as silent: three signs of life are missing.
const SilentAfter = 3 * message.BeatEvery

// fetchers fetch facts at a time.
const fetchers = 64

// Open makes a desk that listens. [Desk.Run] serves it, and [Desk.Close] ends it.
func Open(o Options) (opened *Desk, err error) {
	d := &Desk{o: o, log: o.Log, hosts: inventory.NewStore(), wanted: make(map[string]string),
		queue: make(chan string, 1<<17), renewed: make(map[string]time.Time),
		seen: make(map[string]time.Time)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	fsys := durable.OS()
	if d.register, err = member.Open(member.Options{FS: fsys, Dir: filepath.Join(o.Dir, registerDir),
		Now: o.now}); err != nil {
		return nil, err
	}
	if d.trust, err = bus.OpenTrust(fsys, filepath.Join(o.Dir, keysDir)); err != nil {
		return nil, err
	}
	if d.authority, err = bus.OpenAuthority(fsys, filepath.Join(o.Dir, keysDir), d.now()); err != nil {
		return nil, err
	}
	if err = d.revokeAgain(); err != nil {
		return nil, err
	}
	d.unpublished = len(o.Servers) > 0
	if d.listener, err = net.Listen("tcp", o.Join); err != nil {
		return nil, fmt.Errorf("listen for hosts that join: %w", err)
	}
	if len(o.Servers) > 0 {
		d.hub, err = bus.Attach(bus.Options{Trust: d.trust, Log: d.log, URLs: o.Servers, Roots: o.Roots,
			ServerName: o.ServerName})
	} else {
		d.hub, err = bus.Embed(bus.Options{Trust: d.trust, Authority: d.authority, Listen: o.Bus, MaxHosts: o.MaxHosts,
			Log: d.log})
	}
	if err != nil {
		return nil, err
	}
	for _, m := range d.register.Members() {
		d.note(m)
	}
	if err = d.connect(); err != nil {
		return nil, err
	}
	if d.socket, err = listenControl(o.Dir); err != nil {
		return nil, err
	}
	return d, nil
}

// now returns the time by the clock of the hub.
func (d *Desk) now() time.Time {
	if d.o.now != nil {
		return d.o.now()
	}
	return time.Now()
}

// connect opens the connections of the hub. Each has a reader of its own.
func (d *Desk) connect() error {
	var err error
	if d.control, err = d.hub.Connect("linerate-hub control"); err != nil {
		return err
	}
	if _, err = d.control.Subscribe(bus.FromHost("*", message.KindBeat), d.beat); err != nil {
		return err
	}
	asks, err := d.hub.Connect("linerate-hub asks")
	if err != nil {
		return err
	}
	if d.asks, err = gather.New(asks); err != nil {
		return err
	}
	bulk, err := d.hub.Connect("linerate-hub documents")
	if err != nil {
		return err
	}
	if d.bulk, err = gather.New(bulk); err != nil {
		return err
	}
	orders, err := d.hub.Connect("linerate-hub orders")
	if err != nil {
		return err
	}
	w, err := newWay(d, orders)
	if err != nil {
		return err
	}
	d.conductor, err = conduct.Open(conduct.Options{Dir: filepath.Join(d.o.Dir, rolloutsDir), Hosts: w, Log: d.log,
		Every: d.o.Look})
	return err
}

// Close ends everything. Run must have returned.
func (d *Desk) Close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
	if d.socket != nil {
		_ = d.socket.Close()
	}
	if d.hub != nil {
		d.hub.Close()
	}
	if d.register != nil {
		if err := d.register.Close(); err != nil {
			d.log.Error("fleet: close the register", "error", err)
		}
	}
}

// JoinAddress returns the address on which the desk listens for hosts that join.
func (d *Desk) JoinAddress() string { return d.listener.Addr().String() }

// Run serves hosts and the administrator until the context ends, which is not an error.
func (d *Desk) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop(nil)
	options := join.Options{Register: d.register, Trust: d.trust, Authority: d.authority, Admit: d.admit,
		Lifetime: d.o.Lifetime, Now: d.o.now, Bus: d.o.Servers, Roots: d.o.Roots, ServerName: d.o.ServerName, Log: d.log}
	if a := d.hub.Address(); a != nil {
		options.Bus, options.Roots, options.ServerName = []string{fmt.Sprintf("tls://:%d", a.Port)}, d.authority.PEM,
			bus.ServerName
	}
	part := func(f func(context.Context) error) {
		parts.Go(func() {
			if err := f(ctx); err != nil {
				stop(err)
			}
		})
	}
	part(func(ctx context.Context) error { return join.NewServer(options).Serve(ctx, d.listener) })
	part(d.serveControl)
	part(d.keepPublished)
	part(func(ctx context.Context) error { d.conductor.Run(ctx); return nil })
	for range fetchers {
		part(d.fetchFacts)
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// note copies what the register says to the inventory.
func (d *Desk) note(m member.Member) {
	if m.State == member.Removed {
		d.hosts.Forget(m.ID)
		d.mu.Lock()
		delete(d.seen, m.ID)
		d.mu.Unlock()
		return
	}
	d.hosts.Set(m.ID, m.Name, string(m.State), m.Groups, m.Labels)
}

// admit puts the state of a member in force: at the bus, and in the inventory. It returns once the
// bus has it, so that a host can use its identity as soon as it has it.
func (d *Desk) admit(m member.Member) error {
	// A key that was replaced is no host: the entry has another key by now.
	if now, ok := d.register.Get(m.ID); !ok || now.Key == m.Key {
		d.note(m)
	}
	var err error
	revoked := d.trust.Revoked(m.Key)
	switch {
	case m.State == member.Joined && revoked:
		err = d.trust.Readmit(m.Key)
	case m.State != member.Joined && !revoked:
		err = d.trust.Revoke(m.Key, d.now(), join.KeepRevocations)
	default:
		return d.publish(false)
	}
	if err != nil {
		return err
	}
	return d.publish(true)
}

// revokeAgain revokes the keys of hosts that are no members: a hub that dies between its register
// and its claims has refused a host that the bus still lets in.
func (d *Desk) revokeAgain() error {
	for _, m := range d.register.Members() {
		if m.State == member.Joined || d.trust.Revoked(m.Key) || d.now().Sub(m.Renewed) > join.KeepRevocations {
			continue
		}
		if err := d.trust.Revoke(m.Key, d.now(), join.KeepRevocations); err != nil {
			return err
		}
	}
	return nil
}

// publish makes the claims known to the servers, where they have changed or the servers may lack
// them because an earlier attempt has failed.
func (d *Desk) publish(changed bool) error {
	d.publishing.Lock()
	defer d.publishing.Unlock()
	if d.unpublished = d.unpublished || changed; !d.unpublished {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	err := d.hub.Publish(ctx)
	d.unpublished = err != nil
	return err
}

// publishEvery is how often servers that could not be reached are tried again.
const publishEvery = time.Minute

// keepPublished publishes what the servers lack, until the context ends.
func (d *Desk) keepPublished(ctx context.Context) error {
	for {
		if err := d.publish(false); err != nil && ctx.Err() == nil {
			d.log.Error("fleet: hosts that were removed may still be connected: " + err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(publishEvery):
		}
	}
}

// beat reads a sign of life.
func (d *Desk) beat(m bus.Message) {
	id, _, ok := bus.Sender(m.Subject)
	var b message.Beat
	if !ok || len(m.Data) > message.MostAnswer || json.Unmarshal(m.Data, &b) != nil {
		return
	}
	who, changed, err := d.register.Beat(id, b.Instance, b.Machine)
	switch {
	case changed:
		d.log.Warn("fleet: quarantined", "host", id, "name", who.Name, "reason", who.Reason)
		go func() { // not on the reader of the connection
			if err := d.admit(who); err != nil {
				d.log.Error("fleet: "+err.Error(), "host", id)
			}
		}()
		return
	case err != nil && who.ID == "":
		// An identity of this fleet without an entry: the register was lost. The host brings what is
		// needed.
		d.askToRenew(id)
		return
	case err != nil:
		return // on its way out
	}
	d.mu.Lock()
	d.seen[id] = time.Now()
	d.mu.Unlock()
	if d.hosts.Beat(id, fmt.Sprintf("%.40s", b.Version), b.Facts, time.Now()) {
		d.want(id, b.Facts)
	}
}

// askToRenew asks a host that the register does not have to renew its identity, once a minute.
func (d *Desk) askToRenew(id string) {
	now := time.Now()
	d.mu.Lock()
	due := now.Sub(d.renewed[id]) > time.Minute
	if due {
		if len(d.renewed) > 1<<17 {
			clear(d.renewed)
		}
		d.renewed[id] = now
	}
	d.mu.Unlock()
	if due {
		_ = d.control.Send(bus.ToHost(id, message.KindRenew), "", nil) // the next sign of life asks again
	}
}

// want queues a host whose facts are missing, once.
func (d *Desk) want(id, hash string) {
	d.mu.Lock()
	_, queued := d.wanted[id]
	d.wanted[id] = hash
	d.mu.Unlock()
	if queued {
		return
	}
	select {
	case d.queue <- id:
	default: // the next sign of life asks again
		d.mu.Lock()
		delete(d.wanted, id)
		d.mu.Unlock()
	}
}

// fetchFacts fetches the facts of queued hosts until the context ends.
func (d *Desk) fetchFacts(ctx context.Context) error {
	for {
		var id string
		select {
		case <-ctx.Done():
			return nil
		case id = <-d.queue:
		}
		got := d.bulk.Small(ctx, node.FactsDocument, id, d.hosts.FactsHash(id), inventory.MostFacts)
		d.mu.Lock()
		delete(d.wanted, id)
		d.mu.Unlock()
		if got.Err == nil && !got.Same {
			var f inventory.Facts
			if f, got.Err = inventory.Decode(got.Data); got.Err == nil {
				d.hosts.Put(id, got.Hash, f)
			}
		}
		if got.Err != nil && ctx.Err() == nil {
			d.log.Info("fleet: the facts of a host are missing", "host", id, "error", got.Err)
		}
	}
}

// Socket returns the path of the administrator's socket in the directory of a fleet.
func Socket(dir string) string { return filepath.Join(dir, socketName) }

// Leaf returns the credentials with which the server of a site joins the bus of the fleet below dir
// as a leaf node, and the account that the configuration of that server names.
func Leaf(dir, site string) (credentials []byte, account string, err error) {
	trust, err := bus.OpenTrust(durable.OS(), filepath.Join(dir, keysDir))
	if err != nil {
		return nil, "", err
	}
	return trust.Leaf(site)
}

// Resolver returns the configuration that makes servers elsewhere trust the fleet below dir.
func Resolver(dir, claims string) (string, error) {
	trust, err := bus.OpenTrust(durable.OS(), filepath.Join(dir, keysDir))
	if err != nil {
		return "", err
	}
	return trust.Resolver(cmp.Or(claims, "/var/lib/nats/claims"))
}
