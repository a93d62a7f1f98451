package service

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// ReceiveBufferBytes is asked of UDP sockets so that a burst at full rate survives a moment without
// the processor. The kernel grants what net.core.rmem_max allows.
const ReceiveBufferBytes = 4 << 20

const (
	// retryAfter is how long a loop rests after an error that goes by. Descriptors are free again
	// when some test ends, so asking at once would only burn a processor; a client does not notice
	// so little, as its handshake is over.
	retryAfter = 50 * time.Millisecond
	// sweepEvery is how late a sweep may be: what servers forget is some seconds old.
	sweepEvery = time.Second
	// datagramBytes holds the largest payload that UDP carries, 65527 bytes over IPv6, so nothing
	// is ever cut.
	datagramBytes = 64 << 10
)

// Accept takes connections one after the other until ctx ends, and then gives nil. Whoever ends ctx
// closes the listener, which wakes the call that waits. A listener that was closed without that is
// an error; all others go by: a peer that was gone before it was taken, or no descriptors left.
func Accept(ctx context.Context, accept func() (*net.TCPConn, error), take func(conn *net.TCPConn)) error {
	for {
		conn, err := accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // it came in the last moment and was promised nothing
			}
			return nil
		case err == nil:
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			_ = Rest(ctx, retryAfter) // whether it is over is asked above
		}
	}
}

// Receive takes datagrams one after the other until ctx ends, and then gives nil, as [Accept] does.
// Every second it calls sweep, unless that is nil, also while datagrams come in. take must not keep
// p.
func Receive(ctx context.Context, conn *net.UDPConn, take func(p []byte, from netip.AddrPort), sweep func()) error {
	_ = conn.SetReadBuffer(ReceiveBufferBytes) // less is slower, not wrong
	p := make([]byte, datagramBytes)
	failed := false
	for swept := true; ; {
		if sweep != nil && swept {
			// A deadline and no ticker: a deadline that has passed ends the next read even when
			// there is something to read.
			_ = conn.SetReadDeadline(time.Now().Add(sweepEvery)) // only a closed socket refuses, as the read then does
			swept = false
		}
		n, from, err := conn.ReadFromUDPAddrPort(p)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failed = false
			take(p[:n], unmapped(from))
		case errors.Is(err, net.ErrClosed):
			return err
		case sweep != nil && errors.Is(err, os.ErrDeadlineExceeded):
			sweep()
			swept = true
		case failed:
			_ = Rest(ctx, retryAfter) // as in Accept
		default:
			// One alone is most often the ICMP error that an answer of ours came back with, as
			// Windows reports it: the next datagram is there already.
			failed = true
		}
	}
}

// Rest waits for d, or until ctx ends, which is the error then. No time is no wait, whatever ctx
// says.
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
