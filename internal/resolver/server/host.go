package server

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/kernel/hostfs"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Thread is what one thread of a server did.
type Thread struct {
	Name        string  `json:"name"`
	PID         int     `json:"pid"`
	RunSeconds  float64 `json:"run_seconds"`  // of CPU time
	WaitSeconds float64 `json:"wait_seconds"` // ready to run, with another thread on its CPU
}

// Socket is one UDP socket on the server's port.
type Socket struct {
	Local       netip.AddrPort `json:"local"`
	Drops       uint64         `json:"drops_total"` // queries lost at its full buffer
	QueuedBytes uint64         `json:"queued_bytes"`
	LimitBytes  uint64         `json:"limit_bytes,omitempty"` // receive buffer; absent: not known

	inode uint64
}

// Activity is what the host saw of a server.
type Activity struct {
	Seconds   float64  `json:"duration_seconds"`  // between the two readings of the threads
	Program   string   `json:"program,omitempty"` // name of the process; absent: not visible
	Processes int      `json:"processes"`
	CPUs      int      `json:"cpus"` // on which its threads may run
	Threads   []Thread `json:"threads"`
	Sockets   []Socket `json:"sockets"`
	// Writes are calls of write(2) and its kin, which UDP does not use: log files, pipes, terminals
	// and TCP connections. Absent: not visible.
	Writes       *uint64 `json:"writes_total,omitempty"`
	WrittenBytes *uint64 `json:"written_bytes_total,omitempty"`
	// Connections are established TCP connections on the port, and Waiting those that the server has
	// not accepted, both at the end.
	Connections int `json:"tcp_connections"`
	Waiting     int `json:"tcp_waiting"`
	// AcceptDrops are connections that the kernel refused for full listeners of this network
	// namespace.
	AcceptDrops uint64 `json:"accept_drops_total"`
	// Outgoing are the server's other UDP sockets, at the end: about the queries that it waits for.
	Outgoing int `json:"outgoing_sockets"`
}

// snapshot is one look at the host.
type snapshot struct {
	at      time.Time // of the threads
	a       Activity
	threads map[int]Thread // by id
	pids    []int
	// where the processes listen besides the port
	tcp  []netip.AddrPort
	unix []string
}

// look reads what the host shows of the server at an address.
func look(t *hostfs.Tree, at netip.AddrPort) (snapshot, error) {
	s := snapshot{at: time.Now(), threads: map[int]Thread{}}
	bigEndian := procfs.BigEndian(runtime.GOARCH)
	var errs []error
	table := func(names ...string) (all []procfs.BoundSocket) {
		for _, name := range names {
			b, err := t.Net(name)
			if err == nil {
				var sockets []procfs.BoundSocket
				sockets, err = procfs.ParseSocketTable(b, bigEndian)
				all = append(all, sockets...)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6 has no udp6
				errs = append(errs, err)
			}
		}
		return all
	}
	datagrams, streams := table("udp", "udp6"), table("tcp", "tcp6")
	inodes := map[uint64]bool{}
	for _, d := range datagrams {
		if d.Local.Port() == at.Port() && serves(d.Local.Addr(), at.Addr()) {
			inodes[d.Inode] = true
			s.a.Sockets = append(s.a.Sockets, Socket{Local: d.Local, Drops: d.Drops, QueuedBytes: d.Queued,
				inode: d.Inode})
		}
	}
	for _, c := range streams {
		if c.Local.Port() != at.Port() || !serves(c.Local.Addr(), at.Addr()) {
			continue
		}
		switch c.State {
		case stateEstablished:
			s.a.Connections++
		case stateListen:
			s.a.Waiting += int(c.Queued)
		}
	}
	if b, err := t.Net("netstat"); err == nil {
		counts := procfs.NewCounts(0)
		if err := procfs.ParseSNMP(b, counts); err == nil {
			s.a.AcceptDrops = counts.Values["TcpExt.ListenDrops"]
		}
	}
	s.processes(t, inodes, datagrams, streams)
	return s, errors.Join(errs...)
}

// Processes returns the processes with a UDP socket that gets what is sent to an address; none if
// this user may not see them.
func Processes(at netip.AddrPort) []int {
	s, _ := look(hostfs.Running(), at) // what could be read is in it
	return s.pids
}

// States of a TCP socket (include/net/tcp_states.h).
const (
	stateEstablished = 1
	stateListen      = 10
)

// serves reports whether a socket bound to an address gets packets for another one.
func serves(bound, asked netip.Addr) bool {
	return bound == asked || bound.IsUnspecified() || asked.IsUnspecified()
}

// processes finds the owners of the sockets, and reads them.
func (s *snapshot) processes(t *hostfs.Tree, inodes map[uint64]bool, datagrams, streams []procfs.BoundSocket) {
	names, err := t.List("proc")
	if err != nil {
		return
	}
	owned := map[uint64]string{} // the process's directory
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		own := socketsOf(t, name)
		if !slices.ContainsFunc(own, func(i uint64) bool { return inodes[i] }) {
			continue
		}
		s.pids = append(s.pids, pid)
		for _, i := range own {
			owned[i] = path.Join("/proc", name)
		}
		s.process(t, pid)
	}
	s.a.Processes = len(s.pids)
	for _, d := range datagrams {
		if owned[d.Inode] != "" && !inodes[d.Inode] {
			s.a.Outgoing++
		}
	}
	for _, c := range streams {
		if owned[c.Inode] != "" && c.State == stateListen {
			s.tcp = append(s.tcp, c.Local)
		}
	}
	if b, err := t.Net("unix"); err == nil {
		for _, l := range procfs.ParseUnixListeners(b) {
			if owned[l.Inode] != "" {
				s.unix = append(s.unix, socketPath(t, owned[l.Inode], l.Path))
			}
		}
	}
}

