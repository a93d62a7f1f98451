package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names that host and guest share.
const (
	portName   = "linerate"    // of the virtio-serial port
	planFile   = "/guest.json" // a plan
	insideMark = "LINERATE_GUEST=1"
	searchPath = "/usr/sbin:/usr/bin:/sbin:/bin"
	overlay    = "/overlay" // files to copy to the disk
)

// mounts are the file systems of a guest.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/dev/shm"}, {"tmpfs", "/tmp"},
	{"tmpfs", "/run"},
}

// Init does nothing in an ordinary process. In the first process of a guest it sets the guest up,
// serves requests and never returns. In a guest with a disk it starts the system there and serves
// requests as a unit of that system.
func Init() {
	if os.Args[0] == agentName {
		if err := answer(); err != nil {
			fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getpid() != 1 || os.Args[0] != "/init" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err) // the console
	}
	// The host is gone, or the setup failed. With -no-reboot this ends QEMU.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	os.Exit(1) // the end of the first process makes the kernel panic, which also ends QEMU
}

// Inside reports whether this process runs in a guest.
func Inside() bool {
	name, value, _ := strings.Cut(insideMark, "=")
	return os.Getenv(name) == value
}

// serve sets the guest up and answers requests until the host closes the port.
func serve() error {
	if err := mountAll(); err != nil {
		return err
	}
	// Modules provide the port. It is opened even if other modules failed, to report those
	// failures.
	p, loaded := loadModules()
	if p.System && loaded == nil {
		return startSystem()
	}
	port, err := openPort()
	if err != nil {
		return errors.Join(loaded, err)
	}
	defer port.Close()
	talk := newTalk(port)
	var release unix.Utsname
	err = errors.Join(loaded, setUp(), unix.Uname(&release))
	hello := message{Ready: unix.ByteSliceToString(release.Release[:])}
	if err != nil {
		hello = message{Error: err.Error()}
	}
	return converse(port, talk, hello)
}

// converse sends hello and answers requests until the host closes the port.
func converse(port io.Reader, talk *talk, hello message) error {
	// A write waits until the host has opened its end; a read before that would return the end of
	// file.
	if err := talk.say(hello); err != nil {
		return err
	}
	s := &server{talk: talk}
	for requests := json.NewDecoder(bufio.NewReader(port)); ; {
		var m message
		if err := requests.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.take(m)
	}
}

func mountAll() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil { // /dev/shm is below what was just mounted
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

// loadModules loads the modules of the plan. A failure does not stop it from loading further
// modules.
func loadModules() (p plan, failed error) {
	b, err := os.ReadFile(planFile)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("%s: %w", planFile, err)
	}
	for _, m := range p.Modules {
		failed = errors.Join(failed, load(m))
	}
	return p, failed
}

func load(m module) error {
	f, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), m.Parameters, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", m.File, err)
	}
	return nil
}

// openPort finds the virtio-serial port by its name and opens it.
func openPort() (*os.File, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if b, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(b)) == portName {
			return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(n))), os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("port %s among %d: %w", portName, len(names), fs.ErrNotExist)
}

// setUp prepares what every Linux has when its first program runs.
func setUp() error {
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	// For exec.LookPath.
	if err := os.Setenv("PATH", searchPath); err != nil {
		return err
	}
	// Programs that look up names read /etc/hosts; a practice world mounts its own over it.
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644); err != nil {
		return err
	}
	return loopbackUp()
}

// loopbackUp brings lo up by ioctl and not by package nl, so that package nl can be tested in
// guests.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback up: %w", err)
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return fmt.Errorf("loopback up: %w", err)
	}
	return nil
}

// server runs one request at a time.
type server struct {
	talk *talk
	mu   sync.Mutex
	run  *program // the running one
}

// take begins a request and returns at once, so that the host can ask to end it. It ignores an
// error of sending: the host is gone, and the next read reports that.
func (s *server) take(m message) {
	switch {
	case m.Kill:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.run != nil {
			_ = unix.Kill(-s.run.Process.Pid, unix.SIGKILL)
		}
	case m.Read != "":
		b, err := os.ReadFile(m.Read)
		answer := message{Data: b, Done: true}
		if err != nil {
			answer = message{Error: err.Error()}
		}
		_ = s.talk.say(answer)
	case m.Run != nil:
		p, err := s.start(*m.Run, m.Apart)
		if err != nil {
			_ = s.talk.say(message{Error: err.Error()})
			return
		}
		go func() {
			p.wait(outputGrace)
			s.mu.Lock()
			s.run = nil
			s.mu.Unlock()
			status := exitStatus(p.ProcessState)
			_ = s.talk.say(message{Status: &status})
		}()
	}
}

// start starts a program in a process group of its own. Processes that it leaves behind become
// children of this process, which does not wait for them: a guest ends before it runs out of
// process numbers.
func (s *server) start(c Command, apart bool) (*program, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no program to run")
	}
	p := &program{Cmd: exec.Command(c.Args[0], c.Args[1:]...)}
	if c.As != "" {
		p.Args[0] = c.As
	}
	p.Env = append([]string{"PATH=" + searchPath, "HOME=/root", "TMPDIR=/tmp", "LC_ALL=C.UTF-8", insideMark},
		c.Env...)
	if p.Dir = c.Dir; p.Dir == "" {
		p.Dir = "/root"
	}
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var complaints io.Writer
	if apart {
		complaints = complaintTo{s.talk}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := p.start(outputTo{s.talk}, complaints); err != nil {
		return nil, err
	}
	s.run = p
	return p, nil
}

// exitStatus returns the exit status as a shell shows it.
func exitStatus(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}
