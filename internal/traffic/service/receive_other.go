//go:build !linux

package service

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// Receive takes datagrams one after the other until ctx ends, and then returns nil, as [Accept]
// does. Every second it calls sweep, unless that is nil, also while datagrams arrive.
func Receive(ctx context.Context, conn *net.UDPConn, take func(Datagram), sweep func()) error {
	_ = conn.SetReadBuffer(ReceiveBufferBytes) // less is slower, not wrong
	p := make([]byte, datagramBytes)
	answer := func(p []byte, to netip.AddrPort) error {
		_, err := conn.WriteToUDPAddrPort(p, to)
		return err
	}
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
			take(Datagram{p[:n], unmapped(from), time.Now(), answer})
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
