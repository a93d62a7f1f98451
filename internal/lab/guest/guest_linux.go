package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// emulator is the program that emulates the machine.
const emulator = "qemu-system-x86_64"

// killGrace is how long a guest may take to report the end of a program that it was asked to kill,
// before the guest itself is killed. It guards against guests that hang: QEMU may have a fifth of a
// processor.
const killGrace = time.Minute

// lastWords is how long the end of QEMU may come after the end of its socket.
const lastWords = time.Minute

// plan has the steps of the guest's first process before it listens.
type plan struct {
	Modules []module `json:"modules"`
	System  bool     `json:"system,omitempty"` // start the system on the disk
}

// module is one kernel module in the order of loading.
type module struct {
	File       string `json:"file"`
	Parameters string `json:"parameters,omitempty"`
}

// Guest is a guest that is up. It serves one request at a time; further requests wait.
type Guest struct {
	Release string // of the guest's kernel: "6.1.0-56-amd64"

	process *os.Process
	ended   chan struct{} // closed when QEMU has ended
	dir     string
	own     *scratch.Directory // dir; nil: a container's, below its disk
	console *tail
	talk    *talk
	answers *json.Decoder
	port    io.ReadWriteCloser
	monitor *monitor   // of QEMU
	group   *group     // of a container
	mu      sync.Mutex // one request at a time
}

// Boot boots a guest and returns when the guest takes requests, after some seconds. The context
// bounds that time, not the life of the guest. The calling program must call [Init] first in its
// main. The error is fs.ErrNotExist if QEMU, apt or the kernel is missing, and names it.
func Boot(ctx context.Context, o Options) (*Guest, error) {
	for boots := 1; ; boots++ {
		g, err := boot(ctx, o)
		switch {
		case err == nil:
			return g, nil
		case errors.Is(err, errSilent) && boots < mostBoots && ctx.Err() == nil:
		default:
			return nil, fmt.Errorf("boot guest: %w", err)
		}
	}
}

