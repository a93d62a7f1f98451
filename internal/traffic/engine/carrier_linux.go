package engine

import (
	"runtime"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Multiplex lets many stream workers share one thread per CPU, when there are more than a few per
// CPU, and tells how many threads all workers then need. Call it before any of them runs, with all
// workers of one side; each still has its own tally, connection, error and end. cpus is how many
// CPUs they have.
//
// A thread per stream is the faster as long as threads mostly sleep. With hundreds that never do,
// the kernel's slices of some milliseconds add up to a second until each stream has had its turn,
// the buffers of those who wait run empty or full, and the rest of the program hardly gets a CPU.
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
	// Never both on one thread: while a sender waits for room, a receiver could make some at the
	// other end.
	return len(workers) - share(senders, cpus, sendersPerThread) - share(receivers, cpus, receiversPerThread)
}

const (
	// A thread that receives on more streams than this naps before it waits again, so that one
	// wake-up by the network, which in a virtual machine costs the sender's CPU an exit to the
	// hypervisor, finds several of them ready: with 256 connections between two network namespaces
	// 50 Gb/s become 55. With fewer streams what a stream gathers by itself (see lowWater) is worth
	// more, and a nap only keeps it waiting: with 8 connections 57 become 46.
	napAbove = 64
	nap      = 20 * time.Microsecond
)

// share puts streams on a thread per CPU if there are more than few for each, and tells how many
// threads that saves.
func share(streams []*Worker, cpus, few int) (saved int) {
	if len(streams) <= few*cpus {
		return 0
	}
	carriers := make([]*carrier, cpus)
	for i := range carriers {
		carriers[i] = &carrier{naps: streams[0].Role == Receiver && len(streams) > napAbove*cpus}
	}
	// In turn, as CPUOf gives out CPUs, so that all of one carrier would have been pinned to the
	// same.
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
	// share prepares rounds that never sleep, unless linger allows it; moved is what all of the
	// thread have moved. descriptor is what to wait for, until resting says that no more rounds are
	// needed.
	share(moved *int64) error
	descriptor() (fd int, write bool)
	// linger lets the next rounds sleep for as long as lingerTime, or not, and tells whether they
	// will.
	linger(on bool) bool
	resting() bool
	// more tells that the last round moved all it asked for, so that there is room or data for
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
	ended chan error // gets one error, or nil, when the carrier will not touch the connection any more
	over  bool
}

// run is the life of one member: the first to come starts the thread for all.
func (c *carrier) run(w *Worker, cpu int) error {
	c.start.Do(func() { go c.carry(cpu) })
	return <-c.members[w.seat].ended
}

// carry serves whoever is ready, one round each, until the test is over.
func (c *carrier) carry(cpu int) {
	runtime.LockOSThread() // never unlocked, as in Worker.Run
	if cpu < 0 || sys.Pin(cpu) != nil {
		cpu = -1
	}
	p, err := sys.NewPoller(min(len(c.members), pollerEvents))
	if err == nil {
		err = c.loop(p, cpu)
		p.Close() // first: whoever waits for the members finds no descriptor of ours left
	}
	for i := range c.members {
		c.end(&c.members[i], err)
	}
}

// pollerEvents are taken at a time; more would only be older when their turn comes.
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
	// Silence: what is left below the low water mark of a stream that has ended would wait for
	// ever.
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

// turn serves one stream, as long as it is in flow but for turnBytes at most. Its error is one of
// the thread, not of the stream.
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
	// One that has sent its share lives on until the test is over; one that failed is over now.
	if err != nil {
		c.end(m, err)
	}
	return nil
}

// turnBytes of one stream are moved before the next is served: they fill the window of a fast
// stream and take half a millisecond.
const turnBytes = 2 << 20

// A sender that never sleeps leaves a stream as soon as the window is full, and comes back for
// every few segments that were acknowledged. When the path is so short that the window opens again
// within the turn, it is much cheaper to wait for that: with 16 connections between two network
// namespaces 52 Gb/s become 57, with 256 31 become 52. On a longer path the others would starve
// meanwhile, so patience is lost quickly and regained slowly.
const (
	// lingerTime is the longest sleep; the kernel rounds it to its ticks of 1 to 10 ms.
	lingerTime = 4 * time.Millisecond
	// shortTurn is what a turn may take for the next one to linger too: turnBytes at 8 Gb/s.
	shortTurn = 2 * time.Millisecond
	// After a turn that took longer so many go by without lingering, after the next one twice as
	// many, and so on: sleeping for nothing costs less than a thousandth in the end.
	firstHaste = 64
	mostHaste  = 1 << 16
)

// patience tells a shared thread whether it may sleep for the one stream whose turn it is.
type patience struct {
	haste int // turns to take without
	next  int // haste after the next turn that is too long
}

// left tells whether the next turn may linger, and counts it.
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

// linger says no: data of others wait already.
func (r *streamReceiver) linger(bool) bool { return false }

func (r *streamReceiver) descriptor() (fd int, write bool) { return r.conn.fd, false }
func (r *streamReceiver) resting() bool                    { return false }
func (r *streamReceiver) more() bool                       { return r.full }
