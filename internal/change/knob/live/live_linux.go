package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/nameserver"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// Host reads and writes the running system, in the network namespace of the calling thread. It
// holds nothing open between calls and is safe for concurrent use within one process.
//
// Every call dials a client. That costs three sockets, some tens of microseconds, and avoids the
// question of which namespace a long-lived client is in: tests and the lab enter several.
type Host struct {
	root    string // /proc/sys
	catalog *knob.Catalog
	kinds   map[string]accessor // of every kind but sysctl
}

// accessor reads and writes the knobs of one kind. Its errors are plain: [Host] adds the knob. It
// returns ErrNotSupported for a well-formed attribute that it does not know, and fs.ErrNotExist for
// a missing subject. Its methods may be called from any goroutine, and act in the namespace of the
// calling thread.
type accessor interface {
	read(subject, attribute string) (knob.Value, error)
	write(subject, attribute string, v knob.Value) error // v is canonical where the catalogue knows the knob
}

// checker is an accessor that can report without writing whether a write would be refused, as far
// as more than the kernel knows it.
type checker interface {
	check(subject, attribute string, v knob.Value) error
}

// Where sysfs has the parts of a machine.
const (
	cpuRoot   = "/sys/devices/system/cpu"
	pciRoot   = "/sys/bus/pci/devices"
	blockRoot = "/sys/block"
)

// New returns the backend of the running system.
func New() *Host {
	const sys = sysfs("/sys")
	h := &Host{root: "/proc/sys", catalog: knob.Catalogue()}
	h.kinds = map[string]accessor{
		knob.KindLink:    linkKnobs{sysfs: sys},
		knob.KindEthtool: ethtoolKnobs{},
		knob.KindRoute:   &routeKnobs{},
		knob.KindQueue:   queueKnobs{sysfs: sys},
		knob.KindQdisc:   &qdiscKnobs{},
		knob.KindIRQ:     irqKnobs{root: "/proc/irq"},
		knob.KindModule:  moduleKnobs{root: "/sys/module", catalog: knob.Catalogue(), knobs: h},
		knob.KindCPU:     processorKnobs{cpuKnobs(cpuRoot), "/dev/cpu_dma_latency"},
		knob.KindPCI:     pciKnobs(pciRoot),
		knob.KindBlock:   blockKnobs(blockRoot),
		knob.KindNFS:     nfsKnobs{mounts: "/proc/thread-self/mounts"},
		knob.KindNamed:   serverKnobs(nameserver.Named),
		knob.KindUnbound: serverKnobs(nameserver.Unbound),
		knob.KindKresd:   serverKnobs(nameserver.Kresd),
	}
	return h
}

// OnReload calls f after each step in which a write loads a module anew, with the name of the step.
// It must be called before the first write.
func (l *Host) OnReload(f func(step string)) {
	if modules, ok := l.kinds[knob.KindModule].(moduleKnobs); ok {
		modules.step = f
		l.kinds[knob.KindModule] = modules
	}
}

// Displaces implements knob.Displacer: the interfaces of a driver whose module a write loads again.
func (l *Host) Displaces(id knob.ID) []string {
	modules, ok := l.kinds[knob.KindModule].(moduleKnobs)
	if !ok || id.Kind() != knob.KindModule {
		return nil
	}
	if d, ok := modules.driver(id.Subject(), id.Attribute()); ok {
		return d.Interfaces()
	}
	return nil
}

// Keep implements knob.Keeper: what a module was loaded with.
func (l *Host) Keep(id knob.ID) error {
	modules, ok := l.kinds[knob.KindModule].(moduleKnobs)
	if !ok || id.Kind() != knob.KindModule {
		return nil
	}
	if d, ok := modules.driver(id.Subject(), id.Attribute()); ok {
		return d.Keep()
	}
	return nil
}

// Here returns the place of the calling thread. The test uses the fact that matters: the kernel
// shows the table of the network core's host-wide settings only in the first network namespace. (In
// a namespace of an unprivileged user, older kernels show no net/core at all.)
func Here() knob.Place {
	if _, err := os.Stat("/proc/sys/net"); err != nil {
		return knob.Place{}
	}
	_, err := os.Stat("/proc/sys/net/core/netdev_budget")
	return knob.Place{Known: err == nil || errors.Is(err, fs.ErrNotExist), InitialNetNS: err == nil}
}

