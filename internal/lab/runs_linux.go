package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// runs are the commands started in a host. The agent is pid 1 there and inherits every orphan. One
// reaper therefore waits for all children and recognises the commands among them; os/exec would
// wait for its own child and lose that race.
type runs struct {
	ch *channel
	mu sync.Mutex // held from fork until id has the child, so that the reaper knows every command
	id map[int]uint64
}

func newRuns(ch *channel) *runs {
	r := &runs{ch: ch, id: map[int]uint64{}}
	// A buffer of one is enough: the kernel merges pending SIGCHLDs, and reap takes all children
	// that have ended.
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			r.reap()
		}
	}()
	return r
}

// start starts a command with the given stdin, stdout and stderr, in a process group of its own.
func (r *runs) start(id uint64, q runRequest, files []*os.File) error {
	if len(q.Args) == 0 {
		return errors.New("run in host: no command")
	}
	env := merge(os.Environ(), q.Env)
	path := ourselves
	if q.Args[0] != ourName {
		var err error
		if path, err = lookPath(q.Args[0], env); err != nil {
			return fmt.Errorf("run in host: %w", err)
		}
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	attr := &syscall.SysProcAttr{Setpgid: true, Foreground: q.Terminal, Ctty: int(fds[0])}
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, q.Args, &syscall.ProcAttr{Dir: q.Dir, Env: env, Files: fds, Sys: attr})
	if err != nil {
		return fmt.Errorf("run %s in host: %w", q.Args[0], err)
	}
	// Still under the lock: the reply "started" must precede the reply "exited", even for a command
	// that ends at once.
	r.id[pid] = id
	_ = r.ch.send(reply{ID: id, PID: pid}) // fails if the maker is gone
	return nil
}

// signal sends a signal to a command and everything in its process group. It ignores a command that
// has ended.
func (r *runs) signal(id uint64, s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, run := range r.id {
		if run == id {
			// Under the lock, which the reaper needs to reap the child: until then no other process
			// can have its number.
			if err := syscall.Kill(-pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("signal command %d: %w", pid, err)
			}
		}
	}
	return nil
}

// reap waits for every child that has ended.
func (r *runs) reap() {
	for {
		// Under the lock: between reaping a child and looking up its command, another command could
		// start with the same number.
		r.mu.Lock()
		var (
			status syscall.WaitStatus
			used   syscall.Rusage
		)
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		id, known := r.id[pid]
		delete(r.id, pid)
		r.mu.Unlock()
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if known {
			e := exitReply{Code: status.ExitStatus(), CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano())}
			if status.Signaled() {
				e.Code, e.Signal = -1, int(status.Signal())
			}
			_ = r.ch.send(reply{ID: id, Exited: &e})
		}
	}
}

// merge replaces and adds variables in an environment.
func merge(env, extra []string) []string {
	out := make([]string, 0, len(env)+len(extra))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		replaced := false
		for _, e := range extra {
			replaced = replaced || strings.HasPrefix(e, name+"=")
		}
		if !replaced {
			out = append(out, v)
		}
	}
	return append(out, extra...)
}

// lookPath finds a program as a shell with that environment does.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(list, ":") {
			if path, err := exec.LookPath(dir + "/" + name); err == nil && strings.HasPrefix(path, "/") {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}
