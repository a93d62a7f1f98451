package service

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestServesAfterAShortage uses up the descriptors of a server, which must say so.
func TestServesAfterAShortage(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	s, err := Listen(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	logged := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, Handler{
			Conn: func(_ context.Context, conn *net.TCPConn) {
				_, _ = io.WriteString(conn, "!")
				_ = conn.Close()
			},
			Packet: func(d Datagram) { _ = d.Answer([]byte("!")) },
			Log:    Limited(func(line string) { logged <- line }, 10, "test"),
		})
	}()
	// An answer to a datagram shows that the server has both sockets.
	ping, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ping.Close()
	if _, err := ping.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	if _, err := ping.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("tcp", s.Addr().String()) })
	defer conn.Close()
	t.Log(<-logged)
	feed()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "!" {
		t.Errorf("%q, %v", got, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