// Read returns the value in canonical form.
func (l *Host) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	if err := ctx.Err(); err != nil {
		return "", &knob.Error{Op: "read", Knob: id, Err: err}
	}
	v, err := l.read(id)
	if err != nil {
		return "", l.fail("read", id, err)
	}
	return l.canonical(id, v), nil
}

// Write sets the value. Form is checked here, the range is left to the kernel: an original outside
// of the catalogue's range must go back. A write may be accepted and rounded; callers read back.
func (l *Host) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	if err := ctx.Err(); err != nil {
		return &knob.Error{Op: "write", Knob: id, Err: err}
	}
	v, err := l.form(id, v)
	if err == nil {
		err = l.refusal(id)
	}
	if err == nil {
		err = l.write(id, v)
	}
	if err != nil {
		return l.fail("write", id, err)
	}
	return nil
}

// refusal keeps a container from changing what all of the host shares: some such files (vm, kernel)
// can be written from there. Interrupts, modules and the parts of the machine are the host's, known
// to the catalogue or not.
func (l *Host) refusal(id knob.ID) error {
	switch id.Kind() {
	case knob.KindIRQ, knob.KindModule, knob.KindCPU, knob.KindPCI, knob.KindBlock:
		if here := Here(); here.Known && !here.InitialNetNS {
			return knob.ErrGlobal
		}
	}
	if d, ok := l.catalog.Lookup(id); ok && d.Refusal(Here()) != nil {
		return knob.ErrGlobal
	}
	return nil
}

// CheckWrite implements Checker: the knob exists and may be changed from here, the value has the
// right form, and if the knob is a file, this process may write it.
//
// access(2) checks the real user and not the effective one; linerate is never installed
// set-user-id, so both are the same.
//
// An alternative name of an interface is refused: under two names, one knob would have two
// histories. What was changed under one is still read and undone.
func (l *Host) CheckWrite(ctx context.Context, id knob.ID, v knob.Value) error {
	if own := OwnName(id.Interface()); own != "" {
		other := OtherName{id.Interface(), own}
		return (&knob.Error{Op: "check", Knob: id, Err: other}).WithHint(other.Hint())
	}
	if err := l.refusal(id); err != nil {
		return l.fail("check", id, err)
	}
	if err := ctx.Err(); err != nil {
		return &knob.Error{Op: "check", Knob: id, Err: err}
	}
	_, err := l.read(id)
	if err == nil {
		v, err = l.form(id, v)
	}
	if err == nil && id.Kind() == knob.KindSysctl {
		const wOK = 2
		if errno := syscall.Access(l.file(id), wOK); errno != nil {
			err = l.sysctlError(id, errno, true)
		}
	}
	if k, ok := l.kinds[id.Kind()].(checker); ok && err == nil {
		err = k.check(id.Subject(), id.Attribute(), v)
	}
	if err != nil {
		return l.fail("check", id, err)
	}
	return nil
}

func (l *Host) canonical(id knob.ID, v knob.Value) knob.Value {
	if d, ok := l.catalog.Lookup(id); ok {
		if c, err := d.Canonical(v); err == nil {
			return c
		}
	}
	return v.Squeeze()
}

// form refuses a value that is not a single line, or not of the definition's form. The kernel would
// take the first of two numbers and drop the rest.
func (l *Host) form(id knob.ID, v knob.Value) (knob.Value, error) {
	if strings.ContainsRune(string(v), 0) {
		return "", &knob.RangeError{Value: v, Allowed: "text without zero bytes"}
	}
	if d, ok := l.catalog.Lookup(id); ok {
		return d.Canonical(v)
	}
	return v.Squeeze(), nil
}

func (l *Host) read(id knob.ID) (knob.Value, error) {
	if id.Kind() == knob.KindSysctl {
		return l.readSysctl(id)
	}
	k, ok := l.kinds[id.Kind()]
	if !ok {
		return "", fmt.Errorf("%w: no way to read this kind of knob", knob.ErrNotSupported)
	}
	return k.read(id.Subject(), id.Attribute())
}

func (l *Host) write(id knob.ID, v knob.Value) error {
	if id.Kind() == knob.KindSysctl {
		return l.writeSysctl(id, v)
	}
	k, ok := l.kinds[id.Kind()]
	if !ok {
		return fmt.Errorf("%w: no way to write this kind of knob", knob.ErrNotSupported)
	}
	return k.write(id.Subject(), id.Attribute(), v)
}

