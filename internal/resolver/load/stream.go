package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"time"
)

// streamChannel is TCP or TLS: each message behind its length in two octets (RFC 1035 §4.2.2).
type streamChannel struct {
	conn    net.Conn
	reader  *bufio.Reader
	out     []byte
	in      []byte
	patient time.Duration
}

func newStream(conn net.Conn, o Options) *streamChannel {
	return &streamChannel{conn: conn, reader: bufio.NewReaderSize(conn, 1<<16),
		in: make([]byte, 1<<16), patient: o.Timeout}
}

func dialTCP(ctx context.Context, o Options) (channel, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", o.Server.String())
	if err != nil {
		return nil, err
	}
	return newStream(conn, o), nil
}

// dialSecure opens a TLS connection. A name server is often known by its address alone, so the
// certificate counts only where the user names the server.
func dialSecure(ctx context.Context, o Options, protocol string) (*tls.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{
		ServerName: o.ServerName, InsecureSkipVerify: o.ServerName == "", MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol},
	}}
	conn, err := d.DialContext(ctx, "tcp", o.Server.String())
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

func dialTLS(ctx context.Context, o Options) (channel, error) {
	conn, err := dialSecure(ctx, o, "dot") // RFC 7858 §8.1
	if err != nil {
		return nil, err
	}
	return newStream(conn, o), nil
}

// send writes all queries in one call, so that they share packets and records.
func (s *streamChannel) send(queries [][]byte) error {
	s.out = s.out[:0]
	for _, q := range queries {
		s.out = binary.BigEndian.AppendUint16(s.out, uint16(len(q)))
		s.out = append(s.out, q...)
	}
	// A server that reads nothing must not hold up the schedule for ever.
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.patient)); err != nil {
		return err
	}
	_, err := s.conn.Write(s.out)
	return err
}

func (s *streamChannel) receive() ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(s.reader, length[:]); err != nil {
		return nil, err
	}
	m := s.in[:binary.BigEndian.Uint16(length[:])]
	_, err := io.ReadFull(s.reader, m)
	return m, err
}

func (s *streamChannel) close() error { return s.conn.Close() }

func (s *streamChannel) abort() error { return abortConn(s.conn) }

// abortConn closes a connection without the farewell of TLS, which waits for room to write.
func abortConn(conn net.Conn) error {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return conn.Close()
}
