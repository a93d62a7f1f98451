package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// remote is the maker's side of a channel to an agent.
type remote struct {
	name string
	ch   *channel

	mu      sync.Mutex
	last    uint64
	pending map[uint64]func(reply, []*os.File)
	gone    error // why no further reply can come
	done    chan struct{}
	pid     int
}

func newRemote(name string, ch *channel) *remote {
	r := &remote{name: name, ch: ch, pending: map[uint64]func(reply, []*os.File){}, done: make(chan struct{})}
	go r.listen()
	return r
}

// listen passes each reply to its caller.
func (r *remote) listen() {
	for {
		var p reply
		files, pid, err := r.ch.receive(&p)
		r.mu.Lock()
		if err != nil {
			r.gone = fmt.Errorf("lab host %s is gone", r.name)
			r.pending = nil
			close(r.done)
			r.mu.Unlock()
			return
		}
		r.pid = pid
		f := r.pending[p.ID]
		// Called without the lock, because f may lead to another request.
		r.mu.Unlock()
		if f == nil {
			closeAll(files)
			continue
		}
		f(p, files)
	}
}

// ask sends a request. The listening goroutine calls f for each reply, until forget.
func (r *remote) ask(q request, f func(reply, []*os.File), files ...*os.File) (uint64, error) {
	r.mu.Lock()
	if r.gone != nil {
		defer r.mu.Unlock()
		return 0, r.gone
	}
	r.last++
	q.ID = r.last
	r.pending[q.ID] = f
	r.mu.Unlock()
	if err := r.ch.send(q, files...); err != nil {
		r.forget(q.ID)
		return 0, fmt.Errorf("lab host %s: %w", r.name, err)
	}
	return q.ID, nil
}

func (r *remote) forget(id uint64) {
	r.mu.Lock()
	delete(r.pending, id)
	r.mu.Unlock()
}

// call sends a request and waits for its single reply.
func (r *remote) call(ctx context.Context, q request, files ...*os.File) (reply, []*os.File, error) {
	type answer struct {
		reply
		files []*os.File
	}
	// Room for the reply, so that the listener never waits for a caller that has given up.
	ch := make(chan answer, 1)
	id, err := r.ask(q, func(p reply, f []*os.File) { ch <- answer{p, f} }, files...)
	if err != nil {
		return reply{}, nil, err
	}
	defer r.forget(id)
	select {
	case a := <-ch:
		return a.reply, a.files, a.err()
	case <-r.done:
		return reply{}, nil, r.gone
	case <-ctx.Done():
		return reply{}, nil, ctx.Err()
	}
}

// run is a command that has been started.
type run struct {
	ctx     context.Context
	id      uint64
	started chan error
	exited  chan exitReply
	copies  sync.WaitGroup
	copyErr error
	mu      sync.Mutex
	closers []io.Closer // the maker's ends of pipes, closed when the command has ended
	unwatch func() bool

	cpu      time.Duration
	terminal *os.File // the terminal whose foreground the command has
}

// foreground reports whether f is the terminal of this process and this process is in its
// foreground.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeBack makes this process the foreground of its terminal again.
func takeBack(f *os.File) {
	// The command's process group was the foreground until it ended. Without this step the shell
	// would see this process as stopped at its next line. The kernel stops a background process
	// that asks for the foreground, unless it ignores this signal.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPGRP, unix.Getpgrp()) // fails if the terminal is gone
}

// Command returns linerate with the given arguments as a command in this host. When ctx ends, the
// command's process group is interrupted, and killed if the command still runs after killAfter.
func (h *Host) Command(ctx context.Context, args ...string) *Cmd {
	return h.Exec(ctx, append([]string{ourName}, args...)...)
}

// Exec returns a program as a command in this host.
func (h *Host) Exec(ctx context.Context, args ...string) *Cmd {
	return &Cmd{Args: args, host: h, run: &run{ctx: ctx, started: make(chan error, 1), exited: make(chan exitReply, 1)}}
}

// Start starts the command. A missing program is fs.ErrNotExist.
func (c *Cmd) Start() error {
	r := c.run
	var pass []*os.File // the command's ends
	var own []*os.File  // those to close here once they are passed
	defer func() { closeAll(own) }()
	fail := func(err error) error {
		for _, x := range r.closers {
			_ = x.Close()
		}
		return err
	}

	stdin, ours, err := c.input()
	if err != nil {
		return err
	}
	pass = append(pass, stdin)
	if ours {
		own = append(own, stdin)
	}
	// Files are passed unchanged, so that a terminal stays a terminal in the host. Other writers
	// get a pipe and a goroutine that copies.
	outputs := map[io.Writer]*os.File{} // the same writer for both streams keeps its order
	for _, w := range []io.Writer{c.Stdout, c.Stderr} {
		if f, ok := w.(*os.File); ok {
			pass = append(pass, f)
			continue
		}
		f, shared := outputs[w]
		if !shared {
			if f, err = c.output(w); err != nil {
				return fail(err)
			}
			outputs[w] = f
			own = append(own, f)
		}
		pass = append(pass, f)
	}

	q := request{Run: &runRequest{Args: c.Args, Env: c.Env, Dir: c.Dir, Terminal: foreground(stdin)}}
	if q.Run.Terminal {
		r.terminal = stdin
	}
	if c.Dir == "" {
		q.Run.Dir, _ = os.Getwd() // on an error the agent uses its own directory, which is the same
	}
	r.id, err = c.host.agent.ask(q, func(p reply, _ []*os.File) {
		switch {
		case p.Exited != nil:
			r.exited <- *p.Exited
		default:
			r.started <- p.err()
		}
	}, pass...)
	if err != nil {
		return fail(err)
	}
	// Without a context: a start takes milliseconds, and giving up on it would leave a command for
	// which no caller waits.
	select {
	case err = <-r.started:
	case <-c.host.agent.done:
		err = c.host.agent.gone
	}
	if err != nil {
		c.host.agent.forget(r.id)
		return fail(err)
	}
	// Only now: before the agent has replied, there is no command to signal.
	r.unwatch = context.AfterFunc(r.ctx, c.end)
	return nil
}

