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
// (measured with 15 000 of them, Linux 6.18), so that a host with a million would be busy for the
// whole watch; what is marked takes 10 MB at most.
const (
	maxSockets = 1 << 16
	socketTime = 150 * time.Millisecond // for each kind
)

// mark is what is needed of a connection to subtract from it later: the counters of its tcp_info
// that [tcpinfo.Flow] subtracts. It is a fourth of all of it, and a busy host has tens of
// thousands.
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

// info is the marked part of the tcp_info.
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

// markSockets reads the sockets and keeps what [marks.since] needs. Of the three kinds some may be
// told and others not; the error then says which.
func markSockets() (*marks, error) {
	m := &marks{at: time.Now(), connections: make(map[uint64]mark), drops: make(map[uint64]uint32)}
	cut, told, err := each(
		func(s *sockdiag.Socket) { m.drops[s.Cookie] = s.Memory.Drops },
		func(s *sockdiag.Socket) { m.drops[s.Cookie] = s.Memory.Drops },
		func(s *sockdiag.Socket) { m.connections[s.Cookie] = markOf(s) },
	)
	m.cut = cut
	if !told {
		return nil, err
	}
	return m, err
}

// each goes through listeners, UDP sockets and connections, within the bounds. Told is false where
// the kernel says nothing of any kind.
func each(listener, datagram, connection func(*sockdiag.Socket)) (cut, told bool, err error) {
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
			told = true
		case errors.Is(err, sockdiag.ErrLimit):
			told, cut = true, true
		default:
			// A kernel may have been built with tcp_diag and without udp_diag.
			errs = append(errs, err)
		}
	}
	return cut, told, errors.Join(errs...)
}

// since reads the sockets again and gives what they did, of each kind the n that matter most.
func (m *marks) since(n int) (*Sockets, error) {
	g := gather(m, n)
	at := time.Now() // As in markSockets, before the reading, which takes as long both times.
	cut, told, err := each(g.listener, g.datagram, g.connection)
	if !told {
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

// gathering is a second reading under way.
type gathering struct {
	marks       *marks
	listeners   best[Listener]
	datagrams   best[Datagram]
	connections best[candidate]
	seen        [3]int
}

// gather begins a second reading that keeps n of each kind. What is kept is never nil: that nothing
// was found is another answer than that nobody looked.
func gather(m *marks, n int) *gathering {
	return &gathering{
		marks:       m,
		listeners:   best[Listener]{n: n, order: byFullness, kept: []Listener{}},
		connections: best[candidate]{n: n, order: byBytes},
		datagrams:   best[Datagram]{n: n, order: byDrops, kept: []Datagram{}},
	}
}

// listener takes in one listener. Idle ones are kept too, as far as there is room: their limits say
// something before there are drops.
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

// datagram takes in one UDP socket.
func (g *gathering) datagram(s *sockdiag.Socket) {
	g.seen[1]++
	was, known := g.marks.drops[s.Cookie]
	d := Datagram{Cookie: s.Cookie, Local: s.Local, Remote: s.Remote, New: !known, Memory: memory(s.Memory, was)}
	// The kernel counts no packets of a UDP socket, so that one which neither holds nor dropped any
	// may be the busiest or idle for years.
	if g.unknown(known) || d.Memory.Drops == 0 && d.Memory.ReceiveBytes == 0 && d.Memory.SendBytes == 0 {
		return
	}
	g.datagrams.put(d)
}

// connection takes in one connection.
func (g *gathering) connection(s *sockdiag.Socket) {
	g.seen[2]++
	was, known := g.marks.connections[s.Cookie]
	if g.unknown(known) {
		return
	}
	// Counters of a connection never go back; min() guards against one that was not readable at the
	// first reading.
	moved := s.Info.BytesAcked - min(s.Info.BytesAcked, was.bytesAcked) +
		s.Info.BytesReceived - min(s.Info.BytesReceived, was.bytesReceived)
	c := candidate{bytes: moved + uint64(s.ReceiveQueue) + uint64(s.SendQueue)}
	// Idle connections are most of those of a large server, and nobody asks for them.
	if c.bytes == 0 || !g.connections.wants(c) {
		return
	}
	c.socket, c.was, c.isNew = *s, was, !known
	g.connections.put(c)
}

// unknown: the socket was not in the first reading, and that one was cut. It may be new or not, and
// what it did cannot be told.
func (g *gathering) unknown(known bool) bool { return !known && g.marks.cut }

// candidate is a connection that may be among those told.
type candidate struct {
	bytes  uint64 // that moved or wait to move: a stalled connection is as interesting as a fast one
	socket sockdiag.Socket
	was    mark
	isNew  bool
}

func byBytes(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) }

// report says what the connection did between the readings, as of a connection of a test.
func (c candidate) report() Connection {
	s := &c.socket
	// The two readings are the edges of the window in which [account] counts.
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

// memory gives what a socket holds, and its drops since there were so many. They have 32 bits in
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

// byFullness puts listeners that refused connections first, then those nearest to their limit.
func byFullness(a, b Listener) int {
	share := func(l Listener) float64 { return float64(l.Queued) / float64(max(l.Limit, 1)) }
	return cmp.Or(cmp.Compare(b.Drops, a.Drops), cmp.Compare(share(b), share(a)), a.Local.Compare(b.Local))
}

// byDrops puts UDP sockets that dropped first, then the fullest.
func byDrops(a, b Datagram) int {
	return cmp.Or(cmp.Compare(b.Memory.Drops, a.Memory.Drops),
		cmp.Compare(b.Memory.ReceiveBytes, a.Memory.ReceiveBytes), a.Local.Compare(b.Local))
}

// best keeps the n values that come first, in order.
type best[T any] struct {
	n     int
	order func(a, b T) int
	kept  []T
}

// wants tells whether a value would be kept; it is asked before a large one is made.
func (b *best[T]) wants(v T) bool { return len(b.kept) < b.n || b.order(v, b.kept[len(b.kept)-1]) < 0 }

func (b *best[T]) put(v T) {
	if !b.wants(v) {
		return
	}
	// A few dozen in order cost less to keep in order than a heap would to sort in the end.
	i, _ := slices.BinarySearchFunc(b.kept, v, b.order)
	if len(b.kept) == b.n {
		b.kept = b.kept[:b.n-1]
	}
	b.kept = slices.Insert(b.kept, i, v)
}
