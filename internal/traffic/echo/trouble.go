package echo

import (
	"fmt"
	"net/netip"
)

// event is what happened on a socket: an answer, the departure of a packet, or a report about one.
type event struct {
	payload  []byte // of an answer; of a report the beginning of the packet that it is about, as far as it was returned
	received int64  // of an answer: CLOCK_REALTIME in nanoseconds when the kernel received it; 0: not known
	// CLOCK_REALTIME in nanoseconds when the packet with the number id entered this host's queues;
	// 0: none
	sent    int64
	id      uint32  // counts the packets of the socket from 0
	trouble Trouble // Count 0: none
	tooBig  bool    // the report is about the packet's size
	local   bool    // it is this host's own report
}

// nothing reports whether nothing happened.
func (e event) nothing() bool { return len(e.payload) == 0 && e.sent == 0 && e.trouble.Count == 0 }

// Trouble is what the network, or this host, reported about packets that did not get through.
type Trouble struct {
	Text  string     // "host unreachable", "fragmentation needed"
	By    netip.Addr // the host that reported it; invalid: not known
	MTU   int        // of the link that the packet was too big for, IP bytes; 0: not about size, or not reported
	Count int64      // packets that it was reported about
}

// String returns one plain sentence.
func (t Trouble) String() string {
	s := t.Text
	if t.MTU > 0 {
		s += fmt.Sprintf(" (the next link takes %d bytes)", t.MTU)
	}
	if t.By.IsValid() {
		s = fmt.Sprintf("%s says: %s", t.By, s)
	}
	if t.Count > 1 {
		s += fmt.Sprintf(", %d times", t.Count)
	}
	return s
}

// maxTroubles bounds the distinct reports: of a path with more hops that complain differently the
// first ones are kept.
const maxTroubles = 8

// troubles counts the reports, equal ones together.
type troubles struct {
	all [maxTroubles]Trouble
	n   int
}

func (t *troubles) add(x Trouble) {
	for i := range t.all[:t.n] {
		if k := &t.all[i]; k.Text == x.Text && k.By == x.By && k.MTU == x.MTU {
			k.Count += x.Count
			return
		}
	}
	if t.n < maxTroubles {
		t.all[t.n] = x
		t.n++
	}
}

// list returns the reports in the order of their first arrival.
func (t *troubles) list() []Trouble { return append([]Trouble(nil), t.all[:t.n]...) }
