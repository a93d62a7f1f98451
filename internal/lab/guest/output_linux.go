package guest

import (
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// outputGrace is how long output may arrive after its program has ended: children that keep the
// output open do not delay the reply for longer.
const outputGrace = 5 * time.Second

// pipeBytes is what a pipe holds by default (pipe(7)).
const pipeBytes = 64 << 10

// program is a program of the guest with its outputs: one, or two that are kept apart.
type program struct {
	*exec.Cmd
	outputs []*stream
}

// stream passes on what a program and its children write to a pipe.
type stream struct {
	from, in *os.File // the ends of this process and of the program
	to       io.Writer
	over     chan struct{} // closed when no process has the pipe open any more, or after a cut
}

// start starts the program and passes on what it writes. Without complaints both of its outputs go
// to out, in their order.
func (p *program) start(out, complaints io.Writer) error {
	in, err := p.passOn(out)
	p.Stdout, p.Stderr = in, in
	if err == nil && complaints != nil {
		in, err = p.passOn(complaints)
		p.Stderr = in
	}
	if err == nil {
		err = p.Start()
	}
	for _, s := range p.outputs {
		_ = s.in.Close() // the program has its own
	}
	if err != nil {
		p.end(0)
	}
	return err
}

// passOn makes a pipe, passes on to w what is written to it, and returns the end of the program.
func (p *program) passOn(w io.Writer) (in *os.File, err error) {
	s := &stream{to: w, over: make(chan struct{})}
	if s.from, s.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	p.outputs = append(p.outputs, s)
	go func() {
		defer close(s.over)
		_, _ = io.Copy(s.to, s.from) // a cut is an error; a host that is gone ends the guest
	}()
	return s.in, nil
}

// wait waits for the end of the program, and until all has been passed on that it wrote.
func (p *program) wait(grace time.Duration) {
	_ = p.Wait() // the status has the result
	p.end(grace)
}

func (p *program) end(grace time.Duration) {
	until := time.Now().Add(grace)
	for _, s := range p.outputs {
		s.end(time.Until(until))
	}
}

// end returns when all has been passed on that was written before the call, however slowly the host
// takes it. For children that keep the pipe open it waits no longer than grace.
func (s *stream) end(grace time.Duration) {
	defer s.from.Close()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-s.over:
		return
	case <-limit.C:
	}
	// A deadline ends the next read of the pipe and no write to the host. A guest whose clock counts
	// instructions comes here at once when it waits for its host.
	_ = s.from.SetReadDeadline(time.Unix(1, 0)) // a pipe has deadlines
	<-s.over
	_ = s.from.SetReadDeadline(time.Time{})
	raw, err := s.from.SyscallConn()
	if err != nil {
		return
	}
	rest, n := make([]byte, pipeBytes), 0
	_ = raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), rest) // returns at once: the descriptor does not block
		return true
	})
	if err == nil && n > 0 {
		_, _ = s.to.Write(rest[:n]) // as above
	}
}
