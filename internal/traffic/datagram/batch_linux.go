package datagram

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Sizes of a system call. A call with 64 packets costs little more per packet than one with many
// more, and returns soon enough to follow the schedule and the phase.
const (
	segmentsPerMessage = 64        // UDP_MAX_SEGMENTS before Linux 6.9
	gsoMessages        = 4         // per sending call
	mmsgMessages       = 64        // per sending call
	callBytes          = 256 << 10 // of payload per sending call; more falls out of the second-level cache
	// per receiving call, with 64 KiB of buffer each, of which only the filled part is ever touched
	mergedMessages = 32
	plainMessages  = 128     // per receiving call
	inboxBytes     = 4 << 20 // of payload per receiving call
	messageBytes   = 65535   // no merged message is longer
)

// sendBatch chooses how to send with o, and the most packets of one call.
func (s *Socket) sendBatch(o SendOptions) (Batch, int, error) {
	batch := o.Batch
	segments := s.segments(o.Bytes)
	if batch == BatchAuto || batch == BatchGSO {
		err := sys.ProbeSegments(s.fd)
		if err == nil {
			err = Probe().Send
		}
		if err == nil && segments < 2 {
			err = fmt.Errorf("datagrams of %d bytes over a path MTU of %d: %w", o.Bytes, s.PathMTU(),
				sys.ErrNotSupported)
		}
		switch {
		case err == nil:
			batch = BatchGSO
		case o.Batch == BatchGSO:
			return "", 0, fmt.Errorf("send by udp gso: %w", err)
		default:
			batch = BatchMMsg
		}
	}
	most := max(callBytes/o.Bytes, 1)
	switch batch {
	case BatchGSO:
		return batch, max(min(segments*gsoMessages, most/segments*segments), segments), nil
	case BatchMMsg:
		return batch, min(mmsgMessages, most), nil
	}
	return batch, 1, nil
}

// segments returns how many datagrams fit one message; fewer than two where the kernel would refuse
// to split, because it splits at the path MTU and not after fragmenting.
func (s *Socket) segments(bytes int) int {
	headers := 20 + 8 // RFC 791, RFC 768
	if !s.remote.Addr().Unmap().Is4() {
		headers = 40 + 8 // RFC 8200
	}
	if mtu := s.PathMTU(); mtu > 0 && bytes+headers > mtu {
		return 1
	}
	return min(segmentsPerMessage, MaxBytes/bytes)
}

// pace makes the kernel space packets. The rate is of frames.
func (s *Socket) pace(bytes int, gap float64) error {
	const ethernet, udp = 14, 8
	ip := 20
	if !s.remote.Addr().Unmap().Is4() {
		ip = 40
	}
	return sys.SetPacingRate(s.fd, uint64(float64(bytes+udp+ip+ethernet)/gap*1e9))
}

func sendMethod(b Batch) string {
	return map[Batch]string{BatchGSO: "sendmmsg+gso", BatchMMsg: "sendmmsg", BatchSingle: "write"}[b]
}

func receiveMethod(b Batch) string {
	return map[Batch]string{BatchGSO: "recvmmsg+gro", BatchMMsg: "recvmmsg", BatchSingle: "recvmsg"}[b]
}

// outbox is the packets of one sending call, one after the other in memory.
type outbox struct {
	fd       int
	packet   int // bytes
	payload  []byte
	messages int // capacity of box
	segments int // packets per message
	box      *sys.Outbox
	single   bool
	scratch  []byte
}

func (s *Socket) newOutbox(batch Batch, bytes, packets int) *outbox {
	o := &outbox{
		fd: s.fd, packet: bytes, payload: make([]byte, bytes*packets), segments: 1, single: batch == BatchSingle,
		scratch: make([]byte, sys.ErrorScratchBytes),
	}
	pattern := engine.Pattern(bytes)
	for i := range packets {
		copy(o.slot(i), pattern)
	}
	if batch == BatchGSO {
		o.segments = s.segments(bytes)
	}
	// With enough capacity in case the kernel does not split.
	o.messages = max((packets+o.segments-1)/o.segments, min(packets, mmsgMessages))
	o.box = sys.NewOutbox(o.messages)
	return o
}

// slot is the memory of packet i.
func (o *outbox) slot(i int) []byte { return o.payload[i*o.packet : (i+1)*o.packet] }

