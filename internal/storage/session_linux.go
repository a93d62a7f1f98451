package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/kernel/uring"
	"github.com/linerate/linerate/internal/storage/layers"
)

// Session is an open target. Tests run on it one after the other.
type Session struct {
	Subject Subject

	file   *os.File // buffered
	direct *os.File // the same file with O_DIRECT; nil: the file system refuses it
	why    error    // why direct is nil
	writes bool
	align  int // of direct operations
	tree   *hostfs.Tree
	held   bool // storage is silent: a thread waits in the kernel with the files

	found                     atomic.Bool  // Subject.Stack is known
	filled                    atomic.Int64 // bytes of the own file
	holes, unwritten, encoded float64
}

// Open opens a target, and for a directory makes and fills the session's own file. Progress, if not
// nil, gets the share of the file that is filled. Errors name the path; [fs.ErrPermission],
// [fs.ErrNotExist], [unix.ENOSPC], [ErrReplaced] and [ErrSilent] are in their chain.
func Open(ctx context.Context, t Target, progress func(share float64)) (*Session, error) {
	s := &Session{tree: hostfs.Running(), Subject: Subject{Path: t.Path}}
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	err := await(ctx, patience, func() uint64 { return uint64(s.filled.Load()) + s.moved() }, func() error {
		err := s.start(ctx, t, progress)
		if err != nil {
			s.shut()
		}
		return err
	})
	if errors.Is(err, ErrSilent) {
		err = fmt.Errorf("open %s: %w", t.Path, err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// start opens and prepares the target.
func (s *Session) start(ctx context.Context, t Target, progress func(share float64)) error {
	info, err := os.Stat(t.Path)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		s.Subject.Kind = "own-file"
		err = s.create(t)
	case mode.IsRegular():
		s.Subject.Kind = "file"
		err = s.open(t, info, 0)
	case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		s.Subject.Kind = "device"
		// O_EXCL of a device fails while a file system on it is mounted.
		err = s.open(t, info, unix.O_EXCL)
	default:
		return fmt.Errorf("open %s: neither a directory, nor a file, nor a block device", t.Path)
	}
	if err != nil {
		return err
	}
	return s.prepare(ctx, t, progress)
}

// Close closes the target; the session's own file ends with it. The kernel frees the blocks of that
// file then, which a frozen file system does not do: after an [ErrSilent] the file ends with the
// process. Close may be called again.
func (s *Session) Close() error {
	if s.held {
		return nil // the call that found out has returned the error
	}
	file, direct := s.file, s.direct
	s.file, s.direct = nil, nil
	err := await(context.Background(), patience, s.moved, func() error {
		shut(file, direct)
		return nil
	})
	if err != nil {
		s.held = true
		return fmt.Errorf("close %s: %w", s.Subject.Path, err)
	}
	return nil
}

func (s *Session) shut() { shut(s.file, s.direct) }

func shut(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // every write that counts was flushed, or its figure says otherwise
		}
	}
}

