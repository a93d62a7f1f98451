package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// containName is argument 0 of this program as the first process of a container.
	containName = "linerate-guest-container"
	// cgroupPrefix begins the names of the control groups of containers.
	cgroupPrefix = "linerate-guest-"
	// socketName is the agent's way to the program that started the container.
	socketName = "port"
)

// hidden are capabilities that the processes of a container never get: with them they could reach
// the machine's modules, clock, log and devices, which namespaces do not separate.
var hidden = []uintptr{
	unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYSLOG, unix.CAP_MKNOD, unix.CAP_SYS_PACCT,
	unix.CAP_AUDIT_CONTROL, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND,
}

// devices are the devices of a container. None of them is a disk or a card.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// InitContainer does nothing in an ordinary process. The first process of a container becomes the
// init of the system on the disk there. A program that calls [Contain] calls it first in its main.
func InitContainer() {
	if os.Getpid() != 1 || os.Args[0] != containName || len(os.Args) != 3 {
		return
	}
	fmt.Fprintln(os.Stderr, "container:", becomeContainer(os.Args[1], os.Args[2])) // it returns to fail
	os.Exit(1)
}

// Contain starts the system on a disk in namespaces of its own, on the kernel of this machine, and
// returns when the system takes requests. Of the options only Disk and Files count. See the package
// documentation. The error is fs.ErrNotExist if this machine cannot provide a container: for that
// the caller has to be root, with cgroup2 mounted.
func Contain(ctx context.Context, o Options) (g *Guest, err error) {
	if o.Disk == nil {
		return nil, errors.New("contain guest: no disk")
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("contain guest: only root may: %w", fs.ErrNotExist)
	}
	g = &Guest{ended: make(chan struct{}), console: &tail{}, dir: filepath.Join(o.Disk.dir, "container")}
	if err := g.contain(ctx, o); err != nil {
		return nil, fmt.Errorf("contain guest: %w", err)
	}
	return g, nil
}

func (g *Guest) contain(ctx context.Context, o Options) (err error) {
	for _, f := range o.Files {
		name := filepath.Join(g.dir, overlay, f.Path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Content, f.Mode)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(g.dir, socketName), Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	group, err := newGroup()
	if err != nil {
		return err
	}
	g.group = group
	if err := g.startContainer(o.Disk.image); err != nil {
		return errors.Join(err, g.group.remove(), os.RemoveAll(g.dir))
	}
	// The agent connects when the system starts it. A container that ends or hangs never connects.
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-g.ended:
		case <-ctx.Done():
		case <-over:
		}
		_ = l.Close() // Accept returns
	}()
	port, err := l.AcceptUnix()
	if err != nil {
		return errors.Join(g.withConsole(errors.Join(err, context.Cause(ctx))), g.Close())
	}
	g.port, g.talk, g.answers = port, newTalk(port), json.NewDecoder(bufio.NewReader(port))
	var hello message
	if err := g.answers.Decode(&hello); err != nil {
		return errors.Join(g.withConsole(err), g.Close())
	}
	g.Release = hello.Ready
	return nil
}

// startContainer starts this program as the first process of a container, in a control group of its
// own. It ends with the program that started it, and every process of the container ends with it.
func (g *Guest) startContainer(image string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, image, g.dir)
	cmd.Args[0] = containName
	cmd.Stdout, cmd.Stderr = g.console, g.console
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Setsid:     true, // no terminal
		Pdeathsig:  syscall.SIGKILL,
		// The container takes this group for the root of all.
		UseCgroupFD: true, CgroupFD: int(g.group.dir.Fd()),
	}
	return g.launch(cmd)
}

