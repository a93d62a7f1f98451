//go:build !linux

package service

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// Receive takes datagrams one after the other until ctx ends, and then returns nil, as
// [incoming.Connections] does. Every second it calls sweep, unless that is nil, also while
// datagrams arrive.
func Receive(ctx context.Context, conn *net.UDPConn, take func(Datagram), sweep func()) error {
	_ = conn.SetReadBuffer(ReceiveBufferBytes) // less is slower, not wrong
	p := make([]byte, datagramBytes)
	answer := func(p []byte, to netip.AddrPort) error {
		_, err := conn.WriteToUDPAddrPort(p, to)
		return err
	}
	var retry incoming.Retry
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
			retry.Done()
			take(Datagram{p[:n], unmapped(from), time.Now(), answer})
		case sweep != nil && errors.Is(err, os.ErrDeadlineExceeded):
			sweep()
			swept = true
		default:
			// Windows reports the ICMP errors about answers of ours here.
			if err := retry.After(ctx, err); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}
