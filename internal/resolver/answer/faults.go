package answer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/resolver/message"
)

// Fault is one kind of misbehaviour.
type Fault string

// The faults.
const (
	Drop          Fault = "drop"           // no answer
	Late          Fault = "late"           // after LateBy
	Twice         Fault = "twice"          // two answers
	WrongID       Fault = "wrong-id"       // the id of no query
	OtherPort     Fault = "other-port"     // from a port that was not asked
	OtherQuestion Fault = "other-question" // another name
	NoQuestion    Fault = "no-question"
	Loop          Fault = "loop" // a compressed name that points at itself
	Malformed     Fault = "malformed"
	Trailing      Fault = "trailing"
	Short         Fault = "short"     // half a header
	Truncated     Fault = "truncated" // the TC bit and no records
	Failure       Fault = "servfail"
	Query         Fault = "query" // the query itself, sent back
)

// all lists the faults in the order of help texts.
var all = []Fault{Drop, Late, Twice, WrongID, OtherPort, OtherQuestion, NoQuestion, Loop, Malformed, Trailing, Short,
	Truncated, Failure, Query}

// Names returns the faults, for help texts.
func Names() []string {
	var names []string
	for _, f := range all {
		names = append(names, string(f))
	}
	return names
}

// Faults says which queries get which wrong answer.
type Faults struct {
	Every  map[Fault]uint64 // every n-th query; of several that are due, the first by name
	LateBy time.Duration    // default 1 s
}

// ParseFaults reads faults and their frequency: twice=100,loop=50.
func ParseFaults(s string) (Faults, error) {
	f := Faults{Every: map[Fault]uint64{}}
	if s == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, every, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(every, 10, 64)
		switch {
		case !slices.Contains(all, Fault(name)):
			return f, fmt.Errorf("read fault %q: it is none of %s", name, strings.Join(Names(), ", "))
		case !ok || err != nil || n == 0:
			return f, fmt.Errorf("read fault %q: want %s=N for every N-th query", part, name)
		}
		f.Every[Fault(name)] = n
	}
	return f, nil
}

// due returns the fault of the n-th query; "": none.
func (f Faults) due(n uint64) Fault {
	for _, kind := range all {
		if every := f.Every[kind]; every > 0 && n%every == 0 {
			return kind
		}
	}
	return ""
}

// reply is one message in answer to a query.
type reply struct {
	m         []byte
	wait      time.Duration
	otherPort bool
}

// replies returns the messages in answer to the n-th query, written to b.
func (f Faults) replies(b []byte, q message.Query, n uint64, ttl uint32, datagram bool) []reply {
	m := sound(b[:0], q, ttl)
	r := reply{m: m}
	owner := message.HeaderBytes + len(q.Question)
	switch f.due(n) {
	case Drop:
		return nil
	case Late:
		if r.wait = f.LateBy; r.wait == 0 {
			r.wait = time.Second
		}
	case Twice:
		return []reply{r, r}
	case WrongID:
		m[0] ^= 0x55
		m[1] ^= 0xaa
	case OtherPort:
		r.otherPort = datagram
	case OtherQuestion:
		m[message.HeaderBytes+1] = other(m[message.HeaderBytes+1])
	case NoQuestion:
		r.m = append(m[:message.HeaderBytes], m[owner:]...)
		r.m[5] = 0
	case Loop:
		// A record behind all others whose owner points at itself.
		at := len(m)
		r.m = append(m, 0xc0|byte(at>>8), byte(at), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
		binary.BigEndian.PutUint16(r.m[10:], binary.BigEndian.Uint16(r.m[10:])+1)
	case Malformed:
		m[9] = 7 // records that are not there
	case Trailing:
		r.m = append(m, 0, 0, 0)
	case Short:
		r.m = m[:6]
	case Truncated:
		m[2] |= 2
		r.m = m[:owner]
		clear(m[6:12])
	case Failure:
		m[3] = m[3]&^15 | byte(message.ServerFailure)
		r.m = m[:owner]
		clear(m[6:12])
	case Query:
		m[2] &^= 0x80
	}
	return []reply{r}
}

// other returns another octet of a label.
func other(c byte) byte {
	if c == 'x' {
		return 'y'
	}
	return 'x'
}