// becomeContainer is the first process of a container: it makes what this kernel shares look like a
// machine, and becomes the /sbin/init on the disk. Nothing of the machine stays in sight but the
// kernel, whose settings outside the network can only be read.
func becomeContainer(image, dir string) error {
	runtime.LockOSThread() // a namespace belongs to a thread until it executes a program
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("control group namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	// mount(8) finds a free loop device, which is freed with the last mount of it.
	if out, err := exec.Command("mount", "-o", "loop,noatime", image, root).CombinedOutput(); err != nil {
		return fmt.Errorf("mount disk: %w: %s", err, out)
	}
	if err := copyTree(filepath.Join(dir, overlay), root); err != nil {
		return err
	}
	if err := mountContainer(root); err != nil {
		return err
	}
	if err := addAgent(filepath.Join(root, "run"), "/proc/self/exe"); err != nil {
		return err
	}
	port := filepath.Join(root, agentDir, socketName)
	err := errors.Join(os.WriteFile(port, nil, 0o600), bind(filepath.Join(dir, socketName), port),
		unix.Sethostname([]byte("guest")), loopbackUp())
	if err != nil {
		return err
	}
	for _, c := range hidden {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	// pivot_root(2), "pivot_root(".", ".")": the old root is mounted over the new one, and goes.
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := errors.Join(unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/")); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	// systemd expects of a container that its mounts reach the services' own places: the credentials
	// of a service come so.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("mounts for services: %w", err)
	}
	// In a container systemd takes its own arguments for those of the kernel.
	return fmt.Errorf("start the system on the disk: %w", unix.Exec("/sbin/init",
		append([]string{"/sbin/init"}, strings.Fields(systemArguments(Options{Disk: &Disk{}}))...),
		[]string{"PATH=" + searchPath, "container=linerate"}))
}

// mountContainer mounts the file systems of a container below its root.
func mountContainer(root string) error {
	for _, m := range []struct {
		kind, at, data string
		flags          uintptr
	}{
		{"proc", "proc", "", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV},
		// Where /sys is only for reading, systemd leaves the machine's devices alone.
		{"sysfs", "sys", "", unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV},
		{"cgroup2", "sys/fs/cgroup", "", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV},
		{"tmpfs", "run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "tmp", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "dev", "mode=755", unix.MS_NOSUID},
		{"tmpfs", "dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"devpts", "dev/pts", "newinstance,ptmxmode=0666,mode=620", unix.MS_NOSUID | unix.MS_NOEXEC},
	} {
		at := filepath.Join(root, m.at)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for _, name := range devices {
		at := filepath.Join(root, "dev", name)
		if err := errors.Join(os.WriteFile(at, nil, 0o666), bind("/dev/"+name, at)); err != nil {
			return err
		}
	}
	// The kernel's settings are for reading, but those of the network, which are the container's.
	proc := filepath.Join(root, "proc")
	for _, name := range []string{"sys/net", "sys", "sysrq-trigger", "irq", "bus"} {
		at := filepath.Join(proc, name)
		if _, err := os.Stat(at); err != nil {
			continue // this kernel was built without it
		}
		if err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount /proc/%s: %w", name, err)
		}
		const flags = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
		reading := uintptr(unix.MS_RDONLY)
		if name == "sys/net" {
			reading = 0
		}
		if err := unix.Mount("", at, "", flags|reading, ""); err != nil {
			return fmt.Errorf("/proc/%s for reading: %w", name, err)
		}
	}
	return errors.Join(os.Symlink("pts/ptmx", filepath.Join(root, "dev/ptmx")),
		os.Symlink("/proc/self/fd", filepath.Join(root, "dev/fd")))
}

// bind mounts a file or a directory at another place.
func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	return nil
}

// group is a control group (cgroup2) for one container.
type group struct {
	dir *os.File // locked while its container may live
}

// newGroup makes a control group. It removes those that programs left which were killed before they
// could: no program has these locked, and no process is in them.
func newGroup() (*group, error) {
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err == nil && s.Type == unix.CGROUP2_SUPER_MAGIC {
			root = dir
			break
		}
	}
	if root == "" {
		return nil, fmt.Errorf("cgroup2 below /sys/fs/cgroup: %w", fs.ErrNotExist)
	}
	left, err := filepath.Glob(filepath.Join(root, cgroupPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if g, err := lockGroup(name); err == nil {
			_ = errors.Join(g.remove(), g.dir.Close()) // another program may do the same
		}
	}
	for {
		name, err := os.MkdirTemp(root, cgroupPrefix+"*")
		if err != nil {
			return nil, fmt.Errorf("make control group: %w", err)
		}
		// Another program may have taken it for one that was left, until it was locked.
		if g, err := lockGroup(name); err == nil {
			if _, err := os.Stat(name); err == nil {
				return g, nil
			}
			_ = g.dir.Close() // nothing was written
		}
	}
}

func lockGroup(name string) (*group, error) {
	dir, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &group{dir: dir}, nil
}

// remove removes the group with all groups below it, the deepest first. Each is a directory whose
// files go with it.
func (g *group) remove() error {
	var dirs []string
	err := filepath.WalkDir(g.dir.Name(), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
		return err
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		err = errors.Join(err, unix.Rmdir(dirs[i]))
	}
	return err
}
