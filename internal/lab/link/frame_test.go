package link

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// The kinds of super-frames.
const (
	tcp4 = gsoTCPv4
	tcp6 = gsoTCPv6
	udp4 = gsoUDPL4
	udp6 = gsoUDPL4 | 0x40 // test only: over IPv6
)

// superFrame returns the buffer of a super-frame as the kernel delivers it: all flags set that
// segmentation must move, the checksum left to the NIC.
func superFrame(kind byte, payload, gso int) []byte {
	over6, udp := kind == tcp6 || kind == udp6, kind&^0x40 == gsoUDPL4
	transport := 32 // TCP with timestamps
	if udp {
		transport = 8
	}
	ip := 20
	if over6 {
		ip = 40
	}
	b := make([]byte, headerLen+ethernetLen+ip+transport+payload)
	e := b[headerLen:]
	n, tr := e[ethernetLen:], e[ethernetLen+ip:]
	if over6 {
		binary.BigEndian.PutUint16(e[12:], etherIPv6)
		n[0], n[6], n[7] = 0x60, protoTCP, 64
		if udp {
			n[6] = protoUDP
		}
		binary.BigEndian.PutUint16(n[4:], uint16(transport+payload))
		copy(n[8:], "\xfd\x00source address\xfd\x00other.address.")
	} else {
		binary.BigEndian.PutUint16(e[12:], etherIPv4)
		n[0], n[6], n[8], n[9] = 0x45, 0x40, 64, protoTCP
		if udp {
			n[9] = protoUDP
		}
		binary.BigEndian.PutUint16(n[2:], uint16(ip+transport+payload))
		binary.BigEndian.PutUint16(n[4:], 0xfff0) // wraps
		copy(n[12:], "\x0a\x4d\x00\x01\x0a\x4d\x00\x02")
		binary.BigEndian.PutUint16(n[10:], ^fold(add(0, n[:20])))
	}
	copy(tr, "\x30\x39\x14\x51")
	offset := 6
	if udp {
		binary.BigEndian.PutUint16(tr[4:], uint16(8+payload))
	} else {
		offset = 16
		binary.BigEndian.PutUint32(tr[4:], 0xffffff00) // wraps
		tr[12], tr[13] = 8<<4, 0x10|tcpFIN|tcpPSH|tcpCWR
		copy(tr[20:], "\x01\x01\x08\x0atimestmp")
	}
	for i := range payload {
		tr[transport+i] = byte(i*7 + i>>8)
	}
	b[0], b[1] = flagNeedsChecksum, kind&^0x40
	if !udp {
		b[1] |= gsoECN
	}
	binary.NativeEndian.PutUint16(b[2:], uint16(ethernetLen+ip+transport))
	binary.NativeEndian.PutUint16(b[4:], uint16(gso))
	binary.NativeEndian.PutUint16(b[6:], uint16(ethernetLen+ip))
	binary.NativeEndian.PutUint16(b[8:], uint16(offset))
	putPseudo(b)
	return b
}

// putPseudo sets the transport checksum to the sum of the pseudo header, as the kernel does for a
// NIC.
func putPseudo(b []byte) {
	start, offset := int(binary.NativeEndian.Uint16(b[6:])), int(binary.NativeEndian.Uint16(b[8:]))
	e := b[headerLen:]
	binary.BigEndian.PutUint16(e[start+offset:], fold(pseudo(e, start)))
}

// pseudo sums the pseudo header of a frame without options or extension headers.
func pseudo(e []byte, start int) uint32 {
	ip := e[ethernetLen:]
	if ip[0]>>4 == 6 {
		return add(0, ip[8:40]) + uint32(ip[6]) + uint32(len(e)-start)
	}
	return add(0, ip[12:20]) + uint32(ip[9]) + uint32(len(e)-start)
}

// finish completes the checksum of a frame as a NIC does, and returns the Ethernet frame.
func finish(b []byte) []byte {
	e := bytes.Clone(b[headerLen:])
	if b[0]&flagNeedsChecksum != 0 {
		start, offset := int(binary.NativeEndian.Uint16(b[6:])), int(binary.NativeEndian.Uint16(b[8:]))
		binary.BigEndian.PutUint16(e[start+offset:], ^fold(add(0, e[start:])))
	}
	return e
}

// segment is the plain reference: wire segment i of a super-frame, built from the definition of
// each field.
func segment(super []byte, i int) []byte {
	gso, transport := int(binary.NativeEndian.Uint16(super[4:])), int(binary.NativeEndian.Uint16(super[6:]))
	head, offset := int(binary.NativeEndian.Uint16(super[2:])), int(binary.NativeEndian.Uint16(super[8:]))
	e := super[headerLen:]
	end := min(len(e), head+(i+1)*gso)
	s := append(bytes.Clone(e[:head]), e[head+i*gso:end]...)
	if ip := s[ethernetLen:]; ip[0]>>4 == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(i))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(add(0, ip[:20])))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	}
	t := s[transport:]
	if offset == 6 {
		binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	} else {
		binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(i*gso))
		if end < len(e) {
			t[13] &^= tcpFIN | tcpPSH
		}
		if i > 0 {
			t[13] &^= tcpCWR
		}
	}
	t[offset], t[offset+1] = 0, 0
	binary.BigEndian.PutUint16(t[offset:], ^fold(add(pseudo(s, transport), t)))
	return s
}

