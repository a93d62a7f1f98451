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
	"time"

	"golang.org/x/sys/unix"
)

// What host and guest agree about beforehand.
const (
	portName   = "linerate"    // of the virtio-serial port
	planFile   = "/guest.json" // a plan
	insideMark = "LINERATE_GUEST=1"
	searchPath = "/usr/sbin:/usr/bin:/sbin:/bin"
	overlay    = "/overlay" // what is to be copied to the disk
)

// mounts are the file systems of a guest.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/dev/shm"}, {"tmpfs", "/tmp"},
	{"tmpfs", "/run"},
}

// Init does nothing in an ordinary process. In the first one of a guest it sets the guest up,
// serves requests and never returns; in a guest that has a disk it starts the system there, and
// serves requests as a unit of that.
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
	// The host has gone, or there is nothing to be done. QEMU ends where another machine would
	// start anew.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	os.Exit(1) // and the end of the first process is a panic
}

// Inside says whether this process runs in a guest.
func Inside() bool {
	name, value, _ := strings.Cut(insideMark, "=")
	return os.Getenv(name) == value
}

// serve sets up and answers until the host closes the port.
func serve() error {
	if err := mountAll(); err != nil {
		return err
	}
	// The port is among what modules bring, so that it is opened whatever became of the others, to
	// tell of it.
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

// converse says hello, and answers until the host closes the port.
func converse(port io.Reader, talk *talk, hello message) error {
	// A write waits until the host has opened its end; a read before that would be the end of the
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

// loadModules follows the plan. A module that fails keeps none of the others from being loaded.
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

// setUp does what every Linux has done when its first program runs.
func setUp() error {
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	// exec.LookPath reads it.
	if err := os.Setenv("PATH", searchPath); err != nil {
		return err
	}
	// Programs that look up names read it; a practice world mounts its own over it.
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644); err != nil {
		return err
	}
	return loopbackUp()
}

// loopbackUp asks by ioctl, so that package nl can be tested in guests.
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
	run  *exec.Cmd // the one that runs
}

// take begins a request and returns at once, so that the end of it can be asked for. An answer that
// cannot be sent is dropped: the host has gone, and the next read says so.
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
		cmd, err := s.start(*m.Run, m.Apart)
		if err != nil {
			_ = s.talk.say(message{Error: err.Error()})
			return
		}
		go func() {
			_ = cmd.Wait() // the status says it
			s.mu.Lock()
			s.run = nil
			s.mu.Unlock()
			status := exitStatus(cmd.ProcessState)
			_ = s.talk.say(message{Status: &status})
		}()
	}
}

// start starts a program in a process group of its own. What it leaves behind becomes a child of
// ours that nobody waits for; a guest does not live long enough to run out of numbers for them.
func (s *server) start(c Command, apart bool) (*exec.Cmd, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no program to run")
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	if c.As != "" {
		cmd.Args[0] = c.As
	}
	cmd.Env = append([]string{"PATH=" + searchPath, "HOME=/root", "TMPDIR=/tmp", "LC_ALL=C.UTF-8", insideMark},
		c.Env...)
	if cmd.Dir = c.Dir; cmd.Dir == "" {
		cmd.Dir = "/root"
	}
	cmd.Stdout = outputTo{s.talk}
	cmd.Stderr = cmd.Stdout
	if apart {
		cmd.Stderr = complaintTo{s.talk}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for children that keep the output open
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.run = cmd
	return cmd, nil
}

// exitStatus is that of a shell.
func exitStatus(p *os.ProcessState) int {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return p.ExitCode()
}
