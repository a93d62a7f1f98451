package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// room is what keeps the page cache small while a test runs: memory that this process has locked,
// or a control group around it. Both end with the process, except that kill -9 leaves the directory
// of the group, which holds nothing; the next session removes it.
type room struct {
	pinned int64 // bytes at most
	limit  int64 // of the group

	mu      sync.Mutex
	pins    [][]byte
	group   *group
	score   string // oom_score_adj before
	stop    chan struct{}
	watched sync.WaitGroup
	gave    string // why the memory was given back before the end
}

// squeeze leaves the page cache little room, where the way asks for that.
func (s *Session) squeeze(ctx context.Context, spec Spec) (*room, error) {
	r := &room{}
	switch spec.Way {
	case Grouped:
		g, err := newGroup(s.tree, spec)
		if err != nil {
			return nil, err
		}
		if err := g.enter(); err != nil {
			g.remove()
			return nil, err
		}
		r.group, r.limit = g, g.limit
	case Pinned:
		if err := r.pin(ctx, s.tree); err != nil {
			_ = r.release() // the error says more
			return nil, err
		}
	}
	return r, nil
}

// release gives everything back, and says in a sentence what went wrong meanwhile. It may be called
// again.
func (r *room) release() string {
	if r.stop != nil {
		close(r.stop)
		r.watched.Wait()
		r.stop = nil
	}
	r.unpin()
	if r.group != nil {
		r.gave = cmp.Or(r.gave, r.group.leave())
		r.group = nil
	}
	return r.gave
}

func (r *room) unpin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pins {
		_ = unix.Munmap(p) // a mapping of ours: it cannot fail
	}
	r.pins = nil
	if r.score != "" {
		// An ordinary user may raise the score and not lower it (proc_pid_oom_score_adj(5)).
		_ = os.WriteFile(oomScore, []byte(r.score), 0)
		r.score = ""
	}
}

// The memory that a pin leaves to all programs and to the cache: a twentieth, within bounds.
const (
	leastLeft = 32 << 20
	mostLeft  = 256 << 20
)

// LeftBytes returns how much of the memory of a host [Pinned] leaves available.
func LeftBytes(total int64) int64 { return min(max(leastLeft, total/20), mostLeft) }

// oomScore says which process the kernel ends first when memory runs out.
const oomScore = "/proc/self/oom_score_adj"

// watchEvery is how often a pin looks whether another program needs the memory.
const watchEvery = 50 * time.Millisecond

// pin locks memory until only [LeftBytes] are available. The memory is anonymous, so the kernel
// frees it at every end of this process. When memory runs out meanwhile, the kernel ends this
// process before any other.
func (r *room) pin(ctx context.Context, tree *hostfs.Tree) error {
	fail := func(err error) error {
		return fmt.Errorf("pin memory: %w", err)
	}
	if b, err := os.ReadFile(oomScore); err == nil {
		if err := os.WriteFile(oomScore, []byte("1000"), 0); err != nil {
			return fail(err)
		}
		r.score = strings.TrimSpace(string(b))
	}
	left := LeftBytes(memoryOf(tree).total)
	for {
		m := memoryOf(tree)
		if m.available <= 0 {
			return fail(errors.New("/proc/meminfo shows no MemAvailable"))
		}
		// A quarter of the rest at a time: the kernel finds memory by dropping pages, and the figure
		// that is read next shows what it found.
		chunk := min((m.available-left)/4, 256<<20) &^ (1<<20 - 1)
		if chunk <= 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := unix.Mmap(-1, 0, int(chunk), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return fail(err)
		}
		r.pins, r.pinned = append(r.pins, p), r.pinned+chunk
		switch err := unix.Mlock(p); err {
		case nil:
		case unix.EPERM, unix.ENOMEM:
			return fail(fmt.Errorf("%w: this user may not lock %s (ulimit -l): %w", err, unit.Bytes(r.pinned),
				fs.ErrPermission))
		default:
			return fail(err)
		}
	}
	if r.pinned == 0 {
		return fail(fmt.Errorf("%s are available, and %s of them stay so: %w", unit.Bytes(memoryOf(tree).available),
			unit.Bytes(left), unix.ENOMEM))
	}
	r.stop = make(chan struct{})
	stop := r.stop
	r.watched.Go(func() { r.watch(tree, left/2, stop) })
	return nil
}

// watch gives the memory back when other programs leave less than a floor available.
func (r *room) watch(tree *hostfs.Tree, floor int64, stop <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if m := memoryOf(tree); m.available < floor {
			r.unpin()
			r.gave = fmt.Sprintf("other programs needed memory (%s were left): the pinned memory was given back before the end",
				unit.Bytes(m.available))
			return
		}
	}
}

// memory is that of the host, in bytes, or of the control group of this process where that has
// less.
type memory struct{ total, available int64 }