func TestSplitAgainstReference(t *testing.T) {
	for _, kind := range []byte{tcp4, tcp6, udp4, udp6} {
		for _, size := range []struct{ payload, gso int }{{1, 1}, {2, 1}, {100, 33}, {99, 33}, {1448 * 3, 1448},
			{64_000, 1428}} {
			super := superFrame(kind, size.payload, size.gso)
			f, err := Parse(super)
			if err != nil {
				t.Fatalf("kind %d: %v", kind, err)
			}
			if want := (size.payload + size.gso - 1) / size.gso; f.Segments() != want {
				t.Fatalf("kind %d payload %d by %d: %d segments, want %d", kind, size.payload, size.gso,
					f.Segments(), want)
			}
			var sum int64
			for i := range f.Segments() {
				got, want := f.Append(nil, i, i+1), segment(super, i)
				if !bytes.Equal(finish(got), want) {
					t.Fatalf("kind %d payload %d by %d segment %d:\n got %x\nwant %x", kind, size.payload, size.gso, i,
						head(finish(got)), head(want))
				}
				if len(want) != f.segmentLen(i) {
					t.Fatalf("segment %d has %d bytes, want %d", i, len(want), f.segmentLen(i))
				}
				sum += int64(len(want))
			}
			if sum != f.bytes(0, f.Segments()) {
				t.Fatalf("segments have %d bytes, want %d", sum, f.bytes(0, f.Segments()))
			}
		}
	}
}

func head(b []byte) []byte { return b[:min(len(b), 90)] }

// Any run of segments, split again, must give the same segments as the whole frame.
func TestSplitOfRuns(t *testing.T) {
	for _, kind := range []byte{tcp4, tcp6, udp4, udp6} {
		super := superFrame(kind, 9*100+17, 100)
		f, _ := Parse(super)
		for from := range f.Segments() {
			for to := from + 1; to <= f.Segments(); to++ {
				run := f.Append(nil, from, to)
				g, err := Parse(run)
				if err != nil || g.Segments() != to-from {
					t.Fatalf("run %d to %d: %d segments, %v", from, to, g.Segments(), err)
				}
				for i := range g.Segments() {
					if got := finish(g.Append(nil, i, i+1)); !bytes.Equal(got, segment(super, from+i)) {
						t.Fatalf("kind %d run %d to %d segment %d differs", kind, from, to, i)
					}
				}
			}
		}
	}
}

func TestParsePaddingAndTags(t *testing.T) {
	padded := append(superFrame(tcp4, 3000, 1448), 0, 0, 0, 0)
	f, err := Parse(padded)
	if err != nil || f.Segments() != 3 || len(f.buf) != len(padded)-4 {
		t.Errorf("padding: %d segments, %v", f.Segments(), err)
	}
	tagged := superFrame(tcp4, 3000, 1448)
	tagged = append(tagged[:headerLen+12:headerLen+12], append([]byte{0x81, 0, 0, 5}, tagged[headerLen+12:]...)...)
	f, err = Parse(tagged)
	if err != nil || f.Segments() != 3 || f.segmentLen(0) != 4+ethernetLen+52+1448 {
		t.Errorf("tag: %d segments of %d, %v", f.Segments(), f.segmentLen(0), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, kind := range []byte{tcp4, tcp6, udp4, udp6} {
		f.Add(superFrame(kind, 700, 100), uint8(1), uint8(3))
		f.Add(superFrame(kind, 70, 100), uint8(0), uint8(1))
	}
	f.Add(plain(60, 1), uint8(0), uint8(1))
	extension := superFrame(tcp6, 500, 100)
	extension[headerLen+ethernetLen+6] = 0
	f.Add(extension, uint8(0), uint8(2))
	f.Fuzz(func(t *testing.T, buf []byte, a, b uint8) {
		if len(buf) > maxBuffer {
			return
		}
		before := bytes.Clone(buf)
		fr, err := Parse(buf)
		if err != nil {
			return
		}
		n := fr.Segments()
		if n < 1 || n > 65536 || fr.bytes(0, n) < int64(len(fr.eth())) {
			t.Fatalf("%d segments with %d bytes in all, in a frame of %d", n, fr.bytes(0, n), len(fr.eth()))
		}
		from := int(a) % n
		to := from + 1 + int(b)%(n-from)
		out := fr.Append(nil, from, to)
		if !bytes.Equal(buf, before) {
			t.Fatal("the frame was changed")
		}
		again, err := Parse(out)
		if err != nil || again.Segments() != to-from {
			t.Fatalf("run %d to %d of %d: %d segments, %v", from, to, n, again.Segments(), err)
		}
		if again.bytes(0, to-from) != fr.bytes(from, to) {
			t.Fatalf("run %d to %d of %d: %d bytes, want %d", from, to, n, again.bytes(0, to-from), fr.bytes(from, to))
		}
	})
}
