package link

import (
	"encoding/binary"
	"errors"
)

// headerLen is the length of struct virtio_net_hdr as AF_PACKET uses it (PACKET_VNET_HDR): ten
// bytes in native order before the frame.
//
//	0 flags u8 · 1 gso_type u8 · 2 hdr_len u16 · 4 gso_size u16 · 6 csum_start u16 ·
//	8 csum_offset u16
const headerLen = 10

// The values of that header (include/uapi/linux/virtio_net.h).
const (
	// The transport checksum field holds the sum of the pseudo header only; the rest must be added.
	flagNeedsChecksum = 1

	gsoNone  = 0
	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoUDPL4 = 5
	gsoECN   = 0x80 // bit: the first segment alone carries CWR
)

// The parts of Ethernet, IP, TCP and UDP that segmentation touches.
const (
	ethernetLen = 14
	minFrame    = 60 // shortest frame on the wire, without the four bytes of checksum
	framing     = 24 // checksum 4, preamble and start 8, gap 12

	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100
	etherQinQ = 0x88a8

	protoTCP = 6
	protoUDP = 17

	tcpFIN = 0x01
	tcpPSH = 0x08
	tcpCWR = 0x80
)

// errInvalid reports a super-frame with contradictory headers.
var errInvalid = errors.New("frame headers contradict each other")

// Frame is one parsed buffer of an AF_PACKET socket: the 10-byte header and an Ethernet frame or a
// super-frame. It points into the buffer and is valid as long as the buffer.
type Frame struct {
	buf      []byte // header and frame, trailing padding cut off
	gso      int    // payload bytes of each wire segment but the last; 0 for a plain frame
	kind     byte   // gsoNone, gsoTCPv4, …
	ecn      bool
	l3       int // offset of the IP header in the Ethernet frame
	l4       int // offset of the TCP or UDP header in the Ethernet frame
	payload  int // offset of the payload in the Ethernet frame
	segments int // frames on the wire, at least 1
}

// Parse parses a buffer. It accepts a plain frame of any protocol; a super-frame must be TCP or UDP
// over IPv4 or IPv6 with consistent lengths.
func Parse(buf []byte) (Frame, error) {
	f := Frame{buf: buf, segments: 1}
	if len(buf) < headerLen+ethernetLen {
		return f, errInvalid
	}
	f.kind = buf[1] &^ gsoECN
	f.ecn = buf[1]&gsoECN != 0
	if f.kind == gsoNone {
		return f, nil
	}
	f.gso = int(binary.NativeEndian.Uint16(buf[4:]))
	if f.gso == 0 || !f.network() || !f.transport() {
		return f, errInvalid
	}
	payload := len(f.eth()) - f.payload
	f.segments = max(1, (payload+f.gso-1)/f.gso)
	return f, nil
}

// eth returns the Ethernet frame without the socket's header.
func (f *Frame) eth() []byte { return f.buf[headerLen:] }

// network finds the IP header and the transport header, cuts padding, and reports whether both
// match the kind of segmentation.
func (f *Frame) network() bool {
	e := f.eth()
	f.l3 = ethernetLen
	kind := binary.BigEndian.Uint16(e[12:])
	for tags := 0; (kind == etherVLAN || kind == etherQinQ) && tags < 2; tags++ {
		if len(e) < f.l3+4 {
			return false
		}
		kind = binary.BigEndian.Uint16(e[f.l3+2:])
		f.l3 += 4
	}
	want := byte(protoTCP)
	if f.kind == gsoUDPL4 {
		want = protoUDP
	}
	ip := e[f.l3:]
	switch {
	case kind == etherIPv4 && f.kind != gsoTCPv6:
		if len(ip) < 20 || ip[0]>>4 != 4 {
			return false
		}
		header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
		fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff
		if header < 20 || total < header || total > len(ip) || ip[9] != want || fragment != 0 {
			return false
		}
		f.l4 = f.l3 + header
		f.buf = f.buf[:headerLen+f.l3+total]
		return true
	case kind == etherIPv6 && f.kind != gsoTCPv4:
		if len(ip) < 40 || ip[0]>>4 != 6 {
			return false
		}
		total := 40 + int(binary.BigEndian.Uint16(ip[4:]))
		if total > len(ip) {
			return false
		}
		ip = ip[:total]
		next, at := ip[6], 40
		for next == 0 || next == 43 || next == 60 { // hop-by-hop, routing, destination options
			if len(ip) < at+8 {
				return false
			}
			next, at = ip[at], at+8+int(ip[at+1])*8
		}
		if next != want || at > len(ip) {
			return false
		}
		f.l4 = f.l3 + at
		f.buf = f.buf[:headerLen+f.l3+total]
		return true
	}
	return false
}