// withClient runs a request on a client of its own: it costs three sockets and is in the namespace
// of the calling thread for certain.
func withClient[T any](f func(*nl.Client) (T, error)) (T, error) {
	c, err := nl.Dial()
	if err != nil {
		var zero T
		return zero, err
	}
	defer func() { _ = c.Close() }() // nothing is buffered, so that closing cannot lose anything
	return f(c)
}

func do(f func(*nl.Client) error) error {
	_, err := withClient(func(c *nl.Client) (struct{}, error) { return struct{}{}, f(c) })
	return err
}

// fail completes an error: the kernel's answer about the value becomes a RangeError, and the hint
// names the remedy.
func (l *Host) fail(op string, id knob.ID, err error) error {
	e := &knob.Error{Op: op, Knob: id, Err: err}
	d, known := l.catalog.Lookup(id)
	// Nearly all handlers of sysctls answer EINVAL for a value out of range (proc_dointvec_minmax),
	// drivers EINVAL or ERANGE.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ERANGE) {
		var r *knob.RangeError
		if known && !errors.As(err, &r) {
			e.Err = fmt.Errorf("%w: want %s: %w", knob.ErrInvalid, d.Allowed(), err)
		} else if !known {
			e.Err = fmt.Errorf("%w: %w", knob.ErrInvalid, err)
		}
	}
	here := Here()
	return e.WithHint(hintFor(id, err, standpoint{global: known && d.Scope == knob.ScopeGlobal,
		container: here.Known && !here.InitialNetNS, root: os.Geteuid() == 0, pattern: d.Pattern}))
}

// standpoint is what a hint depends on beside the knob and its error.
type standpoint struct {
	global    bool // the knob is one of the whole host
	container bool // this network namespace is not the first
	root      bool
	pattern   knob.ID // of the catalogue; empty for a knob that it does not have
}

// hintFor returns what to do about an error; "" if the error has said it.
//
// The order is from the most to the least specific: in a container a knob of the whole host is
// often simply absent, and "this kernel has no such setting" would send the reader in the wrong
// direction.
func hintFor(id knob.ID, err error, at standpoint) string {
	switch {
	case errors.Is(err, knob.ErrGlobal),
		at.global && at.container &&
			(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)):
		return knob.HintGlobal
	case errors.Is(err, knob.ErrReadOnly) && errors.Is(err, syscall.EROFS) && id.Kind() == knob.KindSysctl:
		return "/proc/sys is mounted read-only here, as in an unprivileged container: change it on the host"
	case errors.Is(err, knob.ErrReadOnly) && errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only here, as in an unprivileged container: change it on the host"
	case errors.Is(err, knob.ErrReadOnly) && id.Kind() == knob.KindModule:
		return fmt.Sprintf("takes effect when the module is loaded again: options %s %s=VALUE in a file of /etc/modprobe.d",
			id.Subject(), id.Attribute())
	case errors.Is(err, knob.ErrReadOnly) && id.Kind() == knob.KindNFS:
		return "change the options in /etc/fstab and mount it again"
	case errors.Is(err, errHeld), id.InFile() && !errors.Is(err, fs.ErrPermission):
		// The error has said it.
	case id.InFile():
		return "this needs root, or the user who owns the server and its configuration file"
	case errors.Is(err, knob.ErrReadOnly):
		return "the kernel offers this setting for reading only here"
	case errors.Is(err, fs.ErrPermission) && at.container && at.root && id == "sysctl:net.ipv4.tcp_congestion_control":
		return "the host must allow this name in its namespaces: net.ipv4.tcp_allowed_congestion_control, there"
	case errors.Is(err, fs.ErrPermission):
		return "this needs root, or CAP_NET_ADMIN in the namespace that owns the network"
	case errors.Is(err, fs.ErrNotExist) && id.Kind() == knob.KindSysctl:
		return "this kernel has no such setting, or the module that owns it is not loaded"
	case errors.Is(err, fs.ErrNotExist) && at.pattern != "":
		return fmt.Sprintf("linerate knobs --current '%s' shows those of the host", at.pattern)
	case errors.Is(err, syscall.EOPNOTSUPP) && id.Kind() == knob.KindEthtool:
		return "its driver does not offer this setting"
	}
	return ""
}
