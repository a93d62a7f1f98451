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

// lane is one direction: the thread that moves it, its Line, and what others may see of it.
type lane struct {
	name  string
	line  *Line
	in    int
	from  reader
	to    *writer
	wake  int // eventfd: parameters have changed, or the link closes
	ended chan struct{}

	mu     sync.Mutex
	set    *change
	stop   bool
	counts Counters
	err    error
}

// Start joins interfaces a and b, which must exist and be up in this thread's network namespace:
// out is what happens to frames from a to b, back to those from b to a. It needs CAP_NET_RAW in the
// namespace. Only the inner ends of veth pairs make sense: an interface with a host's own addresses
// would be answered by both the host and the link.
func Start(a, b string, out, back Params, opt Options) (*Link, error) {
	l := &Link{fds: [2]int{-1, -1}}
	lines := [2]*Line{}
	for i, p := range [2]Params{out, back} {
		// Each direction rolls its own dice.
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
	// Whatever can fail comes before the first lane: Close waits for the thread of every lane there
	// is.
	wakes := [2]int{-1, -1}
	for i := range wakes {
		wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			if i > 0 {
				_ = unix.Close(wakes[0]) // nothing was told through it
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
			wake: wakes[i], ended: make(chan struct{}),
		}
	}
	for _, d := range l.lanes {
		go d.run()
	}
	return l, nil
}

// change is new parameters for a lane; done is closed when they hold.
type change struct {
	params Params
	done   chan struct{}
}

// Set changes the parameters of both directions, and returns when every frame sent from then on
// meets them.
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
			close(overtaken.done) // by this change, which holds instead
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

// Counters gives the totals of both directions.
func (l *Link) Counters() Counts {
	var c [2]Counters
	for i, d := range l.lanes {
		d.mu.Lock()
		c[i] = d.counts
		d.mu.Unlock()
	}
	return Counts{Out: c[0], Back: c[1]}
}

// Close ends the link. Frames on the way are lost. The error is what ended a direction before, if
// anything did.
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
		// Descriptors are closed below, after both threads: each sends through the socket that the
		// other reads.
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
	_, _ = unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // any number but zero; fails only when it is set already
}

// run moves the lane. The thread is its own so that neither the scheduler of the runtime nor a
// neighbour's work delays a frame.
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

// sharpen asks for timers without slack and, where allowed (CAP_SYS_NICE of the machine), for the
// processor before anything else: a card does not wait for the host's other work either. A lane
// sleeps most of the time; were it to run away, the kernel's limit on real-time threads
// (kernel.sched_rt_runtime_us) leaves the rest a share. Refusal costs precision on a busy machine
// only.
func sharpen() {
	// The default slack of 50 µs (prctl(2)) is the serialisation of four full frames at 1 Gb/s. The
	// unit is nanoseconds; 0 would mean the default.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	}
}

// tick is the finest step in which a busy lane wakes: frames that come due within it go together,
// as a card with interrupt moderation delivers them. It bounds the cost of many small frames; times
// are not rounded to it.
const tick = 50 * time.Microsecond

func (d *lane) loop() error {
	start := time.Now()
	var now time.Duration
	// One reading of the clock for everything that a round finds: what came while the thread slept
	// counts as come now, late by the wake-up at most, and a call per frame would cost more than
	// the frame.
	push := func(buf []byte) { d.line.Push(now, buf) }
	out := make([][]byte, 0, batch)
	fds := []unix.PollFd{{Fd: int32(d.in), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}}
	var cutTotal, refusedTotal, overrunTotal uint64
	var statistics time.Duration

	for {
		now = time.Since(start)
		for {
			n, cut, err := d.from.read(push)
			cutTotal += uint64(cut)
			// An interface that is down may come up again, as a pulled cable does; one that is gone
			// ends the lane at the next frame for it (ENXIO).
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

		if now >= statistics { // the kernel's count is cheap to read, but not per frame
			overrunTotal += overruns(d.in)
			statistics = now + 10*time.Millisecond
		}
		d.mu.Lock()
		d.counts = d.line.Counters()
		d.counts.Overruns, d.counts.Refused = overrunTotal+cutTotal, refusedTotal
		// Taken away under the lock: whoever comes next with parameters sees that these are no
		// longer his to overtake.
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
		if err := d.wait(fds, time.Since(start)); err != nil {
			return err
		}
	}
}

// wait sleeps until the next frame is due or one arrives.
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
		// somebody takes it. Reading a ring makes no system call that would, and this thread may
		// run before all others: it must not spin.
		_, _ = unix.GetsockoptInt(int(fds[0].Fd), unix.SOL_SOCKET, unix.SO_ERROR) // its content is known
	}
	if fds[1].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(d.wake, b[:]) // cleared; another poke meanwhile is seen by the next look at the lane
	}
	return nil
}
