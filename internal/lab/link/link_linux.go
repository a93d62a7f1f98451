package link

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Link carries frames between two interfaces of the calling process's network namespace until it is
// closed.
type Link struct {
	lanes [2]*lane
	fds   [2]int
	rings [2]reader
}

// lane is one direction: the thread that moves frames, its Line, and what other threads may read.
type lane struct {
	name  string
	line  *Line
	in    int
	from  reader
	to    *writer
	wake  int // eventfd: parameters have changed, or the link closes
	clock func() time.Duration
	ended chan struct{}

	mu     sync.Mutex
	set    *change
	stop   bool
	counts Counters
	err    error
}

// Start joins interfaces a and b, which must exist and be up in this thread's network namespace.
// The link treats frames from a to b by out, and frames from b to a by back. Start needs
// CAP_NET_RAW in the namespace. Join only the inner ends of veth pairs: to packets for an interface
// with addresses of its own both the host and the link would reply.
func Start(a, b string, out, back Params, opt Options) (*Link, error) {
	l := &Link{fds: [2]int{-1, -1}}
	lines := [2]*Line{}
	for i, p := range [2]Params{out, back} {
		// Each direction draws its own random numbers.
		p.Seed = p.Seed*2 + uint64(i)
		line, err := NewLine(p)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	for i, name := range [2]string{a, b} {
		fd, r, err := openSocket(name, opt)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		l.fds[i], l.rings[i] = fd, r
	}
	// Every step that can fail precedes the first lane: Close waits for the thread of every lane.
	wakes := [2]int{-1, -1}
	for i := range wakes {
		wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			if i > 0 {
				_ = unix.Close(wakes[0]) // no lane has it yet
			}
			_ = l.Close()
			return nil, fmt.Errorf("start link: %w", err)
		}
		wakes[i] = wake
	}
	for i := range l.lanes {
		l.lanes[i] = &lane{
			name: [2]string{a + " to " + b, b + " to " + a}[i],
			line: lines[i], in: l.fds[i], from: l.rings[i], to: &writer{fd: l.fds[1-i], m: newMessages()},
			wake: wakes[i], ended: make(chan struct{}), clock: opt.clock,
		}
	}
	for _, d := range l.lanes {
		go d.run()
	}
	return l, nil
}

// change holds new parameters for a lane. The lane closes done when it has applied them.
type change struct {
	params Params
	done   chan struct{}
}

// Set changes the parameters of both directions. When it returns, every frame sent from then on
// meets the new ones.
func (l *Link) Set(out, back Params) error {
	if err := errors.Join(out.Check(), back.Check()); err != nil {
		return err
	}
	for i, p := range [2]Params{out, back} {
		p.Seed = p.Seed*2 + uint64(i)
		d, c := l.lanes[i], &change{p, make(chan struct{})}
		d.mu.Lock()
		overtaken := d.set
		d.set = c
		d.mu.Unlock()
		if overtaken != nil {
			close(overtaken.done) // this change replaces it
		}
		d.poke()
		select {
		case <-c.done:
		case <-d.ended:
			return fmt.Errorf("change link %s: its interface is gone", d.name)
		}
	}
	return nil
}

// Counters returns the totals of both directions.
func (l *Link) Counters() Counts {
	var c [2]Counters
	for i, d := range l.lanes {
		d.mu.Lock()
		c[i] = d.counts
		d.mu.Unlock()
	}
	return Counts{Out: c[0], Back: c[1]}
}

