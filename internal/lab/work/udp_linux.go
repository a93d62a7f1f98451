package work

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// udpSocket opens a socket at a port; 0 lets the kernel choose.
func (j *job) udpSocket(ctx context.Context, port int) (*net.UDPConn, error) {
	c, err := (&net.ListenConfig{Control: j.buffered}).ListenPacket(ctx, "udp4", net.JoinHostPort("", fmt.Sprint(port)))
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// udpSink pauses after each read, as a program that processes its data. Meanwhile the socket's
// buffer fills.
func (j *job) udpSink(ctx context.Context) error {
	c, err := j.udpSocket(ctx, j.Port)
	if err != nil {
		return err
	}
	defer c.Close()
	defer until(ctx, c)()
	j.ready()
	buf := make([]byte, 64<<10) // the largest possible datagram
	var retry incoming.Retry
	for start, n := time.Now(), 1.0; ; n++ {
		if _, _, err := c.ReadFromUDPAddrPort(buf); err != nil {
			if err := retry.After(ctx, err); err != nil {
				return err
			}
			continue
		}
		retry.Done()
		pace(ctx, start, n, j.Packets)
	}
}

// target returns the address of To, which is a host of the world or an address.
func (j *job) target(ctx context.Context) (netip.Addr, error) {
	if a, err := netip.ParseAddr(j.To); err == nil {
		return a, nil
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", j.To)
	if err != nil {
		return netip.Addr{}, err
	}
	return all[0].Unmap(), nil
}

// refused reports whether an error of sending is one that a datagram program ignores: no program
// listens, or the queue was full.
func refused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN)
}

// udpSource does not wait for its reader: datagrams have no window, so a slow reader loses them.
func (j *job) udpSource(ctx context.Context) error {
	to, err := j.target(ctx)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(to, uint16(j.Port))
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		c, err := j.udpSocket(ctx, 0)
		if err != nil {
			return err
		}
		defer c.Close()
		begun()
		datagram := make([]byte, j.Bytes)
		start, n := time.Now(), 0.0
		for ctx.Err() == nil {
			// Sends and rests alternately, as cross traffic that comes and goes.
			if j.Interval > 0 && time.Since(start) > j.interval() {
				rest(ctx, j.interval())
				start, n = time.Now(), 0
			}
			if _, err := c.WriteToUDPAddrPort(datagram, at); err != nil && !refused(err) {
				return err
			}
			n++
			pace(ctx, start, n, j.Packets)
		}
		return nil
	})
}

// udpEcho sends the replies without which connection tracking assures no flow.
func (j *job) udpEcho(ctx context.Context) error {
	port := j.Port - 1
	next := make(chan int, j.Count)
	for range j.Count {
		port++
		next <- port
	}
	return j.each(ctx, func(ctx context.Context, begun func()) error {
		c, err := j.udpSocket(ctx, <-next)
		if err != nil {
			return err
		}
		defer c.Close()
		defer until(ctx, c)()
		begun()
		var retry incoming.Retry
		for buf := make([]byte, 2048); ; {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				if err := retry.After(ctx, err); err != nil {
					return err
				}
				continue
			}
			retry.Done()
			if _, err := c.WriteToUDPAddrPort(buf[:n], from); err != nil && !refused(err) {
				return err
			}
		}
	})
}

// flowsToFill returns the number of ports at each end that makes enough flows to fill a share of
// the connection tracking table. The machine sets the limit of the table, and every namespace has
// its own table of that size.
func flowsToFill(share float64) (ports int, err error) {
	b, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil {
		return 0, fmt.Errorf("ask for the size of the table of connections: %w", err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("size of the table of connections: %w", err)
	}
	ports = int(math.Ceil(math.Sqrt(share * float64(limit))))
	if ports > maxCount {
		return 0, fmt.Errorf("a table of %d connections: too large to be filled, %d at most", limit, maxCount*maxCount)
	}
	return ports, nil
}

// udpFlows makes flows that connection tracking must not evict: a full table refuses new
// connections only if its flows are assured; it drops other flows early. Each flow sends once, and
// again when two seconds have passed since its first packet; see the package's sources.
func (j *job) udpFlows(ctx context.Context) error {
	to, err := j.target(ctx)
	if err != nil {
		return err
	}
	sockets := make([]*net.UDPConn, j.Count)
	for i := range sockets {
		if sockets[i], err = j.udpSocket(ctx, 0); err != nil {
			return err
		}
		defer sockets[i].Close()
		go drain(ctx, sockets[i])
	}
	const assured = 2500 * time.Millisecond
	datagram := []byte("flow")
	// Far below what an echo on one processor answers: a lost datagram leaves its flow without
	// assurance.
	const rate = 100_000
	for round := 0; ctx.Err() == nil; round++ {
		start, n := time.Now(), 0.0
		for _, c := range sockets {
			for port := range j.Count {
				if _, err := c.WriteToUDPAddrPort(datagram, netip.AddrPortFrom(to, uint16(j.Port+port))); err != nil &&
					!refused(err) {
					return err
				}
				n++
				pace(ctx, start, n, rate)
			}
		}
		// The first round makes the flows, the second, after two seconds, assures them, and the
		// third repairs losses.
		if round == 2 {
			j.ready()
		}
		if round < 2 {
			rest(ctx, assured-time.Since(start))
		} else {
			rest(ctx, 20*time.Second) // an assured flow lives for two minutes without a packet
		}
	}
	return nil
}

// drain discards replies, so that they do not overflow the socket, which would be a fault of its
// own.
func drain(ctx context.Context, c *net.UDPConn) {
	var retry incoming.Retry
	for buf := make([]byte, 2048); ; {
		_, _, err := c.ReadFromUDPAddrPort(buf)
		if err == nil {
			retry.Done()
		} else if retry.After(ctx, err) != nil {
			return
		}
	}
}

// neighbours sends to hosts that do not exist. The kernel keeps such an entry for three seconds
// while it waits for a reply, so a table with fewer places than addresses overflows.
func (j *job) neighbours(ctx context.Context) error {
	first, err := j.target(ctx)
	if err != nil {
		return err
	}
	c, err := j.udpSocket(ctx, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	for round := 0; ctx.Err() == nil; round++ {
		a := first
		for range j.Count {
			// ENOBUFS is the planted fault: the table has no room. An entry without a reply
			// (EHOSTUNREACH) also fills the table.
			_, err := c.WriteToUDPAddrPort([]byte{0}, netip.AddrPortFrom(a, uint16(j.Port)))
			if err != nil && !refused(err) && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EINVAL) {
				return err
			}
			a = a.Next()
		}
		if round == 0 {
			j.ready()
		}
		rest(ctx, j.interval())
	}
	return nil
}
