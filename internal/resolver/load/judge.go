package load

import (
	"encoding/binary"

	"github.com/linerate/linerate/internal/resolver/message"
	"github.com/linerate/linerate/internal/resolver/names"
)

// judge checks the messages of one worker or connection.
type judge struct {
	set     *names.Set
	edns    bool // the queries have an OPT record
	limit   int  // octets of the largest answer over UDP; 0: any
	scratch []byte
	answer  message.Answer
	whole   []uint64 // a bit for each question that was answered whole; nil: not over UDP, or too many
	recent  float64  // mean latency since sending, in nanoseconds, of some twenty latest answers
	least   float64  // latency since sending, in nanoseconds
	// trace, of tests, gets each accepted answer; nil: none.
	trace func(id uint16, q query, arrived int64)
}

func newJudge(set *names.Set, transport Transport) *judge {
	j := &judge{set: set, scratch: make([]byte, set.Longest()), edns: set.UDPBytes() > 0}
	if transport == UDP {
		j.limit = max(set.UDPBytes(), 512)
		if set.Len() <= mostFollowed {
			j.whole = make([]uint64, (set.Len()+63)/64)
		}
	}
	return j
}

// mostFollowed is how many questions have a bit, 32 kB for each port.
const mostFollowed = 1 << 18

// limited reports whether an answer is truncated and its question was answered whole before.
func (j *judge) limited(index uint32) bool {
	word, bit := int(index/64), uint64(1)<<(index%64)
	if word >= len(j.whole) { // also a fresh name
		return false
	}
	if !j.answer.Truncated {
		j.whole[word] |= bit
	}
	return j.answer.Truncated && j.whole[word]&bit != 0
}

// receive takes a message that arrived at a moment (monotonic nanoseconds) into account. It reports
// whether a waiting query has ended.
func (j *judge) receive(m []byte, arrived int64, t *table, c *tally) (ended bool) {
	if len(m) < message.HeaderBytes {
		c.wrong(message.Short)
		return false
	}
	q := t.find(binary.BigEndian.Uint16(m))
	if q == nil {
		c.wrong(message.UnknownID)
		return false
	}
	kind := message.Check(m, j.set.Question(j.scratch, q.index, q.serial), &j.answer)
	if kind == message.OtherQuestion && q.state != waiting {
		// The id was guessed, or belongs to a query of long ago.
		kind = message.UnknownID
	}
	if kind == message.Sound && j.limit > 0 && len(m) > j.limit {
		kind = message.Oversize
	}
	switch {
	case kind != message.Sound:
		// The query goes on waiting: a message with a fault may be forged.
		c.wrong(kind)
		return false
	case q.state == done:
		c.Duplicates++
		return false
	case q.state == lost:
		c.Late++
		q.state = done // a second one is a duplicate
		return false
	}
	// A truncated answer says only that the whole one needs TCP. Where a load balancer makes it, to
	// limit the rate, it does not know the code either.
	if e, ok := j.set.Expected(q.index); ok && !j.answer.Truncated {
		switch {
		case e.HasCode && e.Code != j.answer.Code:
			kind = message.OtherCode
		case e.Address != nil && !j.answer.HasAddress(m, e.Address):
			kind = message.OtherContent
		}
	}
	if kind != message.Sound {
		c.wrong(kind)
		t.close(q)
		return true
	}
	c.Answers++
	c.codes[min(j.answer.Code, codes-1)]++
	if j.limited(q.index) {
		c.limited++
	}
	if j.answer.Truncated {
		c.Truncated++
	}
	if j.answer.Authentic {
		c.Authentic++
	}
	if j.edns && !j.answer.EDNS {
		c.NoEDNS++
	}
	sent := min(q.sent, arrived) // which may be the usual time of its sending
	from := sent
	if q.due != 0 {
		from = min(q.due, sent) // a query that left a microsecond early had that much more time
		c.delay.Record(sent - q.due)
	}
	if j.trace != nil {
		j.trace(binary.BigEndian.Uint16(m), *q, arrived)
	}
	c.latency.Record(arrived - from)
	c.service.Record(arrived - sent)
	took := float64(arrived - sent)
	j.recent += (took - j.recent) / 16
	if took < j.least || j.least == 0 {
		j.least = took
	}
	t.close(q)
	return true
}
