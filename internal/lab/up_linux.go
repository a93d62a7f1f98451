package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// killAfter is how long an interrupted command may take to end before it is killed, and how long
// Wait waits for output from processes that outlive their command.
const killAfter = 15 * time.Second

func after() <-chan time.Time { return time.After(killAfter) }

// Up makes a world, which takes some tens of milliseconds. The caller closes it; if the process
// ends first, the kernel removes it. If namespaces are forbidden the error is ErrNoNamespaces with
// the remedy.
func Up(ctx context.Context, w scenario.World) (*Running, error) { return upIn(ctx, w, "") }

// upIn is Up with a host that stays in the network namespace of the maker; empty: none does.
func upIn(ctx context.Context, w scenario.World, inMachine string) (*Running, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	plan, err := planOf(w)
	if err != nil {
		return nil, err
	}
	r, err := startHub()
	if err != nil {
		return nil, err
	}
	r.World, r.inMachine = w, inMachine
	if err := r.build(ctx, plan); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// startHub starts the process that holds the world together.
func startHub() (*Running, error) {
	ch, other, err := newPair()
	if err != nil {
		return nil, err
	}
	defer other.Close()
	cmd := agentProcess(other)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		// A terminal's Ctrl-C goes to the maker, which ends the world in order.
		Setpgid: true,
		// The hub ends when its channel closes. The signal also ends a hub that does not read it.
		Pdeathsig: syscall.SIGKILL,
	}
	r := &Running{ended: make(chan struct{})}
	// By capability and not by user: root in a container often has neither capability, and a
	// service may have both without being root.
	if c, err := sys.Capabilities(); err != nil || !c.Has(sys.CapSysAdmin) || !c.Has(sys.CapNetAdmin) {
		r.user = true
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		// One user and one group, the process's own: an unprivileged process may map no more
		// (user_namespaces(7)). Go denies setgroups before it maps the group, as the kernel
		// requires since 3.19.
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig acts when the thread that started the child ends, so that thread lives as long
		// as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // only the end matters
			close(r.ended)
		}
	}()
	if err := <-started; err != nil {
		_ = ch.conn.Close()
		return nil, explain(fmt.Errorf("start practice world: %w", err), "/")
	}
	r.process = cmd.Process
	r.hub = newRemote("hub", ch)
	return r, nil
}

