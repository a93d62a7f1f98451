package traffic

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// openSearch opens what the near side of a test of the path MTU needs: one TCP connection, whose
// handshake tells the segment sizes, and the search.
func (l Link) openSearch(ctx context.Context, spec Spec, p *engine.Phase, accepted acceptBody,
	ends *endpoints) (cast, error) {
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
	w, search := echo.NewSearch(p, o)
	return cast{workers: append(workers, w), search: search}, nil
}

// searched fills in what the search found and what the handshake of the data connection says of it.
// Ends must be known.
func (r *Result) searched(found echo.PathMTU) {
	m := &PathMTU{
		UpBytes: found.Up.Bytes, DownBytes: found.Down.Bytes, BlackHoleUp: found.Up.BlackHole,
		BlackHoleDown: found.Down.BlackHole,
		LocalMTUBytes: found.Up.Interface, RemoteMTUBytes: found.Down.Interface,
	}
	// The smaller, because that is the one a connection has to live with; which direction it was of
	// shows in the sizes.
	m.ReportedMTUBytes = smaller(found.Up.Reported, found.Down.Reported)
	// The search learns it from the refusal of a packet that is too big; loopback takes the longest
	// that there is.
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
				fmt.Sprintf("path mtu %s: broken off after %v, the path takes at least %d bytes", d.name,
					echo.SearchBound, d.side.Bytes))
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

// troubles tells what the network said of single packets.
func (r *Result) troubles(all []echo.Trouble) {
	for _, t := range all {
		r.Warnings = append(r.Warnings, t.String())
	}
}
