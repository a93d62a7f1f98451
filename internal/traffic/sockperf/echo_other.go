//go:build !linux

package sockperf

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// udpEcho answers datagrams one at a time through package net. On a host with several addresses it answers from the one that its routes prefer.
type udpEcho struct{ conn *net.UDPConn }

func newUDPEcho(conn *net.UDPConn) (*udpEcho, error) { return &udpEcho{conn: conn}, nil }

// wake makes run return.
func (e *udpEcho) wake() { _ = e.conn.Close() } // datagrams have nothing to lose

// close may be called again.
func (e *udpEcho) close() { _ = e.conn.Close() }

// run answers until ctx ends.
func (e *udpEcho) run(ctx context.Context, gate *admission.Gate, b *book) error {
	buf := make([]byte, 1<<16)
	defer func() { b.sweep(sys.Monotonic(), true) }()
	for {
		// The book wants to be looked at when nothing comes, too.
		if err := e.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil && ctx.Err() == nil {
			return err
		}
		n, from, err := e.conn.ReadFromUDPAddrPort(buf)
		if ctx.Err() != nil {
			return nil
		}
		now := sys.Monotonic()
		b.sweep(now, false)
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case errors.Is(err, os.ErrDeadlineExceeded), err != nil:
			continue // quiet, or an ICMP error that some answer brought about
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if judge(buf[:n], from, gate, b, now) {
			if _, err := e.conn.WriteToUDPAddrPort(buf[:n], from); err != nil {
				b.page(from, now).unsent++
			}
		}
	}
}
