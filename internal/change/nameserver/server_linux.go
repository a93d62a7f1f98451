package nameserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// Server is a running name server.
type Server struct {
	PID     int
	Args    []string // its command line
	Dir     string   // its working directory
	Started string   // start time in clock ticks since boot: the number of a process is used again
	Unit    string   // the service of systemd that it is; empty: none

	env     []string  // its environment; nil: may not be read
	program string    // the file that it runs
	streams [2]string // where its standard output and error go
	forget  string    // files of its directory, as a pattern, that a restart removes; empty: none
	turn    *os.File  // held by who restarts it, see turn
}

// standard returns the configuration that a program reads when its command line names none.
func (k Kind) standard() string {
	switch k {
	case Named:
		return "/etc/bind/named.conf"
	case Unbound:
		return "/etc/unbound/unbound.conf"
	}
	return "config" // in its working directory
}

// Find returns the running server that has read a configuration file. It returns fs.ErrNotExist if
// there is none.
func Find(kind Kind, path string) (Server, error) {
	want, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Server{}, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return Server{}, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, ok := look(kind, pid)
		if !ok {
			continue
		}
		for _, c := range s.configurations(kind) {
			if real, err := filepath.EvalSymlinks(c); err == nil && real == want {
				return s, nil
			}
		}
	}
	return Server{}, fmt.Errorf("%w: no running %s uses %s", fs.ErrNotExist, kind, path)
}

// look reads a process; ok is false if it is not the program, or is about to end.
func look(kind Kind, pid int) (s Server, ok bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	b, err := os.ReadFile(dir + "cmdline")
	if err != nil || len(b) == 0 {
		return s, false
	}
	s = Server{PID: pid, Args: strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")}
	if filepath.Base(s.Args[0]) != string(kind) {
		return s, false
	}
	if s.Dir, err = os.Readlink(dir + "cwd"); err != nil {
		return s, false
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return s, false
	}
	// The name is in parentheses and may hold blanks (proc_pid_stat(5)); the 22nd field is the start.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return s, false
	}
	s.Started = fields[19]
	s.program = s.Args[0]
	if exe, err := os.Readlink(dir + "exe"); err == nil && !filepath.IsAbs(s.program) {
		s.program = exe
	}
	if env, err := os.ReadFile(dir + "environ"); err == nil {
		s.env = append([]string{}, strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00")...)
	}
	for i := range s.streams {
		s.streams[i] = fmt.Sprintf("%sfd/%d", dir, i+1)
		if link, err := os.Readlink(s.streams[i]); err == nil && filepath.IsAbs(link) {
			s.streams[i] = link // which is there when the process is not
		}
	}
	groups, _ := os.ReadFile(dir + "cgroup") // a kernel without groups has no units
	for text := range strings.Lines(string(groups)) {
		if name := filepath.Base(strings.TrimSpace(text)); strings.HasSuffix(name, ".service") {
			s.Unit = name
		}
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		s.Unit = ""
	}
	return s, true
}

// configurations returns the files that a server has read, as its command line names them.
func (s Server) configurations(kind Kind) []string {
	var all []string
	for i, a := range s.Args[1:] {
		name, ok := strings.CutPrefix(a, "-c")
		if ok && name == "" && i+2 < len(s.Args) {
			name = s.Args[i+2]
		}
		if ok {
			all = append(all, s.path(strings.TrimPrefix(name, "=")))
		}
	}
	if len(all) == 0 {
		all = append(all, s.path(kind.standard()))
	}
	return all
}

func (s Server) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.Dir, name)
}

// reachable returns why this process cannot restart a server, or nil.
func (s Server) reachable() error {
	for _, what := range []string{"ns/mnt", "ns/pid", "root"} {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", s.PID, what))
		if err != nil {
			return fmt.Errorf("look at process %d: %w", s.PID, err)
		}
		if ours, err := os.Readlink("/proc/self/" + what); err == nil && ours != theirs {
			return fmt.Errorf("%w: process %d is in a container or a chroot", knob.ErrNotSupported, s.PID)
		}
	}
	if s.PID == 1 {
		return fmt.Errorf("%w: the server is the first process of a container", knob.ErrNotSupported)
	}
	if err := syscall.Kill(s.PID, 0); err != nil {
		return fmt.Errorf("signal process %d: %w", s.PID, err)
	}
	return nil
}

