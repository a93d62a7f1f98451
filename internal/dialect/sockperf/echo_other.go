//go:build !linux

package sockperf

import (
	"context"
	"fmt"
	"net"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

// udpEcho answers datagrams one at a time through package net. On a host with several addresses,
// the routes choose the source of an answer.
type udpEcho struct{ conn *net.UDPConn }

func newUDPEcho(conn *net.UDPConn) (*udpEcho, error) { return &udpEcho{conn: conn}, nil }

// wake makes run return.
func (e *udpEcho) wake() { _ = e.conn.Close() } // an error of close loses no data of UDP

// close may be called more than once.
func (e *udpEcho) close() { _ = e.conn.Close() }

// run answers until ctx ends.
func (e *udpEcho) run(ctx context.Context, gate *admission.Gate, b *book) error {
	defer func() { b.sweep(sys.Monotonic(), true) }()
	take := func(d service.Datagram) {
		p, from, now := d.Payload, d.From, sys.Monotonic()
		b.sweep(now, false)
		if !judge(p, from, gate, b, now) {
			return
		}
		if err := d.Answer(p); err != nil {
			b.page(from, now).unsent++
		}
	}
	// The book also needs regular calls when nothing arrives.
	err := service.Receive(ctx, e.conn, take, func() { b.sweep(sys.Monotonic(), false) })
	if err != nil {
		return fmt.Errorf("receive sockperf messages: %w", err)
	}
	return nil
}