// transport finds the payload, and reports whether the transport header is complete.
func (f *Frame) transport() bool {
	t := f.eth()[f.l4:]
	if f.kind == gsoUDPL4 {
		f.payload = f.l4 + 8
		return len(t) >= 8
	}
	if len(t) < 20 {
		return false
	}
	header := int(t[12]>>4) * 4
	f.payload = f.l4 + header
	return header >= 20 && header <= len(t)
}

// Segments returns the number of frames on the wire.
func (f *Frame) Segments() int { return f.segments }

// segmentLen returns the Ethernet length of wire segment i.
func (f *Frame) segmentLen(i int) int {
	if f.segments == 1 {
		return len(f.eth())
	}
	if i < f.segments-1 {
		return f.payload + f.gso
	}
	return len(f.eth()) - i*f.gso
}

// bytes returns the sum of the Ethernet lengths of wire segments [from, to).
func (f *Frame) bytes(from, to int) int64 {
	if to <= from {
		return 0
	}
	return int64(to-from-1)*int64(f.segmentLen(from)) + int64(f.segmentLen(to-1))
}

// wireBytes returns how many bytes wire segments [from, to) occupy on the wire, with padding and
// framing.
func (f *Frame) wireBytes(from, to int) int64 {
	if to <= from {
		return 0
	}
	full, last := max(minFrame, f.segmentLen(from)), max(minFrame, f.segmentLen(to-1))
	return int64(to-from-1)*int64(full+framing) + int64(last+framing)
}

// Append appends the buffer of wire segments [from, to) to dst: a smaller super-frame, or a plain
// frame for a single segment. The whole frame is copied unchanged. dst must not overlap the frame.
func (f *Frame) Append(dst []byte, from, to int) []byte {
	if from == 0 && to == f.segments {
		return append(dst, f.buf...)
	}
	e := f.eth()
	start, end := f.payload+from*f.gso, min(len(e), f.payload+to*f.gso)
	at := len(dst)
	dst = append(dst, f.buf[:headerLen+f.payload]...)
	dst = append(dst, e[start:end]...)
	f.rewrite(dst[at:], from, to)
	return dst
}

// rewrite changes the headers in b to those of the segments [from, to).
func (f *Frame) rewrite(b []byte, from, to int) {
	e := b[headerLen:]
	ip, t := e[f.l3:], e[f.l4:]
	var sum uint32
	if ip[0]>>4 == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(from))
		header := ip[:f.l4-f.l3]
		binary.BigEndian.PutUint16(header[10:], 0)
		binary.BigEndian.PutUint16(header[10:], ^fold(add(0, header)))
		sum = add(0, ip[12:20])
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
		sum = add(0, ip[8:40])
	}

	proto, offset := uint32(protoTCP), 16
	if f.kind == gsoUDPL4 {
		proto, offset = protoUDP, 6
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	} else {
		binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(from*f.gso))
		if to != f.segments { // only the last segment ends or pushes
			t[13] &^= tcpFIN | tcpPSH
		}
		if from != 0 { // only the first reports a reduced window (RFC 3168 §6.1.2)
			t[13] &^= tcpCWR
		}
	}
	// The sum over the pseudo header. The kernel or the NIC adds the rest at csum_start and stores
	// it at csum_offset.
	binary.BigEndian.PutUint16(t[offset:], fold(sum+proto+uint32(len(t))))

	b[0], b[1] = flagNeedsChecksum, gsoNone
	size := 0
	if to-from > 1 {
		b[1], size = f.kind, f.gso
		if f.ecn && from == 0 {
			b[1] |= gsoECN
		}
	}
	binary.NativeEndian.PutUint16(b[2:], uint16(f.payload))
	binary.NativeEndian.PutUint16(b[4:], uint16(size))
	binary.NativeEndian.PutUint16(b[6:], uint16(f.l4))
	binary.NativeEndian.PutUint16(b[8:], uint16(offset))
}

// add sums 16-bit words in network order (RFC 1071), an odd last byte padded with zero.
func add(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

// fold adds the carries to the low 16 bits.
func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
