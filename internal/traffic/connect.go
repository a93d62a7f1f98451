package traffic

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// CRR connects, asks, reads the answer and closes, again and again.
const CRR Test = "crr"

type connectTest struct{}

// It takes no source port, because every connection needs a new one.
func (connectTest) traits() traits {
	return traits{takes: manyStreams | probes | busyPolls | tcpOptions}
}

func (connectTest) fill(s *Spec)        { fillMessages(s) }
func (connectTest) check(s Spec) string { return checkMessages(s) }

func (connectTest) near(_ context.Context, n *nearEnd) (cast, error) {
	ip, err := netip.ParseAddr(n.PeerIP)
	if err != nil {
		return cast{}, fmt.Errorf("connect to the far end: its address is not known: %w", err)
	}
	if len(n.accepted.AcceptPorts) != n.spec.Streams {
		return cast{}, fmt.Errorf("%w: %d ports for %d streams", ErrProtocol, len(n.accepted.AcceptPorts),
			n.spec.Streams)
	}
	n.addresses.remote = ip.String()
	options := n.spec.connOptions(true, true)
	options.From = n.spec.from()
	workers := make([]*engine.Worker, 0, n.spec.Streams)
	for _, port := range n.accepted.AcceptPorts {
		w, err := engine.NewConnector(n.phase, engine.ConnectOptions{
			To: netip.AddrPortFrom(ip, port), Prefix: n.accepted.AcceptToken,
			RequestBytes: n.spec.RequestBytes, ResponseBytes: n.spec.ResponseBytes,
			BusyPoll: n.spec.BusyPoll, Conn: options,
		})
		if err != nil {
			closeWorkers(workers)
			return cast{}, err
		}
		workers = append(workers, w)
	}
	return cast{workers: workers, report: reportSpinning(n.spec, workers)}, nil
}

// far listens on one port for each stream, and names the ports and the token that requests must
// show.
func (connectTest) far(_ context.Context, f *farEnd) (cast, error) {
	from, err := netip.ParseAddr(f.PeerIP)
	if err != nil {
		return cast{}, fmt.Errorf("%w: this host does not know your address, and answers no other connections",
			errRefusing)
	}
	token := wire.NewToken()
	f.offer.AcceptToken = token[:]
	workers := make([]*engine.Worker, 0, f.spec.Streams)
	for range f.spec.Streams {
		w, acceptor, err := engine.NewAcceptor(f.phase, engine.AcceptOptions{
			From: from, Prefix: f.offer.AcceptToken, RequestBytes: f.spec.RequestBytes,
			ResponseBytes: f.spec.ResponseBytes, BusyPoll: f.spec.BusyPoll, Conn: f.spec.connOptions(true, true),
		})
		if err != nil {
			closeWorkers(workers)
			return cast{}, err
		}
		f.offer.AcceptPorts = append(f.offer.AcceptPorts, acceptor.Port())
		workers = append(workers, w)
	}
	if err := f.accept(); err != nil {
		closeWorkers(workers)
		return cast{}, err
	}
	return cast{workers: workers}, nil
}

func (connectTest) interval(i *Interval, _ Direction, own, _ part) { i.transactions(own) }

func (connectTest) result(r *Result, o outcome) (packets uint64) {
	r.TransactionsPerSec = perSecond(o.near.Transactions, o.near.Seconds)
	return o.near.messages()
}