func memoryOf(tree *hostfs.Tree) memory {
	b, err := tree.Read("proc/meminfo")
	if err != nil {
		return memory{}
	}
	kib := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), "\n"+name+":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64) // 0: not known
		return n * 1024
	}
	total, _ := procfs.ParseMemTotal(b) // 0: not known
	m := memory{total, kib("MemAvailable")}
	for _, g := range memoryGroups(tree) {
		limit, ok := tree.Number(g.file(g.own, "memory.max", "memory.limit_in_bytes"))
		if !ok || limit >= m.total || limit <= 0 {
			continue
		}
		used, _ := tree.Number(g.file(g.own, "memory.current", "memory.usage_in_bytes"))
		m.total = limit
		m.available = min(m.available, limit-used+fileBytes(tree.Optional(g.file(g.own, "memory.stat", "memory.stat"))))
	}
	return m
}

// fileBytes returns the pages of files in memory.stat, which the kernel can drop.
func fileBytes(stat string) int64 {
	sum := int64(0)
	for line := range strings.Lines(stat) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "active_file" || name == "inactive_file" {
			n, _ := strconv.ParseInt(value, 10, 64) // 0: not known
			sum += n
		}
	}
	return sum
}

// hierarchy is a mounted hierarchy of control groups with the memory controller.
type hierarchy struct {
	two  bool   // version 2
	root string // its mount, without the first slash
	own  string // directory of this process's group
}

func (h hierarchy) file(dir, two, one string) string {
	if h.two {
		return dir + "/" + two
	}
	return dir + "/" + one
}

// memoryGroups returns the hierarchies that may limit the memory of this process. Version 1 has the
// controller where it is mounted; version 2 has it where a group has its files.
func memoryGroups(tree *hostfs.Tree) []hierarchy {
	b, err := tree.Read("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	mounts, _ := procfs.ParseMountInfo(b) // a strange line ends the list; those before it are right
	var all []hierarchy
	for line := range strings.Lines(tree.Optional("proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		for _, m := range mounts {
			two := controllers == "" && m.Type == "cgroup2"
			one := m.Type == "cgroup" && hasWord(controllers, "memory") && hasWord(m.Options, "memory")
			if !one && !two {
				continue
			}
			root := strings.TrimPrefix(m.Path, "/")
			below := strings.TrimPrefix(group, strings.TrimSuffix(m.Root, "/"))
			all = append(all, hierarchy{two, root, strings.TrimSuffix(root+below, "/")})
		}
	}
	return all
}

func hasWord(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// group is a control group of this process with little memory.
type group struct {
	dir, back string // absolute: the group, and the file that takes this process back
	limitFile string
	limit     int64
}

// groupPrefix begins the names of our groups.
const groupPrefix = "linerate-disk-"

// groupRoom is the memory of the group for pages: more than any read-ahead window, and less than a
// fiftieth of the default file.
const groupRoom = 16 << 20

// newGroup makes a control group, which is still empty. With version 1 it is below the group of
// this process. With version 2 it is beside that, because a group with processes has no controllers
// below it: the limits of the groups above hold on, and those of the present group do not.
func newGroup(tree *hostfs.Tree, spec Spec) (*group, error) {
	// The buffers of the operations, stacks and histograms count too.
	threads := 1
	if spec.Engine != IOUring {
		threads = spec.Depth
	}
	limit := int64(groupRoom) + int64(spec.Depth)*int64(spec.BlockBytes+os.Getpagesize()) + int64(threads)<<20
	var last error = fmt.Errorf("%w: this kernel has no memory controller mounted", errors.ErrUnsupported)
	for _, h := range memoryGroups(tree) {
		parent := "/" + h.own
		if h.two && h.own != h.root {
			parent = filepath.Dir(parent)
		}
		sweep(parent)
		g := &group{dir: filepath.Join(parent, groupPrefix+strconv.Itoa(os.Getpid())), back: "/" + h.own + "/cgroup.procs",
			limit: limit}
		g.limitFile = h.file(g.dir, "memory.max", "memory.limit_in_bytes")
		if last = os.Mkdir(g.dir, 0o700); last != nil {
			continue
		}
		if last = os.WriteFile(g.limitFile, strconv.AppendInt(nil, limit, 10), 0); last == nil {
			return g, nil
		}
		if errors.Is(last, fs.ErrNotExist) || errors.Is(last, fs.ErrPermission) && os.Geteuid() == 0 {
			last = fmt.Errorf("%w: the memory controller is not enabled in %s/cgroup.subtree_control", errors.ErrUnsupported,
				parent)
		}
		g.remove()
	}
	return nil, fmt.Errorf("make a memory control group: %w", last)
}

// sweep removes the empty groups of sessions that were killed.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // the pattern is right
	for _, dir := range left {
		pid := strings.TrimPrefix(filepath.Base(dir), groupPrefix)
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(dir) // the kernel refuses one with processes
		}
	}
}

func (g *group) enter() error {
	pid := strconv.AppendInt(nil, int64(os.Getpid()), 10)
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), pid, 0); err != nil {
		return fmt.Errorf("enter a memory control group: %w", err)
	}
	return nil
}

// leave takes this process back to its group.
func (g *group) leave() string {
	if err := os.WriteFile(g.back, strconv.AppendInt(nil, int64(os.Getpid()), 10), 0); err != nil {
		return fmt.Sprintf("this process stays in its memory control group: %v", err)
	}
	g.remove()
	return ""
}

// remove removes the empty group. A failure leaves a directory that the next session removes.
func (g *group) remove() { _ = os.Remove(g.dir) }
