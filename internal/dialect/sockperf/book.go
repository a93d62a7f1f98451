package sockperf

import (
	"fmt"
	"net/netip"
	"time"
)

// Bounds of the book. admission.LimitLines bounds how much a flood from forged sources can write to
// a log.
const (
	maxGuests  = 32              // sources with a page of their own; all others share one
	guestQuiet = 5 * time.Second // silence after which a source counts as gone
)

// book records what each source did over UDP, which has no connections, and logs it in one sentence
// when the source has fallen silent. One goroutine owns it.
type book struct {
	log    func(string)
	guests map[netip.AddrPort]*guest
	last   *guest // of the previous datagram: most datagrams come in runs
	others guest  // sources without a page of their own
	swept  time.Duration
}

// guest is one source's page.
type guest struct {
	from                        netip.AddrPort
	began, seen                 time.Duration
	messages, answered, refused int64 // refused: by the gate
	malformed, unsent           int64 // unsent: by the kernel
	bytes                       int64
	first, highest              uint64 // sequence numbers
}

func newBook(log func(string)) *book {
	return &book{log: log, guests: make(map[netip.AddrPort]*guest, maxGuests)}
}

// page finds or creates the page of a source.
func (b *book) page(from netip.AddrPort, now time.Duration) *guest {
	// A comparison instead of a map lookup, for every datagram of a burst but its first.
	if b.last != nil && b.last.from == from {
		b.last.seen = now
		return b.last
	}
	g := b.guests[from]
	switch {
	case g != nil:
	case len(b.guests) < maxGuests:
		g = &guest{from: from, began: now}
		b.guests[from] = g
	default:
		// The clock never returns 0, so 0 marks an empty page.
		if b.others.began == 0 {
			b.others.began = now
		}
		b.others.seen = now
		return &b.others
	}
	g.seen = now
	b.last = g
	return g
}

// count records one message.
func (g *guest) count(sequence uint64, bytes int) {
	if g.messages == 0 {
		g.first, g.highest = sequence, sequence
	}
	g.messages++
	g.bytes += int64(bytes)
	g.highest = max(g.highest, sequence)
}

// sweep logs the sources that have gone, or all of them when the server ends. It acts once a
// second.
func (b *book) sweep(now time.Duration, end bool) {
	if !end && now-b.swept < time.Second {
		return
	}
	b.swept = now
	for from, g := range b.guests {
		if end || now-g.seen > guestQuiet {
			b.log(g.sentence(from.String()))
			delete(b.guests, from)
			// It may point to a page that was removed.
			b.last = nil
		}
	}
	if b.others.began != 0 && (end || now-b.others.seen > guestQuiet) {
		// One sentence for all: there may be any number of them, and forged sources are most likely
		// among them.
		b.log(b.others.sentence("further sources"))
		b.others = guest{}
	}
}

// sentence describes a source. Loss is what is missing between the first and the highest sequence
// number; it is unknown for a source that started anew, and for sources that share a page.
func (g *guest) sentence(who string) string {
	seconds := (g.seen - g.began).Seconds()
	text := fmt.Sprintf("sockperf %s over udp: %d messages of %d bytes in all, %d answered in %.1f s", who, g.messages,
		g.bytes, g.answered, seconds)
	if span := g.highest - g.first + 1; g.from.IsValid() && g.messages > 0 && span > uint64(g.messages) &&
		g.highest-g.first < 1<<40 {
		text += fmt.Sprintf(", %d lost on the way here", span-uint64(g.messages))
	}
	for _, n := range []struct {
		count int64
		what  string
	}{
		{g.refused, "not answered: over this host's limits of packets and bytes"},
		{g.malformed, "not answered: not sockperf messages"},
		{g.unsent, "answers that could not be sent"},
	} {
		if n.count > 0 {
			text += fmt.Sprintf("; %d %s", n.count, n.what)
		}
	}
	return text
}
