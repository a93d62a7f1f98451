package mount

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/storage/nfs"
)

// Bench measures mounts of one export, one segment after another. One goroutine uses it.
type Bench struct {
	plan  Plan
	facts Facts
	space *Space
	own   string // name of our own file to read; empty: none
	next  int    // region
	again bool   // all regions were read
	fill  []byte // bytes that do not compress
	gone  bool   // the server cannot be asked any more
}

// piece is one read or write of a program: what cp(1) and its like do.
const piece = 1 << 20

// OpenBench opens a bench. The server must have answered a [Ping].
func OpenBench(plan Plan, e Ends) (*Bench, error) {
	s, err := OpenSpace()
	if err != nil {
		return nil, err
	}
	b := &Bench{plan: plan, space: s, fill: make([]byte, piece)}
	b.facts.Ends = e
	_, _ = rand.Read(b.fill) // never fails (crypto/rand)
	return b, nil
}

// prefix begins the names of our own files on a server.
const prefix = ".linerate-nfs-"

// fileName names a file of this process: host, process, its start, and a number.
func fileName(kind string) string {
	name, _ := os.Hostname()
	return fmt.Sprintf("%s%s-%d-%s-%s", prefix, strings.ReplaceAll(name, "/", "_"), os.Getpid(), started(os.Getpid()),
		kind)
}

// started returns the start time of a process in clock ticks, or "0" if it has ended: the field 22
// of /proc/PID/stat (proc_pid_stat(5)).
func started(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "0"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[19]
	}
	return "0"
}

// Prepare mounts the base, removes what earlier runs left, and makes the file to read or looks at
// the given one.
func (b *Bench) Prepare(ctx context.Context) (f Facts, err error) {
	defer func() { b.gone = b.gone || lost(err) }()
	m, err := b.space.Mount(ctx, b.plan.Base, b.facts.Ends, b.plan.Patience)
	if err != nil {
		return b.facts, err
	}
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	if b.facts.Default, err = m.Effective(); err != nil {
		return b.facts, err
	}
	if b.plan.File != "" {
		err = b.look(ctx, m)
	} else {
		err = b.make(ctx, m)
	}
	return b.facts, err
}

// look measures the file that the user gave.
func (b *Bench) look(ctx context.Context, m *Mount) error {
	b.facts.File = b.plan.File
	return m.do(ctx, func(*atomic.Int64) error {
		info, err := os.Stat(filepath.Join(m.path, b.plan.File))
		if err != nil {
			return fmt.Errorf("read %s: %w", b.plan.File, unwrapPath(err))
		}
		if !info.Mode().IsRegular() { // the open of a pipe waits for a writer
			return fmt.Errorf("read %s: not a regular file", b.plan.File)
		}
		b.facts.FileBytes = info.Size()
		b.facts.RegionBytes = max(info.Size()/int64(max(b.plan.Regions, 1))&^(piece-1), piece)
		if info.Size() < piece {
			return fmt.Errorf("read %s: %s is too small to measure: give a file of %s or more", b.plan.File,
				unit.Bytes(info.Size()), unit.Bytes(piece))
		}
		return nil
	})
}

// unwrapPath returns the cause without the path of the private mount, which means nothing to users.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// make writes the file to read: twice as much each time, until a part takes as long as a segment.
// That also shows how much one segment can write.
func (b *Bench) make(ctx context.Context, m *Mount) error {
	b.own = fileName("read")
	b.facts.File, b.facts.WriteBytes = b.own, piece
	return m.do(ctx, func(moved *atomic.Int64) error {
		b.tidy(m)
		f, err := os.OpenFile(filepath.Join(m.path, b.own), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("make a file in %s: %w", b.plan.Base.Source, unwrapPath(err))
		}
		began := time.Now()
		for part := int64(piece); b.facts.FileBytes < b.plan.Size && err == nil; part *= 2 {
			part = min(part, b.plan.Size-b.facts.FileBytes)
			partBegan := time.Now()
			err = b.pour(f, part, b.plan.Base, moved)
			b.facts.FileBytes += part
			took := time.Since(partBegan)
			b.facts.WriteBytes = part
			if took > b.plan.Segment/2 || time.Since(began) > 10*b.plan.Segment {
				break
			}
		}
		b.facts.RegionBytes = b.facts.FileBytes
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("write a file in %s: %w", b.plan.Base.Source, unwrapPath(err))
		}
		return nil
	})
}

