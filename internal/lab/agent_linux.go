package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
	"github.com/linerate/linerate/internal/lab/link"
)

const (
	// agentCommand is the hidden command under which the binary is started again.
	agentCommand = "lab-host"
	ourselves    = "/proc/self/exe"
	channelFD    = 3
)

// agent is one process of a world, the hub or a host. It is pid 1 of its pid namespace.
type agent struct {
	ch     *channel
	client *nl.Client
	be     beRequest

	link *link.Link // hub
	runs *runs      // host
}

// RunHost is the body of the hidden command "linerate lab-host". It serves the maker of the world
// over the inherited descriptor 3 and returns when that descriptor closes. A host that ends ends
// everything in it, because it is pid 1 there. Started by hand, RunHost returns an error.
func RunHost(ctx context.Context) error {
	// Require both pid 1 and a socket on descriptor 3: the agent mounts and unshares, which must
	// not happen to a user's shell.
	var st unix.Stat_t
	if err := unix.Fstat(channelFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || os.Getpid() != 1 {
		return fmt.Errorf("%s %s is started by the lab itself and has no use on a command line", ourName,
			agentCommand)
	}
	unix.CloseOnExec(channelFD)
	ch, err := newChannel(os.NewFile(channelFD, "lab channel"))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ch.conn.Close() })
	defer stop()
	a := &agent{ch: ch}
	for {
		var q request
		files, _, err := ch.receive(&q)
		if err != nil {
			break // the maker has ended or closed the channel
		}
		// One after the other, on this goroutine: a fork must not overlap with descriptors that are
		// just arriving.
		a.answer(q, files)
	}
	if a.link != nil {
		return a.link.Close()
	}
	return nil
}

// answer executes a request and replies. It ignores an error of sending: the maker is gone, and the
// next receive reports that as well.
func (a *agent) answer(q request, files []*os.File) {
	r := reply{ID: q.ID}
	var pass []*os.File
	defer func() { closeAll(files); closeAll(pass) }()
	switch {
	case q.Be != nil:
		a.be = *q.Be
		var err error
		r.Warnings, err = a.become()
		if err == nil && !a.be.Hub {
			// The maker needs this host's network namespace to put interfaces into it.
			var ns *os.File
			if ns, err = os.Open("/proc/self/ns/net"); err == nil {
				pass = append(pass, ns)
			}
		}
		r.fail(err)
	case q.Spawn != nil && (len(files) == 1 || len(files) == 2):
		r.fail(a.spawn(files[0], files[1:]...))
	case q.Join != nil && len(files) == 2:
		r.fail(a.join(*q.Join, files))
	case q.Relink != nil && a.link != nil:
		toFar, toNear := q.Relink.Both()
		r.fail(a.link.Set(toFar, toNear))
	case q.LinkCount && a.link != nil:
		c := a.link.Counters()
		r.Counts = &c
	case q.Configure != nil:
		r.fail(a.configure(*q.Configure))
	case q.Run != nil && len(files) == 3:
		// The run itself sends the replies, first started, then exited.
		if err := a.runs.start(q.ID, *q.Run, files); err == nil {
			return
		} else {
			r.fail(err)
		}
	case q.Signal != nil:
		r.fail(a.runs.signal(q.Signal.Run, syscall.Signal(q.Signal.Signal)))
	case q.Snapshot && len(files) == 1:
		r.fail(snapshot(a.client, files[0]))
	default:
		r.fail(errors.New("lab agent: request not understood"))
	}
	_ = a.ch.send(r, pass...)
}

// become prepares the process for its part: mounts, host name, loopback.
func (a *agent) become() (warnings []string, err error) {
	// Mounts of this namespace must not reach the machine's. A new mount namespace copies the
	// propagation of the old one, which systemd makes shared (mount_namespaces(7)). Without this
	// step the machine would get this namespace's /proc.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct{ kind, at, effect string }{
		{"proc", "/proc", "it shows the process numbers of the machine, and settings may be read-only"},
		{"sysfs", "/sys", "it shows the interfaces of the machine"},
	} {
		// The kernel refuses a fresh file system (EPERM, mount_too_revealing) in a container that
		// covers parts of it.
		if err := unix.Mount(m.kind, m.at, m.kind, flags, ""); err != nil {
			warnings = append(warnings, fmt.Sprintf("host %s keeps the machine's %s (%v): %s", a.be.Name, m.at,
				err, m.effect))
		}
	}
	// After /proc and /sys belong to this namespace, so that all readers see one world.
	if a.client, err = nl.Dial(); err != nil {
		return warnings, err
	}
	if err := a.client.SetUp("lo"); err != nil {
		return warnings, err
	}
	if a.be.Hub {
		// The hub's ends of the pairs only carry the frames of hosts; IPv6 would send packets of
		// its own on them.
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0) // absent without IPv6
		return warnings, nil
	}
	if err := unix.Sethostname([]byte(a.be.Name)); err != nil {
		return warnings, fmt.Errorf("set host name: %w", err)
	}
	// Users type the name of this program in a host, if the binary has its own name.
	if exe, err := os.Executable(); err == nil && filepath.Base(exe) == ourName {
		_ = os.Setenv("PATH", filepath.Dir(exe)+":"+os.Getenv("PATH")) // cannot fail for this value
	}
	a.runs = newRuns(a.ch)
	if err := a.knowNames(); err != nil {
		warnings = append(warnings, fmt.Sprintf("host %s cannot look up other hosts by name: %v", a.be.Name, err))
	}
	return warnings, nil
}

