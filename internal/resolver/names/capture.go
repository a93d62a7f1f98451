package names

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/linerate/linerate/internal/resolver/message"
)

// Packet captures: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), of which
// only the queries over UDP to port 53 count. Those that were captured twice, as on loopback or on
// two interfaces, are questions twice.

// Bounds and numbers of the formats.
const (
	mostPacket = 1 << 20 // octets of one packet or block

	sectionHeader  = 0x0a0d0d0a
	interfaceBlock = 1
	simplePacket   = 3
	enhancedPacket = 6
	byteOrderMagic = 0x1a2b3c4d
)

// captureMagics are the beginnings of captures, by byte order: pcap with times in micro- and in
// nanoseconds.
var captureMagics = map[string]binary.ByteOrder{
	"\xd4\xc3\xb2\xa1": binary.LittleEndian, "\x4d\x3c\xb2\xa1": binary.LittleEndian,
	"\xa1\xb2\xc3\xd4": binary.BigEndian, "\xa1\xb2\x3c\x4d": binary.BigEndian,
}

// isCapture reports whether a file that begins so is a capture.
func isCapture(begin string) bool {
	if len(begin) < 4 {
		return false
	}
	_, pcap := captureMagics[begin[:4]]
	return pcap || begin[:4] == "\x0a\x0d\x0d\x0a"
}

// readCapture adds the questions of a capture. What a capture ends in the middle of is left out, as
// one that was copied while it was written.
func (s *Set) readCapture(in *bufio.Reader) error {
	begin, err := in.Peek(4)
	if err != nil {
		return err
	}
	if order, ok := captureMagics[string(begin)]; ok {
		err = s.readPCAP(in, order)
	} else {
		err = s.readPCAPNG(in)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err == nil && s.Len() == 0 {
		return fmt.Errorf("%w: the capture has no query to UDP port 53", ErrNames)
	}
	return err
}

func (s *Set) readPCAP(in io.Reader, order binary.ByteOrder) error {
	var head [24]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	link := order.Uint32(head[20:]) & 0xffff // above it: length of a check sequence
	buffer := make([]byte, mostPacket)
	for {
		if _, err := io.ReadFull(in, head[:16]); err != nil {
			return err
		}
		n := order.Uint32(head[8:])
		if n > mostPacket {
			return fmt.Errorf("%w: a packet of %d octets in the capture", ErrNames, n)
		}
		if _, err := io.ReadFull(in, buffer[:n]); err != nil {
			return err
		}
		if err := s.addPacket(link, buffer[:n]); err != nil {
			return err
		}
	}
}

func (s *Set) readPCAPNG(in io.Reader) error {
	var order binary.ByteOrder = binary.LittleEndian
	var links []uint32 // of the interfaces of a section
	buffer := make([]byte, mostPacket)
	for {
		var head [12]byte
		if _, err := io.ReadFull(in, head[:8]); err != nil {
			return err
		}
		kind, body := order.Uint32(head[:]), buffer[:0]
		if kind == sectionHeader { // the same in both orders
			if _, err := io.ReadFull(in, head[8:]); err != nil {
				return err
			}
			if order = binary.LittleEndian; order.Uint32(head[8:]) != byteOrderMagic {
				order = binary.BigEndian
			}
			if order.Uint32(head[8:]) != byteOrderMagic {
				return fmt.Errorf("%w: a section of the capture has no byte order", ErrNames)
			}
			links, body = nil, buffer[:4]
		}
		n := order.Uint32(head[4:])
		if n < 12+uint32(len(body)) || n%4 != 0 || n > mostPacket {
			return fmt.Errorf("%w: a block of %d octets in the capture", ErrNames, n)
		}
		if _, err := io.ReadFull(in, buffer[len(body):n-8]); err != nil {
			return err
		}
		body = buffer[:n-12] // without the length behind it
		var packet []byte
		var link uint32
		switch {
		case kind == interfaceBlock && len(body) >= 8:
			links = append(links, uint32(order.Uint16(body)))
		case kind == enhancedPacket && len(body) >= 20 && uint64(order.Uint32(body)) < uint64(len(links)):
			link = links[order.Uint32(body)]
			packet = body[20:min(uint64(len(body)), 20+uint64(order.Uint32(body[12:])))]
		case kind == simplePacket && len(body) >= 4 && len(links) > 0:
			link = links[0]
			packet = body[4:min(uint64(len(body)), 4+uint64(order.Uint32(body)))]
		}
		if err := s.addPacket(link, packet); err != nil {
			return err
		}
	}
}

// linkHeads is the octets in front of the IP header by link type
// (https://www.tcpdump.org/linktypes.html).
var linkHeads = map[uint32]int{0: 4, 1: 14, 101: 0, 108: 4, 113: 16, 228: 0, 229: 0, 276: 20}

// addPacket adds the question of a packet, if it is a query over UDP to port 53.
func (s *Set) addPacket(link uint32, p []byte) error {
	const ethernet = 1
	head, known := linkHeads[link]
	if !known || len(p) < head {
		return nil
	}
	if link == ethernet {
		for head+4 <= len(p) { // tags of VLANs, each of four octets in front of the type
			if t := binary.BigEndian.Uint16(p[head-2:]); t != 0x8100 && t != 0x88a8 {
				break
			}
			head += 4
		}
	}
	p = p[head:]
	const udp = 17
	switch {
	case len(p) >= 20 && p[0]>>4 == 4 && p[9] == udp && binary.BigEndian.Uint16(p[6:])&0x1fff == 0:
		p = p[min(int(p[0]&15)*4, len(p)):]
	case len(p) >= 40 && p[0]>>4 == 6 && p[6] == udp: // extension headers are rare on queries
		p = p[40:]
	default:
		return nil
	}
	if len(p) < 8 || binary.BigEndian.Uint16(p[2:]) != 53 {
		return nil
	}
	q, err := message.ParseQuery(p[8:])
	if err != nil {
		return nil // as a server would, it passes over what is no query
	}
	err = s.add(message.NameText(q.Name), q.Type, Expectation{})
	if errors.Is(err, message.ErrName) {
		return nil
	}
	return err
}
