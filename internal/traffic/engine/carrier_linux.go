package engine

import (
	"runtime"
	"strings"
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
	// A thread with more streams than this has a crowd. One that receives then naps before it waits
	// again, so that one wake-up by the network finds several of them ready; in a virtual machine a
	// wake-up costs the sender's CPU an exit to the hypervisor. With 256 connections between two
	// network namespaces 50 Gb/s become 55. With fewer streams what a stream gathers on its own (see
	// lowWater) is worth more, and a nap only delays it: with 8 connections 57 become 46.
	crowd = 64
	nap   = 20 * time.Microsecond
)

// share puts streams on one thread per CPU if each CPU has more than few, and returns how many
// threads that saves.
func share(streams []*Worker, cpus, few int) (saved int) {
	if len(streams) <= few*cpus {
		return 0
	}
	carriers := make([]*carrier, cpus)
	for i := range carriers {
		crowded := len(streams) > crowd*cpus
		carriers[i] = &carrier{crowded: crowded, naps: crowded && streams[0].Role == Receiver}
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
	// share prepares rounds that never sleep, unless linger allows it; moved counts the bytes of all
	// streams of the thread, and crowded says that there are more than crowd of them. descriptor is
	// what to wait for, until resting reports that no more rounds are needed.
	share(moved *int64, crowded bool) error
	descriptor() (fd int, write bool)
	// linger lets the next rounds sleep for up to lingerTime, or not, and reports whether they
	// will.
	linger(on bool) bool
	resting() bool
	// more reports that the last round moved all it asked for, so that there is space or data for
	// another; turn is how many bytes to move before the next stream is served.
	more() bool
	turn() int64
}

// carrier is the thread of several stream workers.
type carrier struct {
	members  []member
	start    sync.Once
	moved    int64 // bytes of all members
	patience patience
	crowded  bool  // it has more streams than crowd
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
		m.w.offThread()
		m.over = true
		m.ended <- err
	}
}

func (c *carrier) loop(p *sys.Poller, cpu int) error {
	for i := range c.members {
		m := &c.members[i]
		m.w.CPU = cpu
		m.w.onThread(sys.ThreadID())
		if err := m.body.share(&c.moved, c.crowded); err != nil {
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

// turn serves one stream, as long as its data flow, for one turn of its body at most. Its error is
// one of the thread, not of the stream.
func (c *carrier) turn(p *sys.Poller, m *member) error {
	var err error
	lingers := m.body.linger(c.patience.left())
	begin, start := m.w.Now(), m.w.Bytes.Load()
	for turn := m.body.turn(); m.w.Bytes.Load()-start < turn; {
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

// BBR paces each connection by a timer of the kernel, and a queued byte that may not leave yet sets
// it: with large calls one timer for each segment. In a virtual machine each costs two exits to the
// hypervisor, which were 45 % of the CPU time of a thread that sends on 256 streams. When that
// thread comes back to a stream, after all others, the time of its next segment has long passed. So
// it hands over whole segments, and a segment that may leave at once leaves nothing behind to set a
// timer for. CPU seconds per gigabyte at the sender, 256 streams, BBR: 0.28 with calls of 2 MiB,
// 0.21 with one segment per turn, 0.19 with four. Without pacing large calls cost less: 0.13
// instead of 0.18 (CUBIC). So do they with few streams, whose turns come back before the timer
// would have expired: 16 streams, 0.14 instead of 0.18.
const (
	segmentsPerTurn = 4
	// maxSegment bounds the payload of one message to the NIC: 64 KiB without the headers for which
	// the kernel keeps room (sk_gso_max_size less MAX_TCP_HEADER, net/core/sock.c).
	maxSegment = 64<<10 - 1 - 320
)

// pacedSegment returns the bytes of the largest segment of a connection whose congestion control
// paces by timers; 0: it does not, or the system does not report it.
func (c *Conn) pacedSegment() int {
	name, err := sys.Congestion(c.fd)
	if err != nil {
		return 0
	}
	info, err := sys.ReadTCPInfo(c.fd)
	if err != nil {
		return 0
	}
	return wholeSegment(name, int(info.SndMSSBytes))
}

// wholeSegment is pacedSegment for a congestion control and an MSS in bytes. In Linux only BBR, in
// any version, asks for pacing (SK_PACING_NEEDED, net/ipv4/tcp_bbr.c).
func wholeSegment(congestion string, mss int) int {
	if !strings.HasPrefix(congestion, "bbr") || mss <= 0 {
		return 0
	}
	return max(maxSegment/mss, 1) * mss
}

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

func (s *streamSender) share(moved *int64, crowded bool) error {
	s.shared, s.short.meter.shared = true, moved
	// This thread must not sleep for one of its streams, so the kernel alone keeps their rates.
	if rate := s.pace.bytesPerSecond; rate > 0 {
		s.pace = schedule{}
		if err := sys.SetMaxPacingRate(s.conn.fd, rate); err != nil {
			return err
		}
	}
	if _, ok := s.from.(lingerer); ok {
		if crowded && s.conn.pacing == 0 {
			s.segment = s.conn.pacedSegment()
		}
		if s.segment > 0 {
			s.call = min(s.call, s.segment)
		}
		return sys.SetTimeout(s.conn.fd, lingerTime)
	}
	return sys.SetBlocking(s.conn.fd, false)
}

func (s *streamSender) linger(on bool) bool {
	from, ok := s.from.(lingerer)
	if !ok {
		return false
	}
	on = on && s.segment == 0 // to linger is to wait for the timer that whole segments avoid
	from.linger(on)
	return on
}

func (s *streamSender) descriptor() (fd int, write bool) { return s.conn.fd, true }
func (s *streamSender) resting() bool                    { return s.finished }
func (s *streamSender) more() bool                       { return s.full }

func (s *streamSender) turn() int64 {
	if s.segment > 0 {
		return int64(segmentsPerTurn * s.segment)
	}
	return turnBytes
}

func (r *streamReceiver) share(moved *int64, _ bool) error {
	r.gather.meter.shared = moved
	return sys.SetBlocking(r.conn.fd, false)
}

// linger refuses: data of other streams already wait.
func (r *streamReceiver) linger(bool) bool { return false }

func (r *streamReceiver) descriptor() (fd int, write bool) { return r.conn.fd, false }
func (r *streamReceiver) resting() bool                    { return false }
func (r *streamReceiver) more() bool                       { return r.full }
func (r *streamReceiver) turn() int64                      { return turnBytes }
