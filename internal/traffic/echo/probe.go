package echo

import (
	"encoding/binary"
	"net/netip"
)

// probeHeaderBytes is the length of the header of a packet of a path MTU search: the header of a
// ping, then 4 bytes each
//
//	24  size    request kindSend: payload bytes of the packet to send, 0: none;
//	            request kindHeard: of itself; answer: as in the request
//	28  hop     answer: MTU in the last ICMP "fragmentation needed" that the server got for this
//	            near end; 1: it named none; 0: none arrived
//	32  status  answer: probeOK, probeTooBig or probeCannot
//	36  local   answer with probeTooBig: MTU of the server's own interface, 0: not known
//
// all big-endian. Under IPv4 and UDP headers these are 68 bytes, the least MTU that IPv4 has (RFC
// 791).
const probeHeaderBytes = echoHeaderBytes + 16

// Status of an answer.
const (
	probeOK     = 0
	probeTooBig = 1 // a packet of that size does not leave the server's interface in one piece
	probeCannot = 2 // the server's system cannot forbid fragments
)

// unnamed stands for the MTU in a report that names none, as of routers from before RFC 1191.
const unnamed = 1

// putProbe writes a request.
func putProbe(p []byte, token Token, kind byte, id uint64, size int) {
	putPing(p, token, uint64(kind)<<56|id&(1<<56-1))
	binary.BigEndian.PutUint32(p[24:], uint32(size))
	clear(p[28:probeHeaderBytes])
}

// probeAnswer is the content of an answer.
type probeAnswer struct {
	id       uint64
	size     int // payload bytes that were requested, or that arrived
	hop      int // MTU of a hop as ICMP reported it to the far end
	status   int
	farLocal int // MTU of the far interface, with probeTooBig
}

// parseAnswer reads an answer; ok is false for everything else.
func parseAnswer(p []byte, token Token) (a probeAnswer, ok bool) {
	sequence, ok := parsePing(p, token)
	if !ok || len(p) < probeHeaderBytes || sequence>>56 != kindAnswer {
		return probeAnswer{}, false
	}
	return probeAnswer{
		id: sequence & (1<<56 - 1), size: int(binary.BigEndian.Uint32(p[24:])),
		hop:    int(binary.BigEndian.Uint32(p[28:])),
		status: int(binary.BigEndian.Uint32(p[32:])), farLocal: int(binary.BigEndian.Uint32(p[36:])),
	}, true
}

// probed decides about a request of a path MTU search and turns it into the header of its answer.
// The caller holds the server's lock.
func (r *registration) probed(p []byte) reply {
	if len(p) < probeHeaderBytes {
		return reply{}
	}
	kind, size := p[TokenBytes], int64(binary.BigEndian.Uint32(p[24:]))
	p[TokenBytes] = kindAnswer
	binary.BigEndian.PutUint32(p[28:], uint32(r.hop))
	clear(p[32:probeHeaderBytes])
	switch {
	case kind == kindHeard:
		// The length that arrived, not what the request claims.
		binary.BigEndian.PutUint32(p[24:], uint32(len(p)))
		return reply{bytes: probeHeaderBytes}
	case size < probeHeaderBytes:
		return reply{bytes: probeHeaderBytes}
	case size > maxDatagram || r.sent+int(size) > maxSentBytes:
		return reply{}
	}
	r.sent += int(size)
	return reply{bytes: int(size), probe: true}
}

// putTooBig turns an answer into one that reports that the requested size does not leave this host.
func putTooBig(p []byte, mtu int) {
	binary.BigEndian.PutUint32(p[32:], probeTooBig)
	binary.BigEndian.PutUint32(p[36:], uint32(mtu))
}

// tooBig records an ICMP "fragmentation needed" or "packet too big" about a packet to a near end.
func (s *Server) tooBig(to netip.Addr, mtu int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.tokens {
		if r.from == plain(to) {
			r.hop = max(mtu, unnamed)
		}
	}
}
