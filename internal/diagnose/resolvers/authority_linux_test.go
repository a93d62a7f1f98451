package resolvers_test

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// leaf is how one of the two servers of bench.test behaves.
type leaf struct {
	delay    time.Duration
	loss     float64 // share of the queries that it drops
	lame     bool    // it refuses
	truncate bool    // over UDP
}

// authorities serve a root, test and bench.test on loopback. They are independent of the closed
// world of `resolver lab`: another library packs the messages, and they speak TCP.
type authorities struct {
	group   sync.WaitGroup
	closers []io.Closer
}

var (
	rootAt = netip.MustParseAddr("127.0.0.3")
	topAt  = netip.MustParseAddr("127.0.0.4")
	leafAt = []netip.Addr{netip.MustParseAddr("127.0.0.5"), netip.MustParseAddr("127.0.0.6")}
)

func serve(t *testing.T, leaves [2]leaf) *authorities {
	a := &authorities{}
	for at, behaves := range map[netip.Addr]leaf{rootAt: {}, topAt: {}, leafAt[0]: leaves[0], leafAt[1]: leaves[1]} {
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 53)))
		if err != nil {
			t.Fatal(err)
		}
		_ = udp.SetReadBuffer(4 << 20) // as much as the host allows
		tcp, err := net.Listen("tcp", netip.AddrPortFrom(at, 53).String())
		if err != nil {
			t.Fatal(err)
		}
		a.closers = append(a.closers, udp, tcp)
		a.group.Go(func() { datagrams(udp, at, behaves) })
		a.group.Go(func() { streams(tcp, at) })
	}
	return a
}

func (a *authorities) close() {
	for _, c := range a.closers {
		_ = c.Close()
	}
	a.group.Wait()
}

func datagrams(conn *net.UDPConn, at netip.Addr, l leaf) {
	in := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(in)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || l.loss > 0 && rand.Float64() < l.loss {
			continue
		}
		m := reply(in[:n], at, l)
		if m == nil {
			continue
		}
		send := func() { _, _ = conn.WriteToUDPAddrPort(m, from) }
		if l.delay > 0 {
			time.AfterFunc(l.delay, send)
		} else {
			send()
		}
	}
}

func streams(l net.Listener, at netip.Addr) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			for {
				var length [2]byte
				if _, err := io.ReadFull(conn, length[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(conn, q); err != nil {
					return
				}
				m := reply(q, at, leaf{})
				if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)); err != nil {
					return
				}
			}
		}()
	}
}

// reply answers as RFC 1034 §4.3.2 asks.
func reply(packed []byte, at netip.Addr, l leaf) []byte {
	var q dnsmessage.Message
	if q.Unpack(packed) != nil || len(q.Questions) != 1 {
		return nil
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true,
		RecursionDesired: q.RecursionDesired}, Questions: q.Questions}
	asked := q.Questions[0]
	name := strings.ToLower(asked.Name.String())
	zones := []string{".", "test.", "bench.test."}
	depth := 2
	switch at {
	case rootAt:
		depth = 0
	case topAt:
		depth = 1
	}
	inside := func(zone string) bool { return zone == "." || name == zone || strings.HasSuffix(name, "."+zone) }
	servers := map[string][]netip.Addr{".": {rootAt}, "test.": {topAt}, "bench.test.": leafAt}
	refer := func(zone string, into *[]dnsmessage.Resource) {
		for i, a := range servers[zone] {
			host := dnsmessage.MustNewName([]string{"a", "b"}[i] + ".ns." + strings.TrimPrefix(zone, "."))
			*into = append(*into, dnsmessage.Resource{Header: header(zone, dnsmessage.TypeNS),
				Body: &dnsmessage.NSResource{NS: host}})
			m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: header(host.String(), dnsmessage.TypeA),
				Body: &dnsmessage.AResource{A: a.As4()}})
		}
	}
	switch {
	case l.lame || !inside(zones[depth]):
		m.RCode, m.Authoritative = dnsmessage.RCodeRefused, false
	case l.truncate:
		m.Truncated = true
	case depth < 2 && inside(zones[depth+1]):
		m.Authoritative = false
		refer(zones[depth+1], &m.Authorities)
	case name == zones[depth] && asked.Type == dnsmessage.TypeNS:
		refer(zones[depth], &m.Answers)
	case asked.Type == dnsmessage.TypeA && strings.Contains(name, ".ns."):
		i := 0
		if strings.HasPrefix(name, "b") {
			i = 1
		}
		all := servers[zones[depth]]
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, dnsmessage.TypeA),
			Body: &dnsmessage.AResource{A: all[min(i, len(all)-1)].As4()}})
	case asked.Type == dnsmessage.TypeA && strings.HasSuffix(name, ".live.bench.test."):
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, dnsmessage.TypeA),
			Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}})
	default:
		m.Authorities = append(m.Authorities, dnsmessage.Resource{Header: header(zones[depth], dnsmessage.TypeSOA),
			Body: &dnsmessage.SOAResource{NS: dnsmessage.MustNewName("a.ns."), MBox: dnsmessage.MustNewName("h."),
				Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, MinTTL: 300}})
	}
	for _, r := range q.Additionals {
		if r.Header.Type == dnsmessage.TypeOPT {
			var h dnsmessage.ResourceHeader
			if h.SetEDNS0(1232, m.RCode, false) == nil {
				m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}})
			}
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

func header(name string, t dnsmessage.Type) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Type: t, Class: dnsmessage.ClassINET, TTL: 300}
}
