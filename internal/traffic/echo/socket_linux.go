package echo

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// echoSocket exchanges pings with one address over ICMP or UDP.
type echoSocket struct {
	fd   int
	icmp *icmpEcho // nil: UDP
	buf  []byte    // room for IP and ICMP headers around a ping, one way at a time
}

// wakeEvery bounds the sleep of a read.
const wakeEvery = 200 * time.Millisecond

// headRoom is what may stand before the payload in what a socket delivers: an IPv4 header with all options and the ICMP header.
const headRoom = 60 + icmpHeaderBytes

// openICMP opens the socket for ICMP echo with to, for pings of size bytes.
func openICMP(to netip.Addr, size int) (*echoSocket, error) {
	fd, kind, err := sys.OpenEcho(to)
	if err != nil {
		return nil, err
	}
	if err := awake(fd); err != nil {
		return nil, err
	}
	e := &icmpEcho{kind: kind, v6: !to.Unmap().Is4(), id: uint16(rand.Uint32())}
	return &echoSocket{fd: fd, icmp: e, buf: make([]byte, headRoom+size)}, nil
}

// openUDP opens the socket for UDP echo with to, for pings of size bytes.
func openUDP(to netip.AddrPort, size int) (*echoSocket, error) {
	fd, err := sys.OpenUDP(to)
	if err != nil {
		return nil, err
	}
	if err := awake(fd); err != nil {
		return nil, err
	}
	return &echoSocket{fd: fd, buf: make([]byte, headRoom+size)}, nil
}

// awake bounds the sleep of a read. A socket that poll called readable can still have nothing to read: the kernel checks the checksum of
// a datagram only then, and drops it.
func awake(fd int) error {
	err := sys.SetTimeout(fd, wakeEvery)
	if err != nil {
		_ = sys.Close(fd) // nothing was sent on it
	}
	return err
}

// send sends one ping.
func (s *echoSocket) send(ping []byte, sequence uint64) error {
	if s.icmp == nil {
		_, err := sys.Write(s.fd, ping)
		return err
	}
	p := s.buf[:icmpHeaderBytes+len(ping)]
	copy(p[icmpHeaderBytes:], ping)
	s.icmp.finish(p, uint16(sequence))
	_, err := sys.Write(s.fd, p)
	return err
}

// receive waits for at most wait and returns one answer, which is valid until the next call. Nil without an error: nothing came that
// is an answer. An error is one that the network reported, as "host unreachable" does; the socket stays usable.
func (s *echoSocket) receive(wait time.Duration) ([]byte, error) {
	ready, err := sys.Poll(s.fd, wait)
	if !ready || err != nil {
		return nil, err
	}
	n, err := sys.Read(s.fd, s.buf)
	if err != nil {
		return nil, err
	}
	if s.icmp == nil {
		return s.buf[:n], nil
	}
	p, _ := s.icmp.payload(s.buf[:n])
	return p, nil
}

func (s *echoSocket) close() {
	if s.fd >= 0 {
		_ = sys.Close(s.fd) // a datagram socket holds nothing back
		s.fd = -1
	}
}
