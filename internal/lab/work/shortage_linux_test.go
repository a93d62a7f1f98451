package work

import (
	"context"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestServesAfterAShortage uses up the descriptors of a work that serves: it ended, and with it the
// scenario.
func TestServesAfterAShortage(t *testing.T) {
	if !testenv.Alone(t) {
		return
	}
	port := testenv.FreePorts(t, 1)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ready, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, Work{Kind: RPCServer, Host: "near", Port: port, Bytes: 100}, out)
		out.CloseWithError(io.EOF)
		ended <- err
	}()
	if _, err := ready.Read(make([]byte, 100)); err != nil {
		t.Fatal(err, <-ended)
	}
	go io.Copy(io.Discard, ready)
	conn, feed := testenv.Starve(t, func() (net.Conn, error) { return net.Dial("tcp4", at) })
	defer conn.Close()
	select {
	case err := <-ended:
		t.Fatalf("ended: %v", err)
	default:
	}
	feed()
	if _, err := conn.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("no answer: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
