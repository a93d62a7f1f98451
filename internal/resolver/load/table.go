package load

import "time"

// The states of a query.
const (
	unused  uint8 = iota
	waiting       // sent, no answer yet
	done          // an answer was accepted, or its content was wrong
	lost          // no answer within the timeout
)

// query is one that was sent.
type query struct {
	due    int64  // monotonic nanoseconds; 0: it has no schedule
	sent   int64  // likewise, when it left, or when the call that sent it began
	serial uint64 // of a fresh name
	index  uint32 // in the set of names
	seq    uint16 // low bits of its sequence number
	state  uint8
}

// table holds the queries of one socket or connection. The id of a query is its sequence number,
// disguised by a secret so that ids differ between sockets; its place is the low bits of it. Places
// are reused in order, so a query that is done remains recognisable until the table comes round.
type table struct {
	queries []query // a power of two, at most 65536
	secret  uint16
	next    uint32 // sequence number of the next query
	tail    uint32 // the oldest that may still be waiting
	waiting int
}

// Bounds of a table.
const (
	leastTable = 256
	mostTable  = 1 << 16
)

// newTable returns a table of twice n queries, or as many as ids allow. As long as one query waits,
// its table can go round only once: a closed loop, which may answer thousands while a lost query
// waits for its timeout, needs more than it has outstanding.
func newTable(n int, secret uint16) *table {
	size := leastTable
	for size < 2*(n-1) && size < mostTable {
		size *= 2
	}
	return &table{queries: make([]query, size), secret: secret}
}

// room returns how many queries can be added now.
func (t *table) room() int { return len(t.queries) - int(t.next-t.tail) }

// add notes a query and returns its id. The caller has asked for room.
func (t *table) add(due, sent int64, index uint32, serial uint64) uint16 {
	seq := uint16(t.next)
	t.queries[int(seq)&(len(t.queries)-1)] = query{due: due, sent: sent, serial: serial, index: index, seq: seq,
		state: waiting}
	t.next++
	t.waiting++
	return seq ^ t.secret
}

// departedAt sets when the query with a sequence number left.
func (t *table) departedAt(number uint32, left int64) {
	if q := &t.queries[int(number)&(len(t.queries)-1)]; q.seq == uint16(number) {
		q.sent = left
	}
}

// find returns the query with an id, or nil if none of the latest had it.
func (t *table) find(id uint16) *query {
	seq := id ^ t.secret
	q := &t.queries[int(seq)&(len(t.queries)-1)]
	if q.state == unused || q.seq != seq {
		return nil
	}
	return q
}

// close ends the wait for a query.
func (t *table) close(q *query) {
	q.state = done
	t.waiting--
	t.advance()
}

// advance moves the tail over queries that are not waiting.
func (t *table) advance() {
	for t.tail != t.next && t.queries[int(t.tail)&(len(t.queries)-1)].state != waiting {
		t.tail++
	}
}

// expire marks as lost what was sent before a moment, and returns how many. Queries of one table
// are in the order of their sending, so it looks only at the oldest.
func (t *table) expire(before int64) (expired int) {
	for t.tail != t.next {
		q := &t.queries[int(t.tail)&(len(t.queries)-1)]
		if q.state == waiting {
			if q.sent >= before {
				return expired
			}
			q.state = lost
			t.waiting--
			expired++
		}
		t.tail++
	}
	return expired
}

// drop takes back the newest n queries, which were not sent.
func (t *table) drop(n int) {
	for range n {
		t.next--
		t.queries[int(t.next)&(len(t.queries)-1)].state = unused
		t.waiting--
	}
}

// pacer is the schedule of an open loop: when bursts are due. It has no clock.
//
// Unlike the pacer of bulk datagrams it forgives nothing. A client does not withdraw its query
// because a server, or this process, was busy.
type pacer struct {
	gap   float64 // nanoseconds between bursts
	burst int     // queries of a burst
	start int64
	count int64 // bursts taken
}

// closest is the planned time between two bursts of one worker: a wake-up and two system calls take
// a fifth of it.
const closest = 50 * time.Microsecond

// mostBurst is the most queries that are due at a time.
const mostBurst = 64

// newPacer plans a rate in queries per second from start on.
func newPacer(rate float64, start int64) pacer {
	p := pacer{gap: 1e9 / rate, burst: 1, start: start}
	for p.burst < mostBurst && p.gap < float64(closest) {
		p.burst++
		p.gap = 1e9 / rate * float64(p.burst)
	}
	return p
}

// due returns when the next burst is due.
func (p *pacer) due() int64 { return p.start + int64(float64(p.count)*p.gap) }
