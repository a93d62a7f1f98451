package load

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// send sends n queries from one port. A zero due means that they have no schedule.
func (w *worker) send(p *port, n int, due int64) error {
	first := p.table.next
	for i := range n {
		index, serial := w.drawer.Next()
		id := p.table.add(due, 0, index, serial)
		w.lengths[i] = w.o.Names.Compose(w.slots[i], index, serial, id)
	}
	messages := w.pack(n)
	marks := w.marks(p, messages)
	w.arrange(0, messages, marks)
	// As late as possible: the send path of this host begins here.
	entered := int64(sys.Monotonic())
	for i := range messages {
		usual := entered + w.cost.of(i)
		for rest := w.placed[i]; rest != 0; rest &= rest - 1 {
			p.table.departedAt(first+uint32(bits.TrailingZeros64(rest)), usual)
		}
	}
	if marks {
		p.mark(messages, entered, first, &w.placed)
	}
	whole := true
	for sent, tries := 0, 0; sent < messages; {
		if sent > 0 || tries > 0 { // from the first one again that the kernel did not take
			whole = false
			w.arrange(sent, messages, false)
		}
		m, err := w.outbox.Send(p.fd, messages-sent)
		sent += m
		if err == nil {
			continue
		}
		whole = false
		if w.split && splitRefused(err) {
			w.split = false
			messages, sent = w.pack(n), 0
			w.arrange(0, messages, false)
			continue
		}
		again, fatal := w.refusal(p.fd, err)
		if fatal != nil {
			p.table.drop(n)
			return fatal
		}
		if tries++; !again || tries > 3 {
			// The host dropped it, as it does with a full queue: it is lost like one that the network
			// dropped.
			break
		}
	}
	if !whole {
		p.forget(w.scratch)
	}
	w.tally.Queries += uint64(n)
	w.waiting += n
	w.sent += uint64(n)
	w.last = entered
	return nil
}

// arrange puts the packed messages from a first one on into the outbox.
func (w *worker) arrange(first, messages int, marks bool) {
	for i := first; i < messages; i++ {
		w.outbox.Set(i-first, w.packed[i], w.segment[i])
		if marks {
			w.outbox.Stamp(i - first)
		}
	}
}

// pack arranges n composed queries in messages, and returns how many there are. Where the kernel
// splits messages into datagrams (UDP_SEGMENT), queries of one length share one: they then pass
// most of the host's network stack as one packet. Their order within the burst changes, their
// datagrams do not.
func (w *worker) pack(n int) (messages int) {
	if !w.split || n == 1 {
		for i := range n {
			w.packed[i], w.segment[i], w.placed[i] = w.slots[i][:w.lengths[i]], 0, 1<<i
		}
		return n
	}
	memory := w.memory[:0]
	var placed uint64 // one bit each: mostBurst is 64
	for i := range n {
		if placed&(1<<i) != 0 {
			continue
		}
		begin, length := len(memory), w.lengths[i]
		w.placed[messages] = 0
		for k := i; k < n; k++ {
			if w.lengths[k] == length {
				memory = append(memory, w.slots[k][:length]...)
				w.placed[messages] |= 1 << k
			}
		}
		placed |= w.placed[messages]
		w.packed[messages], w.segment[messages] = memory[begin:], length
		messages++
	}
	return messages
}

// splitRefused reports whether the kernel does not split messages on this path: the NIC computes no
// checksums, or IPsec is on it.
func splitRefused(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMSGSIZE)
}

// refusal returns what an error of a socket means: that an ICMP message arrived and the call can be
// repeated, or that it cannot.
func (w *worker) refusal(fd int, err error) (again bool, fatal error) {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return false, fmt.Errorf("ask %s over udp: %w", w.o.Server, err)
	}
	switch errno {
	case unix.ECONNREFUSED:
		w.tally.refused++
		sys.DrainErrors(fd, w.scratch)
		return true, nil
	case unix.ENOBUFS, unix.ENOMEM, unix.EPERM:
		return false, nil
	}
	if w.sent == 0 {
		return false, fmt.Errorf("ask %s over udp: %w", w.o.Server, err)
	}
	// ICMP of any kind, an interface that went down, an address that this host lost: the load shows it
	// as loss.
	sys.DrainErrors(fd, w.scratch)
	return true, nil
}
