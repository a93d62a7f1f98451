package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/procfs"
)

// thread runs functions on one thread of the operating system.
type thread struct{ work chan func() }

func newThread() *thread {
	t := &thread{work: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		for f := range t.work {
			f()
		}
	}()
	return t
}

// start runs f on the thread and returns the channel of its error.
func (t *thread) start(f func() error) <-chan error {
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return done
}

// Space is a mount namespace of two threads of this process. The kernel removes it, with all mounts
// in it, when both have ended. One goroutine uses it.
type Space struct {
	works, rescues *thread // the second one never waits for a server
	dir            string
	made           int
	stuck          bool // the first thread waits in the kernel and does not come back
}

// roots are directories of which one exists everywhere; in the namespace a tmpfs covers it.
var roots = []string{"/mnt", "/run", "/tmp"}

// OpenSpace makes a namespace. The error is fs.ErrPermission without CAP_SYS_ADMIN.
func OpenSpace() (*Space, error) {
	s := &Space{works: newThread(), rescues: newThread()}
	err := <-s.works.start(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for _, root := range roots {
			if unix.Mount("linerate", root, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, "size=1m,mode=700") == nil {
				s.dir = root
				return nil
			}
		}
		return fmt.Errorf("cover one of %v: %w", roots, fs.ErrNotExist)
	})
	if err == nil {
		var ns *os.File
		err = <-s.works.start(func() (err error) {
			ns, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/mnt", unix.Gettid()))
			return err
		})
		if err == nil {
			err = <-s.rescues.start(func() error {
				if err := unix.Unshare(unix.CLONE_FS); err != nil {
					return err
				}
				return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
			})
			err = errors.Join(err, ns.Close())
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("make a private mount namespace: %w", err)
	}
	return s, nil
}

// Close ends the namespace. A thread that waits in the kernel ends with the process.
func (s *Space) Close() {
	close(s.works.work)
	close(s.rescues.work)
}

// grace is how long a call may take to fail after the force that ends it.
const grace = 10 * time.Second

// look is the time between two looks at the progress of a call.
const look = 200 * time.Millisecond

// run runs f on the working thread. When the context ends, or when progress stands still for the
// patience, it forces the mount (if there is one) and returns why.
func (s *Space) run(ctx context.Context, at string, patience time.Duration, progress *atomic.Int64,
	f func() error) error {
	if s.stuck {
		return ErrSilent
	}
	done := s.works.start(f)
	last, since := int64(-1), time.Now()
	tick := time.NewTicker(look)
	defer tick.Stop()
	var why error
	for why == nil {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-tick.C:
			if now := progress.Load(); now != last {
				last, since = now, time.Now()
			} else if time.Since(since) > patience {
				why = fmt.Errorf("%w for %v", ErrSilent, patience)
			}
		}
	}
	if at != "" {
		<-s.rescues.start(func() error { return unix.Unmount(at, unix.MNT_FORCE) }) // kills the calls; busy is as expected
	}
	select {
	case <-done:
	case <-time.After(grace):
		s.stuck = true
	}
	return why
}

// Mount is one mount in a space.
type Mount struct {
	space    *Space
	path     string
	spec     Spec
	patience time.Duration
}

// Mount mounts a spec.
func (s *Space) Mount(ctx context.Context, spec Spec, e Ends, patience time.Duration) (*Mount, error) {
	_, export, err := SplitSource(spec.Source)
	if err != nil {
		return nil, err
	}
	s.made++
	m := &Mount{space: s, path: filepath.Join(s.dir, strconv.Itoa(s.made)), spec: spec, patience: patience}
	host := e.Server.String()
	if e.Server.Is6() {
		host = "[" + host + "]"
	}
	var none atomic.Int64
	err = s.run(ctx, "", patience, &none, func() error {
		if err := os.Mkdir(m.path, 0o700); err != nil {
			return err
		}
		return unix.Mount(host+":"+export, m.path, "nfs", unix.MS_NOATIME|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			spec.kernelText(e.Server, e.Client))
	})
	switch {
	case errors.Is(err, unix.ENODEV):
		err = ErrNoNFS
	case errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EHOSTUNREACH):
		err = fmt.Errorf("%w: %w", ErrSilent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("mount %s (%s): %w", spec.Source, spec.Options(), err)
	}
	if spec.ReadAhead > 0 {
		if err := m.readAhead(spec.ReadAhead); err != nil {
			return nil, errors.Join(fmt.Errorf("set read-ahead of %s: %w", spec.Source, err), m.Close(ctx))
		}
	}
	return m, nil
}

// Close unmounts: in order, then by force.
func (m *Mount) Close(ctx context.Context) error {
	var none atomic.Int64
	err := m.space.run(ctx, m.path, m.patience, &none, func() error { return unix.Unmount(m.path, 0) })
	if err == nil {
		return nil
	}
	forced := <-m.space.rescues.start(func() error {
		_ = unix.Unmount(m.path, unix.MNT_FORCE) // kills the calls under way; busy is as expected
		return unix.Unmount(m.path, unix.MNT_DETACH)
	})
	if forced == nil || errors.Is(forced, unix.EINVAL) { // EINVAL: no mount any more
		return nil
	}
	return fmt.Errorf("unmount %s: %w", m.spec.Source, errors.Join(err, forced))
}

// bdi returns the directory of the mount's device in /sys, from mountinfo, which asks no server.
func (m *Mount) bdi() (string, error) {
	var b []byte
	if err := <-m.space.rescues.start(func() (err error) {
		b, err = os.ReadFile("/proc/thread-self/mountinfo")
		return err
	}); err != nil {
		return "", err
	}
	mounts, _ := procfs.ParseMountInfo(b) // what was parsed before a strange line is right
	for _, i := range mounts {
		if i.Path == m.path {
			return fmt.Sprintf("/sys/class/bdi/%d:%d", i.Major, i.Minor), nil
		}
	}
	return "", fmt.Errorf("%s in mountinfo: %w", m.path, fs.ErrNotExist)
}

// readAhead sets read-ahead. The device exists only with this mount, so nothing remains to undo.
func (m *Mount) readAhead(bytes int64) error {
	dir, err := m.bdi()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "read_ahead_kb"), []byte(strconv.FormatInt(bytes>>10, 10)), 0)
}

// Stats returns the counters of the mount, which start with it.
func (m *Mount) Stats() (procfs.NFSMount, error) {
	var b []byte
	if err := <-m.space.rescues.start(func() (err error) {
		// A thread has no mountstats below /proc/thread-self, but it has one as a process.
		b, err = os.ReadFile(fmt.Sprintf("/proc/%d/mountstats", unix.Gettid()))
		return err
	}); err != nil {
		return procfs.NFSMount{}, err
	}
	all, err := procfs.ParseMountStats(b)
	if err != nil {
		return procfs.NFSMount{}, fmt.Errorf("read mountstats: %w", err)
	}
	for _, x := range all {
		if x.Path == m.path {
			return x, nil
		}
	}
	return procfs.NFSMount{}, fmt.Errorf("%s in mountstats: %w", m.path, fs.ErrNotExist)
}

// Effective returns what the kernel and the server made of the spec.
func (m *Mount) Effective() (Effective, error) {
	st, err := m.Stats()
	if err != nil {
		return Effective{}, err
	}
	e := effective(st)
	if dir, err := m.bdi(); err == nil {
		b, err := os.ReadFile(filepath.Join(dir, "read_ahead_kb"))
		if err != nil {
			return e, err
		}
		if kib, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			e.ReadAhead = kib << 10
		}
	}
	return e, nil
}