func boot(ctx context.Context, o Options) (g *Guest, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	qemu, err := exec.LookPath(emulator)
	if err != nil {
		return nil, fmt.Errorf("%w: install qemu-system-x86", err)
	}
	k, err := findKernel(ctx)
	if err != nil {
		return nil, err
	}
	g = &Guest{ended: make(chan struct{}), console: &tail{}}
	if g.own, err = scratch.New("guest"); err != nil {
		return nil, err
	}
	g.dir = g.own.Path
	initramfs := filepath.Join(g.dir, "initramfs")
	err = errors.Join(buildInitramfs(initramfs, k, o), makeDrives(g.dir, o.Drives))
	if err == nil {
		err = g.start(qemu, arguments(o, k.image, initramfs))
	}
	if err != nil {
		return nil, errors.Join(err, g.own.Close())
	}
	// The guest sends the first message. A guest that dies or hangs before it is closed here.
	stop := context.AfterFunc(ctx, func() { _ = g.process.Kill() })
	speaks := func() (silent bool) { return false }
	if o.Disk == nil && !o.Counted { // a system takes longer, and counted time costs more
		speaks = g.watch(silentFor)
	}
	var hello message
	err = g.answers.Decode(&hello)
	if speaks() {
		err = fmt.Errorf("%w within %v of processor time", errSilent, silentFor)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		err = g.died(err)
	case hello.Error != "":
		err = g.withConsole(errors.New(hello.Error))
	default:
		// QEMU has read its files. Without them a test that is killed later leaves nothing behind.
		err = g.own.Close()
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.Release = hello.Ready
	return g, nil
}

// arguments returns the arguments of QEMU. The machine is a q35, whose cards are on PCI Express,
// and contains only what the options ask for.
func arguments(o Options, image, initramfs string) []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		// The plain processor takes a fifth less of the host's CPU time than "max", whose vector
		// instructions the C library and the kernel prefer and QEMU emulates in pieces. The kernel
		// takes its first random numbers from rdrand.
		"-machine", "q35", "-cpu", "qemu64,+rdrand",
		"-smp", strconv.Itoa(max(o.CPUs, 1)), "-m", strconv.FormatInt(memory(o)>>20, 10),
		"-kernel", image, "-initrd", initramfs,
		// A kernel that panics reboots at once, which -no-reboot turns into the end of QEMU. The
		// other parameters save time: mitigations cost an emulated processor more than a real one,
		// the machine has no keyboard, and expedited RCU lets the removal of a qdisc or a change of
		// a link return without waiting for ticks, and the tests of the kernel's ciphers take 0.4 s of
		// each boot. no_timer_check: the kernel counts ten timer
		// ticks at boot; if QEMU gets no processor for some milliseconds meanwhile, the kernel
		// concludes that the board has no timer ("IO-APIC + timer doesn't work",
		// arch/x86/kernel/apic/io_apic.c) and panics.
		"-append", "console=ttyS0 loglevel=4 panic=-1 mitigations=off i8042.noaux i8042.nokbd tsc=reliable " +
			"no_timer_check rcupdate.rcu_expedited=1 cryptomgr.notests" + clockArguments(o) + systemArguments(o),
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=talk,fd=3", "-device", "virtio-serial-pci", "-device",
		"virtserialport,chardev=talk,name=" + portName,
		"-chardev", "socket,id=monitor,fd=4", "-mon", "chardev=monitor,mode=control",
	}
	if o.Counted {
		// shift=0: 2^0 ns each. Without sleep an idle guest goes on to its next timer at once.
		args = append(args, "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off")
	} else {
		args = append(args, "-accel", "tcg,thread=multi")
	}
	if slices.ContainsFunc(o.Cards, func(c Card) bool { return strings.HasPrefix(c.Model, "usb-") }) {
		args = append(args, "-device", "qemu-xhci")
	}
	if o.Disk != nil {
		// Data that the guest has flushed need not reach the host's disk: a power cut ends QEMU and
		// not the host.
		args = append(args, "-drive", "file="+o.Disk.image+",format=raw,if=virtio,cache=unsafe")
	}
	args = append(args, driveArguments(o.Drives)...)
	for i, c := range o.Cards {
		id := "card" + strconv.Itoa(i)
		hub := len(o.Cards) + c.Wire // lower numbers are for cards without a wire, one each
		if c.Wire == 0 {
			hub = i
		}
		netdev := fmt.Sprintf("hubport,id=%s,hubid=%d", id, hub)
		if c.Queues > 1 {
			// A hub has one queue. A tap has several; this one stays down and drops all packets.
			netdev = fmt.Sprintf("tap,id=%s,ifname=%s,script=no,downscript=no,queues=%d", id, id, c.Queues)
		}
		device := fmt.Sprintf("%s,netdev=%s,mac=%s", c.Model, id, CardAddress(i))
		if !strings.HasPrefix(c.Model, "usb-") {
			device += ",romfile=" // boot ROMs, which no guest uses, cost a second for a dozen cards
		}
		if c.Wire > 0 {
			// Behind a port of its own a card can be reset by its bus, as by a power cycle.
			port := "port" + strconv.Itoa(i)
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d", port, i+1))
			device += ",bus=" + port
		}
		args = append(args, "-netdev", netdev, "-device", device)
	}
	return args
}

func memory(o Options) int64 {
	if o.MemoryBytes == 0 {
		return 512 << 20
	}
	return o.MemoryBytes
}

