package service

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// ReceiveBufferBytes is requested for UDP sockets so that a burst at full rate survives a moment
// without the processor. The kernel grants what net.core.rmem_max allows.
const ReceiveBufferBytes = 4 << 20

const (
	// retryAfter is how long a loop rests after an error that passes. Descriptors are free again
	// when some test ends, so an immediate retry would only burn CPU; a client does not notice the
	// delay, because its handshake is over.
	retryAfter = 50 * time.Millisecond
	// sweepEvery is how late a sweep may be: what servers forget is some seconds old.
	sweepEvery = time.Second
	// datagramBytes holds the largest payload that UDP carries, 65527 bytes over IPv6, so no
	// datagram is cut.
	datagramBytes = 64 << 10
)

// Accept takes connections one after the other until ctx ends, and then returns nil. The caller
// that ends ctx closes the listener, which wakes the waiting call. It is an error if the listener
// was closed while ctx goes on; all other errors pass: a peer that was gone before it was accepted,
// or no free descriptors.
func Accept(ctx context.Context, accept func() (*net.TCPConn, error), take func(conn *net.TCPConn)) error {
	for {
		conn, err := accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // it arrived in the last moment and was promised nothing
			}
			return nil
		case err == nil:
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			_ = Rest(ctx, retryAfter) // the loop looks at ctx above
		}
	}
}

// Receive takes datagrams one after the other until ctx ends, and then returns nil, as [Accept]
// does. Every second it calls sweep, unless that is nil, also while datagrams arrive. take must not
// keep p.
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
			// A single error is most often the ICMP error about an answer of ours, as Windows
			// reports it: the next datagram is already there.
			failed = true
		}
	}
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