// Close ends the link. Frames on the way are lost. The error is the one that ended a direction
// earlier, if any.
func (l *Link) Close() error {
	var errs []error
	for _, d := range l.lanes {
		if d == nil {
			continue
		}
		d.mu.Lock()
		d.stop = true
		d.mu.Unlock()
		d.poke()
		// The descriptors are closed below, after both threads: each thread sends through the
		// socket that the other reads.
		<-d.ended
		errs = append(errs, d.err, unix.Close(d.wake))
	}
	for i, fd := range l.fds {
		if l.rings[i] != nil {
			errs = append(errs, l.rings[i].close())
		}
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

func (d *lane) poke() {
	// Any number but zero will do; the write fails only when the counter is set already.
	_, _ = unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// run moves the lane on a thread of its own, so that neither the scheduler of the Go runtime nor
// another goroutine delays a frame.
func (d *lane) run() {
	// never unlocked: the thread ends with the goroutine, and with it its timer slack and priority
	runtime.LockOSThread()
	defer close(d.ended)
	sharpen()
	if err := d.loop(); err != nil {
		d.mu.Lock()
		d.err = fmt.Errorf("link %s: %w", d.name, err)
		d.mu.Unlock()
	}
}

// sharpen asks the kernel for timers without slack. Where it is allowed (CAP_SYS_NICE of the
// machine) it also asks for real-time scheduling: a NIC does not wait for the host's other work
// either. A lane sleeps most of the time; if it ran away, the kernel's limit on real-time threads
// (kernel.sched_rt_runtime_us) would leave other programs a share. A refusal costs precision on a
// busy machine only.
func sharpen() {
	// The default slack of 50 µs (prctl(2)) is the time that four full frames take at 1 Gb/s. The
	// unit is nanoseconds; 0 would select the default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	}
}

// tick is the shortest sleep of a busy lane: frames that come due within it leave together, as a
// NIC with interrupt moderation delivers them. It bounds the cost of many small frames. Departure
// times are not rounded to it.
const tick = 50 * time.Microsecond

func (d *lane) loop() error {
	if d.clock == nil {
		start := time.Now()
		d.clock = func() time.Duration { return time.Since(start) }
	}
	var now time.Duration
	// One reading of the clock for all frames of a round. A frame that arrived while the thread
	// slept counts as arrived now, late by at most the wake-up. A reading per frame would cost more
	// than the frame.
	push := func(buf []byte) { d.line.Push(now, buf) }
	out := make([][]byte, 0, batch)
	fds := []unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}}
	var cutTotal, refusedTotal, overrunTotal uint64
	var statistics time.Duration

	for {
		now = d.clock()
		for {
			n, cut, err := d.from.read(push)
			cutTotal += uint64(cut)
			// An interface that is down may come up again, as after a pulled cable. One that is
			// gone ends the lane at the next frame for it (ENXIO).
			if err != nil && !errors.Is(err, unix.ENETDOWN) {
				return err
			}
			if n < batch { // the socket is empty; a full batch may have more behind it
				break
			}
		}
		for {
			out = out[:0]
			for len(out) < batch {
				buf := d.line.Pop(now)
				if buf == nil {
					break
				}
				out = append(out, buf)
			}
			if len(out) == 0 {
				break
			}
			refused, err := d.to.write(out)
			refusedTotal += uint64(refused)
			for _, buf := range out {
				d.line.Recycle(buf)
			}
			if err != nil && !errors.Is(err, unix.ENETDOWN) {
				return err
			}
		}

		if now >= statistics { // reading the kernel's count is fast, but too slow per frame
			overrunTotal += overruns(d.in)
			statistics = now + 10*time.Millisecond
		}
		d.mu.Lock()
		d.counts = d.line.Counters()
		d.counts.Overruns, d.counts.Refused = overrunTotal+cutTotal, refusedTotal
		// Taken under the lock, so that a later Set sees that it can no longer replace this change.
		set, stop := d.set, d.stop
		d.set = nil
		d.mu.Unlock()
		if stop {
			return nil
		}
		if set != nil {
			if err := d.line.Set(set.params); err != nil {
				return err
			}
			close(set.done)
		}
		if err := d.wait(fds, d.clock()); err != nil {
			return err
		}
	}
}

// wait sleeps until the next frame is due or arrives.
func (d *lane) wait(fds []unix.PollFd, now time.Duration) error {
	var timeout *unix.Timespec
	if due, ok := d.line.Next(); ok {
		t := unix.NsecToTimespec(int64(max(tick, due-now)))
		timeout = &t
	}
	_, err := unix.Ppoll(fds, timeout, nil)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("wait for frames: %w", err)
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		// An interface that goes down leaves ENETDOWN on its socket, and poll returns at once until
		// a system call takes that error. Reading a ring makes none, and this thread may have
		// real-time priority: it must not spin.
		_, _ = unix.GetsockoptInt(int(fds[0].Fd), unix.SOL_SOCKET, unix.SO_ERROR) // ENETDOWN
	}
	if fds[1].Revents != 0 {
		var b [8]byte
		// Another poke before this read is not lost: the lane looks at its state after every wait.
		_, _ = unix.Read(d.wake, b[:])
	}
	return nil
}