// input returns the descriptor that the command reads.
func (c *Cmd) input() (f *os.File, ours bool, err error) {
	switch in := c.Stdin.(type) {
	case nil:
		f, err = os.Open(os.DevNull)
		return f, true, err
	case *os.File:
		return in, false, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, false, err
	}
	c.run.closers = append(c.run.closers, write)
	// Not waited for: a reader that never ends must not delay the end of the command.
	go func() {
		_, _ = io.Copy(write, c.Stdin) // a command need not read all of its input
		_ = write.Close()
	}()
	return read, true, nil
}

// output returns a descriptor whose content goes to w.
func (c *Cmd) output(w io.Writer) (*os.File, error) {
	if w == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := c.run
	r.closers = append(r.closers, read)
	r.copies.Go(func() {
		if _, err := io.Copy(w, read); err != nil && !errors.Is(err, os.ErrClosed) {
			r.mu.Lock()
			r.copyErr = errors.Join(r.copyErr, err)
			r.mu.Unlock()
		}
	})
	return write, nil
}

// Signal sends a signal to the command and its process group.
func (c *Cmd) Signal(s syscall.Signal) error {
	_, _, err := c.host.agent.call(context.Background(), request{Signal: &signalRequest{Run: c.run.id, Signal: int(s)}})
	return err
}

// end interrupts the command, and kills it if it still runs after killAfter.
func (c *Cmd) end() {
	_ = c.Signal(syscall.SIGINT)
	select {
	case e := <-c.run.exited:
		c.run.exited <- e
	case <-c.host.agent.done:
	case <-after():
		_ = c.Signal(syscall.SIGKILL)
	}
}

// Wait waits until the command has ended and its output has arrived. The error is *ExitError for a
// status other than zero, joined with ctx's error if ctx has ended.
func (c *Cmd) Wait() error {
	r, agent := c.run, c.host.agent
	var e exitReply
	select {
	case e = <-r.exited:
		r.exited <- e // for end, which may also be waiting
	case <-agent.done:
		e = exitReply{Code: -1, Signal: int(syscall.SIGKILL)}
	}
	r.cpu = e.CPU
	// No signal is sent from here on.
	r.unwatch()
	agent.forget(r.id)
	if r.terminal != nil {
		takeBack(r.terminal)
	}
	c.drain()
	for _, x := range r.closers {
		_ = x.Close()
	}
	if e.Code == 0 {
		return r.copyErr
	}
	exit := &ExitError{Name: c.Args[0], Code: e.Code, Signal: e.Signal}
	if c.Args[0] == ourName && len(c.Args) > 1 {
		exit.Name += " " + c.Args[1]
	}
	if err := r.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", exit, err)
	}
	return exit
}

// CPU returns the processor time of the command and of the children that it waited for. It is known
// after Wait.
func (c *Cmd) CPU() time.Duration { return c.run.cpu }

// drain waits for the output, but only for killAfter: children of the command may keep its
// descriptors open.
func (c *Cmd) drain() {
	all := make(chan struct{})
	go func() { c.run.copies.Wait(); close(all) }()
	select {
	case <-all:
	case <-after():
	}
}

// Run starts the command and waits for it.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the command and returns its stdout.
func (c *Cmd) Output() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}

// Set applies settings in this host.
func (h *Host) Set(ctx context.Context, settings ...scenario.Setting) error {
	_, _, err := h.agent.call(ctx, request{Configure: &configureRequest{Settings: settings}})
	return wrapHost(h.Name, err)
}

// Settings reads every setting of this host that a program could change: all of net.*, routes with
// metrics, MTU, queue length and features of interfaces. Equal maps mean that no setting has
// changed.
func (h *Host) Settings(ctx context.Context) (map[string]string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	all := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(read) // a truncated snapshot does not parse
		all <- b
	}()
	_, _, err = h.agent.call(ctx, request{Snapshot: true}, write)
	_ = write.Close() // this copy; the agent closes its own when it has replied
	b := <-all
	if err != nil {
		return nil, wrapHost(h.Name, err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(b, &settings); err != nil {
		return nil, fmt.Errorf("host %s: settings: %w", h.Name, err)
	}
	return settings, nil
}

func wrapHost(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("host %s: %w", name, err)
}
