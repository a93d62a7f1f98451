package load

import (
	"github.com/linerate/linerate/internal/kernel/sys"
)

// A query leaves some microseconds after the system call that sends it began: the send path of this
// host lies between, which is a tenth of the latency of a server nearby. The kernel reports when
// marked messages left ([sys.Outbox.Stamp]); those without a report are taken to have needed as
// long as the others usually do.

// marked is a message whose departure the kernel will report.
type marked struct {
	entered int64  // when its system call began, monotonic nanoseconds
	placed  uint64 // the queries in it, one bit for each of its burst
	number  uint32 // among the marked messages of its socket
	first   uint32 // sequence number of the burst's first query
	message int    // of the burst
	busy    bool
}

// departures is the marked messages of a port.
type departures struct {
	on      bool
	next    uint32 // number of the next one
	waiting int    // reports that have not arrived
	ring    []marked
}

// Bounds of marks.
const (
	// mostMarks is a whole burst of messages.
	mostMarks = mostBurst
	// A closed loop of more than mostMarkedQueries has a latency that is a hundred times the cost of
	// sending, and marks every closedMark-th burst. All other loads mark all their messages: what the
	// usual cost was taken for differs by some microseconds from burst to burst, as a thread that has
	// just woken up sends with cold caches.
	mostMarkedQueries = 32
	closedMark        = 64
	// likelyCost is the highest that a first report alone makes the usual cost.
	likelyCost = 20_000
	// A wake-up that is later than mostEarly, or than half of the time between two, is not made up for
	// by waking earlier. An idle CPU of a virtual machine needs some 70 µs.
	mostEarly = 120_000
	earlyStep = 1_000 // by which one wake-up changes what is usual, nanoseconds
	// A single delay raises the usual one by an eighth of at most farDelay nanoseconds: a thread that
	// is suspended meanwhile needs milliseconds.
	farDelay = 4_000
)

// wokeUp learns how late a wake-up usually is: two of three are less late than that.
func (w *worker) wokeUp(late int64, gap float64) {
	if float64(late) > w.early {
		w.early = min(w.early+2*earlyStep, mostEarly, gap/2)
	} else {
		w.early = max(w.early-earlyStep, 0)
	}
}

// usualCost is the time that the messages of a burst usually need from the begin of the system call
// to the interface. Each is behind those before it.
type usualCost struct {
	nanoseconds [mostBurst]float64
	known       int // messages of which one was reported
}

// of returns the cost of a message, 0 as long as nothing is known. What was never seen that far
// back in a burst costs as much as the last that was.
func (u *usualCost) of(message int) int64 {
	if u.known == 0 {
		return 0
	}
	return int64(u.nanoseconds[min(message, u.known-1)])
}

func (u *usualCost) learn(message int, nanoseconds int64) {
	for ; u.known <= message; u.known++ {
		u.nanoseconds[u.known] = float64(min(nanoseconds, likelyCost*int64(u.known+1)))
	}
	u.nanoseconds[message] += min(float64(nanoseconds)-u.nanoseconds[message], farDelay) / 8
}

// marks reports whether the kernel shall report the departures of a burst that a port sends now.
func (w *worker) marks(p *port, messages int) bool {
	w.bursts++
	sampled := w.o.Mode == Closed && w.most > mostMarkedQueries && w.bursts%closedMark != 0
	return p.departures.on && p.departures.waiting+messages <= mostMarks && !sampled
}

// mark notes that the messages of a burst are marked.
func (p *port) mark(messages int, entered int64, first uint32, placed *[mostBurst]uint64) {
	d := &p.departures
	for i := range messages {
		d.ring[d.next%mostMarks] = marked{entered: entered, placed: placed[i], number: d.next, first: first, message: i,
			busy: true}
		d.next++
	}
	d.waiting += messages
}

// forget gives up the reports that have not arrived, and begins a new numbering: after a refused
// message it is not certain whether the kernel gave it a number.
func (p *port) forget(scratch []byte) {
	d := &p.departures
	if !d.on {
		return
	}
	sys.DrainErrors(p.fd, scratch)
	clear(d.ring)
	d.next, d.waiting = 0, 0
	d.on = sys.SetSendTimes(p.fd) == nil
}

// overdueMark is after how many nanoseconds a report is given up.
const overdueMark = 1e9

// overdue gives up reports that the kernel dropped, or that the driver never makes.
func (w *worker) overdue(p *port, now int64) {
	if d := &p.departures; d.waiting > 0 && now-d.ring[(d.next-1)%mostMarks].entered > overdueMark {
		if w.cost.known == 0 {
			w.outbox.StampAtQueue() // this driver reports nothing
		}
		p.forget(w.scratch)
	}
}

// collectDepartures reads the reports of a port, and returns whether there was one. They arrive
// before the answers to their queries.
func (w *worker) collectDepartures(p *port) (found bool) {
	d := &p.departures
	for d.on {
		n := w.reports.Receive(p.fd)
		if n == 0 {
			break
		}
		found = true
		now, offset := w.clocks()
		for i := range n {
			number, at, ok := w.reports.Report(i)
			m := &d.ring[number%mostMarks]
			if !ok || !m.busy || m.number != number {
				continue
			}
			m.busy = false
			d.waiting--
			// A time outside the call's comes from a step of the clock, or from before forget.
			if left := at - offset; left >= m.entered && left <= now {
				w.departed(p, m, left)
			}
		}
		if n < mostMarks {
			break
		}
	}
	return found
}

// departed sets when the queries of a message left.
func (w *worker) departed(p *port, m *marked, left int64) {
	w.cost.learn(m.message, left-m.entered)
	w.tally.departures++
	for i := range uint32(mostBurst) {
		if m.placed&(1<<i) != 0 {
			p.table.departedAt(m.first+i, left)
		}
	}
}
