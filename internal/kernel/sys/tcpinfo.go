package sys

import (
	"encoding/binary"
	"fmt"
)

// TCPInfo is struct tcp_info as the kernel returned it. Kernels only append fields, so
// [TCPInfo.Has] distinguishes a zero from a missing field by Length. Names and units are the
// kernel's: Micros are microseconds, Millis milliseconds, multiples of the MSS are Packets.
type TCPInfo struct {
	Length int // bytes the kernel returned; fields beyond are zero

	State, CAState, Retransmits, Probes, Backoff uint8
	Options                                      TCPOptions
	SndWScale, RcvWScale                         uint8 // shift announced by the peer, by this end
	DeliveryRateAppLimited                       bool  // since 4.9
	FastOpenClientFail                           uint8 // since 5.5

	RTOMicros, ATOMicros                                        uint32
	SndMSSBytes, RcvMSSBytes                                    uint32
	UnackedPackets, SackedPackets, LostPackets, RetransInFlight uint32
	Fackets                                                     uint32 // always 0 since 4.15
	LastDataSentMillis, LastDataRecvMillis, LastAckRecvMillis   uint32 // ago
	PMTUBytes, RcvSSThreshBytes                                 uint32
	RTTMicros, RTTVarMicros                                     uint32
	SndSSThreshPackets, SndCwndPackets                          uint32
	AdvMSSBytes, ReorderingPackets                              uint32
	RcvRTTMicros, RcvSpaceBytes                                 uint32 // receive buffer tuning's own view
	TotalRetrans                                                uint32 // segments, over the life of the connection

	PacingRateBytes, MaxPacingRateBytes     uint64 // per second, since 3.15
	BytesAcked, BytesReceived               uint64 // since 4.1
	SegsOut, SegsIn                         uint32 // since 4.2
	NotSentBytes, MinRTTMicros              uint32 // since 4.6
	DataSegsIn, DataSegsOut                 uint32 // since 4.6
	DeliveryRateBytes                       uint64 // per second, since 4.9
	BusyMicros                              uint64 // had data in flight or to send, since 4.10
	RwndLimitedMicros, SndbufLimitedMicros  uint64 // parts of BusyMicros, limited by peer window or send buffer
	Delivered, DeliveredCE                  uint32 // segments, since 4.18
	BytesSent, BytesRetrans                 uint64 // payload, since 4.19
	DSACKDups, ReordSeen                    uint32 // since 4.19
	RcvOOOPackets, SndWndBytes              uint32 // since 5.4
	RcvWndBytes, Rehash                     uint32 // since 6.2
	TotalRTO, TotalRTORecoveries            uint16 // since 6.7
	TotalRTOTimeMillis                      uint32
	ReceivedCE                              uint32 // Accurate ECN, since 6.18, as all below
	DeliveredE1, DeliveredE0, DeliveredCEBy uint32 // bytes
	ReceivedE1, ReceivedE0, ReceivedCEBy    uint32 // bytes
}

// TCPOptions are the options that both ends agreed on, tcpi_options.
type TCPOptions uint8

// The bits of tcpi_options. ECNSeen: at least one packet with ECT was received.
const (
	OptTimestamps TCPOptions = 1 << iota
	OptSACK
	OptWScale
	OptECN
	OptECNSeen
	OptSYNData
	OptUserTimeout
)

// Has reports whether all of o are set.
func (t TCPOptions) Has(o TCPOptions) bool { return t&o == o }

// Lengths of struct tcp_info that complete a group of fields.
const (
	TCPInfoChronographs = 192 // up to SndbufLimitedMicros, Linux 4.10
	TCPInfoSndWnd       = 232 // Linux 5.4
	TCPInfoRcvWnd       = 236 // Linux 6.2
)

// Has reports whether the kernel returned at least length bytes.
func (t *TCPInfo) Has(length int) bool { return t.Length >= length }

// tcpInfoBase is the size of struct tcp_info in Linux 2.6.9 to 3.14; every kernel that Go supports
// returns at least that.
const tcpInfoBase = 104

// TCPInfoBytes is enough for every field of this package; a newer kernel truncates its answer
// there.
const TCPInfoBytes = 280

