package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// MTU is the largest packet that passes unfragmented, each way.
const MTU Test = "mtu"

// mtuTest searches by a worker of the near end alone. One idle TCP connection beside it shows the
// segment sizes that both handshakes offered.
type mtuTest struct{}

func (mtuTest) traits() traits { return traits{dials: true, takes: sourcePorts} }

// fill sets the times, which a user cannot choose: the test ends when the search does, and the
// window only shows what both hosts counted at its beginning.
func (mtuTest) fill(s *Spec) { s.WarmUp, s.Duration = 0, minInterval }

func (mtuTest) check(Spec) string { return "" }

func (t mtuTest) near(ctx context.Context, n *nearEnd) (cast, error) {
	workers, err := n.dial(ctx, t.holder(n.spec, n.phase, engine.Requester))
	if err != nil {
		return cast{}, err
	}
	o := echo.SearchOptions{From: n.spec.from()}
	if ip, err := netip.ParseAddr(n.PeerIP); err == nil {
		o.IP = ip
	}
	if to, token, ok := n.echoes(ctx); ok {
		o.UDP, o.Token = to, token
	}
	w, search := echo.NewSearch(n.phase, o)
	return cast{workers: append(workers, w), beside: w, report: func(r *Result) error {
		if search.Err == nil {
			r.searched(search.Found)
		}
		return search.Err
	}}, nil
}

func (t mtuTest) far(ctx context.Context, f *farEnd) (cast, error) {
	if _, err := f.admitEchoes(); err != nil {
		return cast{}, err
	}
	if err := f.accept(); err != nil {
		return cast{}, err
	}
	workers, err := f.collect(ctx, t.holder(f.spec, f.phase, engine.Responder))
	return cast{workers: workers}, err
}

// holder returns a function that makes a worker that keeps a connection open.
func (mtuTest) holder(s Spec, p *engine.Phase, role engine.Role) makeWorker {
	return func(conn *net.TCPConn, _ int) (*engine.Worker, error) {
		c, err := engine.Adopt(conn, s.connOptions(true, true))
		if err != nil {
			return nil, err
		}
		return engine.NewHolder(role, p, c), nil
	}
}

func (mtuTest) interval(*Interval, Direction, part, part) {}

func (mtuTest) result(*Result, outcome) (packets uint64) { return 0 }

// searched fills in what the search found and what the handshake of the data connection shows. Ends
// must be known.
func (r *Result) searched(found echo.PathMTU) {
	m := &PathMTU{
		UpBytes: found.Up.Bytes, DownBytes: found.Down.Bytes, BlackHoleUp: found.Up.BlackHole,
		BlackHoleDown: found.Down.BlackHole,
		LocalMTUBytes: found.Up.Interface, RemoteMTUBytes: found.Down.Interface,
	}
	// The smaller, because a connection must fit it; the sizes show which direction it belongs to.
	m.ReportedMTUBytes = smaller(found.Up.Reported, found.Down.Reported)
	// The search learns it from the refusal of a packet that is too big; loopback accepts the
	// longest possible packet.
	if m.LocalMTUBytes == 0 {
		m.LocalMTUBytes = echo.InterfaceMTU(r.LocalAddress)
	}
	if len(r.Ends.Local.TCP) > 0 {
		near := r.Ends.Local.TCP[0]
		m.MSSBytes, m.LocalMSSBytes = near.SndMSSBytes, near.OfferedMSS()
		if len(r.Ends.Remote.TCP) > 0 {
			far := r.Ends.Remote.TCP[0]
			m.MSSBytes, m.RemoteMSSBytes = smaller(m.MSSBytes, far.SndMSSBytes), far.OfferedMSS()
			m.MSSClampedUp, m.MSSClampedDown = tcpinfo.Clamped(near, far), tcpinfo.Clamped(far, near)
		}
	}
	r.Method, r.MTU = found.Method, m
	r.MTUBytes, r.MSSBytes = smaller(m.UpBytes, m.DownBytes), m.MSSBytes
	for _, d := range []struct {
		name string
		side echo.PathSide
	}{{"up", found.Up}, {"down", found.Down}} {
		if d.side.Bytes > 0 && !d.side.Exact {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("path mtu %s: stopped after %v, the path takes at least %d bytes", d.name,
					echo.SearchBound, d.side.Bytes))
		}
	}
	r.warnOf(found.Troubles)
}

// smaller returns the smaller of two sizes, either of which may be unknown (0).
func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
