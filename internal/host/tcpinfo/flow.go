package tcpinfo

import (
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Lengths of struct tcp_info that end with tcpi_bytes_acked and tcpi_bytes_received (Linux 4.1) and
// tcpi_data_segs_out (4.6).
const (
	bytesAckedEnd    = 128
	bytesReceivedEnd = 136
	dataSegsEnd      = 160
)

// TCPInfo is what the kernel reports about one connection (struct tcp_info and socket options), in
// plain units.
type TCPInfo struct {
	Sender               bool    `json:"sender"`                 // this end sent the bulk data
	BusySeconds          float64 `json:"busy_seconds"`           // tcpi_busy_time: had unacknowledged data
	RwndLimitedSeconds   float64 `json:"rwnd_limited_seconds"`   // tcpi_rwnd_limited
	SndbufLimitedSeconds float64 `json:"sndbuf_limited_seconds"` // tcpi_sndbuf_limited; 0 with UnsentLimitBytes
	AppLimited           bool    `json:"app_limited"`            // false with UnsentLimitBytes
	// The sender may not queue more than this before the congestion window admits it
	// (TCP_NOTSENT_LOWAT). The kernel's times limited by the send buffer and by the application
	// then reflect only that limit, so they are left out.
	UnsentLimitBytes int64   `json:"unsent_limit_bytes,omitempty"`
	RTTSeconds       float64 `json:"rtt_seconds"`     // smoothed, at the end
	MinRTTSeconds    float64 `json:"min_rtt_seconds"` // kernel's windowed minimum
	CwndBytes        float64 `json:"cwnd_bytes"`
	SndMSSBytes      int     `json:"snd_mss_bytes"`
	RcvMSSBytes      int     `json:"rcv_mss_bytes"`
	// offered in this end's handshake, less the options of every segment
	AdvMSSBytes            int     `json:"adv_mss_bytes,omitempty"`
	SndWndBytes            int64   `json:"snd_wnd_bytes,omitempty"`     // peer's advertised window, kernel ≥ 5.4
	MaxSndWndBytes         int64   `json:"max_snd_wnd_bytes,omitempty"` // largest seen in the samples
	RcvWndBytes            int64   `json:"rcv_wnd_bytes,omitempty"`     // window this end advertises, kernel ≥ 6.2
	RcvSpaceBytes          int64   `json:"rcv_space_bytes"`
	SndWScale              int     `json:"snd_wscale"` // shift the peer announced
	RcvWScale              int     `json:"rcv_wscale"` // shift this end announced
	WScaleOK               bool    `json:"wscale_ok"`  // option seen on both SYNs
	SACKOK                 bool    `json:"sack_ok"`
	TimestampsOK           bool    `json:"timestamps_ok"`
	ECNOK                  bool    `json:"ecn_ok"`
	DeliveryRateBitsPerSec float64 `json:"delivery_rate_bits_per_second"`
	BytesAcked             uint64  `json:"bytes_acked"`
	BytesReceived          uint64  `json:"bytes_received"`
	BytesRetransmitted     uint64  `json:"bytes_retransmitted,omitempty"`
	SegsOut                uint64  `json:"segs_out"`
	SegsIn                 uint64  `json:"segs_in"`
	RetransSegs            uint64  `json:"retrans_segs"`
	ReorderSeen            uint64  `json:"reorder_seen"`
	DSACKDups              uint64  `json:"dsack_dups"`
	SndBufBytes            int64   `json:"sndbuf_bytes"` // SO_SNDBUF as the kernel keeps it
	RcvBufBytes            int64   `json:"rcvbuf_bytes"`
	PMTUBytes              int     `json:"pmtu_bytes"`
	CongestionControl      string  `json:"congestion_control"`
	MeanRTTSeconds         float64 `json:"mean_rtt_seconds,omitempty"` // over the samples of the measured part
	MeanCwndBytes          float64 `json:"mean_cwnd_bytes,omitempty"`
}

// Flow gathers the readings of one connection. The zero value has no readings.
type Flow struct {
	Last       sys.TCPInfo // latest reading
	open, shut sys.TCPInfo // at the edges of the measured window
	cut        sys.TCPInfo // at the end of the last interval
	buffers    Buffers

	count           int     // readings inside the window
	rttSum, cwndSum float64 // seconds, bytes, over them
	maxSndWnd       uint32
}

// Add records one reading. Smoothed values of the kernel are averaged over the window, because the
// last one says little about a connection whose window oscillates.
func (f *Flow) Add(info sys.TCPInfo, inWindow bool) {
	f.Last = info
	if f.cut.Length == 0 {
		f.cut = info // the first reading: earlier data belong to no interval
	}
	if !inWindow {
		return
	}
	f.count++
	f.rttSum += float64(info.RTTMicros) / 1e6
	f.cwndSum += cwndBytes(info)
	f.maxSndWnd = max(f.maxSndWnd, info.SndWndBytes)
}

// Open makes the latest reading the opening edge of the window.
func (f *Flow) Open() { *f = Flow{Last: f.Last, open: f.Last, cut: f.Last} }

// Shut makes the latest reading the closing edge of the window; b is what the socket options report
// then.
func (f *Flow) Shut(b Buffers) { f.shut, f.buffers = f.Last, b }

// Known reports whether the connection was readable at both edges.
func (f *Flow) Known() bool { return f.open.Length > 0 && f.shut.Length > 0 }

// TellsReceived reports whether the kernel counts received payload (tcpi_bytes_received, Linux
// 4.1).
func (f *Flow) TellsReceived() bool { return f.Last.Has(bytesReceivedEnd) }

// ReceivedBytes returns the payload in bytes that arrived inside the window. ok is false if the
// kernel does not count it.
//
// tcpi_bytes_received counts the data in order, read by a program or not. When a lost segment is
// retransmitted, all the data that waited behind the hole count at that moment, although they
// arrived earlier: a window that opens while a hole is open would get all of them. So the result is
// bounded by what the segments that arrived inside the window can have carried, if the kernel
// counts them correctly. Behind a virtio NIC that merges segments it does not. Then the count of
// the whole connection is too small as well, which reveals the case.
func (f *Flow) ReceivedBytes() (n int64, ok bool) {
	a, b := f.open, f.shut
	if !f.Known() || !b.Has(bytesReceivedEnd) {
		return 0, false
	}
	received := b.BytesReceived - min(b.BytesReceived, a.BytesReceived)
	if b.Has(dataSegsEnd) && carried(a) >= a.BytesReceived && carried(b) >= b.BytesReceived {
		received = min(received, uint64(b.DataSegsIn-a.DataSegsIn)*uint64(b.RcvMSSBytes))
	}
	return int64(received), true
}

// SentBytes returns the payload in bytes that left for the first time inside the window: what was
// acknowledged, and what is in flight, in whole segments. ok is false if the kernel does not count
// it. tcpi_bytes_sent is no help: what the queue of the NIC refuses counts there again with the
// next attempt, and not as retransmitted.
func (f *Flow) SentBytes() (n int64, ok bool) {
	if !f.Known() || !f.shut.Has(bytesAckedEnd) {
		return 0, false
	}
	left := func(t sys.TCPInfo) int64 {
		return int64(t.BytesAcked) + int64(t.UnackedPackets)*int64(t.SndMSSBytes)
	}
	return max(left(f.shut)-left(f.open), 0), true
}

// carried returns the most bytes that all segments with data of a connection can have carried.
// tcpi_data_segs_in has 32 bits; a count that wrapped is useless.
func carried(t sys.TCPInfo) uint64 { return uint64(t.DataSegsIn) * uint64(t.RcvMSSBytes) }

// Part is the activity of one connection in one interval.
type Part struct {
	RTTSeconds, RTTVarSeconds                float64 // smoothed
	CwndBytes, SsthreshBytes                 float64 // SsthreshBytes 0: slow start has not ended
	DeliveryRateBitsPerSec                   float64
	RwndLimitedSeconds, SndbufLimitedSeconds float64
	RetransmittedSegments                    uint64
}

// infiniteSsthresh is TCP_INFINITE_SSTHRESH of Linux: no loss has set one yet.
const infiniteSsthresh = 0x7fffffff

// Cut ends the running interval at the latest reading and returns its Part. ok is false without a
// reading.
func (f *Flow) Cut() (p Part, ok bool) {
	a, b := f.cut, f.Last
	if b.Length == 0 {
		return Part{}, false
	}
	f.cut = b
	p = Part{
		RTTSeconds: float64(b.RTTMicros) / 1e6, RTTVarSeconds: float64(b.RTTVarMicros) / 1e6,
		CwndBytes:              cwndBytes(b),
		DeliveryRateBitsPerSec: float64(b.DeliveryRateBytes) * 8,
		RwndLimitedSeconds:     seconds(b.RwndLimitedMicros, a.RwndLimitedMicros),
		SndbufLimitedSeconds:   seconds(b.SndbufLimitedMicros, a.SndbufLimitedMicros),
		RetransmittedSegments:  uint64(b.TotalRetrans - a.TotalRetrans), // wraps at 32 bits
	}
	if b.SndSSThreshPackets < infiniteSsthresh {
		p.SsthreshBytes = float64(b.SndSSThreshPackets) * float64(b.SndMSSBytes)
	}
	return p, true
}

// Report returns the evidence of the connection: differences over the window for counters, the last
// reading for states.
func (f *Flow) Report(sender bool) TCPInfo {
	// Counters of the kernel never decrease on one connection; min() guards against a socket that
	// was not readable at the first edge.
	a, b := f.open, f.shut
	t := TCPInfo{
		Sender:                 sender,
		BusySeconds:            seconds(b.BusyMicros, a.BusyMicros),
		RwndLimitedSeconds:     seconds(b.RwndLimitedMicros, a.RwndLimitedMicros),
		SndbufLimitedSeconds:   seconds(b.SndbufLimitedMicros, a.SndbufLimitedMicros),
		AppLimited:             b.DeliveryRateAppLimited,
		RTTSeconds:             float64(b.RTTMicros) / 1e6,
		MinRTTSeconds:          minRTT(b.MinRTTMicros),
		CwndBytes:              cwndBytes(b),
		SndMSSBytes:            int(b.SndMSSBytes),
		RcvMSSBytes:            int(b.RcvMSSBytes),
		AdvMSSBytes:            int(b.AdvMSSBytes),
		SndWndBytes:            int64(b.SndWndBytes),
		MaxSndWndBytes:         int64(max(f.maxSndWnd, b.SndWndBytes)),
		RcvWndBytes:            int64(b.RcvWndBytes),
		RcvSpaceBytes:          int64(b.RcvSpaceBytes),
		SndWScale:              int(b.SndWScale),
		RcvWScale:              int(b.RcvWScale),
		WScaleOK:               b.Options.Has(sys.OptWScale),
		SACKOK:                 b.Options.Has(sys.OptSACK),
		TimestampsOK:           b.Options.Has(sys.OptTimestamps),
		ECNOK:                  b.Options.Has(sys.OptECN),
		DeliveryRateBitsPerSec: float64(b.DeliveryRateBytes) * 8,
		BytesAcked:             b.BytesAcked - min(b.BytesAcked, a.BytesAcked),
		BytesReceived:          b.BytesReceived - min(b.BytesReceived, a.BytesReceived),
		BytesRetransmitted:     b.BytesRetrans - min(b.BytesRetrans, a.BytesRetrans),
		// These wrap at 32 bits, so the subtraction must wrap as well.
		SegsOut:     uint64(b.SegsOut - a.SegsOut),
		SegsIn:      uint64(b.SegsIn - a.SegsIn),
		RetransSegs: uint64(b.TotalRetrans - a.TotalRetrans),
		ReorderSeen: uint64(b.ReordSeen - a.ReordSeen),
		DSACKDups:   uint64(b.DSACKDups - a.DSACKDups),
		PMTUBytes:   int(b.PMTUBytes),
	}
	if f.count > 0 {
		t.MeanRTTSeconds, t.MeanCwndBytes = f.rttSum/float64(f.count), f.cwndSum/float64(f.count)
	}
	t.SndBufBytes, t.RcvBufBytes, t.CongestionControl = f.buffers.SendBytes, f.buffers.ReceiveBytes,
		f.buffers.Congestion
	t.UnsentLimitBytes = f.buffers.UnsentBytes
	return t
}

func cwndBytes(t sys.TCPInfo) float64 { return float64(t.SndCwndPackets) * float64(t.SndMSSBytes) }

// seconds returns the growth of a counter of microseconds, in seconds.
func seconds(after, before uint64) float64 { return float64(after-min(after, before)) / 1e6 }

// minRTT returns tcpi_min_rtt in seconds; the kernel reports ~0 before the first sample.
func minRTT(micros uint32) float64 {
	if micros == ^uint32(0) {
		return 0
	}
	return float64(micros) / 1e6
}
