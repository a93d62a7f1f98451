package watch

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/nl/sockdiag"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// The bounds of one reading of the sockets. A connection with its tcp_info takes some 5 µs
// (measured with 15 000 of them, Linux 6.18), so a host with a million would be busy for the whole
// watch. The marks take at most 10 MB.
const (
	maxSockets = 1 << 16
	socketTime = 150 * time.Millisecond // for each kind
)

// mark holds what is needed to subtract a connection later: the counters of its tcp_info that
// [tcpinfo.Flow] subtracts. It is a fourth of the whole, and a busy host has tens of thousands.
type mark struct {
	busyMicros, rwndMicros, sndbufMicros                    uint64
	bytesAcked, bytesReceived, bytesRetrans                 uint64
	segsOut, segsIn, totalRetrans, reordSeen, dsacks, drops uint32
	length, timeouts                                        uint16
}

func markOf(s *sockdiag.Socket) mark {
	i := &s.Info
	return mark{
		busyMicros: i.BusyMicros, rwndMicros: i.RwndLimitedMicros, sndbufMicros: i.SndbufLimitedMicros,
		bytesAcked: i.BytesAcked, bytesReceived: i.BytesReceived, bytesRetrans: i.BytesRetrans,
		segsOut: i.SegsOut, segsIn: i.SegsIn, totalRetrans: i.TotalRetrans, reordSeen: i.ReordSeen, dsacks: i.DSACKDups,
		drops: s.Memory.Drops, length: uint16(i.Length), timeouts: i.TotalRTO,
	}
}

// info returns the marked part of the tcp_info.
func (m mark) info() sys.TCPInfo {
	return sys.TCPInfo{
		Length: int(m.length), BusyMicros: m.busyMicros, RwndLimitedMicros: m.rwndMicros,
		SndbufLimitedMicros: m.sndbufMicros,
		BytesAcked:          m.bytesAcked, BytesReceived: m.bytesReceived, BytesRetrans: m.bytesRetrans,
		SegsOut: m.segsOut, SegsIn: m.segsIn, TotalRetrans: m.totalRetrans, ReordSeen: m.reordSeen, DSACKDups: m.dsacks,
		TotalRTO: m.timeouts,
	}
}

// marks is a first reading of the sockets, by cookie.
type marks struct {
	at          time.Time
	connections map[uint64]mark
	drops       map[uint64]uint32 // of listeners and UDP sockets
	cut         bool              // there were more of one kind
}

// markSockets reads the sockets and keeps what [marks.since] needs. The kernel may report some of
// the three kinds and not others; the error names the missing ones.
func markSockets() (*marks, error) {
	m := &marks{at: time.Now(), connections: make(map[uint64]mark), drops: make(map[uint64]uint32)}
	cut, reported, err := each(
		func(s *sockdiag.Socket) { m.drops[s.Cookie] = s.Memory.Drops },
		func(s *sockdiag.Socket) { m.drops[s.Cookie] = s.Memory.Drops },
		func(s *sockdiag.Socket) { m.connections[s.Cookie] = markOf(s) },
	)
	m.cut = cut
	if !reported {
		return nil, err
	}
	return m, err
}

// each visits listeners, UDP sockets and connections, within the bounds. reported is false if the
// kernel reports none of the kinds.
func each(listener, datagram, connection func(*sockdiag.Socket)) (cut, reported bool, err error) {
	var errs []error
	for _, kind := range []struct {
		query sockdiag.Query
		visit func(*sockdiag.Socket)
	}{
		{sockdiag.Query{Protocol: sockdiag.TCP, States: []sockdiag.State{sockdiag.Listen}}, listener},
		{sockdiag.Query{Protocol: sockdiag.UDP, States: []sockdiag.State{sockdiag.Closed, sockdiag.Established}},
			datagram},
		{sockdiag.Query{Protocol: sockdiag.TCP, States: []sockdiag.State{sockdiag.Established, sockdiag.FinWait1,
			sockdiag.CloseWait}, TCPInfo: true}, connection},
	} {
		n := 0
		kind.query.Limit = socketTime
		err := sockdiag.Each(kind.query, func(s *sockdiag.Socket) bool {
			if n++; n > maxSockets {
				cut = true
				return false
			}
			kind.visit(s)
			return true
		})
		switch {
		case err == nil:
			reported = true
		case errors.Is(err, sockdiag.ErrLimit):
			reported, cut = true, true
		default:
			// A kernel may be built with tcp_diag and without udp_diag.
			errs = append(errs, err)
		}
	}
	return cut, reported, errors.Join(errs...)
}