// restart ends a server and starts it again with a command line. It returns when the new process
// has its sockets.
func (s Server) restart(ctx context.Context, kind Kind, path string, args []string) error {
	if s.Unit != "" {
		out, err := exec.CommandContext(ctx, "systemctl", "restart", s.Unit).CombinedOutput()
		if err != nil {
			return fmt.Errorf("restart %s: %w: %s", s.Unit, err, firstLine(string(out)))
		}
		return s.replaced(ctx, kind, path)
	}
	if s.env == nil {
		return fmt.Errorf("restart %s: %w: how it was started is not known", kind, fs.ErrNotExist)
	}
	args = slices.Clone(args)
	args[0] = s.program
	// The shell outlives this process: a server that was ended is always started again.
	const script = `kill -TERM "$1"; n=0
while kill -0 "$1" 2>/dev/null && [ "$n" -lt 300 ]; do sleep 0.02; n=$((n+1)); done
kill -KILL "$1" 2>/dev/null
[ -z "$FORGET" ] || rm -f $FORGET
unset FORGET
shift; exec "$@" 3>&-`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", strconv.Itoa(s.PID)}, args...)...)
	cmd.ExtraFiles = []*os.File{s.turn} // descriptor 3
	cmd.Dir = s.Dir
	cmd.Env = append(slices.Clone(s.env), "FORGET="+s.forget)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A closed stream, or one of another user, makes the new log go nowhere.
	if f, err := os.OpenFile(s.streams[0], os.O_WRONLY|os.O_APPEND, 0); err == nil {
		defer f.Close() // the shell has its own
		cmd.Stdout = f
	}
	if f, err := os.OpenFile(s.streams[1], os.O_WRONLY|os.O_APPEND, 0); err == nil {
		defer f.Close() // the shell has its own
		cmd.Stderr = f
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("restart %s: %w", kind, err)
	}
	go func() { _ = cmd.Wait() }() // its end shows as a server that does not come back
	return s.replaced(ctx, kind, path)
}

// replaced waits until another process has the configuration, and is ready.
func (s Server) replaced(ctx context.Context, kind Kind, path string) error {
	seen := false
	for end := time.Now().Add(waitForServer); time.Now().Before(end); {
		now, err := Find(kind, path)
		other := err == nil && (now.PID != s.PID || now.Started != s.Started)
		switch {
		case other && now.ready(kind):
			return nil
		case other:
			seen = true
		case errors.Is(err, fs.ErrNotExist) && seen:
			return fmt.Errorf("restart %s: %w: it ended at once", kind, fs.ErrNotExist)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("restart %s: %w: it did not come back within %v", kind, os.ErrDeadlineExceeded, waitForServer)
}

// ready reports whether a process has its sockets. Knot Resolver opens those for clients while it
// reads its configuration, and that for control afterwards.
func (s Server) ready(kind Kind) bool {
	if kind == Kresd {
		if _, err := os.Stat(filepath.Join(s.Dir, "control", strconv.Itoa(s.PID))); err != nil {
			return false
		}
	}
	return s.listens()
}

// listens reports whether the process has a bound UDP socket.
func (s Server) listens() bool {
	bound := map[string]bool{}
	for _, name := range []string{"udp", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", s.PID, name))
		if err != nil {
			continue // without IPv6 there is no such file
		}
		for text := range strings.Lines(string(b)) {
			if f := strings.Fields(text); len(f) > 9 && f[3] == "07" { // not connected
				bound["socket:["+f[9]+"]"] = true
			}
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd", s.PID)
	fds, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(fds, func(e os.DirEntry) bool {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err == nil && bound[link]
	})
}

// log is the file on a server's standard error; "" if that is none.
func (s Server) log() string {
	name := fmt.Sprintf("/proc/%d/fd/2", s.PID)
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	link, err := os.Readlink(name)
	if err != nil {
		return ""
	}
	return link
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}

// CPU returns the CPU time that each thread of a server has had. Where the kernel does not count it
// in nanoseconds (CONFIG_SCHED_INFO), it returns knob.ErrNotSupported.
func (s Server) CPU() (map[int]time.Duration, error) {
	dir := fmt.Sprintf("/proc/%d/task", s.PID)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read CPU time of process %d: %w", s.PID, err)
	}
	all := map[int]time.Duration{}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, t.Name(), "schedstat"))
		if errors.Is(err, fs.ErrNotExist) {
			if _, gone := os.Stat(filepath.Join(dir, t.Name())); gone != nil {
				continue // the thread has ended
			}
			return nil, fmt.Errorf("read CPU time of process %d: %w: no schedstat", s.PID, knob.ErrNotSupported)
		}
		if err != nil {
			return nil, fmt.Errorf("read CPU time of process %d: %w", s.PID, err)
		}
		first, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read CPU time of process %d: %w", s.PID, err)
		}
		all[id] = time.Duration(n)
	}
	return all, nil
}
