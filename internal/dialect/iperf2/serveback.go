package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Clients of iperf 1 and 2 have -d (both directions at once) and -r (one after the other), for
// which the server connects back to a port of the client, one connection for each of the client's,
// and sends what the client sends. Such a connection begins with payload and not with settings.
//
// It goes to the address whose handshake opened the client's connection, and to no port below
// [lowestPort], so no client can make this host talk to another one, or to a service.

// backWait bounds the time to connect back; a filter at the client may drop everything.
const backWait = 10 * time.Second

// backHead is the beginning of a connection back: what the program sends there too. The pattern of
// the engine could look like settings.
const backHead = "012345678901234567890123456789012345678901234567890123456789"

// bothWays receives, and sends on a connection back: at once with -d, afterwards with -r.
func (t *transfer) bothWays(ctx context.Context, asked settings, local netip.AddrPort, start time.Time,
	before int) error {
	if !asked.atOnce {
		if err := t.receive(ctx, start, before); err != nil {
			return err
		}
		// The program ends the time of its first half when this connection is closed.
		_ = t.conn.Close()
		return t.back(ctx, asked, local)
	}
	sent := make(chan error, 1)
	go func() { sent <- t.back(ctx, asked, local) }()
	return errors.Join(t.receive(ctx, start, before), <-sent)
}

// back connects to the client and sends what it requested.
func (t *transfer) back(ctx context.Context, asked settings, local netip.AddrPort) error {
	if asked.port < lowestPort || asked.port > 65535 {
		return fmt.Errorf("connect back: port %d is not within %d and 65535", asked.port, lowestPort)
	}
	to := netip.AddrPortFrom(t.from.Addr(), uint16(asked.port))
	d := net.Dialer{Timeout: backWait, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local.Addr(), 0))}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return fmt.Errorf("connect back: %w", err)
	}
	link, err := engine.AdoptBlocking(conn.(*net.TCPConn), engine.ConnOptions{})
	if err != nil {
		return err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { _ = link.Close() })() // as in ServeConn
	t.visit.OnLoss(func() { _ = link.Close() })
	b := &transfer{Server: t.Server, conn: link, from: to, visit: t.visit}
	return b.send(ctx, asked, backHead)
}
