package echo

import (
	"encoding/binary"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// TokenBytes is the length of the token at the start of every ping. A Server recognises by it which
// clients to answer, and a pinger its own packets.
const TokenBytes = 16

// echoHeaderBytes is what every ping starts with: the token and a 64-bit big-endian sequence
// number. The rest is padding.
const echoHeaderBytes = TokenBytes + 8

// Token admits the pings of one test.
type Token [TokenBytes]byte

// putPing writes token and sequence number into the head of a ping.
func putPing(p []byte, token Token, sequence uint64) {
	copy(p, token[:])
	binary.BigEndian.PutUint64(p[TokenBytes:], sequence)
}

// Kinds of packets that are not pings. They are in the highest byte of the sequence number, whose
// top bit a ping never reaches: at a gap of 100 µs that takes 29 million years.
const (
	kindHello  = 0x80 // "this is my address for stream n", see [Server.Expect]; n is in the lowest four bytes
	kindHeard  = 0x81 // prober: answer that this arrived, in few bytes
	kindSend   = 0x82 // prober: send a packet of the size named behind the header
	kindAnswer = 0x83 // server: the answer to kindHeard and kindSend
)

// HelloBytes is the length of a hello.
const HelloBytes = echoHeaderBytes

// PutHello writes the packet by which a near end proves the address of its stream number index,
// into p[:HelloBytes].
func PutHello(p []byte, token Token, index int) {
	putPing(p, token, kindHello<<56|uint64(uint32(index)))
}

// ParseHello reads a hello. ok is false for every other packet and for the hello of another test.
func ParseHello(p []byte, token Token) (index int, ok bool) {
	sequence, ok := parsePing(p, token)
	if !ok || sequence>>32 != kindHello<<24 {
		return 0, false
	}
	return int(uint32(sequence)), true
}

// parsePing reads a ping. ok is false for packets that are not ours.
//
// Sequence numbers are in the payload and 64 bits wide: the 16 bits of the ICMP header repeat after
// 6.5 s at the shortest gap.
func parsePing(p []byte, token Token) (sequence uint64, ok bool) {
	if len(p) < echoHeaderBytes || Token(p[:TokenBytes]) != token {
		return 0, false
	}
	return binary.BigEndian.Uint64(p[TokenBytes:]), true
}

// ICMP types and the size of the echo header: type, code, checksum, identifier, sequence number
// (RFC 792, RFC 4443 §4).
const (
	icmpEchoReply    = 0
	icmpEchoRequest  = 8
	icmp6EchoRequest = 128
	icmp6EchoReply   = 129
	icmpHeaderBytes  = 8
)

// icmpEcho knows how echo messages look on one socket.
type icmpEcho struct {
	kind sys.EchoKind
	v6   bool
	id   uint16 // raw sockets only; the kernel chooses it on ping sockets
}

// finish completes an echo request whose payload is already in p[icmpHeaderBytes:].
func (e icmpEcho) finish(p []byte, sequence uint16) {
	p[0], p[1], p[2], p[3] = icmpEchoRequest, 0, 0, 0
	if e.v6 {
		p[0] = icmp6EchoRequest
	}
	binary.BigEndian.PutUint16(p[4:], e.id)
	binary.BigEndian.PutUint16(p[6:], sequence)
	if !e.v6 && e.kind == sys.EchoRaw {
		// Only here the checksum is ours: ping sockets and ICMPv6 leave it to the kernel, which
		// knows the addresses of the pseudo-header.
		binary.BigEndian.PutUint16(p[2:], internetChecksum(p))
	}
}

// payload finds the payload of an echo reply in what the socket delivered. ok is false for other
// messages: a raw socket receives all of them, including our own requests over loopback.
func (e icmpEcho) payload(p []byte) (payload []byte, ok bool) {
	if !e.v6 && e.kind == sys.EchoRaw {
		if len(p) < 20 || p[0]>>4 != 4 {
			return nil, false
		}
		// The header length comes from the network, so it is checked before it is used.
		n := int(p[0]&0xf) * 4 // with IP options
		if n < 20 || n > len(p) {
			return nil, false
		}
		p = p[n:]
	}
	if len(p) < icmpHeaderBytes || p[1] != 0 {
		return nil, false
	}
	reply := byte(icmpEchoReply)
	if e.v6 {
		reply = icmp6EchoReply
	}
	if p[0] != reply || e.kind == sys.EchoRaw && binary.BigEndian.Uint16(p[4:]) != e.id {
		return nil, false
	}
	return p[icmpHeaderBytes:], true
}

// internetChecksum is the ones' complement sum of RFC 1071, with the checksum field itself zero.
func internetChecksum(p []byte) uint16 {
	var sum uint32
	for ; len(p) >= 2; p = p[2:] {
		sum += uint32(p[0])<<8 | uint32(p[1])
	}
	if len(p) == 1 {
		sum += uint32(p[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