// since reads the sockets again and returns their activity, of each kind the n most important.
func (m *marks) since(n int) (*Sockets, error) {
	g := gather(m, n)
	at := time.Now() // As in markSockets, before the reading, which takes equally long both times.
	cut, reported, err := each(g.listener, g.datagram, g.connection)
	if !reported {
		return nil, err
	}
	s := &Sockets{
		Seconds:   max(0, at.Sub(m.at).Seconds()),
		Listeners: g.listeners.kept, Datagrams: g.datagrams.kept,
		Connections:   make([]Connection, 0, len(g.connections.kept)),
		ListenersSeen: g.seen[0], DatagramsSeen: g.seen[1], ConnectionsSeen: g.seen[2], Cut: m.cut || cut,
	}
	for _, c := range g.connections.kept {
		s.Connections = append(s.Connections, c.report())
	}
	return s, err
}

// gathering is a second reading in progress.
type gathering struct {
	marks       *marks
	listeners   best[Listener]
	datagrams   best[Datagram]
	connections best[candidate]
	seen        [3]int
}

// gather starts a second reading that keeps n of each kind. The lists are never nil, so that "none
// found" differs from "not read".
func gather(m *marks, n int) *gathering {
	return &gathering{
		marks:       m,
		listeners:   best[Listener]{n: n, order: byFullness, kept: []Listener{}},
		connections: best[candidate]{n: n, order: byBytes},
		datagrams:   best[Datagram]{n: n, order: byDrops, kept: []Datagram{}},
	}
}

// listener adds one listener. Idle ones are kept too, as far as there is room: their limits are
// informative before any drops.
func (g *gathering) listener(s *sockdiag.Socket) {
	g.seen[0]++
	was, known := g.marks.drops[s.Cookie]
	if g.unknown(known) {
		return
	}
	g.listeners.put(Listener{
		Cookie: s.Cookie, Local: s.Local, Queued: int(s.ReceiveQueue), Limit: int(s.SendQueue),
		Drops: uint64(s.Memory.Drops - was), // 32 bits in the kernel; a new one began at zero
	})
}

// datagram adds one UDP socket.
func (g *gathering) datagram(s *sockdiag.Socket) {
	g.seen[1]++
	was, known := g.marks.drops[s.Cookie]
	d := Datagram{Cookie: s.Cookie, Local: s.Local, Remote: s.Remote, New: !known, Memory: memory(s.Memory, was)}
	// The kernel counts no packets of a UDP socket, so one that neither holds nor dropped any may
	// be the busiest or idle for years.
	if g.unknown(known) || d.Memory.Drops == 0 && d.Memory.ReceiveBytes == 0 && d.Memory.SendBytes == 0 {
		return
	}
	g.datagrams.put(d)
}

// connection adds one connection.
func (g *gathering) connection(s *sockdiag.Socket) {
	g.seen[2]++
	was, known := g.marks.connections[s.Cookie]
	if g.unknown(known) {
		return
	}
	// Counters of a connection never decrease; min() guards against one that was not readable at
	// the first reading.
	moved := s.Info.BytesAcked - min(s.Info.BytesAcked, was.bytesAcked) +
		s.Info.BytesReceived - min(s.Info.BytesReceived, was.bytesReceived)
	c := candidate{bytes: moved + uint64(s.ReceiveQueue) + uint64(s.SendQueue)}
	// Most connections of a large server are idle and of no interest.
	if c.bytes == 0 || !g.connections.wants(c) {
		return
	}
	c.socket, c.was, c.isNew = *s, was, !known
	g.connections.put(c)
}

