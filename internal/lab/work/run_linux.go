package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// Run works until ctx ends, which is not an error. It writes Ready to out when the work takes
// effect.
func Run(ctx context.Context, w Work, out io.Writer) error {
	if err := w.Check(); err != nil {
		return err
	}
	j := &job{Work: w.filled(), out: out}
	bodies := map[Kind]func(context.Context) error{
		CPUHog: j.cpuHog, TCPSink: j.tcpSink, TCPSource: j.tcpSource, RPCServer: j.rpcServer, RPCClient: j.rpcClient,
		SlowListener: j.slowListener, Connector: j.connector, Churn: j.churn,
		UDPSink: j.udpSink, UDPSource: j.udpSource, UDPEcho: j.udpEcho, UDPFlows: j.udpFlows, Neighbours: j.neighbours,
	}
	// The machine that plays knows the size of the table; the scenario does not.
	if w.Fill > 0 {
		n, err := flowsToFill(w.Fill)
		if err != nil {
			return fmt.Errorf("work %s: %w", w.Kind, err)
		}
		j.Count = n
	}
	err := bodies[w.Kind](ctx)
	if ctx.Err() != nil || err == nil {
		return nil
	}
	return fmt.Errorf("work %s: %w", w.Kind, err)
}

// job is a running work. Its methods are the bodies of the kinds, with their names. Each returns
// when ctx ends or when it cannot go on.
type job struct {
	Work
	out io.Writer
}

// ready prints the line that the lab awaits before it starts the next work or asks for a verdict:
// no verdict may precede the fault.
func (j *job) ready() { fmt.Fprintln(j.out, Ready) }

// at returns the address that the work talks to or, without To, listens at.
func (j *job) at(port int) string { return net.JoinHostPort(j.To, strconv.Itoa(port)) }

// each runs one body per connection or thread and prints ready when all have begun. It ends all
// when one fails.
func (j *job) each(ctx context.Context, body func(ctx context.Context, begun func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun, ended sync.WaitGroup
	begun.Add(j.Count)
	for range j.Count {
		ended.Go(func() {
			done := sync.OnceFunc(begun.Done)
			defer done() // also for a body that failed, or each would wait for it
			if err := body(ctx, done); err != nil {
				cancel(err)
			}
		})
	}
	begun.Wait()
	if ctx.Err() == nil {
		j.ready()
	}
	ended.Wait()
	return context.Cause(ctx)
}

// cpuHog spins for Busy of every 10 ms, which is short compared with the sampling of processors.
func (j *job) cpuHog(ctx context.Context) error {
	const turn = 10 * time.Millisecond
	// Threads are pinned, so that every processor has its share: the scheduler would move them,
	// which makes a milder fault.
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("ask for the processors: %w", err)
	}
	if j.CPU != nil {
		one.Set(*j.CPU)
		all = one
	}
	var processors []int
	for cpu := 0; len(processors) < all.Count()*j.Count; cpu = (cpu + 1) % (len(all) * 64) {
		if all.IsSet(cpu) {
			processors = append(processors, cpu)
		}
	}
	j.Count = len(processors)
	// The Go runtime runs as many goroutines at once as there are processors. The hogs must compete
	// in the kernel, each as a thread of its own.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(j.Count + 1))
	next := make(chan int, len(processors))
	for _, cpu := range processors {
		next <- cpu
	}
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		cpu := <-next
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("stay on processor %d: %w", cpu, err)
		}
		begun()
		for ctx.Err() == nil {
			// Reading the clock needs no memory and no kernel, so it uses only the processor.
			for start := time.Now(); time.Since(start) < time.Duration(j.Busy*float64(turn)); {
			}
			if j.Busy < 1 {
				time.Sleep(time.Duration((1 - j.Busy) * float64(turn)))
			}
		}
		return nil
	})
}

// until closes c when ctx ends, so that a blocked call on c returns.
func until(ctx context.Context, c io.Closer) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() }) // the interrupted call returns the error
}

// buffered sets the receive buffer before a socket is bound, so that accepted connections have it
// from their first window on.
func (j *job) buffered(_, _ string, c syscall.RawConn) error {
	if j.Buffer == 0 {
		return nil
	}
	var err error
	if e := c.Control(func(
		fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, j.Buffer)
	}); e != nil {
		return e
	}
	return err
}

// pace sleeps until n units may have passed since start, at the given rate per second. With a rate
// of 0 it does not sleep.
func pace(ctx context.Context, start time.Time, n, rate float64) {
	if rate <= 0 {
		return
	}
	// Relative to the start and not to the last step, so that the mean rate is right in spite of
	// late steps.
	wait := time.Until(start.Add(time.Duration(n / rate * float64(time.Second))))
	if wait < time.Millisecond {
		return
	}
	rest(ctx, wait)
}

// rest waits for d or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve accepts until ctx ends and runs body with each connection. A client that leaves ends only
// its own body.
func (j *job) serve(ctx context.Context, body func(c net.Conn)) error {
	lc := net.ListenConfig{Control: j.buffered}
	lc.SetMultipathTCP(false) // most programs speak TCP alone
	l, err := lc.Listen(ctx, "tcp4", j.at(j.Port))
	if err != nil {
		return err
	}
	defer incoming.CloseWith(ctx, func() { _ = l.Close() })()
	j.ready()
	return incoming.Connections(ctx, l.Accept, nil, func(c net.Conn) {
		go func() {
			defer c.Close()
			defer until(ctx, c)()
			body(c)
		}()
	})
}

// dial connects, and retries for a minute: a fault of the path may drop the first attempts.
func (j *job) dial(ctx context.Context) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp4", j.at(j.Port))
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if ctx.Err() != nil || errors.Is(err, unix.ECONNREFUSED) {
			return nil, err
		}
		rest(ctx, 10*time.Millisecond)
	}
}