// tidy removes files of processes of this host that have ended, and lists those of other hosts.
func (b *Bench) tidy(m *Mount) {
	entries, err := os.ReadDir(m.path)
	if err != nil {
		return // a directory that can be written and not read
	}
	name, _ := os.Hostname()
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours {
			continue
		}
		rest, here := strings.CutPrefix(rest, strings.ReplaceAll(name, "/", "_")+"-")
		f := strings.Split(rest, "-")
		pid := 0
		if len(f) == 3 {
			pid, _ = strconv.Atoi(f[0])
		}
		switch {
		case !here || pid <= 0:
			b.facts.Left = append(b.facts.Left, e.Name())
		case started(pid) != f[1] && os.Remove(filepath.Join(m.path, e.Name())) == nil:
			b.facts.Removed = append(b.facts.Removed, e.Name())
		}
	}
}

// pour writes bytes at the end of a file and waits until the server has them.
func (b *Bench) pour(f *os.File, n int64, s Spec, moved *atomic.Int64) error {
	step := int64(piece)
	if b.plan.Direct && s.WriteSize > 0 {
		step = min(step, s.WriteSize)
	}
	for n > 0 {
		k, err := f.Write(b.fill[:min(n, step)])
		if err != nil {
			return err
		}
		n -= int64(k)
		moved.Add(int64(k))
	}
	return f.Sync()
}

// Try mounts a spec, returns what it got, and unmounts.
func (b *Bench) Try(ctx context.Context, s Spec) (e Effective, err error) {
	defer func() { b.gone = b.gone || lost(err) }()
	m, err := b.space.Mount(ctx, s, b.facts.Ends, b.plan.Patience)
	if err != nil {
		return e, err
	}
	e, err = m.Effective()
	return e, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
}

// Measure measures one segment.
func (b *Bench) Measure(ctx context.Context, s Spec) (out Sample, err error) {
	defer func() { b.gone = b.gone || lost(err) }()
	out.Spec = s
	began := time.Now()
	m, err := b.space.Mount(ctx, s, b.facts.Ends, b.plan.Patience)
	if err != nil {
		return out, err
	}
	out.MountSeconds = time.Since(began).Seconds()
	defer func() { err = errors.Join(err, m.Close(context.WithoutCancel(ctx))) }()
	if out.Effective, err = m.Effective(); err != nil {
		return out, err
	}
	before, err := host.Root{}.Counters()
	if err != nil {
		return out, err
	}
	if b.plan.Read {
		if out.Read, err = b.read(ctx, m, &out); err != nil {
			return out, err
		}
	}
	if b.plan.Write {
		if out.Write, err = b.write(ctx, m); err != nil {
			return out, err
		}
	}
	after, err := host.Root{}.Counters()
	if err != nil {
		return out, err
	}
	d := host.Sub(before, after)
	out.Drops = drops.Find(d.Values, d.Drivers)
	out.TCPRetransmits, out.OutOfOrder = d.Values["Tcp.RetransSegs"], d.Values["TcpExt.TCPOFOQueue"]
	return out, b.calls(m, &out, time.Since(began))
}

// calls adds what the counters of the mount say.
func (b *Bench) calls(m *Mount, out *Sample, span time.Duration) error {
	st, err := m.Stats()
	if err != nil {
		return err
	}
	tree, err := hostfs.Of(hostfs.NewMemory([]hostfs.Entry{{Name: "proc", Directory: true}}))
	if err != nil {
		return err
	}
	j := nfs.Judge(tree, st, span)
	out.Waits, out.WireRead = string(j.Waits), st.ServerReadBytes
	for _, o := range j.Operations {
		out.Requests, out.Resent, out.Timeouts = out.Requests+o.Requests, out.Resent+o.Retransmissions,
			out.Timeouts+o.Timeouts
	}
	return nil
}

// do runs f on the working thread with the mount's patience.
func (m *Mount) do(ctx context.Context, f func(progress *atomic.Int64) error) error {
	var progress atomic.Int64
	return m.space.run(ctx, m.path, m.patience, &progress, func() error { return f(&progress) })
}

