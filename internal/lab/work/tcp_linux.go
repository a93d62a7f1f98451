package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tcpSink reads in pieces of Bytes. With a Rate it leaves the rest in the socket, whose window then
// closes.
func (j *job) tcpSink(ctx context.Context) error {
	return j.serve(ctx, func(c net.Conn) {
		buf := make([]byte, j.Bytes)
		if j.Rate == 0 { // the reader must not be the limit
			buf = make([]byte, 256<<10)
		}
		start, n := time.Now(), 0
		for {
			k, err := c.Read(buf)
			if err != nil {
				return
			}
			n += k
			pace(ctx, start, float64(n)*8, j.Rate)
		}
	})
}

// tcpSource writes zeros: no program reads their content, and nothing on the path compresses.
func (j *job) tcpSource(ctx context.Context) error {
	// One start for all connections: bursts that begin together overflow a shallow queue.
	epoch := time.Now()
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		c, err := j.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		defer until(ctx, c)()
		begun()
		buf, start, n := make([]byte, j.Bytes), time.Now(), 0
		for ctx.Err() == nil {
			// By the clock and not relative to the last burst: otherwise slower connections would
			// drift apart and send alone.
			if j.Burst > 0 {
				if turn := j.interval(); j.Interval > 0 {
					rest(ctx, turn-time.Since(epoch)%turn)
				}
				for left := j.Burst; left > 0; left -= len(buf) {
					if _, err := c.Write(buf[:min(left, len(buf))]); err != nil {
						return err
					}
				}
				continue
			}
			if _, err := c.Write(buf); err != nil {
				return err
			}
			n += len(buf)
			pace(ctx, start, float64(n)*8, j.Rate)
		}
		return nil
	})
}

// rpcServer sends nothing before it has a whole request, so its kernel delays the acknowledgement
// of the first half.
func (j *job) rpcServer(ctx context.Context) error {
	return j.serve(ctx, func(c net.Conn) {
		for request := make([]byte, j.Bytes); ; {
			if _, err := io.ReadFull(c, request); err != nil {
				return
			}
			if _, err := c.Write(request[:1]); err != nil {
				return
			}
		}
	})
}

// rpcClient writes in the way that stalls: the second half waits for the acknowledgement of the
// first (RFC 896), and the server, which has no reply to half a request, delays it by 40 ms.
func (j *job) rpcClient(ctx context.Context) error {
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		c, err := j.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		defer until(ctx, c)()
		if err := c.SetNoDelay(false); err != nil { // package net sets it by default
			return err
		}
		begun()
		request, answer := make([]byte, j.Bytes), make([]byte, 1)
		start, n := time.Now(), 0
		for ctx.Err() == nil {
			for _, half := range [][]byte{request[:j.Bytes/2], request[j.Bytes/2:]} {
				if _, err := c.Write(half); err != nil {
					return err
				}
			}
			if _, err := io.ReadFull(c, answer); err != nil {
				return err
			}
			n++
			pace(ctx, start, float64(n), j.Packets)
		}
		return nil
	})
}

// slowListener makes its socket by system calls, because package net always asks for the largest
// backlog.
func (j *job) slowListener(ctx context.Context) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: j.Port}); err != nil {
		return fmt.Errorf("bind to port %d: %w", j.Port, err)
	}
	if err := unix.Listen(fd, j.Count); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	j.ready()
	for ctx.Err() == nil {
		rest(ctx, j.interval())
		// Without blocking: no connection may be waiting, and the loop must see the end of ctx.
		if c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK); err == nil {
			_ = unix.Close(c) // the connection has no further use
		}
	}
	return nil
}

// connector opens connections without waiting for earlier ones and ignores their failures: those
// are the fault of the server.
func (j *job) connector(ctx context.Context) error {
	d := net.Dialer{Timeout: 5 * time.Second}
	j.ready()
	for start, n := time.Now(), 1.0; ctx.Err() == nil; n++ {
		// The rate and the timeout of five seconds bound the number of goroutines.
		go func() {
			c, err := d.DialContext(ctx, "tcp4", j.at(j.Port))
			if err != nil {
				return
			}
			rest(ctx, j.interval())
			_ = c.Close()
		}()
		pace(ctx, start, n, max(1, j.Packets))
	}
	return nil
}

// churn closes first, so that every connection's local port stays in use for a minute (TIME_WAIT,
// RFC 9293 §3.6.1).
func (j *job) churn(ctx context.Context) error {
	to, err := j.target(ctx)
	if err != nil {
		return err
	}
	address := net.TCPAddrFromAddrPort(netip.AddrPortFrom(to, uint16(j.Port)))
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		begun()
		start, n := time.Now(), 0.0
		for ; ctx.Err() == nil; n++ {
			c, err := net.DialTCP("tcp4", nil, address)
			switch {
			case err == nil:
				_ = c.Close()
			// EADDRNOTAVAIL is the planted fault: no local port is free. The other errors come from
			// an overloaded server.
			case errors.Is(err, unix.EADDRNOTAVAIL), os.IsTimeout(err), errors.Is(err, unix.ECONNRESET):
				rest(ctx, time.Millisecond) // as a program that just tries again
			default:
				return err
			}
			pace(ctx, start, n, j.Packets)
		}
		return nil
	})
}
