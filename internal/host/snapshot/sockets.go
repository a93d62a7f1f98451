package snapshot

import (
	"cmp"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/sosreport/printed"
	"github.com/linerate/linerate/internal/host/watch"
)

// keptSockets is how many of each kind are kept, as many as when a host is watched.
const keptSockets = 32

// sockets returns what a report contains about listeners and UDP sockets: those that refused,
// dropped or hold something, the worst first. before are those of an earlier report of the same
// boot; nil: drops are of the socket's whole life. Connections are only counted, because their
// activity belongs to no known time. Nil: the report has no sockets.
func sockets(now, before []printed.Socket, seconds float64) *watch.Sockets {
	if len(now) == 0 {
		return nil
	}
	type key struct {
		protocol string
		cookie   uint64
	}
	dropped := make(map[key]uint64, len(before))
	for _, s := range before {
		dropped[key{s.Protocol, s.Cookie}] = s.Memory.Drops
	}
	all := &watch.Sockets{Seconds: seconds}
	for _, s := range now {
		was, known := uint64(0), false
		if s.Cookie != 0 {
			was, known = dropped[key{s.Protocol, s.Cookie}]
		}
		s.Memory.Drops = uint64(uint32(s.Memory.Drops - was)) // 32 bits in the kernel
		switch {
		case s.Protocol == "tcp" && s.State == "LISTEN":
			all.ListenersSeen++
			all.Listeners = append(all.Listeners, watch.Listener{
				Cookie: s.Cookie, Local: s.Local, Queued: int(s.ReceiveQueue), Limit: int(s.SendQueue),
				Drops: s.Memory.Drops,
			})
		case s.Protocol == "tcp":
			all.ConnectionsSeen++
		default:
			all.DatagramsSeen++
			m := watch.Memory(s.Memory)
			if m.Drops == 0 && m.ReceiveBytes == 0 && m.SendBytes == 0 {
				continue // It may be the busiest, or idle for years: the kernel counts no packets of it.
			}
			all.Datagrams = append(all.Datagrams, watch.Datagram{Cookie: s.Cookie, Local: s.Local, Remote: s.Remote,
				New: before != nil && !known, Memory: m})
		}
	}
	share := func(l watch.Listener) float64 { return float64(l.Queued) / float64(max(l.Limit, 1)) }
	sorting.Func(all.Listeners, func(a, b watch.Listener) int {
		return cmp.Or(cmp.Compare(b.Drops, a.Drops), cmp.Compare(share(b), share(a)), a.Local.Compare(b.Local))
	})
	sorting.Func(all.Datagrams, func(a, b watch.Datagram) int {
		return cmp.Or(cmp.Compare(b.Memory.Drops, a.Memory.Drops),
			cmp.Compare(b.Memory.ReceiveBytes, a.Memory.ReceiveBytes), a.Local.Compare(b.Local))
	})
	all.Listeners = all.Listeners[:min(len(all.Listeners), keptSockets)]
	all.Datagrams = all.Datagrams[:min(len(all.Datagrams), keptSockets)]
	return all
}
