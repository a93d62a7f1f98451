//go:build !linux

package echo

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// maxDatagram is the largest IP packet, headers included, and so more than any datagram.
const maxDatagram = 1 << 16

// serverSocket is a socket of package net.
type serverSocket struct {
	conn  *net.UDPConn
	local netip.AddrPort
	// ends with wake, which stop calls
	serving context.Context //nolint:containedctx // no caller's
	wake    context.CancelFunc
}

// prepareServer sets nothing: ports are shared on Linux only.
func prepareServer(string, string, syscall.RawConn) error { return nil }

func newServerSocket(conn *net.UDPConn, local netip.AddrPort) (*serverSocket, error) {
	s := &serverSocket{conn: conn, local: local}
	s.serving, s.wake = context.WithCancel(context.Background())
	return s, nil
}

// stop makes serve return.
func (s *serverSocket) stop() error {
	s.wake()
	return s.conn.Close()
}

// close has nothing left to do.
func (s *serverSocket) close() {}

// serve answers packets until stop, one at a time. It sends no packets of a size that the near end
// names: package net cannot forbid fragments.
func (s *serverSocket) serve(server *Server) {
	buf := make([]byte, maxDatagram)
	var retry incoming.Retry
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if retry.After(s.serving, err) != nil {
				return
			}
			continue
		}
		retry.Done()
		r := server.answer(buf[:n], from, s.local, time.Now())
		if r.probe {
			putCannot(buf)
			r.bytes = probeHeaderBytes
		}
		if r.bytes > 0 {
			// An answer that cannot be sent is a lost packet, which the pinger counts.
			_, _ = s.conn.WriteToUDPAddrPort(buf[:r.bytes], from)
		}
	}
}

// putCannot turns an answer into one that reports that this system cannot send packets of a named
// size.
func putCannot(p []byte) { binary.BigEndian.PutUint32(p[32:], probeCannot) }