// read reads the next region from its start, for the time of a segment after the warm-up.
func (b *Bench) read(ctx context.Context, m *Mount, out *Sample) (moved Moved, err error) {
	regions := max(int(b.facts.FileBytes/b.facts.RegionBytes), 1)
	at := int64(b.next) * b.facts.RegionBytes
	switch {
	case b.own != "":
		out.ServerCache = ServerWarm
	case b.again:
		out.ServerCache = ServerReused
	default:
		out.ServerCache = ServerCold
	}
	b.next++
	if b.next == regions {
		b.next, b.again = 0, true
	}
	step, flags := int64(piece), os.O_RDONLY
	if b.plan.Direct {
		step, flags = min(piece, out.Effective.ReadSize), flags|unix.O_DIRECT
	}
	err = m.do(ctx, func(progress *atomic.Int64) error {
		name := filepath.Join(m.path, b.facts.File)
		f, err := os.OpenFile(name, flags, 0)
		if removed(name, err) {
			return fmt.Errorf("read %s: the file was removed during the run", b.facts.File)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", b.facts.File, unwrapPath(err))
		}
		defer f.Close()
		buffer, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		defer unix.Munmap(buffer) //nolint:errcheck // the mapping ends with the process
		began, warm := time.Now(), b.plan.WarmUp > 0
		end := at + b.facts.RegionBytes
		for at < end {
			n, err := unix.Pread(int(f.Fd()), buffer[:min(step, end-at)], at)
			if removed(name, err) {
				return fmt.Errorf("read %s: the file was removed during the run", b.facts.File)
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", b.facts.File, err)
			}
			if n == 0 {
				return fmt.Errorf("read %s: %w: the file became shorter during the run", b.facts.File, io.ErrUnexpectedEOF)
			}
			at += int64(n)
			progress.Add(int64(n))
			now := time.Since(began)
			// A region that ends before the warm-up counts from the start of its second half.
			if warm && (now >= b.plan.WarmUp || end-at < b.facts.RegionBytes/2) {
				warm, began, moved = false, time.Now(), Moved{}
				continue
			}
			moved.Bytes, moved.Seconds = moved.Bytes+int64(n), now.Seconds()
			if !warm && now >= b.plan.Segment {
				break
			}
		}
		return nil
	})
	return moved, err
}

// removed reports whether an error of a file is that another program removed it. A mount gives the
// same errors when the whole export is gone.
func removed(name string, err error) bool {
	if errors.Is(err, unix.ESTALE) {
		_, err = os.Lstat(name)
	}
	return errors.Is(err, os.ErrNotExist)
}

// write writes a file of our own, waits until the server has it, and removes it.
func (b *Bench) write(ctx context.Context, m *Mount) (moved Moved, err error) {
	name := filepath.Join(m.path, fileName("write"))
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if b.plan.Direct {
		flags |= unix.O_DIRECT
	}
	err = m.do(ctx, func(progress *atomic.Int64) error {
		f, err := os.OpenFile(name, flags, 0o600)
		if err != nil {
			return fmt.Errorf("make a file in %s: %w", b.plan.Base.Source, unwrapPath(err))
		}
		began := time.Now()
		err = b.pour(f, b.facts.WriteBytes, m.spec, progress)
		moved = Moved{Bytes: b.facts.WriteBytes, Seconds: time.Since(began).Seconds()}
		return errors.Join(unwrapPath(err), unwrapPath(f.Close()), unwrapPath(os.Remove(name)))
	})
	return moved, err
}

// Close removes our own file, if the server answers, and ends the namespace.
func (b *Bench) Close(ctx context.Context) error {
	defer b.space.Close()
	if b.own == "" {
		return nil
	}
	if b.gone || b.space.stuck {
		return fmt.Errorf("remove %s: %w", b.own, ErrSilent)
	}
	m, err := b.space.Mount(ctx, b.plan.Base, b.facts.Ends, b.plan.Patience)
	if err != nil {
		return fmt.Errorf("remove %s: %w", b.own, err)
	}
	err = m.do(ctx, func(*atomic.Int64) error {
		err := os.Remove(filepath.Join(m.path, b.own))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return unwrapPath(err)
	})
	if err != nil {
		err = fmt.Errorf("remove %s: %w", b.own, err)
	}
	return errors.Join(err, m.Close(ctx))
}