// socketPath returns where this process finds a socket that another one bound: a relative path is
// of that one's directory, an absolute one of its root.
func socketPath(t *hostfs.Tree, process, bound string) string {
	switch root, ok := t.Link(path.Join(process[1:], "root")); {
	case strings.HasPrefix(bound, "@"):
		return bound
	case !path.IsAbs(bound):
		return path.Join(process, "cwd", bound)
	case ok && root != "/":
		return path.Join(process, "root", bound)
	}
	return bound
}

// socketsOf returns the inodes of a process's sockets; none if it is another user's.
func socketsOf(t *hostfs.Tree, pid string) []uint64 {
	dir := path.Join("proc", pid, "fd")
	fds, err := t.List(dir)
	if err != nil {
		return nil
	}
	var all []uint64
	for _, fd := range fds {
		target, ok := t.Link(path.Join(dir, fd))
		inner, found := strings.CutPrefix(target, "socket:[")
		if !ok || !found {
			continue
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(inner, "]"), 10, 64); err == nil {
			all = append(all, inode)
		}
	}
	return all
}

// process reads one process's threads and writes.
func (s *snapshot) process(t *hostfs.Tree, pid int) {
	dir := path.Join("proc", strconv.Itoa(pid))
	s.a.Program = cmp.Or(s.a.Program, t.Optional(path.Join(dir, "comm")))
	if b, err := t.Read(path.Join(dir, "status")); err == nil {
		for line := range strings.Lines(string(b)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				s.a.CPUs = max(s.a.CPUs, len(procfs.ParseCPUList(strings.TrimSpace(list))))
			}
		}
	}
	if b, err := t.Read(path.Join(dir, "io")); err == nil {
		writes, bytes := writesOf(string(b))
		if s.a.Writes != nil {
			writes, bytes = writes+*s.a.Writes, bytes+*s.a.WrittenBytes
		}
		s.a.Writes, s.a.WrittenBytes = &writes, &bytes
	}
	tids, err := t.List(path.Join(dir, "task"))
	if err != nil {
		return
	}
	s.at = time.Now()
	for _, tid := range tids {
		id, err := strconv.Atoi(tid)
		b, errRead := t.Read(path.Join(dir, "task", tid, "schedstat"))
		if err != nil || errRead != nil {
			continue
		}
		run, wait, err := procfs.ParseSchedStat(b)
		if err != nil {
			continue
		}
		s.threads[id] = Thread{Name: t.Optional(path.Join(dir, "task", tid, "comm")), PID: pid,
			RunSeconds: float64(run) / 1e9, WaitSeconds: float64(wait) / 1e9}
	}
}

// writesOf reads syscw and wchar of /proc/PID/io.
func writesOf(text string) (writes, bytes uint64) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
		case key == "syscw":
			writes = n
		case key == "wchar":
			bytes = n
		}
	}
	return writes, bytes
}

// since returns what happened between two looks.
func since(before, after snapshot) Activity {
	a := after.a
	a.Seconds = after.at.Sub(before.at).Seconds()
	for _, id := range slices.Sorted(maps.Keys(after.threads)) {
		now, was := after.threads[id], before.threads[id] // a new thread began at zero
		now.RunSeconds -= was.RunSeconds
		now.WaitSeconds -= was.WaitSeconds
		a.Threads = append(a.Threads, now)
	}
	sorting.StableFunc(a.Threads, func(x, y Thread) int {
		return cmp.Compare(y.RunSeconds+y.WaitSeconds, x.RunSeconds+x.WaitSeconds)
	})
	drops := map[uint64]uint64{}
	for _, k := range before.a.Sockets {
		drops[k.inode] = k.Drops
	}
	a.Sockets = slices.Clone(a.Sockets)
	for i := range a.Sockets {
		a.Sockets[i].Drops -= min(drops[a.Sockets[i].inode], a.Sockets[i].Drops)
	}
	a.AcceptDrops -= min(before.a.AcceptDrops, a.AcceptDrops)
	if before.a.Writes != nil && a.Writes != nil && *a.Writes >= *before.a.Writes {
		writes, bytes := *a.Writes-*before.a.Writes, *a.WrittenBytes-*before.a.WrittenBytes
		a.Writes, a.WrittenBytes = &writes, &bytes
	} else {
		a.Writes, a.WrittenBytes = nil, nil
	}
	return a
}

// programs are the names of processes, which the kernel cuts at 15 characters.
var programs = map[string]Kind{"named": BIND, "unbound": Unbound, "kresd": Knot, "pdns_recursor": PowerDNS,
	"pdns-r/worker": PowerDNS, "dnsmasq": Dnsmasq, "systemd-resolve": Resolved}

// kind returns the server that a program's name stands for.
func kindOf(program string) (Kind, bool) {
	for name, k := range programs {
		if program == name || strings.HasPrefix(program, name) {
			return k, true
		}
	}
	return "", false
}
