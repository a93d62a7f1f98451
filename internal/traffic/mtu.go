package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// searchBound is the longest that a search for the path MTU may take: five rounds of three tries on a path with a round trip of a quarter of a
// second that drops in silence. It lies within the patience of both sides.
const searchBound = 15 * time.Second

// pathSearch is the body of the worker that searches the path MTU. It ends by itself when it knows, or when the test is stopped.
type pathSearch struct {
	ctx     context.Context
	cancel  context.CancelFunc
	options echo.SearchOptions
	found   echo.PathMTU
	err     error
}

// newPathSearch makes that worker. Its role is a pinger's: the test waits for it to end.
func newPathSearch(p *engine.Phase, o echo.SearchOptions) (*engine.Worker, *pathSearch) {
	s := &pathSearch{options: o}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // the test's end reaches it by Wake
	w := engine.New(engine.Pinger, p, s)
	w.Method = "path mtu search"
	return w, s
}

// Loop searches. What goes wrong is kept for the end of the test as well: by then its short window is over, and a worker's errors do not count
// any more.
func (s *pathSearch) Loop(*engine.Worker) error {
	ctx, cancel := context.WithTimeout(s.ctx, searchBound)
	defer cancel()
	s.found, s.err = echo.SearchPathMTU(ctx, s.options)
	return s.err
}

// Wake ends the search with what it has.
func (s *pathSearch) Wake() { s.cancel() }

// Close releases what Wake would.
func (s *pathSearch) Close() { s.cancel() }

// openSearch opens what the near side of a test of the path MTU needs: one TCP connection, whose handshake tells the segment sizes, and the
// search.
func (l Link) openSearch(ctx context.Context, spec Spec, p *engine.Phase, accepted acceptBody, ends *endpoints) (cast, error) {
	workers, err := l.openConnections(ctx, spec, p, ends)
	if err != nil {
		return cast{}, err
	}
	var o echo.SearchOptions
	if ip, err := netip.ParseAddr(l.PeerIP); err == nil {
		o.IP = ip
	}
	if to, ok := l.echoAddress(ctx, accepted); ok && len(accepted.EchoToken) == echo.TokenBytes {
		o.UDP, o.Token = to, echo.Token(accepted.EchoToken)
	}
	w, search := newPathSearch(p, o)
	return cast{workers: append(workers, w), search: search}, nil
}

// holder is the body of a worker that keeps a connection open and moves nothing on it.
type holder struct {
	conn *engine.Conn
	wake chan struct{}
	once sync.Once
}

// newHolder makes that worker around a connection, whose struct tcp_info is all that is wanted of it.
func newHolder(role engine.Role, p *engine.Phase, conn *engine.Conn) *engine.Worker {
	w := engine.New(role, p, &holder{conn: conn, wake: make(chan struct{})})
	w.Conn = conn
	return w
}

// Loop waits for the end of the test.
func (h *holder) Loop(*engine.Worker) error {
	<-h.wake
	return nil
}

// Wake ends the wait.
func (h *holder) Wake() { h.once.Do(func() { close(h.wake) }) }

// Close gives the connection up.
func (h *holder) Close() { h.conn.Close() }

// searched fills in what the search found and what the handshake of the data connection says of it. Ends must be known.
func (r *Result) searched(found echo.PathMTU) {
	m := &PathMTU{
		UpBytes: found.Up.Bytes, DownBytes: found.Down.Bytes, BlackHoleUp: found.Up.BlackHole, BlackHoleDown: found.Down.BlackHole,
		LocalMTUBytes: found.Up.Interface, RemoteMTUBytes: found.Down.Interface,
	}
	// The smaller, because that is the one a connection has to live with; which direction it was of shows in the sizes.
	m.ReportedMTUBytes = smaller(found.Up.Reported, found.Down.Reported)
	// The search learns it from the refusal of a packet that is too big; loopback takes the longest that there is.
	if m.LocalMTUBytes == 0 {
		m.LocalMTUBytes = interfaceMTU(r.LocalAddress)
	}
	if len(r.Ends.Local.TCP) > 0 {
		near := r.Ends.Local.TCP[0]
		m.MSSBytes, m.LocalMSSBytes = near.SndMSSBytes, announced(near)
		if len(r.Ends.Remote.TCP) > 0 {
			far := r.Ends.Remote.TCP[0]
			m.MSSBytes, m.RemoteMSSBytes = smaller(m.MSSBytes, far.SndMSSBytes), announced(far)
			m.MSSClampedUp, m.MSSClampedDown = clamped(near, far), clamped(far, near)
		}
	}
	r.Method, r.MTU = found.Method, m
	r.MTUBytes, r.MSSBytes = smaller(m.UpBytes, m.DownBytes), m.MSSBytes
	for _, d := range []struct {
		name string
		side echo.PathSide
	}{{"up", found.Up}, {"down", found.Down}} {
		if d.side.Bytes > 0 && !d.side.Exact {
			r.Warnings = append(r.Warnings, fmt.Sprintf("path mtu %s: broken off after %v, the path takes at least %d bytes", d.name, searchBound, d.side.Bytes))
		}
	}
	r.troubles(found.Troubles)
}

// smaller is the smaller of two sizes of which either may be not known.
func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// timestampBytes is what the timestamps option takes of every segment, RFC 7323 §3.2 and its padding.
const timestampBytes = 12

// announced is the segment size that one end's handshake offered. The kernel takes the timestamps off its own offer once both ends use them.
func announced(t TCPInfo) int {
	if t.AdvMSSBytes > 0 && t.TimestampsOK {
		return t.AdvMSSBytes + timestampBytes
	}
	return t.AdvMSSBytes
}

// clamped tells that somebody on the path lowered the segment size which from offered: to sends smaller segments than from offered, than its own
// path MTU allows, and than half the window that from opened, which is all that else bounds them (net/ipv4/tcp_output.c, tcp_sync_mss).
func clamped(from, to TCPInfo) bool {
	if from.AdvMSSBytes == 0 || to.SndMSSBytes == 0 || to.PMTUBytes == 0 {
		return false
	}
	headers := 20 + 20 // of IPv4 and TCP
	if to.TimestampsOK {
		headers += timestampBytes
	}
	most := min(from.AdvMSSBytes, to.PMTUBytes-headers)
	if half := int(to.MaxSndWndBytes / 2); half > 0 {
		most = min(most, half)
	}
	// Slack for the longer header of IPv6 and the rounding of windows. No middlebox clamps by so little.
	return to.SndMSSBytes < most-64
}

// interfaceMTU is the MTU of the interface that has an address; 0: not known.
func interfaceMTU(address string) int {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return 0
	}
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == want {
				return i.MTU
			}
		}
	}
	return 0
}

// troubles tells what the network said of single packets.
func (r *Result) troubles(all []echo.Trouble) {
	for _, t := range all {
		r.Warnings = append(r.Warnings, t.String())
	}
}
