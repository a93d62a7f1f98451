package knobtest

import (
	"context"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
)

// NetNS is a fresh network namespace that lives as long as its test.
type NetNS struct {
	fd     int
	mounts int // a mount namespace in which /sys shows the network namespace; -1: that of the process
}

// NewNetNS makes one, or skips the test with the reason, or fails it when LINERATE_REQUIRE names
// netns.
//
// The descriptor alone keeps the namespace: the thread that made it ends at once. /proc/thread-self
// (3.17) and not /proc/self, because only this one thread is inside.
func NewNetNS(t *testing.T) *NetNS {
	t.Helper()
	return newNetNS(t, false)
}

// NewNetNSWithSysfs makes one with a /sys of its own, which shows the interfaces of the namespace:
// a sysfs belongs to the network namespace in which it was mounted.
func NewNetNSWithSysfs(t *testing.T) *NetNS {
	t.Helper()
	return newNetNS(t, true)
}

func newNetNS(t *testing.T, sysfs bool) *NetNS {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	n := &NetNS{fd: -1, mounts: -1}
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if sysfs && err == nil {
			n.mounts, err = mountSysfs()
		}
	})
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	t.Cleanup(func() {
		_ = syscall.Close(n.fd)
		if n.mounts >= 0 {
			_ = syscall.Close(n.mounts)
		}
	})
	return n
}

// mountSysfs returns this thread a mount namespace of its own with a fresh /sys and opens it.
func mountSysfs() (fd int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return -1, err
	}
	// A new mount namespace copies the propagation of the old one, which systemd makes shared:
	// without this the machine would get our /sys.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return -1, err
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return -1, err
	}
	return unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// FD is a descriptor of the namespace.
func (n *NetNS) FD() int { return n.fd }

// Do runs f on a thread of its own inside the namespace. The thread ends with it: one that has
// changed its namespace is never given back to other goroutines.
//
// An f that ends its test (t.Fatal) ends its goroutine and with it the thread; the call returns all
// the same, but the test goes on, so that f should give its error back instead.
func (n *NetNS) Do(t *testing.T, f func()) {
	t.Helper()
	var err error
	onThread(func() {
		if err = n.enter(); err == nil {
			f()
		}
	})
	if err != nil {
		t.Fatalf("enter network namespace: %v", err)
	}
}

// enter moves the thread. The kernel lets only a thread with a root and working directory of its
// own (CLONE_FS) into another mount namespace, and the threads of a process share them.
func (n *NetNS) enter() error {
	if n.mounts >= 0 {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(n.mounts, unix.CLONE_NEWNS); err != nil {
			return err
		}
	}
	return unix.Setns(n.fd, unix.CLONE_NEWNET)
}

// A goroutine that ends while it is locked takes its thread along (package runtime), which is the
// only clean way out of a namespace: going back could fail and leave a foreign thread in the pool.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime then discards the thread
		f()
	}()
	<-done
}

// Backend returns a backend whose every call runs inside the namespace, from whatever goroutine it
// comes.
func (n *NetNS) Backend(t *testing.T, inner knob.Backend) knob.Backend {
	return &inside{n: n, t: t, inner: inner}
}

type inside struct {
	n     *NetNS
	t     *testing.T
	inner knob.Backend
}

func (b *inside) Read(ctx context.Context, id knob.ID) (v knob.Value, err error) {
	b.n.Do(b.t, func() { v, err = b.inner.Read(ctx, id) })
	return v, err
}

func (b *inside) Write(ctx context.Context, id knob.ID, v knob.Value) (err error) {
	b.n.Do(b.t, func() { err = b.inner.Write(ctx, id, v) })
	return err
}

// CheckWrite passes the question on, so that a dry run over the namespace sees what a live write
// would meet.
func (b *inside) CheckWrite(ctx context.Context, id knob.ID, v knob.Value) (err error) {
	c, ok := b.inner.(knob.Checker)
	if !ok {
		return nil
	}
	b.n.Do(b.t, func() { err = c.CheckWrite(ctx, id, v) })
	return err
}