// knowNames mounts a file with the hosts of the world over /etc/hosts. The file is in memory: a
// world that is killed leaves none on the machine.
func (a *agent) knowNames() (err error) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	at := os.TempDir() // any directory; only this process is in the namespace yet
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(at, unix.MNT_DETACH)) }() // the other mount holds the file
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for name, address := range a.be.Known {
		fmt.Fprintf(&b, "%s %s\n", address, name)
	}
	name := filepath.Join(at, "hosts")
	if err := errors.Join(os.WriteFile(name, []byte(b.String()), 0o644),
		os.Chmod(name, 0o644)); err != nil { // whatever the umask
		return err
	}
	return unix.Mount(name, "/etc/hosts", "", unix.MS_BIND, "")
}

// spawn starts a host. Waiting for it only avoids a zombie: the maker sees the end of a host by its
// channel. The host joins the network namespace that is passed; without one it gets its own.
func (a *agent) spawn(channel *os.File, network ...*os.File) error {
	cmd := agentProcess(channel)
	// The user namespace is the hub's. Its owner owns these namespaces and needs no privilege on
	// the machine.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
	}
	started := make(chan error, 1)
	go func() {
		if len(network) > 0 {
			// A child begins in the namespace of the thread that forks it. This thread then ends
			// with its goroutine.
			runtime.LockOSThread()
			cmd.SysProcAttr.Cloneflags &^= unix.CLONE_NEWNET
			if err := unix.Setns(int(network[0].Fd()), unix.CLONE_NEWNET); err != nil {
				started <- fmt.Errorf("enter network namespace: %w", err)
				return
			}
		}
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start host: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// agentProcess returns this binary as an agent with its end of a channel.
func agentProcess(channel *os.File) *exec.Cmd {
	// By the descriptor of the running file and not by name: a world still works after an upgrade
	// has replaced the binary.
	return &exec.Cmd{
		Path:       ourselves,
		Args:       []string{ourName, agentCommand},
		Stderr:     os.Stderr, // a panic must be seen
		ExtraFiles: []*os.File{channel},
	}
}

// join makes a device in each of two hosts and the path between them: one veth pair, or two with
// the emulated link between their inner ends.
func (a *agent) join(q joinRequest, spaces []*os.File) error {
	if q.Link == nil {
		// The hub has no device with such a name, so the first can be made here and moved.
		if err := a.client.AddVeth(q.Devices[0], q.Devices[1], int(spaces[1].Fd())); err != nil {
			return err
		}
		return a.client.MoveToNetNS(q.Devices[0], int(spaces[0].Fd()))
	}
	if a.link != nil {
		return errors.New("join hosts: a world has one link")
	}
	toFar, toNear := q.Link.Both()
	// The hosts see an ordinary eth0. The inner ends are in the hub's namespace, where no other
	// program sends packets.
	inner := [2]string{"link0", "link1"}
	for i, name := range inner {
		if err := a.client.AddVeth(name, q.Devices[i], int(spaces[i].Fd())); err != nil {
			return err
		}
		if err := a.client.SetMTU(name, max(toFar.MTU(), toNear.MTU())); err != nil {
			return err
		}
		if err := a.client.SetUp(name); err != nil {
			return err
		}
	}
	l, err := link.Start(inner[0], inner[1], toFar, toNear, link.Options{})
	if err != nil {
		return err
	}
	a.link = l
	return nil
}

// configure renames devices, brings them up, sets addresses, routes and settings, and waits for
// carriers, in that order.
func (a *agent) configure(q configureRequest) error {
	// MTU before up: IPv6 rejects a device that comes up below 1280 bytes. Addresses before routes,
	// because they make the gateways reachable.
	for old, name := range q.Rename {
		if err := renameDevice(old, name); err != nil {
			return err
		}
	}
	for device, mtu := range q.MTU {
		if err := a.client.SetMTU(device, mtu); err != nil {
			return err
		}
	}
	for _, device := range q.Up {
		if err := a.client.SetUp(device); err != nil {
			return err
		}
	}
	for _, address := range q.Addresses {
		if err := a.client.AddAddress(address.Device, address.CIDR); err != nil && !without6(address.CIDR, err) {
			return err
		}
	}
	for _, r := range q.Routes {
		if err := route.New(a.client).Add(route.Route{Destination: r.Destination, Gateway: r.Gateway}); err != nil &&
			!without6(r.Destination, err) {
			return err
		}
	}
	for _, s := range q.Settings {
		if err := apply(a.client, s.Knob, s.Value); err != nil {
			return err
		}
	}
	for _, device := range q.Await {
		if err := awaitCarrier(device); err != nil {
			return err
		}
	}
	return nil
}

// without6 reports whether an IPv6 address or route failed because the machine runs without IPv6. A
// world then also runs without it.
func without6(address string, err error) bool {
	if !strings.Contains(address, ":") {
		return false
	}
	_, missing := os.Stat("/proc/sys/net/ipv6/conf/lo")
	return missing != nil || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOPNOTSUPP)
}