// unknown reports whether the socket is missing in a first reading that was cut. It may be new or
// not, so its activity is not known.
func (g *gathering) unknown(known bool) bool { return !known && g.marks.cut }

// candidate is a connection that may be kept.
type candidate struct {
	bytes  uint64 // that moved or wait to move: a stalled connection matters as much as a fast one
	socket sockdiag.Socket
	was    mark
	isNew  bool
}

func byBytes(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) }

// report returns the activity of the connection between the readings, in the form of a test's
// connection.
func (c candidate) report() Connection {
	s := &c.socket
	// The two readings are the edges of the counting window.
	flow := tcpinfo.Flow{Last: c.was.info()}
	flow.Open()
	flow.Add(s.Info, true)
	flow.Shut(tcpinfo.Buffers{SendBytes: int64(s.Memory.SendLimit), ReceiveBytes: int64(s.Memory.ReceiveLimit),
		Congestion: s.Congestion})
	tcp := flow.Report(false)
	tcp.Sender = tcp.BytesAcked >= tcp.BytesReceived
	return Connection{
		Cookie: s.Cookie, Local: s.Local, Remote: s.Remote, New: c.isNew, TCP: tcp,
		UnreadBytes: int64(s.ReceiveQueue), UnackedBytes: int64(s.SendQueue), UnsentBytes: int64(s.Info.NotSentBytes),
		IdleSeconds: float64(min(s.Info.LastDataSentMillis, s.Info.LastDataRecvMillis)) / 1e3,
		Timeouts:    uint64(s.Info.TotalRTO - c.was.timeouts),
		Memory:      memory(s.Memory, c.was.drops),
	}
}

// memory returns what a socket holds, and its drops beyond the given count. Drops have 32 bits in
// the kernel.
func memory(m sockdiag.Memory, drops uint32) Memory {
	return Memory{
		ReceiveBytes: int64(m.Receive), ReceiveLimitBytes: int64(m.ReceiveLimit), SendBytes: int64(m.Send),
		SendLimitBytes: int64(m.SendLimit),
		ForwardBytes:   int64(m.Forward), QueuedBytes: int64(m.Queued), OptionBytes: int64(m.Option),
		BacklogBytes: int64(m.Backlog),
		Drops:        uint64(m.Drops - drops),
	}
}

// byFullness orders listeners that refused connections first, then those nearest to their limit.
func byFullness(a, b Listener) int {
	share := func(l Listener) float64 { return float64(l.Queued) / float64(max(l.Limit, 1)) }
	return cmp.Or(cmp.Compare(b.Drops, a.Drops), cmp.Compare(share(b), share(a)), a.Local.Compare(b.Local))
}

// byDrops orders UDP sockets that dropped first, then the fullest.
func byDrops(a, b Datagram) int {
	return cmp.Or(cmp.Compare(b.Memory.Drops, a.Memory.Drops),
		cmp.Compare(b.Memory.ReceiveBytes, a.Memory.ReceiveBytes), a.Local.Compare(b.Local))
}

// best keeps the n first values of an order.
type best[T any] struct {
	n     int
	order func(a, b T) int
	kept  []T
}

// wants reports whether a value would be kept; callers ask before they build a large one.
func (b *best[T]) wants(v T) bool { return len(b.kept) < b.n || b.order(v, b.kept[len(b.kept)-1]) < 0 }

func (b *best[T]) put(v T) {
	if !b.wants(v) {
		return
	}
	// Keeping a few dozen in order costs less than sorting a heap at the end.
	i, _ := slices.BinarySearchFunc(b.kept, v, b.order)
	if len(b.kept) == b.n {
		b.kept = b.kept[:b.n-1]
	}
	b.kept = slices.Insert(b.kept, i, v)
}