// send hands packets at to n, n excluded, to the kernel and returns how many it took, which may be
// fewer.
func (o *outbox) send(at, n int) (int, error) {
	if o.single {
		// As a rule the send buffer has room, and a call that cannot sleep needs no word to the Go
		// scheduler, which would cost a tenth of the packet.
		_, err := sys.WriteNow(o.fd, o.slot(at))
		if errors.Is(err, sys.ErrTimeout) {
			_, err = sys.Write(o.fd, o.slot(at))
		}
		if err != nil {
			return 0, err
		}
		return 1, nil
	}
	messages := 0
	for i := at; i < n && messages < o.messages; i += o.segments {
		o.box.Set(messages, o.payload[i*o.packet:min(i+o.segments, n)*o.packet], o.packet)
		messages++
	}
	sent, err := o.box.Send(o.fd, messages)
	return min(sent*o.segments, n-at), err
}

// first returns how many packets the first message of send(at, n) has.
func (o *outbox) first(at, n int) int { return min(o.segments, n-at) }

// plain stops splitting messages in the kernel.
func (o *outbox) plain() { o.segments = 1 }

// judge returns what an error of send means.
func (o *outbox) judge(err error) judgement {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fatal
	}
	switch errno {
	case unix.ENOBUFS, unix.ENOMEM, unix.EPERM:
		return dropped // by the qdisc, for lack of memory, by the firewall
	case unix.ECONNREFUSED, unix.EPROTO, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.ENONET, unix.EOPNOTSUPP:
		sys.DrainErrors(o.fd, o.scratch)
		return again // these come only from ICMP messages
	case unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EACCES:
		// From ICMP messages, or because this host has no route.
		if sys.DrainErrors(o.fd, o.scratch) > 0 {
			return again
		}
		return dropped
	case unix.EMSGSIZE:
		if o.segments > 1 {
			return noOffload
		}
		if sys.DrainErrors(o.fd, o.scratch) > 0 {
			return again
		}
		return tooLong
	case unix.EIO, unix.EINVAL:
		if o.segments > 1 {
			return noOffload // the NIC of the route computes no checksums, or IPsec is on the path
		}
	}
	return fatal
}

// message is what one receiving call returned in one slot.
type message struct {
	payload      []byte
	segmentBytes int // of merged datagrams; 0: it is a single one
	truncated    bool
	arrivedNanos int64 // realtime clock; 0: not known
	drops        uint32
}

// inbox is the buffers of one receiving call.
type inbox struct {
	fd      int
	most    int  // messages per call
	spin    bool // never sleep: the messages may not wait
	box     *sys.Inbox
	scratch []byte

	hot bool // messages arrive faster than one per call, or than manySingles
	// between calls while hot; halved when the socket dropped something, and longer again when it
	// did not
	nap    time.Duration
	window int // receive buffer in bytes

	singles   int           // messages since singlesAt, of a receiver with one per call
	singlesAt time.Duration // by clock
	idle      bool          // nothing has arrived since the last nap

	clock func() time.Duration // sys.Monotonic, or the clock of a test
}

// How a receiver rests while messages arrive fast. If it waited in the socket, the kernel would
// wake the thread for nearly every message. Where both ends are on one host, that costs the
// sender's CPU more than the message; elsewhere it costs the CPU of the interrupt. So the receiver
// polls instead.
const (
	longestNap  = 50 * time.Microsecond
	shortestNap = 10 * time.Microsecond // shorter naps are not worth their timer
	napGrowth   = 64                    // a nap without a drop makes the next one longer by one in napGrowth
	napShare    = 3                     // a nap may fill this share of the receive buffer: one in napShare
	bookBytes   = 768                   // what the kernel accounts for a small message besides its payload
	// A receiver with one message per call cannot see that more wait. It is hot when this many arrive
	// within manyTime, 50 000 a second; a clock read for each would cost more than it saves.
	manySingles = 64
	manyTime    = manySingles * 20 * time.Microsecond
)

func (s *Socket) newInbox(o ReceiveOptions) (*inbox, Batch, error) {
	batch, bytes := o.Batch, o.Bytes
	if err := sys.SetReceiveTimes(s.fd, !o.OwnTime); err != nil {
		return nil, "", err
	}
	if batch == BatchAuto || batch == BatchGSO {
		err := Probe().Receive
		if err == nil {
			err = sys.SetReceiveMerged(s.fd, true)
		}
		switch {
		case err == nil:
			batch = BatchGSO
		case batch == BatchGSO:
			return nil, "", fmt.Errorf("receive by udp gro: %w", err)
		default:
			batch = BatchMMsg
		}
	}
	i := &inbox{
		fd: s.fd, spin: s.busyPoll, scratch: make([]byte, sys.ErrorScratchBytes), nap: longestNap,
		clock: sys.Monotonic,
	}
	_, i.window = s.Buffers()
	switch batch {
	case BatchGSO:
		i.most, bytes = mergedMessages, messageBytes
	case BatchMMsg:
		i.most = max(min(plainMessages, inboxBytes/bytes), 1)
	default:
		i.most = 1
	}
	i.box = sys.NewInbox(i.most, bytes)
	return i, batch, nil
}

