package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// playServer answers one byte with one byte on every connection until ctx ends.
func playServer(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // ctx has ended
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 64)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if _, err := c.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
	}
}

// playTransactions sends one byte at a time, awaits each reply, and prints the replies per second.
// With connect each request uses a new connection.
func playTransactions(ctx context.Context, addr string, connect bool, d time.Duration, out io.Writer) error {
	var dialer net.Dialer
	var conn net.Conn
	buf := make([]byte, 1)
	start := time.Now()
	n := 0
	for ; time.Since(start) < d; n++ {
		if conn == nil {
			var err error
			if conn, err = dialer.DialContext(ctx, "tcp", addr); err != nil {
				return err
			}
		}
		if _, err := conn.Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			return err
		}
		if connect {
			// A reset and not a close, so that the ports of some hundred thousand connections do
			// not stay in TIME_WAIT for a minute.
			if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
				return err
			}
			_ = conn.Close() // reset
			conn = nil
		}
	}
	_, err := fmt.Fprintln(out, float64(n)/time.Since(start).Seconds())
	return err
}
