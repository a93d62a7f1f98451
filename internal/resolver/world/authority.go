package world

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
	"github.com/linerate/linerate/internal/resolver/message"
)

// authority is one authoritative server of one zone.
type authority struct {
	address netip.Addr
	zone    *zone
	delay   time.Duration
	loss    float64 // share of the queries that it drops
	lame    bool    // it refuses queries for its zone
}

// zone is what the servers of one zone say. Names are in lower case with the final dot.
type zone struct {
	origin string
	ttl    uint32
	// names of its servers and their addresses
	servers map[string]netip.Addr
	below   *zone // the one delegation; nil: a leaf

	fresh    atomic.Uint32 // the address of freshName, which the comparison changes
	freshTTL uint32
}

// freshName is the record that changes.
const freshName = "fresh."

// network is the servers of the world.
type network struct {
	group sync.WaitGroup
	conns []*net.UDPConn
	count atomic.Uint64 // queries
	stop  context.CancelFunc
}

// serve starts servers on port 53.
func (n *network) serve(servers []authority) error {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	for _, a := range servers {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a.address, 53)))
		if err != nil {
			return fmt.Errorf("serve zone %s on %s: %w", a.zone.origin, a.address, err)
		}
		_ = conn.SetReadBuffer(4 << 20) // as much as the host allows
		n.conns = append(n.conns, conn)
		n.group.Go(func() { n.answer(ctx, conn, a) })
	}
	return nil
}

func (n *network) close() {
	if n.stop != nil {
		n.stop()
	}
	for _, c := range n.conns {
		_ = c.Close() // nothing is unwritten
	}
	n.group.Wait()
}

// answer answers the queries of one server.
func (n *network) answer(ctx context.Context, conn *net.UDPConn, a authority) {
	in := make([]byte, 4096)
	var retry incoming.Retry
	for {
		length, from, err := conn.ReadFromUDPAddrPort(in)
		if err != nil {
			if retry.After(ctx, err) != nil {
				return
			}
			continue
		}
		retry.Done()
		q, err := message.ParseQuery(in[:length])
		if err != nil || a.loss > 0 && rand.Float64() < a.loss {
			continue
		}
		n.count.Add(1)
		m := a.reply(q)
		send := func() { _, _ = conn.WriteToUDPAddrPort(m, from) } // a recursor that has gone needs none
		if a.delay > 0 {
			time.AfterFunc(a.delay, send)
		} else {
			send()
		}
	}
}

// builder appends records to an answer.
type builder struct {
	b      []byte
	counts [3]uint16 // answer, authority, additional
}

// record appends a record with an uncompressed owner.
func (b *builder) record(section int, owner string, t message.Type, ttl uint32, data []byte) {
	name, err := message.AppendName(nil, owner)
	if err != nil {
		return // names of the world are sound
	}
	b.b = append(b.b, name...)
	b.b = binary.BigEndian.AppendUint16(b.b, uint16(t))
	b.b = append(b.b, 0, 1)
	b.b = binary.BigEndian.AppendUint32(b.b, ttl)
	b.b = binary.BigEndian.AppendUint16(b.b, uint16(len(data)))
	b.b = append(b.b, data...)
	b.counts[section]++
}

// The sections of an answer.
const (
	sectionAnswer = iota
	sectionAuthority
	sectionAdditional
)

// reply returns the answer of a server (RFC 1034 §4.3.2).
func (a authority) reply(q message.Query) []byte {
	z := a.zone
	name := strings.ToLower(message.NameText(q.Name))
	b := builder{b: make([]byte, message.HeaderBytes, 512)}
	b.b = append(b.b, q.Question...)
	flags := uint16(0x8000)
	switch {
	case a.lame || !inside(name, z.origin):
		flags |= uint16(message.Refused)
	case z.below != nil && inside(name, z.below.origin):
		z.below.referral(&b)
	default:
		flags |= 0x0400
		if code := z.authoritative(&b, name, q.Type); code != message.NoError {
			flags |= uint16(code)
		}
	}
	if q.EDNS {
		b.b = append(b.b, 0, 0, byte(message.TypeOPT), 0x04, 0xd0, 0, 0, 0, 0, 0, 0)
		b.counts[sectionAdditional]++
	}
	binary.BigEndian.PutUint16(b.b, q.ID)
	binary.BigEndian.PutUint16(b.b[2:], flags)
	b.b[5] = 1
	for i, n := range b.counts {
		binary.BigEndian.PutUint16(b.b[6+2*i:], n)
	}
	return b.b
}

// inside reports whether a name is at or below a zone.
func inside(name, origin string) bool {
	return origin == "." || name == origin || strings.HasSuffix(name, "."+origin)
}

// referral appends the servers of a zone and their addresses.
func (z *zone) referral(b *builder) { z.appendServers(b, sectionAuthority) }

func (z *zone) appendServers(b *builder, section int) {
	for server := range z.servers {
		data, err := message.AppendName(nil, server)
		if err == nil {
			b.record(section, z.origin, message.TypeNS, z.ttl, data)
		}
	}
	for server, at := range z.servers {
		b.record(sectionAdditional, server, message.TypeA, z.ttl, at.AsSlice())
	}
}

// authoritative appends what the zone says about one of its names. A leaf has addresses for every
// name below live, and for freshName; nothing below gone.
func (z *zone) authoritative(b *builder, name string, t message.Type) message.RCode {
	below := strings.TrimSuffix(name, z.origin)
	if at, ok := z.servers[name]; ok && t == message.TypeA {
		b.record(sectionAnswer, name, t, z.ttl, at.AsSlice())
		return message.NoError
	}
	code := message.NoError
	switch {
	case name == z.origin && t == message.TypeNS:
		z.appendServers(b, sectionAnswer)
		return message.NoError
	case name == z.origin && t == message.TypeSOA:
		b.record(sectionAnswer, name, t, z.ttl, z.start())
		return message.NoError
	case name == z.origin, below == "live.", below == "gone.": // no data, but names below them
	case z.below == nil && below == freshName:
		if t == message.TypeA {
			b.record(sectionAnswer, name, t, z.freshTTL, binary.BigEndian.AppendUint32(nil, z.fresh.Load()))
			return message.NoError
		}
	case z.below == nil && strings.HasSuffix(below, ".live."):
		if t == message.TypeA {
			b.record(sectionAnswer, name, t, z.ttl, []byte{192, 0, 2, byte(len(name))})
			return message.NoError
		}
	default:
		if _, ok := z.servers[name]; !ok {
			code = message.NameError
		}
	}
	b.record(sectionAuthority, z.origin, message.TypeSOA, z.ttl, z.start())
	return code
}

// start is the data of the SOA record: its minimum is the time to live of negative answers.
func (z *zone) start() []byte {
	var b []byte
	for server := range z.servers {
		b, _ = message.AppendName(nil, server) // names of the world are sound
		break
	}
	b = append(b, b...)
	for _, n := range []uint32{1, 3600, 600, 86400, z.ttl} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