// DecodeTCPInfo reads struct tcp_info from the bytes that getsockopt(TCP_INFO) returned, in the
// byte order of this machine. It ignores bytes after the last known field. Missing bytes leave
// fields zero; fewer bytes than Linux 2.6.9 returns are an error.
func DecodeTCPInfo(b []byte) (TCPInfo, error) {
	if len(b) < tcpInfoBase {
		return TCPInfo{}, fmt.Errorf("decode tcp_info: %d bytes are fewer than %d", len(b), tcpInfoBase)
	}
	t := TCPInfo{
		Length: len(b),
		State:  b[0], CAState: b[1], Retransmits: b[2], Probes: b[3], Backoff: b[4], Options: TCPOptions(b[5]),
	}
	// Bit fields start at the low end of the byte on little-endian machines and at the high end on
	// big-endian ones.
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		t.SndWScale, t.RcvWScale = b[6]&0xf, b[6]>>4
		t.DeliveryRateAppLimited, t.FastOpenClientFail = b[7]&1 != 0, b[7]>>1&3
	} else {
		t.SndWScale, t.RcvWScale = b[6]>>4, b[6]&0xf
		t.DeliveryRateAppLimited, t.FastOpenClientFail = b[7]&0x80 != 0, b[7]>>5&3
	}
	r := fieldReader{b: b, at: 8}
	r.u32(&t.RTOMicros, &t.ATOMicros, &t.SndMSSBytes, &t.RcvMSSBytes)
	r.u32(&t.UnackedPackets, &t.SackedPackets, &t.LostPackets, &t.RetransInFlight, &t.Fackets)
	var neverKept uint32 // tcpi_last_ack_sent: "Not remembered, sorry."
	r.u32(&t.LastDataSentMillis, &neverKept, &t.LastDataRecvMillis, &t.LastAckRecvMillis)
	r.u32(&t.PMTUBytes, &t.RcvSSThreshBytes, &t.RTTMicros, &t.RTTVarMicros, &t.SndSSThreshPackets, &t.SndCwndPackets)
	r.u32(&t.AdvMSSBytes, &t.ReorderingPackets, &t.RcvRTTMicros, &t.RcvSpaceBytes, &t.TotalRetrans)
	r.u64(&t.PacingRateBytes, &t.MaxPacingRateBytes, &t.BytesAcked, &t.BytesReceived)
	r.u32(&t.SegsOut, &t.SegsIn, &t.NotSentBytes, &t.MinRTTMicros, &t.DataSegsIn, &t.DataSegsOut)
	r.u64(&t.DeliveryRateBytes, &t.BusyMicros, &t.RwndLimitedMicros, &t.SndbufLimitedMicros)
	r.u32(&t.Delivered, &t.DeliveredCE)
	r.u64(&t.BytesSent, &t.BytesRetrans)
	r.u32(&t.DSACKDups, &t.ReordSeen, &t.RcvOOOPackets, &t.SndWndBytes, &t.RcvWndBytes, &t.Rehash)
	r.u16(&t.TotalRTO, &t.TotalRTORecoveries)
	r.u32(&t.TotalRTOTimeMillis, &t.ReceivedCE, &t.DeliveredE1, &t.DeliveredE0, &t.DeliveredCEBy)
	r.u32(&t.ReceivedE1, &t.ReceivedE0, &t.ReceivedCEBy)
	return t, nil
}

// fieldReader reads a C structure whose members are aligned to their own size, and stops at the
// first incomplete one.
type fieldReader struct {
	b  []byte
	at int
}

func (r *fieldReader) next(size int) []byte {
	r.at = (r.at + size - 1) &^ (size - 1)
	if r.at+size > len(r.b) {
		r.at = len(r.b) + 8 // all fields after a missing one are missing too
		return nil
	}
	field := r.b[r.at : r.at+size]
	r.at += size
	return field
}

func (r *fieldReader) u16(into ...*uint16) {
	for _, v := range into {
		if f := r.next(2); f != nil {
			*v = binary.NativeEndian.Uint16(f)
		}
	}
}

func (r *fieldReader) u32(into ...*uint32) {
	for _, v := range into {
		if f := r.next(4); f != nil {
			*v = binary.NativeEndian.Uint32(f)
		}
	}
}

func (r *fieldReader) u64(into ...*uint64) {
	for _, v := range into {
		if f := r.next(8); f != nil {
			*v = binary.NativeEndian.Uint64(f)
		}
	}
}