// create makes a file without a name in a directory. Where the file system has no such files it
// makes one and removes the name at once.
func (s *Session) create(t Target) error {
	s.writes = true
	fd, err := unix.Open(t.Path, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err == nil {
		s.file = os.NewFile(uintptr(fd), filepath.Join(t.Path, "own file"))
		return nil
	}
	// EISDIR and ENOENT come from kernels and file systems that do not know the flag.
	if err != unix.EOPNOTSUPP && err != unix.EISDIR && err != unix.ENOENT {
		return fmt.Errorf("create a file in %s: %w", t.Path, err)
	}
	name := filepath.Join(t.Path, fmt.Sprintf(".linerate-disk-%d-%016x", os.Getpid(), rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, unix.ENOENT) { // the directory is there, as in proc
		return fmt.Errorf("create a file in %s: %w: this file system takes no new files", t.Path, errors.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("create a file in %s: %w", t.Path, errors.Unwrap(err))
	}
	if err := os.Remove(name); err != nil {
		_ = f.Close()
		return err
	}
	s.file = f
	return nil
}

// open opens an existing file or device, which info describes. Another program may have replaced it
// meanwhile, by a pipe whose open would wait for a writer.
func (s *Session) open(t Target, info fs.FileInfo, exclusive int) error {
	flags := unix.O_RDONLY
	if t.Overwrite {
		flags, s.writes = unix.O_RDWR|exclusive, true
	}
	fd, err := unix.Open(t.Path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == unix.EBUSY {
		err = fmt.Errorf("%w: a file system or another layer uses it", err)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: t.Path, Err: err}
	}
	s.file = os.NewFile(uintptr(fd), t.Path)
	now, err := s.file.Stat()
	// A new file may have the number of the one that was removed.
	if err == nil && (!os.SameFile(info, now) || info.Mode().Type() != now.Mode().Type()) {
		err = ErrReplaced
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // the flag ends io_uring's operations where they would wait
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", t.Path, err)
	}
	return nil
}

// replaced says in a sentence that the path names another file than the one that was opened.
func (s *Session) replaced() string {
	if s.Subject.Kind == "own-file" {
		return ""
	}
	opened, err := s.file.Stat()
	if err != nil {
		return ""
	}
	if now, err := os.Stat(s.Subject.Path); err != nil || !os.SameFile(opened, now) {
		return fmt.Sprintf("%s was replaced or removed meanwhile: the figures are those of the file that was opened",
			s.Subject.Path)
	}
	return ""
}

func (s *Session) fd() int { return int(s.file.Fd()) }

// prepare looks at the file, fills the session's own one, and finds the ways past the cache.
func (s *Session) prepare(ctx context.Context, t Target, progress func(float64)) error {
	at, err := sys.Where(s.fd())
	if err != nil {
		return fmt.Errorf("open %s: %w", t.Path, err)
	}
	s.Subject.Stack = layers.Find(s.tree, layers.Place{At: at, Device: s.Subject.Kind == "device", Open: where})
	s.found.Store(true)
	if s.Subject.Stack.Virtual() {
		s.Subject.HostCache = "unknown"
	}
	if s.Subject.Kind == "own-file" {
		if s.Subject.SizeBytes, err = s.room(t, at); err != nil {
			return err
		}
	} else if err := s.existing(t); err != nil {
		return err
	}
	s.openDirect(at)
	if s.Subject.Kind == "own-file" {
		if err := s.fill(ctx, progress); err != nil {
			return err
		}
		if at, err = sys.Where(s.fd()); err == nil && at.FreeBytes < FloorBytes(at.TotalBytes) && at.TotalBytes > 0 &&
			s.Subject.Stack.InMemory() == "" {
			return fmt.Errorf("fill a file in %s: another program leaves only %s free", t.Path, unit.Bytes(at.FreeBytes))
		}
	}
	if s.Subject.Kind != "device" {
		s.extents()
	}
	s.checkDirect()
	return nil
}

// where returns the place of another file, for package layers.
func where(path string) (sys.FileAt, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return sys.FileAt{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	at, err := sys.Where(fd)
	// Only the file's own place counts, not the device that a device file names.
	return at, err
}

// memorySize is the size of the own file on a file system in memory: enough for a figure that will
// not be called a disk's, without taking memory from others.
const memorySize = 64 << 20

// room returns the size of the session's own file.
func (s *Session) room(t Target, at sys.FileAt) (int64, error) {
	if t.SizeBytes > 0 && t.SizeBytes < leastSize {
		return 0, fmt.Errorf("%w: a file of %s is too small: the smallest is %s", ErrBadSpec, unit.Bytes(t.SizeBytes),
			unit.Bytes(leastSize))
	}
	floor := FloorBytes(at.TotalBytes)
	free := at.FreeBytes - floor
	size := t.SizeBytes
	if size == 0 {
		size = defaultSize
		if s.Subject.Stack.InMemory() != "" {
			size = memorySize
		}
		if at.TotalBytes > 0 { // ramfs reports no size
			size = min(size, free/2)
		}
	}
	size -= size % leastSize
	if at.TotalBytes > 0 && (size > free || size < leastSize) {
		want := max(t.SizeBytes, leastSize)
		return 0, fmt.Errorf("create a file of %s in %s: %w: %s are free, and %s of them stay free", unit.Bytes(want),
			t.Path, unix.ENOSPC, unit.Bytes(max(at.FreeBytes, 0)), unit.Bytes(floor))
	}
	return size, nil
}

// existing determines the used part of an existing file or device.
func (s *Session) existing(t Target) error {
	size, err := s.file.Seek(0, 2)
	if err != nil {
		return err
	}
	if t.SizeBytes > size {
		return fmt.Errorf("use %s of %s: it has only %s", unit.Bytes(t.SizeBytes), t.Path, unit.Bytes(size))
	}
	s.Subject.SizeBytes = size
	if t.SizeBytes > 0 {
		s.Subject.SizeBytes = t.SizeBytes
	}
	if size == 0 {
		return fmt.Errorf("use %s: it is empty", t.Path)
	}
	return nil
}

// openDirect opens the same file with O_DIRECT. The path in /proc leads to files without a name
// too.
func (s *Session) openDirect(at sys.FileAt) {
	s.align = 512
	if at.DirectKnown {
		if s.align = at.DirectBytes; s.align == 0 {
			s.why = errors.New("the file system reports that this file has no direct I/O")
			return
		}
	} else {
		for _, l := range s.Subject.Stack.Layers {
			if l.Queue != nil {
				s.align = max(s.align, int(l.Queue.LogicalBytes))
			}
		}
	}
	flags := unix.O_RDONLY
	if s.writes {
		flags = unix.O_RDWR
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", s.fd()), flags|unix.O_DIRECT, 0)
	if err != nil {
		s.why = fmt.Errorf("open with O_DIRECT: %w", errors.Unwrap(err))
		return
	}
	s.direct = f
}

// fill writes the session's own file from its start to its end, so that every block is on the
// medium: a read of a block that was never written does not need the device.
func (s *Session) fill(ctx context.Context, progress func(float64)) error {
	const chunk = 1 << 20
	fail := func(err error) error {
		return fmt.Errorf("fill a file of %s in %s: %w", unit.Bytes(s.Subject.SizeBytes), s.Subject.Path, err)
	}
	// Reserving first makes the file contiguous, and finds out early about quotas. A file system
	// without that call is filled all the same.
	if err := unix.Fallocate(s.fd(), 0, 0, s.Subject.SizeBytes); err != nil && err != unix.EOPNOTSUPP {
		return fail(err)
	}
	buffers, release, err := alignedBuffers(1, chunk)
	if err != nil {
		return err
	}
	defer release()
	file := s.file
	if s.direct != nil {
		file = s.direct
	}
	for off := int64(0); off < s.Subject.SizeBytes; {
		stamp(buffers[0], ^off)
		n, err := unix.Pwrite(int(file.Fd()), buffers[0][:min(chunk, s.Subject.SizeBytes-off)], off)
		switch {
		case err == unix.EINVAL && file == s.direct:
			s.noDirect(err) // accepted at open and refused now
			file = s.file
			continue
		case err == unix.EINTR:
			continue
		case err != nil:
			return fail(err)
		}
		off += int64(n)
		s.filled.Store(off)
		if err := ctx.Err(); err != nil {
			return err
		}
		if progress != nil {
			progress(float64(off) / float64(s.Subject.SizeBytes))
		}
	}
	if err := unix.Fdatasync(s.fd()); err != nil {
		return fail(err)
	}
	return nil
}

func (s *Session) noDirect(err error) {
	_ = s.direct.Close()
	s.direct, s.why = nil, fmt.Errorf("the file system accepts O_DIRECT and refuses the operation: %w", err)
}

// extents reads which parts of the file are not on the medium as they are.
func (s *Session) extents() {
	x, err := sys.ListExtents(s.fd(), s.Subject.SizeBytes)
	if err != nil || !x.Known || !x.Complete {
		return
	}
	size := float64(s.Subject.SizeBytes)
	s.unwritten, s.encoded = float64(x.UnwrittenBytes)/size, float64(x.EncodedBytes)/size
	s.holes = max(0, 1-float64(x.UnwrittenBytes+x.MappedBytes)/size)
}

// checkDirect reads a few blocks directly and looks whether they came through the page cache after
// all: btrfs and others fall back without an error.
func (s *Session) checkDirect() {
	if s.direct == nil || s.Subject.Kind == "device" {
		return
	}
	buffers, release, err := alignedBuffers(1, int(min(leastSize, s.Subject.SizeBytes/int64(s.align)*int64(s.align))))
	if err != nil || len(buffers[0]) == 0 {
		return
	}
	defer release()
	size, chunk := s.Subject.SizeBytes, int64(len(buffers[0]))
	was, errWas := sys.Resident(s.fd(), size)
	if s.writes && errWas == nil && was > 0 {
		errWas = unix.Fdatasync(s.fd()) // dirty pages cannot be dropped
	}
	// Only the part that is read is dropped: the rest of an existing file stays as it was found.
	if errWas != nil || sys.DropPages(s.fd(), 0, chunk) != nil {
		return
	}
	before, errBefore := sys.Resident(s.fd(), size)
	if _, err := unix.Pread(int(s.direct.Fd()), buffers[0], 0); err == unix.EINVAL {
		s.noDirect(err)
	}
	after, errAfter := sys.Resident(s.fd(), size)
	if s.direct != nil && errBefore == nil && errAfter == nil && after-before >= chunk/2 &&
		s.Subject.Stack.InMemory() == "" {
		_ = s.direct.Close()
		s.direct, s.why = nil, errors.New("the file system accepts O_DIRECT and goes through the page cache all the same")
	}
	if was > before {
		_, _ = unix.Pread(s.fd(), buffers[0], 0) // brings the pages back; a failure costs only those
	}
}

// way chooses the way past the cache for a test and returns the file to use.
func (s *Session) way(spec Spec) (Way, *os.File, string, error) {
	usable := s.direct != nil && spec.BlockBytes%s.align == 0
	note := ""
	switch {
	case s.direct == nil:
		note = fmt.Sprintf("not direct: %v", s.why)
	case !usable:
		note = fmt.Sprintf("not direct: blocks of %d bytes are not multiples of %d", spec.BlockBytes, s.align)
	}
	switch spec.Way {
	case Direct:
		if !usable {
			return "", nil, "", fmt.Errorf("measure %s directly: %s", s.Subject.Path, strings.TrimPrefix(note, "not direct: "))
		}
		return Direct, s.direct, "", nil
	case Dropped, Grouped, Pinned, Buffered:
		return spec.Way, s.file, "", nil
	case Larger:
		if total := memoryOf(s.tree).total; s.Subject.SizeBytes < 2*total {
			return "", nil, "", fmt.Errorf("%w: way larger needs a file of twice the memory: --size %s",
				ErrBadSpec, unit.Bytes(2*total))
		}
		return Larger, s.file, "", nil
	}
	switch {
	case usable:
		return Direct, s.direct, "", nil
	case s.Subject.Stack.InMemory() != "":
		return Buffered, s.file, note, nil
	case s.droppable():
		return Dropped, s.file, note, nil
	}
	note += "; not dropped: pages of the file stay in memory, as when another program has mapped them"
	if g, err := newGroup(s.tree, spec); err == nil {
		g.remove()
		return Grouped, s.file, note, nil
	}
	return Dropped, s.file, note + "; --way pinned leaves them no room", nil
}

// droppable reports whether the kernel forgets the pages of the file when asked.
func (s *Session) droppable() bool {
	if s.clear(Spec{Test: SequentialRead, Way: Dropped}) != nil {
		return false
	}
	return s.resident() <= tolerance
}

// engine chooses how operations reach the kernel.
func engine(spec Spec) (Engine, string) {
	if spec.Engine != "" {
		return spec.Engine, ""
	}
	if spec.Depth == 1 {
		return Psync, ""
	}
	if err := uring.Available(); err != nil {
		return Psync, fmt.Sprintf("%d threads in place of io_uring: %v", spec.Depth, err)
	}
	return IOUring, ""
}
