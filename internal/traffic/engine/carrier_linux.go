package engine

import (
	"runtime"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Multiplex lets many stream workers share one thread per CPU when there are more than a few per
// CPU, and returns how many threads all workers then need. Call it before any of them runs, with
// all workers of one end; each still has its own tally, connection, error and end. cpus is the
// number of CPUs they have.
//
// A thread per stream is faster as long as threads mostly sleep. With hundreds that never sleep,
// the kernel's time slices of some milliseconds add up to a second until each stream has had its
// turn. Meanwhile the buffers of waiting streams run empty or full, and the rest of the program
// hardly gets a CPU.
func Multiplex(workers []*Worker, cpus int) (threads int) {
	cpus = max(cpus, 1)
	var senders, receivers []*Worker
	for _, w := range workers {
		if _, ok := w.body.(streamBody); !ok || w.carrier != nil {
			continue
		}
		if w.Role == Sender {
			senders = append(senders, w)
		} else {
			receivers = append(receivers, w)
		}
	}
	// Never both on one thread: while a sender waits for space, a receiver could make some at the
	// other end.
	return len(workers) - share(senders, cpus, sendersPerThread) - share(receivers, cpus, receiversPerThread)
}

const (
	// A thread that receives on more streams than this naps before it waits again, so that one
	// wake-up by the network finds several of them ready; in a virtual machine a wake-up costs the
	// sender's CPU an exit to the hypervisor. With 256 connections between two network namespaces
	// 50 Gb/s become 55. With fewer streams what a stream gathers on its own (see lowWater) is
	// worth more, and a nap only delays it: with 8 connections 57 become 46.
	napAbove = 64
	nap      = 20 * time.Microsecond
)

// share puts streams on one thread per CPU if each CPU has more than few, and returns how many
// threads that saves.
func share(streams []*Worker, cpus, few int) (saved int) {
	if len(streams) <= few*cpus {
		return 0
	}
	carriers := make([]*carrier, cpus)
	for i := range carriers {
		carriers[i] = &carrier{naps: streams[0].Role == Receiver && len(streams) > napAbove*cpus}
	}
	// In turn, as CPUOf assigns CPUs, so that all streams of one carrier have the same CPU.
	for i, w := range streams {
		c := carriers[i%cpus]
		w.carrier, w.seat = c, len(c.members)
		c.members = append(c.members, member{w: w, body: w.body.(streamBody), ended: make(chan error, 1)})
	}
	return len(streams) - cpus
}

// streamBody is a body whose rounds need not sleep.
type streamBody interface {
	Body
	round(w *Worker) error
	// share prepares rounds that never sleep, unless linger allows it; moved counts the bytes of
	// all streams of the thread. descriptor is what to wait for, until resting reports that no more
	// rounds are needed.
	share(moved *int64) error
	descriptor() (fd int, write bool)
	// linger lets the next rounds sleep for up to lingerTime, or not, and reports whether they
	// will.
	linger(on bool) bool
	resting() bool
	// more reports that the last round moved all it asked for, so that there is space or data for
	// another.
	more() bool
}

// carrier is the thread of several stream workers.
type carrier struct {
	members  []member
	start    sync.Once
	moved    int64 // bytes of all members
	patience patience
	naps     bool  // between rounds in which much was moved
	seen     int64 // of moved, at the start of the last round
}

type member struct {
	w     *Worker
	body  streamBody
	ended chan error // gets one error, or nil, when the carrier no longer touches the connection
	over  bool
}

// run is the life of one member: the first one to arrive starts the thread for all.
func (c *carrier) run(w *Worker, cpu int) error {
	c.start.Do(func() { go c.carry(cpu) })
	return <-c.members[w.seat].ended
}

// carry serves every ready member, one round each, until the test is over.
func (c *carrier) carry(cpu int) {
	runtime.LockOSThread() // never unlocked, as in Worker.Run
	if cpu < 0 || sys.Pin(cpu) != nil {
		cpu = -1
	}
	p, err := sys.NewPoller(min(len(c.members), pollerEvents))
	if err == nil {
		err = c.loop(p, cpu)
		p.Close() // first: a caller that waits for the members finds no descriptor of ours left
	}
	for i := range c.members {
		c.end(&c.members[i], err)
	}
}

// pollerEvents are taken at a time; with more, the last ones would be old when their turn comes.
const pollerEvents = 64

func (c *carrier) end(m *member, err error) {
	if !m.over {
		m.over = true
		m.ended <- err
	}
}

func (c *carrier) loop(p *sys.Poller, cpu int) error {
	for i := range c.members {
		m := &c.members[i]
		m.w.CPU = cpu
		if err := m.body.share(&c.moved); err != nil {
			return err
		}
		fd, write := m.body.descriptor()
		if err := p.Add(fd, write, i); err != nil {
			return err
		}
	}
	phase := c.members[0].w.Phase
	for phase.Is() != Stopped {
		if err := c.round(p); err != nil {
			return err
		}
	}
	return nil
}

// round waits once and serves all that are ready.
func (c *carrier) round(p *sys.Poller) error {
	if c.naps && c.moved-c.seen > minGatherBytes {
		sys.SleepUntil(sys.Monotonic() + nap)
	}
	c.seen = c.moved
	n, err := p.Wait(wakeEvery)
	if err != nil {
		return err
	}
	for i := range n {
		if err := c.turn(p, &c.members[p.Ready(i)]); err != nil {
			return err
		}
	}
	if n > 0 {
		return nil
	}
	// Silence: what is left below the low water mark of a stream that has ended would wait forever.
	for i := range c.members {
		m := &c.members[i]
		if _, write := m.body.descriptor(); write || m.over {
			continue
		}
		if err := c.turn(p, m); err != nil {
			return err
		}
	}
	return nil
}

// turn serves one stream, as long as its data flow, for turnBytes at most. Its error is one of the
// thread, not of the stream.
func (c *carrier) turn(p *sys.Poller, m *member) error {
	var err error
	lingers := m.body.linger(c.patience.left())
	begin, start := m.w.Now(), m.w.Bytes.Load()
	for m.w.Bytes.Load()-start < turnBytes {
		if err = m.body.round(m.w); err != nil || !m.body.more() {
			break
		}
	}
	if lingers {
		c.patience.learn(m.w.Now() - begin)
	}
	c.moved += m.w.Bytes.Load() - start
	if err == nil && !m.body.resting() {
		return nil
	}
	fd, _ := m.body.descriptor()
	if err := p.Remove(fd); err != nil {
		return err
	}
	// A stream that has sent its share lives on until the test is over; one that failed is over
	// now.
	if err != nil {
		c.end(m, err)
	}
	return nil
}

// turnBytes of one stream are moved before the next is served: they fill the window of a fast
// stream and take half a millisecond.
const turnBytes = 2 << 20

// A sender that never sleeps leaves a stream as soon as the window is full, and comes back for
// every few acknowledged segments. If the path is so short that the window opens again within the
// turn, waiting for that costs much less: with 16 connections between two network namespaces 52
// Gb/s become 57, with 256 31 become 52. On a longer path the other streams would starve meanwhile,
// so patience is lost quickly and regained slowly.
const (
	// lingerTime is the longest sleep; the kernel rounds it to its ticks of 1 to 10 ms.
	lingerTime = 4 * time.Millisecond
	// shortTurn is the longest turn after which the next one lingers too: turnBytes at 8 Gb/s.
	shortTurn = 2 * time.Millisecond
	// After a longer turn this many turns pass without lingering, after the next one twice as many,
	// and so on: in the end useless sleeps cost less than a thousandth.
	firstHaste = 64
	mostHaste  = 1 << 16
)

// patience decides whether a shared thread may sleep for the one stream whose turn it is.
type patience struct {
	haste int // turns to take without lingering
	next  int // haste after the next turn that takes too long
}

// left reports whether the next turn may linger, and counts it.
func (p *patience) left() bool {
	if p.haste == 0 {
		return true
	}
	p.haste--
	return false
}

// learn judges a turn that lingered.
func (p *patience) learn(lasted time.Duration) {
	if lasted <= shortTurn {
		p.next = max(p.next/2, firstHaste)
		return
	}
	p.haste = max(p.next, firstHaste)
	p.next = min(2*p.haste, mostHaste)
}

func (s *streamSender) share(moved *int64) error {
	s.shared, s.short.meter.shared = true, moved
	if _, ok := s.from.(lingerer); ok {
		return sys.SetTimeout(s.conn.fd, lingerTime)
	}
	return sys.SetBlocking(s.conn.fd, false)
}

func (s *streamSender) linger(on bool) bool {
	from, ok := s.from.(lingerer)
	if !ok {
		return false
	}
	from.linger(on)
	return on
}

func (s *streamSender) descriptor() (fd int, write bool) { return s.conn.fd, true }
func (s *streamSender) resting() bool                    { return s.finished }
func (s *streamSender) more() bool                       { return s.full }

func (r *streamReceiver) share(moved *int64) error {
	r.gather.meter.shared = moved
	return sys.SetBlocking(r.conn.fd, false)
}

// linger refuses: data of other streams already wait.
func (r *streamReceiver) linger(bool) bool { return false }

func (r *streamReceiver) descriptor() (fd int, write bool) { return r.conn.fd, false }
func (r *streamReceiver) resting() bool                    { return false }
func (r *streamReceiver) more() bool                       { return r.full }