// start starts QEMU with one end of a socket pair, in an empty network namespace.
func (g *Guest) start(qemu string, args []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("socket pair: %w", err)
	}
	port := os.NewFile(uintptr(fds[0]), "guest")
	theirs := os.NewFile(uintptr(fds[1]), "guest's end")
	defer theirs.Close()
	var control *os.File
	if g.monitor, control, err = newMonitor(); err != nil {
		return errors.Join(err, port.Close())
	}
	defer control.Close()
	cmd := exec.Command(qemu, args...)
	cmd.Dir = g.dir
	cmd.ExtraFiles = []*os.File{theirs, control} // descriptors 3 and 4
	cmd.Stdout, cmd.Stderr = g.console, g.console
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET,
		Setpgid:    true, // a terminal's Ctrl-C goes to this process alone
		Pdeathsig:  syscall.SIGKILL,
	}
	if c, err := sys.Capabilities(); err != nil || !c.Has(sys.CapSysAdmin) || !c.Has(sys.CapNetAdmin) {
		// Root of a user namespace may make taps; an ordinary user may not.
		ownUser(cmd.SysProcAttr)
	}
	if err := g.launch(cmd); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", emulator, err), port.Close(), g.monitor.Close())
	}
	g.port, g.talk, g.answers = port, newTalk(port), json.NewDecoder(bufio.NewReader(port))
	return nil
}

// launch starts the process that is the guest, and notes its end.
func (g *Guest) launch(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		// Pdeathsig acts when the thread that started the child ends (prctl(2)), so that thread
		// lives as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // only the end matters; the console has its output
			close(g.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	g.process = cmd.Process
	return nil
}

// ownUser makes a program root of a user namespace of its own.
func ownUser(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// died explains a broken connection to the guest by the end of its console. It waits for the end of
// QEMU, because the kernel's last lines come after the socket is closed.
func (g *Guest) died(err error) error {
	select {
	case <-g.ended:
	case <-time.After(lastWords): // the guest's agent alone has ended
	}
	return g.withConsole(err)
}

// withConsole adds the end of the console to an error.
func (g *Guest) withConsole(err error) error {
	return fmt.Errorf("%w; the console ends with:\n%s", err, g.console)
}

// Run runs a program in the guest to its end and returns its exit status. Its output is written to
// stdout and stderr as it arrives; a nil stderr sends both outputs to stdout, in their order. When
// the context ends, the program's process group is killed. The error reports what kept the program
// from running to its end.
func (g *Guest) Run(ctx context.Context, c Command, stdout, stderr io.Writer) (status int, err error) {
	status = -1
	err = g.ask(ctx, message{Run: &c, Apart: stderr != nil}, func(m message) (bool, error) {
		if m.Status != nil {
			status = *m.Status
			return true, nil
		}
		if m.Complaint != nil {
			_, err := stderr.Write(m.Complaint)
			return false, err
		}
		_, err := stdout.Write(m.Output)
		return false, err
	})
	if err != nil {
		return status, fmt.Errorf("run %s in guest: %w", strings.Join(c.Args, " "), err)
	}
	return status, nil
}

// ReadFile returns the content of a file of the guest. The error quotes the guest and does not
// match fs.ErrNotExist for a missing file.
func (g *Guest) ReadFile(ctx context.Context, name string) (content []byte, err error) {
	err = g.ask(ctx, message{Read: name}, func(m message) (bool, error) {
		content = m.Data
		return m.Done, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s in guest: %w", name, err)
	}
	return content, nil
}

// ask sends a request and passes the messages of the reply to got, until got reports that the reply
// is complete. An error of got does not end the request: the next request would take the rest of
// the reply for its own.
func (g *Guest) ask(ctx context.Context, m message, got func(message) (complete bool, err error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := g.talk.say(m); err != nil {
		return g.died(err)
	}
	over, asked := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = g.talk.say(message{Kill: true})
		close(asked)
		select {
		case <-over:
		case <-time.After(killGrace):
			_ = g.process.Kill()
		}
	})
	defer func() {
		close(over)
		if !stop() {
			<-asked // a later Kill would hit the next program
		}
	}()
	var failed error
	for {
		var answer message
		if err := g.answers.Decode(&answer); err != nil {
			return g.died(errors.Join(err, failed))
		}
		if answer.Error != "" {
			return errors.Join(errors.New(answer.Error), failed)
		}
		complete, err := got(answer)
		failed = errors.Join(failed, err)
		if complete {
			return errors.Join(ctx.Err(), failed)
		}
	}
}

// Console returns the end of the guest's console output so far.
func (g *Guest) Console() string { return g.console.String() }

// Wait waits for a guest that is restarted or turned off from inside.
func (g *Guest) Wait(ctx context.Context) error {
	select {
	case <-g.ended:
		return nil
	case <-ctx.Done():
		return g.withConsole(fmt.Errorf("wait for the end of a guest: %w", context.Cause(ctx)))
	}
}

// Close ends the guest at once, as a power cut does: data that it has not written to its disk is
// lost.
func (g *Guest) Close() error {
	_ = g.process.Kill() // fails if the guest has ended
	<-g.ended
	var err error
	if g.port != nil {
		err = g.port.Close()
	}
	if g.monitor != nil {
		err = errors.Join(err, g.monitor.Close())
	}
	if g.group != nil {
		err = errors.Join(err, g.group.remove(), g.group.dir.Close())
		g.group = nil
	}
	if g.own != nil {
		return errors.Join(err, g.own.Close())
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}

// buildInitramfs writes the initramfs of a guest to a file.
func buildInitramfs(name string, k kernel, o Options) (err error) {
	files, err := initramfs(k, o)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	// Not compressed: an emulated processor decompresses more slowly than QEMU reads.
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(writeArchive(w, files), w.Flush(), f.Close())
}

func initramfs(k kernel, o Options) (files []file, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: "init", mode: 0o755, data: b})
	// Of this program only the libraries, if it has any (cgo): the program itself is /init.
	own, err := programFiles(self)
	if err != nil {
		return nil, err
	}
	paths := own[1:]
	for _, p := range o.Programs {
		more, err := programFiles(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: strings.TrimPrefix(p, "/"), mode: 0o755, data: b})
	}
	modules := o.Modules
	if o.Disk != nil {
		modules = append(slices.Clone(forDisk), modules...)
	}
	more, err := moduleFiles(k, modules, o.Disk != nil)
	if err != nil {
		return nil, err
	}
	files = append(files, more...)
	for _, f := range o.Files {
		files = append(files, file{name: strings.TrimPrefix(overlay+f.Path, "/"), mode: f.Mode, data: f.Content})
	}
	return withDirectories(files), nil
}

