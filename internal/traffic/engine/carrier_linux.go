package engine

import (
	"runtime"
	"sync"

	"github.com/linerate/linerate/internal/sys"
)

// Multiplex lets many stream workers share one thread per CPU, when there are more than a few per CPU, and tells how many threads all workers then need. Call it
// before any of them runs, with all workers of one side; each still has its own tally, connection, error and end. cpus is how many CPUs they have.
//
// A thread per stream is the faster as long as threads mostly sleep. With hundreds that never do, the kernel's slices of some milliseconds add up to a second
// until each stream has had its turn, the buffers of those who wait run empty or full, and the rest of the program hardly gets a CPU.
func Multiplex(workers []*Worker, cpus int) (threads int) {
	var streams []*Worker
	for _, w := range workers {
		if _, ok := w.body.(streamBody); ok && w.carrier == nil {
			streams = append(streams, w)
		}
	}
	cpus = max(cpus, 1)
	if len(streams) <= streamsPerThread*cpus {
		return len(workers)
	}
	carriers := make([]*carrier, cpus)
	for i := range carriers {
		carriers[i] = &carrier{}
	}
	// In turn, as CPUOf gives out CPUs, so that all of one carrier would have been pinned to the same.
	for i, w := range streams {
		c := carriers[i%cpus]
		w.carrier, w.seat = c, len(c.members)
		c.members = append(c.members, member{w: w, body: w.body.(streamBody), ended: make(chan error, 1)})
	}
	return len(workers) - len(streams) + cpus
}

// streamBody is a body whose rounds need not sleep.
type streamBody interface {
	Body
	round(w *Worker) error
	// share prepares rounds that never sleep; descriptor is what to wait for, until resting says that no more rounds are needed.
	share() error
	descriptor() (fd int, write bool)
	resting() bool
	// more tells that the last round moved all it asked for, so that there is room or data for another.
	more() bool
}

// carrier is the thread of several stream workers.
type carrier struct {
	members []member
	start   sync.Once
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
		if err := m.body.share(); err != nil {
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
	// Silence: what is left below the low water mark of a stream that has ended would wait for ever.
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

// turn serves one stream, as long as it is in flow but for turnBytes at most. Its error is one of the thread, not of the stream.
func (c *carrier) turn(p *sys.Poller, m *member) error {
	var err error
	for start := m.w.Bytes.Load(); m.w.Bytes.Load()-start < turnBytes; {
		if err = m.body.round(m.w); err != nil || !m.body.more() {
			break
		}
	}
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

// turnBytes of one stream are moved before the next is served: they fill the window of a fast stream and take half a millisecond.
const turnBytes = 2 << 20

func (s *streamSender) share() error {
	s.shared = true
	return sys.SetBlocking(s.conn.fd, false)
}

func (s *streamSender) descriptor() (fd int, write bool) { return s.conn.fd, true }
func (s *streamSender) resting() bool                    { return s.finished }
func (s *streamSender) more() bool                       { return s.full }

func (r *streamReceiver) share() error { return sys.SetBlocking(r.conn.fd, false) }

func (r *streamReceiver) descriptor() (fd int, write bool) { return r.conn.fd, false }
func (r *streamReceiver) resting() bool                    { return false }
func (r *streamReceiver) more() bool                       { return r.full }