// build makes hosts and joins them.
func (r *Running) build(ctx context.Context, plan plan) error {
	// The hub's own view of /proc and /sys does not matter, and neither do its warnings.
	if _, _, err := r.hub.call(ctx, request{Be: &beRequest{Hub: true, Name: "hub"}}); err != nil {
		return explain(fmt.Errorf("make practice world: %w", err), "/")
	}
	known := map[string]string{}
	for _, h := range plan.hosts {
		known[h.name] = h.address
	}
	spaces := map[string]*os.File{}
	defer func() {
		for _, f := range spaces {
			_ = f.Close()
		}
	}()
	for _, h := range plan.hosts {
		host, space, warnings, err := r.spawn(ctx, h, known)
		if err != nil {
			return explain(fmt.Errorf("make host %s: %w", h.name, err), "/")
		}
		r.Hosts = append(r.Hosts, host)
		r.Warnings = append(r.Warnings, warnings...)
		spaces[h.name] = space
	}
	// Sysctls before devices: an interface takes its defaults (net.ipv4.conf.default, disable_ipv6)
	// when it is made.
	for _, h := range plan.hosts {
		pins, _ := r.World.Pins(h.name)
		if h.forward {
			pins = append(pins, scenario.Setting{Knob: "sysctl:net.ipv4.ip_forward", Value: "1"})
		}
		if err := r.Host(h.name).Set(ctx, pins...); err != nil {
			return err
		}
		if h.forward {
			// A machine without IPv6 lacks this setting; its worlds are IPv4 only.
			err := r.Host(h.name).Set(ctx, scenario.Setting{Knob: "sysctl:net.ipv6.conf.all.forwarding", Value: "1"})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, hop := range plan.hops {
		if err := r.join(ctx, hop, spaces); err != nil {
			return err
		}
	}
	for _, h := range plan.hosts {
		q := configureRequest{}
		for _, route := range h.routes {
			q.Routes = append(q.Routes, routeRequest{route.destination, route.gateway})
		}
		if _, _, err := r.Host(h.name).agent.call(ctx, request{Configure: &q}); err != nil {
			return wrapHost(h.name, err)
		}
		_, ofDevices := r.World.Pins(h.name)
		if err := r.Host(h.name).Set(ctx, ofDevices...); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts one host and returns it with its network namespace.
func (r *Running) spawn(ctx context.Context, h hostPlan, known map[string]string) (*Host, *os.File, []string, error) {
	ch, other, err := newPair()
	if err != nil {
		return nil, nil, nil, err
	}
	defer other.Close()
	agent := newRemote(h.name, ch)
	hand := []*os.File{other}
	if h.name == r.inMachine {
		own, err := os.Open("/proc/self/ns/net")
		if err != nil {
			_ = ch.conn.Close()
			return nil, nil, nil, err
		}
		defer own.Close()
		hand = append(hand, own)
	}
	if _, _, err := r.hub.call(ctx, request{Spawn: &spawnRequest{Name: h.name}}, hand...); err != nil {
		_ = ch.conn.Close()
		return nil, nil, nil, err
	}
	p, files, err := agent.call(ctx, request{Be: &beRequest{Name: h.name, Known: known}})
	if err == nil && len(files) != 1 {
		err = errors.New("the reply has no network namespace")
	}
	if err != nil {
		closeAll(files)
		_ = ch.conn.Close()
		return nil, nil, nil, err
	}
	return &Host{Name: h.name, Address: h.address, PID: agent.pid, agent: agent}, files[0], p.Warnings, nil
}

// join makes the devices of one hop and brings them up.
func (r *Running) join(ctx context.Context, hop hop, spaces map[string]*os.File) error {
	q := joinRequest{Devices: [2]string{hop.ends[0].device, hop.ends[1].device}}
	mtu := 0
	if hop.link && r.World.Link != nil {
		q.Link = r.World.Link
		toFar, toNear := q.Link.Both()
		mtu = max(toFar.MTU(), toNear.MTU())
	}
	a, b := hop.ends[0], hop.ends[1]
	var names [2]string // of the devices before they are renamed
	if hop.link && r.World.Card != "" {
		var err error
		if names, err = moveCards(ctx, r.World.Card, spaces[a.host], spaces[b.host]); err != nil {
			return fmt.Errorf("join %s and %s: %w", a.host, b.host, err)
		}
	} else if _, _, err := r.hub.call(ctx, request{Join: &q}, spaces[a.host], spaces[b.host]); err != nil {
		return fmt.Errorf("join %s and %s: %w", a.host, b.host, err)
	}
	for i, e := range hop.ends {
		c := configureRequest{Up: []string{e.device}}
		if names[i] != "" && names[i] != e.device {
			c.Rename = map[string]string{names[i]: e.device}
		}
		if mtu != 0 {
			c.MTU = map[string]int{e.device: mtu}
		}
		for _, address := range e.addresses {
			c.Addresses = append(c.Addresses, addressRequest{e.device, address})
		}
		if _, _, err := r.Host(e.host).agent.call(ctx, request{Configure: &c}); err != nil {
			return wrapHost(e.host, err)
		}
	}
	return nil
}

// SetLink changes the parameters of the emulated link from the next frame on.
func (r *Running) SetLink(ctx context.Context, l scenario.Link) error {
	_, _, err := r.hub.call(ctx, request{Relink: &l})
	return err
}

// LinkCounts returns the totals of the emulated link. Out is towards far.
func (r *Running) LinkCounts(ctx context.Context) (link.Counts, error) {
	p, _, err := r.hub.call(ctx, request{LinkCount: true})
	if err != nil || p.Counts == nil {
		return link.Counts{}, err
	}
	return *p.Counts, nil
}

// Enter returns the command that opens a shell in a host from outside the world.
func (r *Running) Enter(h *Host) string {
	c := []string{"nsenter", "--target", fmt.Sprint(h.PID), "--net", "--mount", "--uts", "--pid", "--ipc"}
	if r.user {
		c = append(c, "--user", "--preserve-credentials")
	}
	return strings.Join(append(c, "--", "sh"), " ")
}

// Close ends the world and everything in it.
func (r *Running) Close() error {
	// An agent that sees its channel close ends in order. The kernel then kills every process left
	// in a pid namespace whose first process has ended (pid_namespaces(7)), so none survives the
	// hub.
	for _, h := range r.Hosts {
		_ = h.agent.ch.conn.Close() // an error does not matter: the hub's end ends the host too
	}
	_ = r.hub.ch.conn.Close()
	select {
	case <-r.ended:
	case <-after():
		_ = r.process.Kill()
		<-r.ended
	}
	return nil
}