// always lists the modules that host and guest need to talk.
var always = []string{"virtio_pci", "virtio_console"}

// moduleFiles returns the requested modules, the modules that those need, and the plan with the
// order of loading.
func moduleFiles(k kernel, wanted []string, system bool) (files []file, err error) {
	names := slices.Clone(always)
	parameters := make(map[string]string)
	for _, w := range wanted {
		name, rest, _ := strings.Cut(w, " ")
		names = append(names, name)
		parameters[moduleName(name)] = rest
	}
	order, err := loadOrder(names, k.depends)
	if err != nil {
		return nil, err
	}
	p := plan{System: system}
	for _, name := range order {
		b, err := os.ReadFile(k.module(name))
		if err != nil {
			return nil, err
		}
		to := "modules/" + name + ".ko"
		files = append(files, file{name: to, mode: 0o644, data: b})
		p.Modules = append(p.Modules, module{File: "/" + to, Parameters: parameters[name]})
	}
	b, err := json.Marshal(p)
	return append(files, file{name: strings.TrimPrefix(planFile, "/"), mode: 0o644, data: b}), err
}

// withDirectories adds the directories of the files before them, and the directories that the first
// process mounts on.
func withDirectories(files []file) []file {
	made := make(map[string]bool)
	var dirs []file
	var add func(dir string)
	add = func(dir string) {
		if dir == "." || made[dir] {
			return
		}
		made[dir] = true
		add(path.Dir(dir))
		dirs = append(dirs, file{name: dir, mode: fs.ModeDir | 0o755})
	}
	for _, m := range mounts {
		add(strings.TrimPrefix(m.at, "/"))
	}
	add("root")
	for _, f := range files {
		add(path.Dir(f.name))
	}
	return append(dirs, files...)
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// tailBytes is enough for a kernel's last lines with a stack trace.
const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailBytes {
		t.b = append(t.b[:0], t.b[len(t.b)-tailBytes:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ReplaceAll(t.b, []byte("\r\n"), []byte("\n")))
}
