package mount

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// Ends are the addresses of a server and of this host towards it, and the time of one empty call.
type Ends struct {
	Server, Client netip.Addr
	RoundTrip      time.Duration
}

// Errors of a server that cannot be measured.
var (
	ErrSilent = errors.New("the server does not answer")
	ErrNotNFS = errors.New("what answers is no NFS server")
)

// Ping calls the procedure 0 of NFS over TCP (RFC 5531, RFC 1813), three times on one connection,
// and returns the shortest time. A host that refuses connections, one that is silent and one that
// answers something else are three errors.
func Ping(ctx context.Context, server string, port int, version uint32, patience time.Duration) (Ends, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(server, fmt.Sprint(port)))
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		return Ends{}, fmt.Errorf("ask %s: %w", server, dns)
	}
	if err != nil {
		if isTimeout(err) {
			err = fmt.Errorf("connect: %w within %v", ErrSilent, patience)
		}
		return Ends{}, fmt.Errorf("ask %s: %w", server, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	e := Ends{Server: addressOf(c.RemoteAddr()), Client: addressOf(c.LocalAddr())}
	for i := range uint32(3) {
		took, err := null(c, i+1, version)
		if isTimeout(err) {
			err = fmt.Errorf("empty call: %w within %v", ErrSilent, patience)
		}
		if err != nil {
			return e, fmt.Errorf("ask %s: %w", server, err)
		}
		if e.RoundTrip == 0 || took < e.RoundTrip {
			e.RoundTrip = took
		}
	}
	return e, nil
}

func addressOf(a net.Addr) netip.Addr {
	p, _ := netip.ParseAddrPort(a.String()) // of a TCP connection, always one
	return p.Addr().Unmap()
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout()
}

// null makes one call. Its record mark, call, and reply are those of RFC 5531, sections 9 and 11.
func null(c net.Conn, id, version uint32) (time.Duration, error) {
	const program, call, rpc = 100003, 0, 2
	var b []byte
	for _, word := range []uint32{1<<31 | 40, id, call, rpc, program, version, 0, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	began := time.Now()
	if _, err := c.Write(b); err != nil {
		return 0, err
	}
	// The mark, the id, "reply" and "accepted": what follows differs by version and says little.
	head := make([]byte, 4+12)
	if _, err := io.ReadFull(c, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = ErrNotNFS
		}
		return 0, err
	}
	took := time.Since(began)
	left := int64(binary.BigEndian.Uint32(head)&^(1<<31)) - 12
	if binary.BigEndian.Uint32(head[4:]) != id || binary.BigEndian.Uint32(head[8:]) != 1 || left < 0 || left > 1<<16 {
		return 0, ErrNotNFS
	}
	_, err := io.CopyN(io.Discard, c, left)
	return took, err
}