// receive waits for messages, for wakeEvery at most, and returns how many there are.
func (i *inbox) receive() (int, error) {
	if i.most == 1 {
		return i.receiveSingle()
	}
	n, err := i.box.Receive(i.fd, i.most, !i.spin && !i.hot)
	// A single message after a nap is a lull; only when none has arrived does the receiver wait
	// again, where every message costs a wake-up.
	i.hot = n > 1 || i.hot && n == 1
	return n, err
}

// receiveSingle is receive for one message per call. While messages arrive fast it takes all that
// have arrived and naps then, so that the sender need not wake it for each: it receives faster than
// a program can send, and would sleep after nearly every message.
func (i *inbox) receiveSingle() (int, error) {
	n, err := i.box.Receive(i.fd, 1, !i.spin && !i.hot)
	if n == 1 {
		i.idle = false
		if i.singles++; i.singles == manySingles {
			now := i.clock()
			i.hot, i.singles, i.singlesAt = now-i.singlesAt < manyTime, 0, now
		}
		return n, err
	}
	if i.hot && !i.spin {
		i.hot = !i.idle // a nap in which nothing arrived is the end
		i.idle = true
		if i.hot {
			sys.SleepUntil(sys.Monotonic() + i.nap)
		}
	}
	return n, err
}

// rest is called when the n messages of the last call are processed.
func (i *inbox) rest(n int, dropped bool) {
	// The scheduler, not the nap, causes most drops, so the receiver never stops napping: the
	// wake-ups instead would slow the sender down for the rest of the test.
	i.nap = min(i.nap+i.nap/napGrowth, longestNap)
	if dropped {
		i.nap = max(i.nap/2, shortestNap)
	}
	// A call that filled all its buffers has left more behind.
	if !i.hot || i.spin || n == i.most {
		return
	}
	booked := 0
	for k := range n {
		booked += len(i.box.Message(k).Payload) + bookBytes
	}
	if booked < i.window/napShare {
		sys.SleepUntil(sys.Monotonic() + i.nap)
	}
}

func (i *inbox) message(n int) message {
	m := i.box.Message(n)
	return message{m.Payload, m.SegmentBytes, m.Truncated, m.ArrivedNanos, m.Drops}
}

// judge returns what an error of receive means: again or fatal.
func (i *inbox) judge(err error) judgement {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fatal
	}
	switch errno {
	case unix.ECONNREFUSED, unix.EPROTO, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.ENONET, unix.EOPNOTSUPP,
		unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EACCES, unix.EMSGSIZE:
		sys.DrainErrors(i.fd, i.scratch)
		return again
	}
	return fatal
}

// dropCount follows the drop counter of a socket, which has 32 bits.
type dropCount struct {
	last    uint32 // newest value, of either source
	total   int64  // since begin
	message uint32 // newest value that came with a message
	before  int64  // total when the first measured packet was queued
	counted bool   // before is set
}

// begin takes the count before the test, and reports whether this kernel has one.
func (d *dropCount) begin(s *Socket) bool {
	n, err := sys.SocketDrops(s.fd)
	d.last, d.message = n, n
	return err == nil
}

// note takes the count that came with a message, and returns by how much it rose since the message
// before. Zero may mean "not known", and changes nothing either way.
func (d *dropCount) note(drops uint32) (rose int64) {
	rose = int64(int32(drops - d.message))
	if drops == 0 || rose <= 0 {
		return 0
	}
	d.message = drops
	d.advance(drops)
	return rose
}

// advance moves on to a newer value. Messages wait in the socket's queue, so their counts are older
// than what the socket itself returns.
func (d *dropCount) advance(to uint32) {
	if by := int32(to - d.last); by > 0 {
		d.total += int64(by)
		d.last = to
	}
}

// measure notes that the newest message holds the first measured packet.
func (d *dropCount) measure() {
	d.before, d.counted = d.total-int64(int32(d.last-d.message)), true
}

// read asks the socket and returns the drops since begin, since the first measured packet, and
// since the last message.
func (d *dropCount) read(s *Socket) (total, measured, after int64) {
	if n, err := sys.SocketDrops(s.fd); err == nil {
		d.advance(n)
	}
	if d.counted {
		measured = d.total - d.before
	}
	return d.total, measured, int64(int32(d.last - d.message))
}
