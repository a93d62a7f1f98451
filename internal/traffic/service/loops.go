package service

import (
	"context"
	"net/netip"
	"time"
)

// ReceiveBufferBytes is requested for UDP sockets so that a burst at full rate survives a moment
// without the processor. The kernel grants what net.core.rmem_max allows.
const ReceiveBufferBytes = 4 << 20

const (
	// sweepEvery is how late a sweep may be: what servers forget is some seconds old.
	sweepEvery = time.Second
	// datagramBytes holds the largest payload that UDP carries, 65527 bytes over IPv6, so no
	// datagram is cut.
	datagramBytes = 64 << 10
)

// Datagram is one datagram that a server received.
type Datagram struct {
	Payload []byte         // overwritten after the datagram was handled
	From    netip.AddrPort // an IPv4 address as such, even where a socket for both versions has it as IPv6
	// arrival, with a monotonic reading: in the kernel where [Receive] takes several at a time, else
	// when it was read
	At     time.Time
	answer func(p []byte, to netip.AddrPort) error
}

// Answer sends p to the source of the datagram. It may be called only until the datagram was
// handled. A datagram that no socket received is not answered.
func (d Datagram) Answer(p []byte) error {
	if d.answer == nil {
		return nil
	}
	return d.answer(p, d.From)
}

// Rest waits for d, or until ctx ends, and then returns its cause. A wait of no time returns nil,
// even after ctx has ended.
func Rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
